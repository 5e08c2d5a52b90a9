//! The files of a new app.
//!
//! The files come from layers of templates: templates for all apps, for a kind of apps, for a
//! language, and for a combination of kind and language. If several layers have the same file, the
//! file is the concatenation of these parts.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::Path;

use clap::ValueEnum;
use wattle_run::ports::store::UNBOUND;

use crate::error::Error;
use crate::scaffold::embedded;
use crate::scaffold::language::Language;

/// Prefix of templates for hidden files and folders.
const HIDDEN: &str = "dot-";

/// Maximum length of an app name in bytes. Package registries accept longer names, but thread ids
/// and file names contain the app name.
const NAME_BYTES: usize = 64;

/// The kind of a new app.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// An app whose graph has two nodes, of which one asks a person
    App,
    /// A tool, and a graph whose node calls it
    Tool,
    /// A single node in a graph
    Node,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::App => "app",
            Self::Tool => "tool",
            Self::Node => "node",
        })
    }
}

/// Returns the files of a new app by their paths in its folder.
pub fn files(name: &str, language: Language, kind: Kind) -> BTreeMap<String, String> {
    let layers = [
        "common".to_owned(),
        format!("kind/{kind}"),
        format!("{language}/common"),
        format!("{language}/{kind}"),
    ];
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    for layer in layers {
        for (path, content) in embedded::files_in(format!("templates/{layer}")) {
            let path = match path.strip_prefix(HIDDEN) {
                Some(hidden) => format!(".{hidden}"),
                None => path.to_owned(),
            };
            files.entry(path).or_default().push_str(&filled(content, name));
        }
    }
    files
}

/// Returns a template with its placeholders replaced by the name of the app.
fn filled(content: &[u8], name: &str) -> String {
    let text = String::from_utf8_lossy(content);
    // Cargo names the file of a library after its crate, in which `-` is replaced by `_`.
    text.replace("{{name}}", name).replace("{{crate}}", &name.replace('-', "_"))
}

/// Writes the files of a new app into a folder, which must be empty or not exist. Returns their
/// paths.
///
/// # Errors
///
/// [`Error::Usage`] for a name that not every build tool accepts and for a folder with files;
/// [`Error::File`] if a file cannot be written.
pub fn write(
    folder: &Path,
    name: &str,
    language: Language,
    kind: Kind,
) -> Result<Vec<String>, Error> {
    check(name)?;
    if folder.exists() && fs::read_dir(folder).map_or(true, |mut entries| entries.next().is_some())
    {
        return Err(Error::Usage {
            message: format!("`{}` exists and is not an empty folder", folder.display()),
            hint: "choose another name, or remove it".into(),
        });
    }
    let files = files(name, language, kind);
    for (path, text) in &files {
        let file = folder.join(path);
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder).map_err(Error::file("create", folder))?;
        }
        fs::write(&file, text).map_err(Error::file("write", &file))?;
    }
    Ok(files.into_keys().collect())
}

/// Checks that the host and the build tools of all languages accept the name.
fn check(name: &str) -> Result<(), Error> {
    if name == UNBOUND {
        return Err(Error::Usage {
            message: format!("the app name `{UNBOUND}` is reserved for threads without a graph"),
            hint: "choose another name".into(),
        });
    }
    let is_known =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
    let begins = name.starts_with(|first: char| first.is_ascii_lowercase());
    if begins && name.len() <= NAME_BYTES && name.bytes().all(is_known) {
        return Ok(());
    }
    Err(Error::Usage {
        message: format!("`{}` cannot be the name of an app", name.escape_default()),
        hint: format!(
            "use up to {NAME_BYTES} of the letters `a-z`, digits, `-` and `_`, with a letter first"
        ),
    })
}

#[cfg(test)]
mod tests {
    use wattle_graph::check::{AnyPlugin, check_toml};

    use super::*;
    use crate::cases::case;
    use crate::config;
    use crate::load::manifest::Manifest;

    /// Calls a function for each language and kind.
    fn for_each(mut test: impl FnMut(Language, Kind, BTreeMap<String, String>)) {
        for language in Language::value_variants() {
            for kind in Kind::value_variants() {
                test(*language, *kind, files("my-app", *language, *kind));
            }
        }
    }

