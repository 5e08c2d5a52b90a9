//! Exit codes, as `wattle --help` documents them.

use std::process::ExitCode;

/// The exit code of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// The command succeeded.
    Ok = 0,
    /// The command failed.
    Failed = 1,
    /// The arguments are invalid.
    Usage = 2,
    /// The configuration is invalid.
    Config = 3,
    /// A resource in the arguments does not exist.
    NotFound = 4,
    /// The run is interrupted.
    Interrupted = 5,
    /// The run failed.
    RunFailed = 6,
    /// The run was cancelled.
    Cancelled = 7,
    /// Ctrl-C stopped the command. Shells report this code for a process that SIGINT ends.
    Stopped = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// The table of exit codes for `--help`.
pub const HELP: &str = "\
Exit codes:
  0  success
  1  failure
  2  invalid arguments
  3  invalid configuration
  4  not found
  5  the run is interrupted
  6  the run failed
  7  the run was cancelled
  130  stopped by Ctrl-C";
