//! The commands of `cargo xtask` and their steps.

use std::process::Command;

use anyhow::{Result, bail};
use wattle_needs::{Program, RECORD, REQUIRE, requires_all};

use crate::browser::{self, Browser};
use crate::native::{NATIVE, nextest};
use crate::shell::{self, cargo, compiling, has, root, say, target_folder};
use crate::step::{self, run};
use crate::{c_sdk, clients, guests, needs, new_apps, pages, peers, python_sdk, times, toolchains};

/// The programs that the demo starts.
const DEMO: &[&str] = &["wattle", "wattle-standin", "wattle-demo"];

/// The library crates for other developers, whose documentation is built.
const PUBLISHED: &[&str] =
    &["--package", "wattle-graph", "--package", "wattle-run", "--package", "wattle-plugin"];

/// The programs that tests start.
const PROGRAMS: &[&str] = &["wattle", "wattle-standin", "wattle-standin-mcp", "wattle-demo"];

/// Builds guests, pages and host, and runs the demo.
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

/// Runs every test, with format, lints and documentation. The tests whose programs are missing are
/// counted at the end. With `WATTLE_REQUIRE=all` a missing program is an error.
pub(crate) fn test(arguments: &[&str]) -> Result<()> {
    let times = match arguments {
        [] => false,
        ["--times"] => true,
        [other, ..] => {
            bail!("unknown option `{other}` of `test`; `--times` writes a table of the times")
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
    clients()?;
    match pages::missing() {
        None => {
            pages::check()?;
            clients::check()?;
        }
        Some(missing) => needs::leave_out("the checks of pages and TypeScript SDK", &missing)?,
    }
    match Program::Python.find() {
        Ok(_) => python_sdk::check()?,
        Err(missing) => needs::leave_out("the checks of the Python SDK", &missing)?,
    }
    c_sdk::check()?;
    // What takes a few minutes comes before the tests, so that a finding is reported early.
    lint()?;
    document(PUBLISHED)?;
    run("run the documentation's examples", cargo().arg("test").args(NATIVE).arg("--doc"))?;
    // In one command, because dependencies of tests have more features. A build of the programs
    // alone would compile the host once more.
    let mut build = compiling(&["build", "--tests"]);
    run("build tests, host and stand-ins", build.args(NATIVE).args(bins(PROGRAMS)))?;
    match needs::nextest() {
        Ok(()) => {
            let browser = Browser::start()?;
            let mut tests = nextest(profile());
            tests.env(RECORD, needs::record());
            tests.envs(browser.iter().map(|browser| (browser::ADDRESS, browser.address())));
            run("run the tests", &mut tests)?;
        }
        Err(_) => {
            let mut tests = cargo();
            tests.arg("test").args(NATIVE).args(["--lib", "--bins", "--tests"]);
            run("run the tests", tests.env(RECORD, needs::record()))?;
        }
    }
    Ok(())
}

/// Installs clients, servers and toolchains, and builds the guests of the toolchains.
pub(crate) fn clients() -> Result<()> {
    clients::install()?;
    toolchains::build()
}

/// Evaluates the data sets of all or of some applications: once with precise models, and ten times
/// with imprecise ones.
pub(crate) fn eval(apps: &[&str]) -> Result<()> {
    needs::nextest()?;
    guests::build()?;
    programs("build the host", &["wattle"])?;
    let mut tests = compiling(&["nextest", "run"]);
    tests.args(["--profile", "eval", "--package", "wattle-suite", "--no-capture"]);
    // Names of these tests begin with the name of the application.
    let filters = apps.iter().map(|app| format!("test(/::{app}(_|$)/)"));
    tests.args(filters.flat_map(|filter| ["--filterset".to_owned(), filter]));
    run("run the data sets", &mut tests)
}

/// Makes, builds and tests new apps with packages from the registries, and runs the tests with
/// servers and gateways that are too large for [`fn@test`]. None of them is left out.
pub(crate) fn peers() -> Result<()> {
    needs::nextest()?;
    peers::install_tested()?;
    guests::build()?;
    programs("build the host", &["wattle"])?;
    new_apps::check()?;
    let mut tests = nextest("peers");
    run("run the tests with large servers and gateways", tests.env(REQUIRE, "all"))
}

/// Builds programs of the workspace.
fn programs(what: &str, names: &[&str]) -> Result<()> {
    run(what, compiling(&["build"]).args(NATIVE).args(bins(names)))
}

/// Returns the arguments that select programs.
fn bins<'name>(names: &[&'name str]) -> impl Iterator<Item = &'name str> {
    names.iter().flat_map(|name| ["--bin", *name])
}

/// Returns the profile of `.config/nextest.toml`.
fn profile() -> &'static str {
    if requires_all() { "ci" } else { "default" }
}

/// Checks format, lints, documentation, spelling and licenses.
pub(crate) fn check() -> Result<()> {
    run("check the format", cargo().args(["fmt", "--all", "--check"]))?;
    lint()?;
    document(&["--workspace"])?;
    optional("typos", "check the spelling", &[], "pip install typos")?;
    let deny = ["check", "bans", "licenses", "sources"];
    optional("cargo-deny", "check licenses and bans", &deny, "cargo install cargo-deny")
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

/// Runs a tool that may be missing. With `WATTLE_REQUIRE=all` a missing tool is an error.
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

/// Attacks a host in each of the named ways, or in all of them, and measures the service of other
/// callers meanwhile. The suite makes the same attacks for a moment.
pub(crate) fn attack(arguments: &[&str]) -> Result<()> {
    run("attack a host", benchmark()?.arg("attack").args(arguments))
}

/// Runs the benchmarks. `peer` also measures LangGraph, `load`, `agent-server`, `studio` and
/// `turns` measure servers.
pub(crate) fn bench(arguments: &[&str]) -> Result<()> {
    if arguments.first() == Some(&"attack") {
        bail!("attacks are no benchmark; run `cargo xtask attack`");
    }
    let mut measure = benchmark()?;
    match arguments {
        [what @ ("peer" | "agent-server"), rest @ ..] => {
            if *what == "peer" { peers::install() } else { peers::install_server() }?;
            measure.arg(what).arg(peers::folder()).args(rest);
        }
        others => {
            measure.args(others);
        }
    }
    run("run the benchmark", &mut measure)
}

/// Builds host and benchmark, and returns the command that runs the benchmark.
fn benchmark() -> Result<Command> {
    guests::build()?;
    // One command builds shared dependencies once. The benchmark finds the host in its own folder.
    let build = ["build", "--release", "--package", "wattle", "--package", "wattle-bench"];
    run("build host and benchmark", cargo().args(build))?;
    let mut benchmark = Command::new(target_folder().join("release/wattle-bench"));
    benchmark.current_dir(root());
    Ok(benchmark)
}
