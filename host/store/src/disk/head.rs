//! The head of a thread: the small record that every batch rewrites.

use serde::{Deserialize, Serialize};
use wattle_graph::id::{CheckpointId, Digest};
use wattle_graph::omit::is_zero;

use crate::validate::LogPosition;

/// The head of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Head {
    /// Thread number: represents the thread in the keys of other tables. It is never reused.
    pub(crate) number: u64,
    /// Newest sequence number.
    pub(crate) last_seq: u64,
    /// Highest assigned checkpoint id.
    pub(crate) last_checkpoint: Option<CheckpointId>,
    /// Current checkpoint.
    pub(crate) current: Option<CheckpointId>,
    /// Number of the newest frame; 0 if the thread has no frame.
    pub(crate) frame: u64,
    /// Number of frames.
    pub(crate) frames: u64,
    /// Bytes of all frames.
    pub(crate) bytes: u64,
    /// Number of runs that were added since the last rewrite. It is the position of the next run in
    /// the run list of the thread.
    pub(crate) runs: u64,
    /// Number of runs counted in `runs` that were deleted while they were pending.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) runs_taken: u64,
    /// Sequence number of the newest event that was removed: the oldest kept event follows it.
    #[serde(default)]
    pub(crate) pruned_seq: u64,
    /// Seal of the newest frame that has a seal.
    #[serde(default)]
    pub(crate) seal: Option<Digest>,
    /// Seal before that of the oldest frame: the newest seal that the last rewrite removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) seal_before: Option<Digest>,
    /// Whether frames of the thread contain values of checkpoints that a rewrite dropped.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) carries: bool,
}

impl Head {
    /// Returns the log position of the thread.
    pub(crate) fn log_position(&self) -> LogPosition {
        LogPosition { last_seq: self.last_seq, last_checkpoint: self.last_checkpoint }
    }
}
