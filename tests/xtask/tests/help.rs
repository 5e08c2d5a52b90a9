//! The help of `xtask`, and commands that have another name.

#![expect(clippy::unwrap_used, reason = "a panic in a helper fails the test that called it")]

use std::process::Command;

/// Runs `xtask`. Returns whether it succeeded, and what it printed.
fn xtask(arguments: &[&str]) -> (bool, String) {
    let ended = Command::new(env!("CARGO_BIN_EXE_xtask")).args(arguments).output().unwrap();
    (ended.status.success(), String::from_utf8(ended.stderr).unwrap())
}

#[test]
fn the_help_describes_the_attacks() {
    let (succeeded, help) = xtask(&["help"]);
    assert!(succeeded, "{help}");
    assert!(help.contains("\n  attack [case...] [--seconds N]\n"), "{help}");
    assert!(!help.contains("bench attack"), "{help}");
}

#[test]
fn the_help_lists_the_benchmarks_of_their_readme() {
    let readme = concat!(env!("CARGO_MANIFEST_DIR"), "/../bench/README.md");
    let readme = std::fs::read_to_string(readme).unwrap();
    let (_, help) = xtask(&["help"]);
    let commands = readme.lines().filter_map(|line| line.strip_prefix("cargo xtask bench "));
    let names = commands.filter_map(|words| words.split_whitespace().next());
    let names: Vec<&str> = names.filter(|name| *name != "#").collect();
    assert!(names.contains(&"peer"), "{names:?}");
    for name in names {
        assert!(help.contains(&format!("\n  bench {name}")), "`{name}` is not in the help: {help}");
    }
}

#[test]
fn attacks_are_a_command_of_their_own() {
    let (succeeded, said) = xtask(&["bench", "attack"]);
    assert!(!succeeded && said.contains("run `cargo xtask attack`"), "{said}");
    assert!(!said.contains("==>"), "no step has begun: {said}");
}
