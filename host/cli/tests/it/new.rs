//! `wattle new`: the folder of a new app.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

fn wattle(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wattle"));
    command.args(args).current_dir(folder).env_clear().output().unwrap()
}

#[test]
fn a_new_app_has_its_files_and_an_existing_folder_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let made = wattle(folder, &["new", "hello", "--lang", "python", "--kind", "tool", "--json"]);
    assert_eq!(made.status.code(), Some(0), "{}", String::from_utf8_lossy(&made.stderr));
    let report: Value = serde_json::from_slice(&made.stdout).unwrap();
    assert_eq!(report["kind"], "tool");
    assert_eq!(
        report["files"],
        json!([
            ".gitignore",
            "README.md",
            "app.toml",
            "graph.toml",
            "requirements.txt",
            "src/app.py",
            "src/test_app.py",
            "tests/cases.jsonl",
            "wattle.toml"
        ])
    );
    for file in report["files"].as_array().unwrap() {
        assert!(folder.join("hello").join(file.as_str().unwrap()).is_file(), "{file}");
    }
    let again = wattle(folder, &["new", "hello"]);
    assert_eq!(again.status.code(), Some(2));
    let said = String::from_utf8(again.stderr).unwrap();
    assert!(said.contains("`hello` exists and is not an empty folder"), "{said}");
    assert!(!folder.join("hello/Cargo.toml").exists());
}

#[test]
fn an_invalid_app_name_and_an_unknown_language_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |args: &[&str], part: &str| {
        let ended = wattle(folder.path(), args);
        let said = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(2), "{said}");
        assert!(said.contains(part), "{said}");
    };
    refused(&["new", "../hello"], "`../hello` cannot be the name of an app");
    refused(&["new", "hello", "--lang", "perl"], "possible values: rust, typescript, python, c");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
