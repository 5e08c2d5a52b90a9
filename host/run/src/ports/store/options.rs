//! Options of one run.

use serde::{Deserialize, Serialize};
use wattle_graph::definition::NodeSet;

/// Options of one run, in place of the settings of its graph.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RunOptions {
    /// Maximum number of supersteps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recursion_limit: Option<u32>,
    /// Maximum number of tasks of a superstep that run concurrently.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_concurrency: Option<u32>,
    /// Breakpoints before nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interrupt_before: Option<NodeSet>,
    /// Breakpoints after nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interrupt_after: Option<NodeSet>,
    /// What waits for the disk.
    #[serde(skip_serializing_if = "Durability::is_commit")]
    pub durability: Durability,
}

impl RunOptions {
    /// Returns true if no option is set.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// What waits for the disk during a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// Output commit: whatever leaves the host waits until the events that led to it are durable. A
    /// crash loses only work that was not visible outside, and recovery does this work again.
    #[default]
    Commit,
    /// Every superstep waits for its checkpoint to be durable before the next starts.
    Sync,
    /// Only the end of the run waits. After a crash an effect may be repeated.
    Async,
    /// Like `commit`, but only the last checkpoint of the run is stored: at its end, at an
    /// interrupt or at a failure. After a crash, recovery continues the run from the last stored
    /// checkpoint, with the results of its journal.
    Exit,
}

impl Durability {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
    fn is_commit(&self) -> bool {
        *self == Self::Commit
    }
}
