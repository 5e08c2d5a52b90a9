//! The crates that are built for this machine, and their tests.

use std::process::Command;
use std::thread;

use crate::guests;
use crate::shell::cargo;

/// The crates that are built for this machine. All of them in every step, so that dependencies have the
/// same features in each and are built once.
pub(crate) const NATIVE: [&str; 3] = ["--workspace", "--exclude", guests::FOREIGN];

/// The tests of the [`NATIVE`] crates, with a profile of `.config/nextest.toml`.
pub(crate) fn nextest(profile: &str) -> Command {
    let mut command = cargo();
    command.args(["nextest", "run", "--profile", profile]).args(NATIVE);
    command.args(["--test-threads", &test_threads().to_string()]);
    command
}

/// Tests at a time. A test waits for about a quarter of its time: for leases, for pauses between attempts,
/// for a disk.
fn test_threads() -> usize {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    cores + cores.div_ceil(2)
}
