//! What can go wrong while a test sets up its surroundings.

use std::{io, time::Duration};

use wattle_needs::Missing;

/// A failure of the test tools themselves, never of the program under test.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A loopback address could not be bound.
    #[error("cannot listen on {address}; is the port taken?")]
    Listen {
        /// The address that was asked for.
        address: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A program could not be started or waited for.
    #[error("cannot run `{program}`")]
    Program {
        /// The program's name or path.
        program: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A program started and then said no.
    #[error("`{program}` failed: {output}")]
    ProgramFailed {
        /// The program's name or path.
        program: String,
        /// The end of what it wrote.
        output: String,
    },
    /// A file of the test could not be written or read.
    #[error("cannot use `{path}`")]
    File {
        /// The file or folder.
        path: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A configuration cannot be used by a test.
    #[error("cannot use the configuration `{name}`: {message}")]
    Configuration {
        /// Its file.
        name: String,
        /// What is wrong with it.
        message: String,
    },
    /// Something that was waited for did not come.
    #[error("waited {limit:?} for {what}; {hint}")]
    Timeout {
        /// What did not come.
        what: String,
        /// How long was waited.
        limit: Duration,
        /// What was seen instead.
        hint: String,
    },
    /// What the test needs is not installed.
    #[error("{0}")]
    Missing(#[from] Missing),
}
