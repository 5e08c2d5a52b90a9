//! `[build]` of `app.toml`: the commands that build the components of the app.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use wattle_graph::id::PluginName;

use crate::scaffold::language::Language;

/// `[build]`: commands that build the components of the app.
///
/// Only the commands for authors read the table. A server only loads components, and never runs a
/// program that a folder names.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BuildTable {
    /// SDK that is unpacked to `.wattle/sdk` before the build.
    pub sdk: Option<Language>,
    /// Environment variables of the commands.
    pub env: BTreeMap<String, String>,
    /// Commands that install the dependencies of the build. They run again only after a change of
    /// the commands, the SDK or the files in `prepare_inputs`.
    pub prepare: Vec<BuildCommand>,
    /// Files that `prepare` depends on, relative to the app folder.
    pub prepare_inputs: Vec<PathBuf>,
    /// Commands that build the components. They run again only after a change of the commands, the
    /// SDK, the files in `watch` and `prepare_inputs`, or the outputs.
    pub commands: Vec<BuildCommand>,
    /// The files that the commands make, by component, relative to the app folder.
    pub outputs: BTreeMap<PluginName, PathBuf>,
    /// Files and folders whose changes require a new build, relative to the app folder. Default:
    /// `src`.
    pub watch: Vec<PathBuf>,
}

impl Default for BuildTable {
    fn default() -> Self {
        Self {
            sdk: None,
            env: BTreeMap::new(),
            prepare: Vec::new(),
            prepare_inputs: Vec::new(),
            commands: Vec::new(),
            outputs: BTreeMap::new(),
            watch: vec!["src".into()],
        }
    }
}

/// A program with its arguments, which are not interpreted by a shell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub struct BuildCommand {
    /// Name of the program, or its path relative to the app folder.
    pub program: String,
    /// The arguments.
    pub arguments: Vec<String>,
}

impl TryFrom<Vec<String>> for BuildCommand {
    type Error = &'static str;

    fn try_from(words: Vec<String>) -> Result<Self, Self::Error> {
        let mut words = words.into_iter();
        match words.next() {
            Some(program) if !program.is_empty() => {
                Ok(Self { program, arguments: words.collect() })
            }
            _ => Err("a command is a list that begins with a program, such as `[\"npm\", \"ci\"]`"),
        }
    }
}

impl From<BuildCommand> for Vec<String> {
    fn from(command: BuildCommand) -> Self {
        let BuildCommand { program, arguments } = command;
        std::iter::once(program).chain(arguments).collect()
    }
}

impl fmt::Display for BuildCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.program)?;
        self.arguments.iter().try_for_each(|argument| write!(f, " {argument}"))
    }
}
