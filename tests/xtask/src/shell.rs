//! The programs that steps run: cargo with its folders. Lines for people.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

/// Has cargo report what it compiles.
pub(crate) const TIMINGS: &str = "--timings";

/// Whether [`compiling`] has cargo do so.
static REPORTS: AtomicBool = AtomicBool::new(false);

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).map_or(here.clone(), PathBuf::from)
}

/// A variable of this process's environment.
#[expect(clippy::disallowed_methods, reason = "cargo sets and reads variables")]
pub(crate) fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

/// Cargo's target folder, by the environment of this process.
pub(crate) fn target_folder() -> PathBuf {
    variable("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Progress for people.
#[expect(clippy::print_stderr, reason = "progress is no result, and scripts read standard output")]
pub(crate) fn say(text: &str) {
    eprintln!("{text}");
}

/// The cargo that runs this tool.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(variable("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    // Set for this tool only; a build script of a guest must not see them.
    for variable in ["CARGO_MANIFEST_DIR", "CARGO_PKG_NAME"] {
        command.env_remove(variable);
    }
    command
}

/// A command of cargo that compiles, such as `build`.
pub(crate) fn compiling(subcommand: &[&str]) -> Command {
    let mut command = cargo();
    command.args(subcommand);
    if REPORTS.load(Ordering::Relaxed) {
        command.arg(TIMINGS);
    }
    command
}

/// From now on, cargo reports what [`compiling`] compiles.
pub(crate) fn report_builds() {
    REPORTS.store(true, Ordering::Relaxed);
}

/// Whether a program is there and succeeds with these arguments.
pub(crate) fn has(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
