//! How one run runs.

use serde::{Deserialize, Serialize};
use wattle_graph::definition::NodeSet;

/// How one run runs, in place of what its graph says.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RunOptions {
    /// Supersteps it may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recursion_limit: Option<u32>,
    /// Tasks of a superstep that run at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_concurrency: Option<u32>,
    /// Nodes before which it stands still.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interrupt_before: Option<NodeSet>,
    /// Nodes after which it stands still.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interrupt_after: Option<NodeSet>,
    /// What waits for the disk.
    #[serde(skip_serializing_if = "Durability::is_commit")]
    pub durability: Durability,
}

impl RunOptions {
    /// Whether nothing differs from what the graph says.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// What of a run waits for the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// Output commit: whatever leaves the host waits for what led to it. A crash loses only work
    /// that nobody saw and that replays by itself.
    #[default]
    Commit,
    /// Every superstep waits for its checkpoint before the next begins.
    Sync,
    /// Nothing waits but the end of the run. After a crash an effect may be made twice.
    Async,
    /// As `commit`, but only the last checkpoint of the run is kept: at its end, at a question or
    /// at a failure. After a crash the run is replayed from the one before, by its journal.
    Exit,
}

impl Durability {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
    fn is_commit(&self) -> bool {
        *self == Self::Commit
    }
}
