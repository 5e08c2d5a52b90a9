//! Tests that no test leaves itself out: only `need!` ends a test early, because it counts the test
//! and fails with `WATTLE_REQUIRE=all`.
//!
//! The tests check the text of the sources: a test has no `return`, only `wattle_needs` looks for
//! programs, and no test that checks something is ignored or filtered by its author.

use std::fs;
use std::path::Path;

use wattle_suite::guests::root;

use super::{files, sources};

/// Texts in code that looks for a program or for something that `cargo xtask` installs, each with
/// the folders and files that may contain it.
const LOOKS: &[(&str, &[&str])] = &[
    ("Postgres::start(", &["tests/kit/src/postgres.rs", "tests/bench"]),
    ("Error::Missing(", &["tests/kit/src/postgres.rs", "tests/bench"]),
    ("\"chromium", &["tests/needs"]),
    ("google-chrome", &["tests/needs"]),
    ("/usr/lib/postgresql", &["tests/needs"]),
    ("\"node_modules\").is_dir", &["tests/needs", "tests/xtask"]),
    (".join(\"clients", &["tests/needs", "tests/xtask"]),
    ("dist/index.html\").is_file", &["tests/needs"]),
];

/// The reasons of ignored tests: another test starts the test in a separate process, or the test
/// only prints figures.
const REASONS: [&str; 2] = ["#[ignore = \"started by ", "#[ignore = \"prints figures"];

/// Calls with which a test in JavaScript is left out, or leaves out all others.
const SWITCHES: [&str; 5] = [".skip(", ".skipIf(", ".runIf(", ".todo(", ".only("];

/// Calls with which a test in Python is left out, or may fail.
const PYTHON_SWITCHES: [&str; 4] = ["unittest.skip", "skipTest(", "SkipTest(", "expectedFailure"];

#[test]
fn only_need_ends_a_test_early() {
    let mut found = Vec::new();
    for file in ["host", "plugins", "tests"].into_iter().flat_map(sources) {
        let text = fs::read_to_string(&file).unwrap();
        found.extend(early_ends(&text).iter().map(|line| format!("{}: {line}", file.display())));
    }
    assert!(found.is_empty(), "use `wattle_kit::need!`:\n{}", found.join("\n"));
}

#[test]
fn only_the_listed_places_look_for_programs() {
    for folder in ["host", "tests"] {
        for file in sources(folder) {
            let text = fs::read_to_string(&file).unwrap();
            let path = file.strip_prefix(root()).unwrap();
            for (look, places) in LOOKS {
                let may = path.ends_with("tidy/left_out.rs")
                    || places.iter().any(|place| path.starts_with(place));
                assert!(
                    may || !text.contains(look),
                    "{} has `{look}`; use `wattle_kit::needs`, which counts the test",
                    path.display()
                );
            }
        }
    }
}

#[test]
fn no_test_is_disabled() {
    for file in ["host", "plugins", "tests"].into_iter().flat_map(sources) {
        let text = fs::read_to_string(&file).unwrap();
        let ignored = text.lines().map(str::trim).filter(|line| line.starts_with("#[ignore"));
        for line in ignored {
            let has_reason = REASONS.iter().any(|reason| line.starts_with(reason));
            assert!(has_reason, "{}: {line}", file.display());
        }
    }
    check_scripts(&["ts", "tsx", "mjs"], &SWITCHES);
    check_scripts(&["py"], &PYTHON_SWITCHES);
}

fn check_scripts(endings: &[&str], switches: &[&str]) {
    let scripts = ["host", "plugins", "tests"].into_iter();
    for file in scripts.flat_map(|folder| files(folder, endings)) {
        if !file.components().any(|part| part.as_os_str() == Path::new("dist")) {
            let text = fs::read_to_string(&file).unwrap();
            for &switch in switches {
                assert!(!text.contains(switch), "{} has `{switch}`", file.display());
            }
        }
    }
}

#[test]
fn returns_from_tests_are_found_and_returns_from_closures_are_not() {
    let test = |body: &str| format!("#[tokio::test]\nasync fn it() {{\n{body}\n}}\n");
    let ends = |body: &str| early_ends(&test(body)).len();
    assert_eq!(ends("    let Some(server) = start() else { return };"), 1);
    assert_eq!(ends("    if !has_page() {\n        return;\n    }"), 1);
    assert_eq!(ends("    match start() {\n        Err(_) => return,\n    }"), 1);
    assert_eq!(ends("    let server = need!(start());"), 0);
    assert_eq!(
        ends("    let wait = async {\n        loop {\n            return;\n        }\n    };"),
        0
    );
    let helper = "fn helper() {\n    return;\n}\n";
    assert!(early_ends(helper).is_empty());
    let inner = "mod tests {\n    #[test]\n    fn it() {\n        return;\n    }\n}\n";
    assert_eq!(early_ends(inner).len(), 1);
}

/// Returns the lines that end a test, either directly or in a block at the top level of the test.
fn early_ends(text: &str) -> Vec<&str> {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut found = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.trim() != "#[test]" && !line.trim().starts_with("#[tokio::test") {
            continue;
        }
        let depth = indent(line);
        let of_test = lines.by_ref().take_while(|line| *line != format!("{:depth$}}}", ""));
        found.extend(of_test.filter(|line| indent(line) <= depth + 8 && returns(line)));
    }
    found
}

/// Returns whether a line of code returns no value.
fn returns(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    // Text between quotes is not code.
    let code: String = code.split('"').step_by(2).collect();
    ["return;", "return }", "return,", "return Ok(())"].iter().any(|end| code.contains(end))
}
