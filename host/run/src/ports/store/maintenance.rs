//! Results of store maintenance, and of operations over all threads.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};
use wattle_graph::id::{AppName, Digest};

/// A damaged item of a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Damage {
    /// The item: a thread, a run, a table, a blob or a file.
    pub subject: String,
    /// What is wrong with the item.
    pub reason: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.subject, self.reason)
    }
}

/// The result of [`Store::find_damage`](super::Store::find_damage).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DamageReport {
    /// Number of threads that were read completely.
    pub threads: u64,
    /// Damaged items.
    pub damaged: Vec<Damage>,
}

/// Versions of apps that threads are pinned to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PinnedVersions {
    /// Each app with each of its versions that a thread is pinned to.
    pub versions: BTreeSet<(AppName, Digest)>,
    /// False if versions may be missing, since a damaged record does not show its version.
    pub is_complete: bool,
}

/// The size of a store before and after a compaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactionReport {
    /// Bytes on disk before.
    pub before_bytes: u64,
    /// Bytes on disk afterwards.
    pub after_bytes: u64,
}
