//! What looking at everything that is stored finds, and at a little of everything.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};
use wattle_graph::id::{AppName, Digest};

/// Something that is stored and damaged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Damage {
    /// What it is: a thread, a run, a table, a blob, a file.
    pub subject: String,
    /// What is wrong with it.
    pub reason: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.subject, self.reason)
    }
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Survey {
    /// Threads that were read in whole.
    pub threads: u64,
    /// What is damaged.
    pub damaged: Vec<Damage>,
}

/// Versions of apps that threads are pinned to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pinned {
    /// Each app with each of its versions.
    pub versions: BTreeSet<(AppName, Digest)>,
    /// Whether these are all: a damaged record does not say its version.
    pub is_complete: bool,
}

/// How large a store is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compacted {
    /// Bytes on disk before.
    pub before_bytes: u64,
    /// Bytes on disk now.
    pub after_bytes: u64,
}
