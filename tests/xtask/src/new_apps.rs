//! New apps of each kind in each language, which are made, built and tested as their authors do it,
//! with packages from the registries. Versions that the templates do not pin are the newest ones,
//! so nothing records that an app was tested before.
//!
//! The apps of a language are made in one folder, one after the other, and share packages and what
//! compilers have built.

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

/// The kinds of `wattle new`. The command makes the first one by default.
const KINDS: [&str; 3] = ["app", "tool", "node"];

/// Files and folders that the build of an app leaves beside those that `wattle new` made.
const SHARED: [&str; 5] = [".wattle", "target", "node_modules", "Cargo.lock", "package-lock.json"];

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

/// Makes an app of each kind in each language, builds it, and runs its cases and its unit tests.
/// The host must be built.
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
    KINDS.iter().try_for_each(|kind| check_kind(language, kind, &folder))
}

/// Makes an app of a kind in place of the app of another kind, and checks it.
fn check_kind(language: &Language, kind: &str, folder: &Path) -> Result<()> {
    let name = language.name;
    let (app, earlier) = (folder.join(APP), folder.join("earlier"));
    if app.exists() {
        move_to(&app, &earlier)?;
    }
    let wattle = target_folder().join("debug/wattle");
    let mut new = author(&wattle, folder);
    new.args(["new", APP, "--lang", name]);
    // The default is made as most authors do it.
    if kind != KINDS[0] {
        new.args(["--kind", kind]);
    }
    run(&format!("make a new {kind} in {name}"), &mut new)?;
    if earlier.exists() {
        for shared in SHARED.iter().filter(|shared| earlier.join(shared).exists()) {
            move_to(&earlier.join(shared), &app.join(shared))?;
        }
        fs::remove_dir_all(&earlier)
            .with_context(|| format!("cannot remove {}", earlier.display()))?;
    }
    let mut test = author(&wattle, &app);
    run(&format!("build the new {kind} in {name} and run its cases"), test.arg("test"))?;
    for check in language.checks {
        let mut words = check.split(' ');
        let program = program_of(&app, words.next().unwrap_or_default());
        let mut command = author(&program, &app);
        run(&format!("run `{check}` of the new {kind} in {name}"), command.args(words))?;
    }
    Ok(())
}

fn move_to(from: &Path, to: &Path) -> Result<()> {
    let moved = fs::rename(from, to);
    moved.with_context(|| format!("cannot move {} to {}", from.display(), to.display()))
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

    /// Returns the names of the folders of templates, sorted.
    fn templates(folder: &str) -> Vec<String> {
        let folders = fs::read_dir(root().join("host/cli/templates").join(folder)).unwrap();
        let mut names: Vec<String> =
            folders.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn languages_and_kinds_are_those_of_the_templates() {
        let mut known: Vec<&str> = LANGUAGES.iter().map(|language| language.name).collect();
        known.extend(["common", "kind"]);
        known.sort_unstable();
        assert_eq!(templates(""), known);
        let mut known = KINDS;
        known.sort_unstable();
        assert_eq!(templates("kind"), known);
        for language in LANGUAGES {
            let mut known = [&["common"][..], &KINDS[..]].concat();
            known.sort_unstable();
            assert_eq!(templates(language.name), known);
        }
    }

    #[test]
    fn documentation_names_the_sources_of_each_language() {
        let page = files::read(&root().join("host/docs/develop.md")).unwrap();
        for Language { name, .. } in LANGUAGES {
            for kind in KINDS {
                let link = format!("](../cli/templates/{name}/{kind}/src/");
                assert!(page.contains(&link), "{link}");
            }
            let file = match *name {
                "rust" => "plugins/sdk/README.md".to_owned(),
                other => format!("plugins/sdk/{other}/README.md"),
            };
            let readme = files::read(&root().join(&file)).unwrap();
            let sources = format!("`host/cli/templates/{name}`");
            assert!(readme.contains(&sources), "{file}: {sources}");
        }
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
