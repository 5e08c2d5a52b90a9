//! Third-party Python packages: a virtual environment for each program, in pinned versions.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};

use crate::files::read;
use crate::step::run;

/// The file that pins the packages.
const REQUIREMENTS: &str = "requirements.txt";

/// The file in an environment with its folder and its packages. Programs of an environment contain
/// the path of its folder, so a moved environment is rebuilt.
const MARK: &str = "installed.txt";

/// Creates an environment with the packages of `requirements.txt` in a folder, unless it exists.
pub(crate) fn install(what: &str, from: &Path, to: &Path) -> Result<()> {
    let requirements = from.join(REQUIREMENTS);
    let (mark, installed) = (to.join(MARK), format!("{}\n{}", to.display(), read(&requirements)?));
    if fs::read_to_string(&mark).is_ok_and(|mark| mark == installed) {
        return Ok(());
    }
    // Packages that the new requirements do not have must be removed.
    fs::remove_dir_all(to).ok();
    let mut environment = Command::new("python3");
    environment.args(["-m", "venv"]).arg(to);
    run("create a Python environment", &mut environment)?;
    let mut pip = Command::new(to.join("bin/python"));
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"]);
    run(&format!("install {what}"), pip.arg(&requirements))?;
    fs::write(&mark, installed).with_context(|| format!("cannot write {}", mark.display()))
}
