//! Python packages of others: an environment for each program, at pinned versions.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::files::read;
use crate::step::run;

/// What pins the packages.
const REQUIREMENTS: &str = "requirements.txt";

/// The file in an environment that says what is installed, and in which folder: programs of an
/// environment name its folder, so one that was moved does not work.
const MARK: &str = "installed.txt";

/// Makes an environment with what `requirements.txt` in a folder names, unless it is there.
pub(crate) fn install(what: &str, from: &Path, to: &Path) -> Result<()> {
    let requirements = from.join(REQUIREMENTS);
    let (mark, installed) = (to.join(MARK), format!("{}\n{}", to.display(), read(&requirements)?));
    if fs::read_to_string(&mark).is_ok_and(|mark| mark == installed) {
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
    fs::write(&mark, installed).with_context(|| format!("cannot write {}", mark.display()))
}
