//! Programs that the benchmark compares with Wattle, and those of `cargo xtask peers`. They are
//! installed below cargo's target folder, in the versions that `tests/bench/peer` and
//! `tests/clients/peers` pin.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;
use wattle_needs::Program;
use wattle_needs::clients::PEERS;

use crate::files::{copy, make, same};
use crate::python;
use crate::shell::{root, say, target_folder};
use crate::step::run;

/// The lock file, which pins the packages for Node.js.
const LOCK: &str = "package-lock.json";

/// The files that are copied to the packages for Node.js.
const NODE_FILES: [&str; 3] = ["package.json", LOCK, "main.mjs"];

/// Returns the folder of the installed programs.
pub(crate) fn folder() -> PathBuf {
    target_folder().join("bench")
}

/// Installs the missing programs. This is the only step of the benchmark that needs a network. A
/// program whose language runtime is missing is left out.
pub(crate) fn install() -> Result<()> {
    make(&folder())?;
    match Program::Python.find() {
        Ok(_) => {
            let from = root().join("tests/bench/peer/python");
            python::install("LangGraph for Python", &from, &folder().join("python"))?;
        }
        Err(missing) => say(&format!("note: LangGraph for Python is left out: {missing}")),
    }
    match Program::Node.find().and(Program::Npm.find()) {
        Ok(_) => install_node(),
        Err(missing) => {
            say(&format!("note: LangGraph.js is left out: {missing}"));
            Ok(())
        }
    }
}

/// Installs the LangGraph server, unless Python is missing.
pub(crate) fn install_server() -> Result<()> {
    make(&folder())?;
    if let Err(missing) = Program::Python.find() {
        say(&format!("note: the server of LangGraph is left out: {missing}"));
        return Ok(());
    }
    let from = root().join("tests/bench/peer/server");
    python::install("the server of LangGraph", &from, &folder().join("agent-server"))
}

/// Installs the servers and gateways of tests that are too large for [`crate::clients::install`].
///
/// # Errors
///
/// If Python is missing, or the installation fails.
pub(crate) fn install_tested() -> Result<()> {
    Program::Python.find()?;
    let from = root().join("tests/clients").join(PEERS);
    python::install("FastMCP and LiteLLM", &from, &target_folder().join("clients").join(PEERS))
}

fn install_node() -> Result<()> {
    let from = root().join("tests/bench/peer/node");
    let to = folder().join("node");
    let complete = same(&from.join(LOCK), &to.join(LOCK)) && to.join("node_modules").is_dir();
    make(&to)?;
    for file in NODE_FILES {
        copy(&from.join(file), &to.join(file))?;
    }
    if complete {
        return Ok(());
    }
    let mut npm = Command::new("npm");
    npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]);
    let installed = run("install LangGraph.js", npm.current_dir(&to));
    if installed.is_err() {
        // A partial installation must not count as complete.
        fs::remove_dir_all(to.join("node_modules")).ok();
    }
    installed
}
