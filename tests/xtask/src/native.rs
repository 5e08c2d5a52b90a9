//! Crates for the native target, and their tests.

use std::process::Command;
use std::thread;

use crate::guests;
use crate::shell::cargo;

/// Arguments that select the crates for the native target. Every step selects the same crates, so
/// that dependencies have the same features and are built only once.
pub(crate) const NATIVE: [&str; 3] = ["--workspace", "--exclude", guests::FOREIGN];

/// Returns the command that runs the tests of the [`NATIVE`] crates with a profile of
/// `.config/nextest.toml`.
pub(crate) fn nextest(profile: &str) -> Command {
    let mut command = cargo();
    command.args(["nextest", "run", "--profile", profile]).args(NATIVE);
    command.args(["--test-threads", &test_threads().to_string()]);
    // By default, nextest starts each test through another process of its own, which makes it safe to
    // suspend the runner at that moment. That process takes 6 ms of CPU time.
    command.env("NEXTEST_DOUBLE_SPAWN", "0");
    command
}

/// Returns the number of concurrent tests. It exceeds the number of cores, because a test spends
/// about a quarter of its time waiting: for leases, backoff and the disk.
fn test_threads() -> usize {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    cores + cores.div_ceil(2)
}
