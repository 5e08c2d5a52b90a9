//! Tests of the requirements of applications: each number in the name of a test is listed on a
//! page.
//!
//! The page is `plugins/apps/<app>/REQUIREMENTS.md`, and the line is `* **S3-09** ...`. Names of
//! tests contain the number as `s3_09_...`, assertions and comments also as `S3-09`.

use std::collections::BTreeSet;
use std::fs;

use wattle_suite::guests::root;

use super::files;

/// The applications by the digit of their numbers: S3-09 is a requirement of `travel`.
const APPS: [&str; 5] = ["asset", "reasoning", "expense", "travel", "nl2sql"];

/// The index of the application and the number.
type Requirement = (usize, usize);

#[test]
fn every_requirement_number_is_listed() {
    let known: BTreeSet<Requirement> = (0..APPS.len()).flat_map(listed).collect();
    for folder in ["host", "plugins", "tests"] {
        for file in files(folder, &["rs", "ts", "tsx", "mjs"]) {
            let text = fs::read_to_string(&file).unwrap();
            for word in text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '-') {
                for (app, number) in named(word) {
                    assert!(
                        known.contains(&(app, number)),
                        "{}: `{word}` names S{app}-{number:02}, which {} does not list",
                        file.display(),
                        page(app)
                    );
                }
            }
        }
    }
}

#[test]
fn words_can_contain_several_requirements_and_ranges() {
    let check = |word: &str, expected: &[Requirement]| assert_eq!(named(word), expected, "{word}");
    check("a3_s0_26_s0_27_an_unknown_picture", &[(0, 26), (0, 27)]);
    check("s2_06_07_09_to_15_dates", &[(2, 6), (2, 7), (2, 9), (2, 15)]);
    check("s4_03_s4_23_to_s4_28_the_graph", &[(4, 3), (4, 23), (4, 28)]);
    check("S3-09", &[(3, 9)]);
    check("s2_19_days_are_not_86_400_seconds", &[(2, 19)]);
    check("s1-20250115103045", &[]);
    check("base64_12", &[]);
}

/// Returns the requirements that a word contains. A range gives its two ends, because pages omit no
/// number.
fn named(word: &str) -> Vec<Requirement> {
    let mut app = None;
    let mut found = Vec::new();
    for part in word.to_ascii_lowercase().split(['_', '-']) {
        let digit = part.strip_prefix('s').and_then(|digit| digit.parse::<usize>().ok());
        let number = part.parse::<usize>().ok().filter(|_| part.len() == 2);
        if let Some(digit) = digit.filter(|digit| *digit < APPS.len()) {
            app = Some(digit);
        } else if let (Some(app), Some(number)) = (app, number) {
            found.push((app, number));
        } else if part != "to" {
            app = None;
        }
    }
    found
}

/// Returns the requirements that the page of an application lists: one line each, all numbers from
/// 1, in ascending order below each heading.
fn listed(app: usize) -> BTreeSet<Requirement> {
    let page = page(app);
    let text = fs::read_to_string(root().join(&page)).unwrap();
    let mut listed = BTreeSet::new();
    let mut before: Option<Requirement> = None;
    for line in text.lines() {
        if line.starts_with('#') {
            before = None;
        }
        let name = line.strip_prefix("* **").and_then(|line| line.split_once("** "));
        for requirement in name.map(|(name, _)| named(name)).unwrap_or_default() {
            let is_next = requirement.0 == app && before < Some(requirement);
            assert!(is_next && listed.insert(requirement), "{page} is out of order: {line}");
            before = Some(requirement);
        }
    }
    let numbers = listed.iter().map(|(_, number)| *number);
    assert!(numbers.eq(1..=listed.len()), "{page} omits a number");
    listed
}

fn page(app: usize) -> String {
    format!("plugins/apps/{}/REQUIREMENTS.md", APPS[app])
}
