//! Python packages of others: an environment for each program, at pinned versions.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::files::{copy, same};
use crate::shell::run;

/// What pins the packages. A copy of it in the environment says that they are installed.
const REQUIREMENTS: &str = "requirements.txt";

/// Makes an environment with what `requirements.txt` in a folder names, unless it is there.
pub(crate) fn install(what: &str, from: &Path, to: &Path) -> Result<()> {
    let (requirements, mark) = (from.join(REQUIREMENTS), to.join(REQUIREMENTS));
    if same(&requirements, &mark) {
        return Ok(());
    }
    // What a new version no longer needs must not stay.
    fs::remove_dir_all(to).ok();
    let mut environment = Command::new("python3");
    environment.args(["-m", "venv"]).arg(to);
    run("make a Python environment", &mut environment)?;
    let mut pip = Command::new(to.join("bin/python"));
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"]);
    run(&format!("install {what}"), pip.arg(&requirements))?;
    copy(&requirements, &mark)
}
