//! Errors of the test tools.

use std::{io, time::Duration};

use wattle_needs::Missing;

/// An error of the test tools themselves, never of the program under test.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A loopback address could not be bound.
    #[error("cannot listen on {address}; the port may be in use")]
    Listen {
        /// The requested address.
        address: String,
        /// The error of the operating system.
        #[source]
        source: io::Error,
    },
    /// A program could not be started or waited for.
    #[error("cannot run `{program}`")]
    Program {
        /// The program's name or path.
        program: String,
        /// The error of the operating system.
        #[source]
        source: io::Error,
    },
    /// A program exited with an error.
    #[error("`{program}` failed: {output}")]
    ProgramFailed {
        /// The program's name or path.
        program: String,
        /// The last lines of its output.
        output: String,
    },
    /// A file of the test could not be written or read.
    #[error("cannot use `{path}`")]
    File {
        /// The file or folder.
        path: String,
        /// The error of the operating system.
        #[source]
        source: io::Error,
    },
    /// A configuration is not usable by a test.
    #[error("cannot use the configuration `{name}`: {message}")]
    Configuration {
        /// The file of the configuration.
        name: String,
        /// The reason.
        message: String,
    },
    /// A condition was not met in time.
    #[error("waited {limit:?} for {what}; {hint}")]
    Timeout {
        /// The condition.
        what: String,
        /// The timeout.
        limit: Duration,
        /// Details for the diagnosis, such as the last lines of output.
        hint: String,
    },
    /// A program is not installed.
    #[error("{0}")]
    Missing(#[from] Missing),
}
