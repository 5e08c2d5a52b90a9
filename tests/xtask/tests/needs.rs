//! The output of `xtask` on a machine without programs.

#![expect(clippy::unwrap_used, reason = "a panic in a helper fails the test that called it")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, fs};

use wattle_needs::REQUIRE;

/// Creates an empty folder.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("xtask").join(name);
    fs::remove_dir_all(&folder).ok();
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Runs a command with an empty search path and a target folder of its own, so that it does not
/// write to the record of the running tests.
fn starved(folder: &Path, command: &str, require: &str) -> Output {
    let mut xtask = Command::new(env!("CARGO_BIN_EXE_xtask"));
    xtask.arg(command).env("PATH", folder).env("CARGO_TARGET_DIR", folder);
    xtask.env(REQUIRE, require);
    xtask.output().unwrap()
}

#[test]
fn the_packages_of_missing_programs_are_one_line() {
    let ended = starved(&folder("packages"), "needs", "");
    assert!(ended.status.success());
    let packages = String::from_utf8(ended.stdout).unwrap();
    // A font is needed on Linux only.
    let font = if cfg!(target_os = "linux") { "fonts-noto-cjk " } else { "" };
    let expected = format!("nodejs npm chromium-headless-shell {font}python3-venv\n");
    assert!(packages.ends_with(&expected), "{packages}");
}

#[test]
fn the_tests_do_not_start_without_a_program_where_all_are_required() {
    let ended = starved(&folder("refused"), "test", "all");
    let said = String::from_utf8(ended.stderr).unwrap();
    assert!(!ended.status.success(), "{said}");
    for missing in [
        "Node.js 20.19 or newer is missing; `apt-get install nodejs` provides it",
        "npm is missing; `apt-get install npm` provides it",
        "Chromium is missing; `apt-get install chromium-headless-shell` provides it",
        "Python 3.11 or newer with `venv` is missing; `apt-get install python3-venv` provides it",
        "cargo-nextest is missing; `cargo install --locked cargo-nextest` provides it",
    ] {
        assert!(said.lines().any(|line| line.trim() == missing), "{missing}: {said}");
    }
    assert!(!said.contains("==>"), "no step has begun: {said}");
}
