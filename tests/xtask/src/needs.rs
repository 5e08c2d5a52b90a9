//! Programs that the tests need: the check before the tests, and the count of tests that were left
//! out.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use wattle_needs::{Missing, Program, requires_all};

use crate::shell::{has, say, target_folder};

/// Returns the file that lists the tests that were left out.
pub(crate) fn record() -> PathBuf {
    target_folder().join("tmp/left-out")
}

/// Looks for every program and reports the missing ones. The tests that need these are left out.
///
/// # Errors
///
/// With `WATTLE_REQUIRE=all`, if anything is missing.
pub(crate) fn look() -> Result<()> {
    let record = record();
    if let Err(error) = fs::remove_file(&record)
        && error.kind() != ErrorKind::NotFound
    {
        return Err(error).with_context(|| format!("cannot remove {}", record.display()));
    }
    let missing = Program::OF_TESTS.into_iter().filter_map(|program| program.find().err());
    let missing: Vec<Missing> = missing.chain(nextest().err()).collect();
    if requires_all() && !missing.is_empty() {
        let lines = missing.iter().map(|missing| format!("\n  {missing}")).collect::<String>();
        bail!(
            "with `WATTLE_REQUIRE=all` every test must run, and this machine lacks programs:{lines}"
        );
    }
    for missing in missing {
        say(&format!("note: {missing}"));
    }
    Ok(())
}

/// Returns the Debian packages of missing programs, in one line.
pub(crate) fn packages() -> String {
    let missing = Program::OF_TESTS.into_iter().filter(|program| program.find().is_err());
    missing.map(Program::package).collect::<Vec<_>>().join(" ")
}

/// Looks for the test runner. Without it `cargo test` runs the tests, without timeouts.
///
/// # Errors
///
/// [`Missing`] with the command that installs it.
pub(crate) fn nextest() -> Result<(), Missing> {
    let is_there = has("cargo", &["nextest", "--version"]);
    is_there
        .then_some(())
        .ok_or_else(|| Missing::new("cargo-nextest", "cargo install --locked cargo-nextest"))
}

/// Records a step of the tests that this machine cannot run.
pub(crate) fn leave_out(step: &str, missing: &Missing) -> Result<()> {
    let record = record();
    wattle_needs::note(&record, missing, step)
        .with_context(|| format!("cannot write {}", record.display()))
}

/// Prints the number of tests that were left out, and the programs that they need.
pub(crate) fn summarize() -> Result<()> {
    let record = record();
    let lines = wattle_needs::lines(&record)
        .with_context(|| format!("cannot read {}", record.display()))?;
    let mut counts: BTreeMap<Missing, usize> = BTreeMap::new();
    for line in lines {
        *counts.entry(line.missing).or_default() += 1;
    }
    if !counts.is_empty() {
        say("==> left out, in whole or in part:");
    }
    for (Missing { what, remedy }, count) in &counts {
        let tests = if *count == 1 { "test" } else { "tests" };
        say(&format!("    {count} {tests} without {what}; `{remedy}` provides it"));
    }
    if !counts.is_empty() {
        say(&format!("    their names are in {}", record.display()));
    }
    Ok(())
}
