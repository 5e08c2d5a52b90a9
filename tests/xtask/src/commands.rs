//! What each command does, step by step.

use std::process::Command;

use anyhow::{Result, bail};
use wattle_needs::{RECORD, REQUIRE, requires_all};

use crate::browser::{self, Browser};
use crate::native::{NATIVE, nextest};
use crate::shell::{self, cargo, compiling, has, root, say, target_folder};
use crate::step::{self, run};
use crate::{clients, guests, needs, pages, peers, times};

/// The programs that the demo starts.
const DEMO: &[&str] = &["wattle", "wattle-standin", "wattle-demo"];

/// The crates that others build on, whose documentation they read.
const PUBLISHED: &[&str] =
    &["--package", "wattle-graph", "--package", "wattle-run", "--package", "wattle-plugin"];

/// The programs that tests start.
const PROGRAMS: &[&str] = &["wattle", "wattle-standin", "wattle-standin-mcp", "wattle-demo"];

/// The main job, end to end.
pub(crate) fn demo(arguments: &[&str]) -> Result<()> {
    let demo = target_folder().join("debug/wattle-demo");
    if !demo.is_file() {
        say(
            "building guests, pages and host; the first time takes about nine minutes on two cores",
        );
    }
    guests::build()?;
    pages::build()?;
    programs("build host, stand-ins and demo", DEMO)?;
    step::summarize();
    let status = Command::new(demo).current_dir(root()).args(arguments).status()?;
    std::process::exit(status.code().unwrap_or(1));
}

/// Every test, with format, lints and documentation. What the machine lacks the programs for is
/// counted at the end; with `WATTLE_REQUIRE=all` it must lack none.
pub(crate) fn test(arguments: &[&str]) -> Result<()> {
    let times = match arguments {
        [] => false,
        ["--times"] => true,
        [other, ..] => {
            bail!("`test` has no option `{other}`; `--times` writes where its time goes")
        }
    };
    needs::look()?;
    if times {
        shell::report_builds();
    }
    let outcome = every_test();
    needs::summarize()?;
    outcome?;
    if times { times::write(profile()) } else { Ok(()) }
}

fn every_test() -> Result<()> {
    run("check the format", cargo().args(["fmt", "--all", "--check"]))?;
    guests::build()?;
    pages::build()?;
    clients::install()?;
    match pages::missing() {
        None => pages::check()?,
        Some(missing) => needs::leave_out("the checks of the pages", &missing)?,
    }
    programs("build host and stand-ins", PROGRAMS)?;
    match needs::nextest() {
        Ok(()) => {
            let mut build = compiling(&["nextest", "run", "--no-run", "--profile", profile()]);
            run("build the tests", build.args(NATIVE))?;
            let browser = Browser::start()?;
            let mut tests = nextest(profile());
            tests.env(RECORD, needs::record());
            tests.envs(browser.iter().map(|browser| (browser::ADDRESS, browser.address())));
            run("run the tests", &mut tests)?;
        }
        Err(_) => {
            let mut tests = cargo();
            tests.arg("test").args(NATIVE).args(["--lib", "--bins", "--tests"]);
            run("build and run the tests", tests.env(RECORD, needs::record()))?;
        }
    }
    run("run the documentation's examples", cargo().arg("test").args(NATIVE).arg("--doc"))?;
    lint()?;
    document(PUBLISHED)
}

/// The data sets of the applications, or of some: with precise models, and ten times with imprecise
/// ones.
pub(crate) fn eval(apps: &[&str]) -> Result<()> {
    needs::nextest()?;
    guests::build()?;
    programs("build the host", &["wattle"])?;
    let mut tests = compiling(&["nextest", "run"]);
    tests.args(["--profile", "eval", "--package", "wattle-suite", "--no-capture"]);
    // Names of tests begin with that of their application.
    let filters = apps.iter().map(|app| format!("test(/::{app}(_|$)/)"));
    tests.args(filters.flat_map(|filter| ["--filterset".to_owned(), filter]));
    run("run the data sets", &mut tests)
}

/// The tests with servers and gateways of others that are too large for [`test`]. None of them is left out.
pub(crate) fn peers() -> Result<()> {
    needs::nextest()?;
    peers::install_tested()?;
    guests::build()?;
    programs("build the host", &["wattle"])?;
    let mut tests = nextest("peers");
    run("run the tests with large servers and gateways", tests.env(REQUIRE, "all"))
}

/// Builds programs of the workspace.
fn programs(what: &str, names: &[&str]) -> Result<()> {
    let names = names.iter().flat_map(|name| ["--bin", *name]);
    run(what, compiling(&["build"]).args(NATIVE).args(names))
}

/// The profile of `.config/nextest.toml`.
fn profile() -> &'static str {
    if requires_all() { "ci" } else { "default" }
}

/// Format, lints, documentation, spelling, licences.
pub(crate) fn check() -> Result<()> {
    run("check the format", cargo().args(["fmt", "--all", "--check"]))?;
    lint()?;
    document(&["--workspace"])?;
    optional("typos", "check the spelling", &[], "pip install typos")?;
    let deny = ["check", "bans", "licenses", "sources"];
    optional("cargo-deny", "check licences and bans", &deny, "cargo install cargo-deny")
}

/// Lints every crate.
pub(crate) fn lint() -> Result<()> {
    let clippy = ["--workspace", "--all-targets", "--", "--deny", "warnings"];
    run("lint", compiling(&["clippy"]).args(clippy))
}

/// Builds the documentation of some crates.
fn document(packages: &[&str]) -> Result<()> {
    let mut doc = compiling(&["doc", "--no-deps"]);
    doc.args(packages).env("RUSTDOCFLAGS", "--deny warnings");
    run("build the documentation", &mut doc)
}

/// A tool that not everybody has. With `WATTLE_REQUIRE=all` it must be there.
fn optional(program: &str, what: &str, arguments: &[&str], install: &str) -> Result<()> {
    let missing = format!("`{program}` is not installed, so this does not {what} (`{install}`)");
    match has(program, &["--version"]) {
        true => run(what, Command::new(program).current_dir(root()).args(arguments)),
        false if requires_all() => bail!("{missing}"),
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
