//! Where a thread stands: the small record that every batch rewrites.

use serde::{Deserialize, Serialize};
use wattle_graph::id::{CheckpointId, Digest};

use crate::rules::Standing;

/// Where a thread stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Head {
    /// Stands for the thread in the keys of other tables; never given twice.
    pub(crate) number: u64,
    /// Its newest event.
    pub(crate) last_seq: u64,
    /// Highest checkpoint number given out.
    pub(crate) last_checkpoint: Option<CheckpointId>,
    /// The checkpoint it stands at.
    pub(crate) current: Option<CheckpointId>,
    /// Its newest frame; 0 without any.
    pub(crate) frame: u64,
    /// How many frames it has.
    pub(crate) frames: u64,
    /// Bytes of all its frames.
    pub(crate) bytes: u64,
    /// How many runs it has had since it was written anew: the position of the next one.
    pub(crate) runs: u64,
    /// How many of these were pending and were taken away.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) runs_taken: u64,
    /// Sequence number before its oldest event that is still there.
    #[serde(default)]
    pub(crate) pruned_seq: u64,
    /// Seal of its newest frame that has one.
    #[serde(default)]
    pub(crate) seal: Option<Digest>,
    /// Seal that its oldest frame follows: the newest when frames were taken away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) seal_before: Option<Digest>,
    /// Whether checkpoints have values of others that were taken away.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) carries: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Head {
    /// How far the thread has come.
    pub(crate) fn standing(&self) -> Standing {
        Standing { last_seq: self.last_seq, last_checkpoint: self.last_checkpoint }
    }
}
