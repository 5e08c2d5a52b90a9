//! Exit codes, as `wattle --help` documents them.

use std::process::ExitCode;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// It worked.
    Ok = 0,
    /// Something failed.
    Failed = 1,
    /// The command line makes no sense.
    Usage = 2,
    /// The configuration makes no sense.
    Config = 3,
    /// There is no such thing.
    NotFound = 4,
    /// The run waits for an answer.
    Interrupted = 5,
    /// The run failed.
    RunFailed = 6,
    /// The run was cancelled.
    Cancelled = 7,
    /// Ctrl-C ended it; the number is the one that shells give a command that the signal ends.
    Stopped = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// The table for `--help`.
pub const HELP: &str = "\
Exit codes:
  0  it worked
  1  something failed
  2  the command line makes no sense
  3  the configuration makes no sense
  4  there is no such thing
  5  the run waits for an answer
  6  the run failed
  7  the run was cancelled
  130  Ctrl-C ended it";
