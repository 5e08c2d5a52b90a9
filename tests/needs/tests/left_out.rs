//! Tests whose program is missing are left out and recorded, or fail with `WATTLE_REQUIRE=all`.

#![expect(clippy::unwrap_used, reason = "a panic in a helper fails the test that called it")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, fs};

use wattle_needs::{LeftOut, Line, Program, RECORD, REQUIRE, lines, need};

#[test]
#[ignore = "started by other tests, on a machine without programs"]
fn starved() {
    let browser = need!(Program::Chromium.find());
    panic!("found a browser in an empty `PATH`: {}", browser.display());
}

#[test]
#[ignore = "started by other tests, on a machine without programs"]
fn starved_in_part() {
    let found = || -> Result<PathBuf, LeftOut> { Ok(Program::Npm.find()?) };
    let _in_part = found().unwrap_err();
    need!(found());
    panic!("a test continues without its program");
}

/// Runs the tests above with an empty search path.
fn run(record: &Path, require: &str) -> Output {
    let nowhere = record.parent().unwrap();
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--ignored", "starved"]).env("PATH", nowhere);
    command.env(REQUIRE, require).env(RECORD, record);
    // These variables name the test that starts the tests above.
    command.env_remove("NEXTEST_BINARY_ID").env_remove("NEXTEST_TEST_NAME");
    command.output().unwrap()
}

/// Creates an empty folder for a record.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("needs").join(name);
    fs::remove_dir_all(&folder).ok();
    fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn a_test_without_its_program_is_left_out_and_counted_once() {
    let record = folder("counted").join("record");
    let ended = run(&record, "");
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stdout));
    let said: Vec<_> = lines(&record).unwrap().into_iter().collect();
    let said: Vec<_> = said
        .iter()
        .map(|Line { missing, test }| {
            (missing.what.as_str(), missing.remedy.as_str(), test.split(' ').next_back())
        })
        .collect();
    let expected = [
        ("Chromium", "apt-get install chromium-headless-shell", Some("starved")),
        ("npm", "apt-get install npm", Some("starved_in_part")),
    ];
    assert_eq!(said, expected);
}

#[test]
fn a_test_without_its_program_fails_where_all_is_required() {
    let record = folder("refused").join("record");
    let ended = run(&record, "all");
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(!ended.status.success(), "{said}");
    for missing in [
        "Chromium is missing; `apt-get install chromium-headless-shell` provides it",
        "npm is missing",
    ] {
        assert!(said.contains(missing), "{said}");
    }
    assert!(said.contains("2 failed"), "{said}");
    assert!(lines(&record).unwrap().is_empty());
}
