//! What each command does, step by step.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::{clients, guests, pages, peers};

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).map_or(here.clone(), PathBuf::from)
}

/// Progress for people.
#[expect(clippy::print_stderr, reason = "the one place of this tool that prints")]
pub(crate) fn say(text: &str) {
    eprintln!("{text}");
}

/// The cargo that runs this tool.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    // Set for this tool only; a build script of a guest must not see them.
    for variable in ["CARGO_MANIFEST_DIR", "CARGO_PKG_NAME"] {
        command.env_remove(variable);
    }
    command
}

/// Runs one step and says how long it took.
pub(crate) fn run(what: &str, command: &mut Command) -> Result<()> {
    say(&format!("==> {what}"));
    let started = Instant::now();
    let status = command.status().with_context(|| format!("cannot start: {command:?}"))?;
    if !status.success() {
        bail!("could not {what} ({status})");
    }
    say(&format!("    done in {:.0} s", started.elapsed().as_secs_f64()));
    Ok(())
}

pub(crate) fn has(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// The main job, end to end.
pub(crate) fn demo(arguments: &[&str]) -> Result<()> {
    guests::build()?;
    pages::build()?;
    let binaries = ["--bin", "wattle", "--bin", "wattle-standin", "--bin", "wattle-demo"];
    run("build host, stand-ins and demo", cargo().arg("build").args(binaries))?;
    let demo = guests::target_folder().join("debug/wattle-demo");
    let status = Command::new(demo).current_dir(root()).args(arguments).status()?;
    std::process::exit(status.code().unwrap_or(1));
}

/// Every test, with format, lints and documentation.
pub(crate) fn test() -> Result<()> {
    guests::build()?;
    let has_pages = pages::build()?;
    clients::install()?;
    if has_pages {
        pages::check()?;
    }
    run("check the format", cargo().args(["fmt", "--all", "--check"]))?;
    let binaries = ["wattle", "wattle-standin", "wattle-standin-mcp", "wattle-demo"];
    let binaries = binaries.iter().flat_map(|binary| ["--bin", *binary]);
    run("build host, stand-ins and demo", cargo().arg("build").args(binaries))?;
    explain_postgres();
    if has("cargo", &["nextest", "--version"]) {
        run("run the tests", cargo().args(["nextest", "run"]))?;
    } else {
        run("run the tests", cargo().args(["test", "--lib", "--bins", "--tests"]))?;
    }
    let guests = guests::first_party().flat_map(|package| ["--package", package]);
    run("test the guests' logic natively", cargo().arg("test").args(guests))?;
    run("run the documentation's examples", cargo().args(["test", "--doc"]))?;
    lints()
}

/// Tests that need a PostgreSQL server start one; without its programs they say so and pass.
fn explain_postgres() {
    let found = has("initdb", &["--version"])
        || std::fs::read_dir("/usr/lib/postgresql").is_ok_and(|folder| folder.count() > 0);
    if !found {
        say(
            "note: no PostgreSQL programs found; tests on PostgreSQL are left out (Debian: `apt-get install postgresql`)",
        );
    }
}

/// Format, lints, documentation, spelling, licences.
pub(crate) fn check() -> Result<()> {
    run("check the format", cargo().args(["fmt", "--all", "--check"]))?;
    lints()?;
    optional("typos", "check the spelling", &[], "pip install typos");
    optional(
        "cargo-deny",
        "check licences and bans",
        &["check", "bans", "licenses", "sources"],
        "cargo install cargo-deny",
    );
    Ok(())
}

fn lints() -> Result<()> {
    let clippy = ["clippy", "--workspace", "--all-targets", "--", "--deny", "warnings"];
    run("lint", cargo().args(clippy))?;
    run(
        "build the documentation",
        cargo().args(["doc", "--no-deps", "--workspace"]).env("RUSTDOCFLAGS", "--deny warnings"),
    )
}

/// A tool that not everybody has.
fn optional(program: &str, what: &str, arguments: &[&str], install: &str) {
    if !has(program, &["--version"]) {
        say(&format!("note: `{program}` is not installed, so this does not {what} (`{install}`)"));
        return;
    }
    let mut command = Command::new(program);
    if let Err(error) = run(what, command.current_dir(root()).args(arguments)) {
        say(&format!("{error:#}"));
        std::process::exit(1);
    }
}

/// Steps per second; `peer` measures LangGraph as well, `load` and `agent-server` whole servers.
pub(crate) fn bench(arguments: &[&str]) -> Result<()> {
    guests::build()?;
    // Together, so that what both need is built once; both must be there, side by side.
    let build = ["build", "--release", "--package", "wattle", "--package", "wattle-bench"];
    run("build what is measured", cargo().args(build))?;
    let mut measure = Command::new(guests::target_folder().join("release/wattle-bench"));
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
