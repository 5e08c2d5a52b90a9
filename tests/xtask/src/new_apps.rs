//! New apps in each language, which are made, built and tested as their authors do it, with
//! packages from the registries. Versions that the templates do not pin are the newest ones, so
//! nothing records that an app was tested before.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};
use wattle_needs::Program;

use crate::files;
use crate::shell::target_folder;
use crate::step::run;

/// The name of each app, and of its folder.
const APP: &str = "hello";

/// A language of `wattle new`.
struct Language {
    /// The name in the command.
    name: &'static str,
    /// The programs that a build needs, besides cargo.
    programs: &'static [Program],
    /// The commands that check the component without a host, as `host/docs/develop.md` names them.
    checks: &'static [&'static str],
}

const LANGUAGES: &[Language] = &[
    Language { name: "rust", programs: &[], checks: &["cargo test"] },
    Language {
        name: "typescript",
        programs: &[Program::Node, Program::Npm],
        checks: &["npm test", "npm run check"],
    },
    Language {
        name: "python",
        programs: &[Program::Python],
        checks: &[".wattle/venv/bin/python -m unittest discover src"],
    },
    Language { name: "c", programs: &[Program::Python], checks: &[] },
];

/// Makes an app in each language, builds it, and runs its cases and its unit tests. The host must
/// be built.
///
/// # Errors
///
/// If a program is missing, or a step fails.
pub(crate) fn check() -> Result<()> {
    LANGUAGES.iter().try_for_each(check_one)
}

fn check_one(language: &Language) -> Result<()> {
    for program in language.programs {
        program.find()?;
    }
    let name = language.name;
    let folder = target_folder().join("new-apps").join(name);
    if let Err(error) = fs::remove_dir_all(&folder)
        && error.kind() != ErrorKind::NotFound
    {
        return Err(error).with_context(|| format!("cannot remove {}", folder.display()));
    }
    files::make(&folder)?;
    let wattle = target_folder().join("debug/wattle");
    let mut new = author(&wattle, &folder);
    run(&format!("make a new app in {name}"), new.args(["new", APP, "--lang", name]))?;
    let app = folder.join(APP);
    let mut test = author(&wattle, &app);
    run(&format!("build the new app in {name} and run its cases"), test.arg("test"))?;
    for check in language.checks {
        let mut words = check.split(' ');
        let program = program_of(&app, words.next().unwrap_or_default());
        let mut command = author(&program, &app);
        run(&format!("run `{check}` of the new app in {name}"), command.args(words))?;
    }
    Ok(())
}

/// Returns a command of an author.
fn author(program: &Path, folder: &Path) -> Command {
    let mut command = Command::new(program);
    // A new app has a target folder of its own, where `app.toml` expects its components.
    command.current_dir(folder).env_remove("CARGO_TARGET_DIR");
    command
}

/// Returns a program. The path of one is relative to the folder, and a name is looked up by the
/// system.
fn program_of(folder: &Path, program: &str) -> PathBuf {
    if program.contains('/') { folder.join(program) } else { program.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::root;

    #[test]
    fn languages_are_those_of_the_templates() {
        let folders = fs::read_dir(root().join("host/cli/templates")).unwrap();
        let mut names: Vec<String> =
            folders.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
        names.retain(|name| name != "common" && name != "kind");
        names.sort_unstable();
        let mut known: Vec<&str> = LANGUAGES.iter().map(|language| language.name).collect();
        known.sort_unstable();
        assert_eq!(names, known);
    }

    #[test]
    fn unit_tests_are_run_as_authors_are_told() {
        let page = files::read(&root().join("host/docs/develop.md")).unwrap();
        for language in LANGUAGES {
            let begin = format!("| `{}`", language.name);
            let row = page.lines().find(|line| line.starts_with(&begin)).unwrap();
            for check in language.checks {
                assert!(row.contains(&format!("`{check}`")), "{check}: {row}");
            }
        }
    }
}
