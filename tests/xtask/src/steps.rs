//! What each command does, step by step.

use std::process::Command;

use anyhow::{Result, bail};
use wattle_needs::{Program, RECORD, is_ci};

use crate::shell::{cargo, has, root, run, say, target_folder};
use crate::{clients, fuzz, guests, needs, pages, peers};

/// The main job, end to end.
pub(crate) fn demo(arguments: &[&str]) -> Result<()> {
    guests::build()?;
    pages::build()?;
    let binaries = ["--bin", "wattle", "--bin", "wattle-standin", "--bin", "wattle-demo"];
    run("build host, stand-ins and demo", cargo().arg("build").args(binaries))?;
    let demo = target_folder().join("debug/wattle-demo");
    let status = Command::new(demo).current_dir(root()).args(arguments).status()?;
    std::process::exit(status.code().unwrap_or(1));
}

/// Every test, with format, lints and documentation, and every fuzz target for seconds. What the
/// machine lacks the programs for is counted at the end; with `CI=true` it must lack none.
pub(crate) fn test() -> Result<()> {
    needs::look()?;
    let outcome = every_test();
    needs::summarize()?;
    outcome
}

fn every_test() -> Result<()> {
    guests::build()?;
    pages::build()?;
    clients::install()?;
    match pages::missing() {
        None => pages::check()?,
        Some(missing) => needs::leave_out("the checks of the pages", &missing)?,
    }
    run("check the format", cargo().args(["fmt", "--all", "--check"]))?;
    let binaries = ["wattle", "wattle-standin", "wattle-standin-mcp", "wattle-demo"];
    let binaries = binaries.iter().flat_map(|binary| ["--bin", *binary]);
    run("build host, stand-ins and demo", cargo().arg("build").args(binaries))?;
    let mut tests = cargo();
    match needs::nextest() {
        Ok(()) => tests.args(["nextest", "run", "--profile", nextest_profile()]),
        Err(_) => tests.args(["test", "--lib", "--bins", "--tests"]),
    };
    run("run the tests", tests.env(RECORD, needs::record()))?;
    let guests = guests::first_party().flat_map(|package| ["--package", package]);
    run("test the guests' logic natively", cargo().arg("test").args(guests))?;
    run("run the documentation's examples", cargo().args(["test", "--doc"]))?;
    lints()?;
    match Program::Cpp.find() {
        // The same code gets the same inputs, and so the same verdict.
        Ok(_) => fuzz::fuzz(&["--seed", "1", "--seconds", "5"]),
        Err(missing) => needs::leave_out("the fuzz targets", &missing),
    }
}

/// The profile of `.config/nextest.toml`.
fn nextest_profile() -> &'static str {
    if is_ci() { "ci" } else { "default" }
}

/// Format, lints, documentation, spelling, licences.
pub(crate) fn check() -> Result<()> {
    run("check the format", cargo().args(["fmt", "--all", "--check"]))?;
    lints()?;
    optional("typos", "check the spelling", &[], "pip install typos")?;
    let deny = ["check", "bans", "licenses", "sources"];
    optional("cargo-deny", "check licences and bans", &deny, "cargo install cargo-deny")
}

fn lints() -> Result<()> {
    let clippy = ["clippy", "--workspace", "--all-targets", "--", "--deny", "warnings"];
    run("lint", cargo().args(clippy))?;
    run(
        "build the documentation",
        cargo().args(["doc", "--no-deps", "--workspace"]).env("RUSTDOCFLAGS", "--deny warnings"),
    )
}

/// A tool that not everybody has. With `CI=true` it must be there.
fn optional(program: &str, what: &str, arguments: &[&str], install: &str) -> Result<()> {
    let missing = format!("`{program}` is not installed, so this does not {what} (`{install}`)");
    match has(program, &["--version"]) {
        true => run(what, Command::new(program).current_dir(root()).args(arguments)),
        false if is_ci() => bail!("{missing}"),
        false => {
            say(&format!("note: {missing}"));
            Ok(())
        }
    }
}

/// Steps per second; `peer` measures LangGraph as well, `load` and `agent-server` whole servers.
pub(crate) fn bench(arguments: &[&str]) -> Result<()> {
    guests::build()?;
    // Together, so that what both need is built once; both must be there, side by side.
    let build = ["build", "--release", "--package", "wattle", "--package", "wattle-bench"];
    run("build what is measured", cargo().args(build))?;
    let mut measure = Command::new(target_folder().join("release/wattle-bench"));
    measure.current_dir(root());
    match arguments {
        [what @ ("peer" | "agent-server"), rest @ ..] => {
            if *what == "peer" { peers::install() } else { peers::install_server() }?;
            measure.arg(what).arg(peers::folder()).args(rest);
        }
        others => {
            measure.args(others);
        }
    }
    run("measure", &mut measure)
}
