//! `[apps.<name>]`: what an operator decides about one app.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{Map, Value};
use wattle_graph::id::PluginName;

/// `[apps.<name>]`. An app that is named here is vouched for: without a `[grants.<plugin>]` of
/// its own it gets what it asks for.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AppConfig {
    /// Its folder, if it is not in the plugins folder.
    pub path: Option<PathBuf>,
    /// Where its endpoints stand on the main address; only below `/apps/<name>` without it.
    pub mount: Option<String>,
    /// An address of its own.
    pub listen: Option<SocketAddr>,
    /// Settings that replace those of the app, key by key.
    pub settings: Map<String, Value>,
    /// Component files in place of those that the app names.
    pub components: BTreeMap<PluginName, PathBuf>,
    /// Where the app's files go, by their name in `app.toml`.
    pub files: BTreeMap<String, FilesConfig>,
}

/// `[apps.<name>.files.<files>]`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FilesConfig {
    /// The folder in place of the app's own, relative to the data folder.
    pub dir: Option<PathBuf>,
    /// An environment variable with the folder, which goes first if it is set. Without `dir` and
    /// `dir_env` it is the name of the files in capitals with `_LOG_DIR` behind it.
    pub dir_env: Option<String>,
    /// Whether files are written at all.
    pub enabled: bool,
}

impl Default for FilesConfig {
    fn default() -> Self {
        Self { dir: None, dir_env: None, enabled: true }
    }
}
