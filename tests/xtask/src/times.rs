//! `cargo xtask test --times`: a table of the times of the test command in `tests/README.md`.
//!
//! The time of a step is that of its program. Compiled units are from cargo's report (`--timings`),
//! times of tests from nextest's JUnit report.

use std::fs;
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::files::read;
use crate::shell::{root, say};
use crate::step::{self, Step};
use crate::units::Unit;

/// The page, relative to the root.
const PAGE: &str = "tests/README.md";

/// The lines around the generated part of the page.
const BEGIN: &str = "<!-- `cargo xtask test --times` writes from here -->";
const END: &str = "<!-- to here -->";

/// Number of tests and units that the page lists.
const LISTED: usize = 20;

/// A test with its time.
#[derive(Clone, Debug, PartialEq)]
struct Test {
    name: String,
    seconds: f64,
}

/// Parses a JUnit report of nextest.
fn tests_of(report: &str) -> Result<Vec<Test>> {
    let document = roxmltree::Document::parse(report)?;
    let cases = document.descendants().filter(|node| node.has_tag_name("testcase"));
    let test = |case: roxmltree::Node<'_, '_>| {
        let text = |key| case.attribute(key).with_context(|| format!("a test without `{key}`"));
        let name = format!("{} {}", text("classname")?, text("name")?);
        Ok(Test { name, seconds: text("time")?.parse().context("`time` is not a number")? })
    };
    cases.map(test).collect()
}

/// Writes the finished steps, and the tests of nextest's profile, into the page.
///
/// # Errors
///
/// If a report or the page is missing or malformed, or the page cannot be written.
pub(crate) fn write(profile: &str) -> Result<()> {
    // Nextest writes below the workspace, even if cargo's target folder is elsewhere.
    let report = root().join("target/nextest").join(profile).join("junit.xml");
    let tests = tests_of(&read(&report)?)
        .with_context(|| format!("{} is not a JUnit report", report.display()))?;
    let page = root().join(PAGE);
    let text = replaced(&read(&page)?, &part(&step::ended(), tests))?;
    fs::write(&page, text).with_context(|| format!("cannot write {}", page.display()))?;
    say(&format!("the times are in {PAGE}"));
    Ok(())
}

/// Returns the page with a new generated part.
fn replaced(page: &str, part: &str) -> Result<String> {
    let (before, rest) = page.split_once(BEGIN).with_context(|| format!("no `{BEGIN}`"))?;
    let (_, after) = rest.split_once(END).with_context(|| format!("no `{END}`"))?;
    Ok(format!("{before}{BEGIN}\n\n{part}\n{END}{after}"))
}

/// Returns the generated part of the page.
fn part(steps: &[Step], mut tests: Vec<Test>) -> String {
    let mut part = format!("{}\n\n| step | seconds | compiled units |\n|---|---|---|\n", machine());
    for Step { what, time, units, .. } in steps {
        let units = units.as_ref().map_or(String::new(), |units| units.len().to_string());
        part.push_str(&format!("| {what} | {:.0} | {units} |\n", time.as_secs_f64()));
    }
    let time: f64 = steps.iter().map(|step| step.time.as_secs_f64()).sum();
    let mut units: Vec<&Unit> = steps.iter().filter_map(|it| it.units.as_ref()).flatten().collect();
    part.push_str(&format!("| total | {time:.0} | {} |\n\n", units.len()));
    units.sort_by(|left, right| right.seconds.total_cmp(&left.seconds));
    part.push_str("| the slowest units | seconds |\n|---|---|\n");
    for Unit { name, seconds } in units.iter().take(LISTED) {
        part.push_str(&format!("| `{name}` | {seconds:.1} |\n"));
    }
    let time: f64 = tests.iter().map(|test| test.seconds).sum();
    tests.sort_by(|left, right| right.seconds.total_cmp(&left.seconds));
    let listed: f64 = tests.iter().take(LISTED).map(|test| test.seconds).sum();
    part.push_str(&format!(
        "\n{} tests take {time:.0} s in total; the slowest {} take {listed:.0} s of it.\n\n",
        tests.len(),
        tests.len().min(LISTED)
    ));
    part.push_str("| the slowest tests | seconds |\n|---|---|\n");
    for Test { name, seconds } in tests.iter().take(LISTED) {
        part.push_str(&format!("| `{name}` | {seconds:.1} |\n"));
    }
    part
}

/// Describes the day and the machine.
fn machine() -> String {
    let day = said(Command::new("date").arg("+%Y-%m-%d"));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cpu = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let cpu = cpu.map_or(std::env::consts::ARCH, |(_, name)| name);
    let rust = said(Command::new("rustc").arg("--version"));
    format!("Measured on {day} with {cores} cores ({cpu}) and {rust}.")
}

/// Returns the first line that a program prints.
fn said(command: &mut Command) -> String {
    let output = command.output().map(|output| output.stdout).unwrap_or_default();
    String::from_utf8_lossy(&output).lines().next().unwrap_or("unknown").to_owned()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_page_has_steps_units_and_the_slowest_tests() {
        let tests = tests_of(
            r#"<testsuites><testsuite name="a"><testcase name="x::y" classname="a" time="1.250"/>
               <testcase name="z" classname="b" time="2"/></testsuite></testsuites>"#,
        );
        let step = |what: &str, seconds, units| Step {
            what: what.to_owned(),
            time: Duration::from_secs(seconds),
            succeeded: true,
            units,
        };
        let units = vec![Unit { name: "redb".to_owned(), seconds: 2.5 }];
        let steps = [step("lint", 3, Some(units)), step("run the tests", 4, None)];
        let part = part(&steps, tests.unwrap());
        let page = replaced(&format!("# Tests\n{BEGIN}\nold\n{END}\nmore\n"), &part).unwrap();
        assert!(page.starts_with("# Tests\n") && page.ends_with("\nmore\n"), "{page}");
        for line in [
            "| lint | 3 | 1 |",
            "| run the tests | 4 |  |",
            "| total | 7 | 1 |",
            "| `redb` | 2.5 |",
            "2 tests take 3 s in total; the slowest 2 take 3 s of it.",
            "| `b z` | 2.0 |\n| `a x::y` | 1.2 |",
        ] {
            assert!(page.contains(line), "{line}: {page}");
        }
        assert_eq!(replaced(&page, &part).unwrap(), page);
    }

    #[test]
    fn a_page_without_markers_is_an_error() {
        let error = replaced("# Tests\n", "").unwrap_err();
        assert!(error.to_string().contains(BEGIN), "{error}");
    }
}
