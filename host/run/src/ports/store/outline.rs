//! A checkpoint without its channel values.

use super::{CheckpointTuple, ThreadHead};

/// A thread with one of its checkpoints, as of one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckpointOutline {
    /// The thread.
    pub head: ThreadHead,
    /// The checkpoint with the events since then, without channel values.
    pub tuple: CheckpointTuple,
}