    #[test]
    fn each_app_has_a_manifest_a_graph_cases_and_sources() {
        for_each(|language, kind, files| {
            let manifest = Manifest::parse(&files["app.toml"]).unwrap();
            let build = manifest.build.unwrap();
            assert_eq!(build.sdk, Some(language), "{language} {kind}");
            let output = build.outputs.values().next().unwrap();
            assert!(output.starts_with(".wattle"), "{language} {kind}: {}", output.display());
            assert!(build.watch.contains(&"src".into()));
            // The lock file is an input, because a lock file that another program has changed names
            // other packages.
            let is_npm = build.prepare.iter().any(|command| command.program == "npm");
            let lock = Path::new("package-lock.json").to_owned();
            assert_eq!(build.prepare_inputs.contains(&lock), is_npm, "{language} {kind}");
            let texts =
                ["graph.toml", "tests/cases.jsonl", "wattle.toml", ".gitignore", "README.md"];
            for file in texts {
                assert!(files.contains_key(file), "{language} {kind}: {file}");
            }
            assert!(files.keys().any(|path| path.starts_with("src/")), "{language} {kind}");
            for (path, text) in &files {
                // In C, `{{` can also be nested braces, which no letter follows. A placeholder
                // begins with a letter.
                let mut braces = text.split("{{").skip(1);
                assert!(
                    !braces.any(|rest| rest.starts_with(char::is_alphabetic)),
                    "{path}: {text}"
                );
                assert!(!text.contains(char::REPLACEMENT_CHARACTER), "{path}");
                assert!(!path.contains(HIDDEN), "{language} {kind}: {path}");
            }
        });
    }

    #[test]
    fn each_readme_names_the_commands_and_the_results_of_the_tests() {
        for_each(|language, kind, files| {
            let readme = &files["README.md"];
            assert!(readme.starts_with("# my-app\n"), "{language} {kind}: {readme}");
            let cases: Vec<serde_json::Value> = files["tests/cases.jsonl"]
                .lines()
                .map(|line| serde_json::from_str(line).unwrap())
                .collect();
            let summary = format!("\n{} passed, 0 failed\n", cases.len());
            for part in ["\nwattle build ", "\nwattle test ", "`my-app.wasm`", summary.as_str()] {
                assert!(readme.contains(part), "{language} {kind}: {part}");
            }
            for case in cases {
                let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
                let begin = format!("ok      {} (", text(&case["name"]));
                let end = format!(", {})", text(&case["expect"]["/status"]));
                let is_result = |line: &str| line.starts_with(&begin) && line.ends_with(&end);
                assert!(readme.lines().any(is_result), "{language} {kind}: {begin}");
            }
        });
    }

    #[test]
    fn graphs_and_cases_of_a_kind_are_the_same_in_every_language() {
        for kind in Kind::value_variants() {
            let of = |language| files("my-app", language, *kind);
            let rust = of(Language::Rust);
            for language in [Language::Typescript, Language::Python, Language::C] {
                for file in ["graph.toml", "tests/cases.jsonl", "wattle.toml"] {
                    assert_eq!(of(language)[file], rust[file], "{language} {kind}: {file}");
                }
            }
        }
    }

    #[test]
    fn configurations_graphs_and_cases_are_valid() {
        for kind in Kind::value_variants() {
            let folder = tempfile::tempdir().unwrap();
            let folder = folder.path();
            write(folder, "my-app", Language::Rust, *kind).unwrap();
            let read = |file: &str| fs::read_to_string(folder.join(file)).unwrap();
            let config = config::parse(&read("wattle.toml"), folder).unwrap();
            assert_eq!(config.apps.len(), 1);
            let graphs = check_toml("graph.toml", &read("graph.toml"), &AnyPlugin).unwrap();
            assert_eq!(graphs[0].name.as_str(), "main");
            assert!(!case::read(&folder.join("tests/cases.jsonl")).unwrap().is_empty());
        }
    }

    #[test]
    fn a_node_takes_at_most_twenty_lines() {
        for (language, file) in [
            (Language::Rust, "src/lib.rs"),
            (Language::Typescript, "src/index.ts"),
            (Language::Python, "src/app.py"),
            (Language::C, "src/plugin.c"),
        ] {
            // All lines count, also blank ones and comments.
            let lines = files("my-app", language, Kind::Node)[file].lines().count();
            assert!(lines <= 20, "{language}: {lines} lines");
        }
    }

    #[test]
    fn app_names_that_a_build_tool_would_refuse_are_refused() {
        for name in ["a", "my-app", "my_app2"] {
            assert!(check(name).is_ok(), "{name}");
        }
        for name in ["", "App", "2a", "-a", "a.b", "a/b", "../a", "é", "a".repeat(65).as_str()] {
            assert!(check(name).is_err(), "{name}");
        }
        let manifest = &files(UNBOUND, Language::C, Kind::Node)["app.toml"];
        assert!(Manifest::parse(manifest).is_err() && check(UNBOUND).is_err());
    }

    #[test]
    fn a_folder_with_files_is_refused_and_not_changed() {
        let folder = tempfile::tempdir().unwrap();
        let app = folder.path().join("my-app");
        write(&app, "my-app", Language::Python, Kind::Node).unwrap();
        let error = write(&app, "my-app", Language::C, Kind::Node).unwrap_err().to_string();
        assert!(error.contains("is not an empty folder"), "{error}");
        assert!(!app.join("src/plugin.c").exists());
    }
}
