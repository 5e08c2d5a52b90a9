//! Test of the walks in ARCHITECTURE.md: the files and functions on the way of a run request and of
//! a host call.
//!
//! `cargo test -p wattle-suite --test suite tidy::walks -- --nocapture` prints the size of each.

use std::collections::BTreeSet;
use std::fs;

use wattle_suite::guests::root;

use super::product;

/// The page with the walks.
const PAGE: &str = "ARCHITECTURE.md";

/// The heading of the section, which has one part for each walk.
const SECTION: &str = "\n## Two walks\n";

/// The maximum number of files of a walk.
const MAX_FILES: usize = 35;

/// One step of a walk.
#[derive(Debug)]
struct Step<'p> {
    file: &'p str,
    functions: Vec<&'p str>,
}

#[test]
fn walks_are_short_and_name_functions_that_exist() {
    let page = fs::read_to_string(root().join(PAGE)).unwrap();
    let walks = walks(&page);
    assert_eq!(walks.len(), 2, "walks in {PAGE}");
    for (title, steps) in &walks {
        let missing = missing(steps, |file| fs::read_to_string(root().join(file)).ok());
        assert!(missing.is_empty(), "{PAGE}, {title}: there is no {}", missing.join(", no "));
        let files: BTreeSet<&str> = steps.iter().map(|step| step.file).collect();
        let functions: usize = steps.iter().map(|step| step.functions.len()).sum();
        println!("{:3} files {functions:3} functions: {title}", files.len());
        assert!(files.len() <= MAX_FILES, "{PAGE}, {title}: {} files", files.len());
    }
}

#[test]
fn steps_without_their_file_or_function_are_found() {
    let page = "# Page\n\n## Two walks\n\nText.\n\n### A walk\n\n1. `a.rs` `one`, `two`: to `three`.\n\
                2. `b.rs` `one`.\n3. `c.rs` `one`: the end.\n\n## More\n\n4. `d.rs` `one`.\n";
    let read = |file: &str| {
        let text = match file {
            "a.rs" => "fn one() {}\nfn two<T>() {}\n",
            "b.rs" => "fn one_more() {}\n#[cfg(test)]\nmod tests {\n    fn one() {}\n}\n",
            _ => return None,
        };
        Some(text.to_owned())
    };
    let walks = walks(page);
    let [(title, steps)] = walks.as_slice() else { panic!("{walks:?}") };
    assert_eq!((*title, steps.len()), ("A walk", 3));
    assert_eq!(steps[0].functions, ["one", "two"]);
    assert_eq!(missing(steps, read), ["`one` in b.rs", "file c.rs"]);
}

/// Returns the walks of a page, each with its title.
fn walks(page: &str) -> Vec<(&str, Vec<Step<'_>>)> {
    let section = page.split(SECTION).nth(1).unwrap_or_default();
    let section = section.split("\n## ").next().unwrap_or_default();
    let walks = section.split("\n### ").skip(1);
    let walks = walks.filter_map(|walk| walk.split_once('\n'));
    walks.map(|(title, lines)| (title, lines.lines().filter_map(step).collect())).collect()
}

/// Parses a line of a walk: number, file and functions, and after a colon what happens there.
fn step(line: &str) -> Option<Step<'_>> {
    let (number, rest) = line.split_once(". ")?;
    number.parse::<u32>().ok()?;
    let mut names = rest.split(':').next()?.split('`').skip(1).step_by(2);
    Some(Step { file: names.next()?, functions: names.collect() })
}

/// Returns what the steps name and the product does not have. `read` returns the text of a file.
fn missing(steps: &[Step<'_>], read: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let mut missing = Vec::new();
    for step in steps {
        let Some(text) = read(step.file) else {
            missing.push(format!("file {}", step.file));
            continue;
        };
        let code = product(&text);
        for name in &step.functions {
            let defines = |end: &str| code.contains(&format!("fn {name}{end}"));
            if !defines("(") && !defines("<") {
                missing.push(format!("`{name}` in {}", step.file));
            }
        }
    }
    missing
}
