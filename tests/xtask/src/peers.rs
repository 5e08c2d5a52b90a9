//! The programs that the benchmark measures beside Wattle: installed below cargo's target folder,
//! at the versions that the files in `tests/bench/peer` pin.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::guests::target_folder;
use crate::steps::{has, root, run, say};

/// What pins the Python packages. A copy of it in the environment says that they are installed.
const REQUIREMENTS: &str = "requirements.txt";

/// What pins the Node packages.
const LOCK: &str = "package-lock.json";

/// What is copied beside the Node packages, where the program finds them.
const NODE_FILES: [&str; 3] = ["package.json", LOCK, "main.mjs"];

/// Where everything is installed.
pub(crate) fn folder() -> PathBuf {
    target_folder().join("bench")
}

/// Installs what is missing. This is the only step of the benchmark that needs a network. A peer
/// that the machine has no language for is left out.
pub(crate) fn install() -> Result<()> {
    make(&folder())?;
    if has("python3", &["--version"]) {
        install_python()?;
    } else {
        say("note: no `python3` found; LangGraph for Python is left out");
    }
    if has("node", &["--version"]) && has("npm", &["--version"]) {
        install_node()?;
    } else {
        say("note: no `node` and `npm` found; LangGraph.js is left out");
    }
    Ok(())
}

fn install_python() -> Result<()> {
    let from = root().join("tests/bench/peer/python").join(REQUIREMENTS);
    let to = folder().join("python");
    let mark = to.join(REQUIREMENTS);
    if same(&from, &mark) {
        return Ok(());
    }
    // What a new version no longer needs must not stay.
    fs::remove_dir_all(&to).ok();
    let mut environment = Command::new("python3");
    environment.args(["-m", "venv"]).arg(&to);
    run("make a Python environment (Debian: `apt-get install python3-venv`)", &mut environment)?;
    let mut pip = Command::new(to.join("bin/python"));
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"]);
    run("install LangGraph for Python", pip.arg(&from))?;
    copy(&from, &mark)
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
        // Half an installation must not pass for a whole one.
        fs::remove_dir_all(to.join("node_modules")).ok();
    }
    installed
}

/// Whether both files are there and equal.
fn same(left: &Path, right: &Path) -> bool {
    fs::read(left).is_ok_and(|left| fs::read(right).is_ok_and(|right| left == right))
}

fn make(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to).with_context(|| format!("cannot copy {}", from.display())).map(drop)
}
