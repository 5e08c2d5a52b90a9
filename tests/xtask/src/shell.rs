//! The programs that steps run, such as cargo, and messages to the user.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

/// The argument with which cargo reports compiled units.
pub(crate) const TIMINGS: &str = "--timings";

/// Whether [`compiling`] adds [`TIMINGS`].
static REPORTS: AtomicBool = AtomicBool::new(false);

/// Returns the root of the repository.
pub(crate) fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).map_or(here.clone(), PathBuf::from)
}

/// Returns a variable of this process's environment.
#[expect(clippy::disallowed_methods, reason = "cargo sets and reads variables")]
pub(crate) fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

/// Returns cargo's target folder, by the environment of this process.
pub(crate) fn target_folder() -> PathBuf {
    variable("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Prints a message to the user.
#[expect(clippy::print_stderr, reason = "scripts read standard output, which has results only")]
pub(crate) fn say(text: &str) {
    eprintln!("{text}");
}

/// Returns the command of the cargo that runs this tool.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(variable("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    // Cargo sets these for this tool. A build script of a guest must not see them.
    for variable in ["CARGO_MANIFEST_DIR", "CARGO_PKG_NAME"] {
        command.env_remove(variable);
    }
    command
}

/// Returns a cargo command that compiles, such as `build`.
pub(crate) fn compiling(subcommand: &[&str]) -> Command {
    let mut command = cargo();
    command.args(subcommand);
    if REPORTS.load(Ordering::Relaxed) {
        command.arg(TIMINGS);
    }
    command
}

/// Makes cargo report the units of later [`compiling`] commands.
pub(crate) fn report_builds() {
    REPORTS.store(true, Ordering::Relaxed);
}

/// Returns true if a program exists and succeeds with these arguments.
pub(crate) fn has(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
