//! Batches as a store has written them, for exports and for the verification of seals.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use wattle_graph::checkpoint::CheckpointMeta;
use wattle_graph::event::Event;
use wattle_graph::id::{ChannelName, CheckpointId, Digest};

/// A batch as the store wrote it: events, and a checkpoint with the values that it changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredBatch {
    /// Base checkpoint of the events.
    pub base: Option<CheckpointId>,
    /// Events of the batch.
    pub events: Vec<Event>,
    /// The checkpoint of the batch, without values.
    pub checkpoint: Option<CheckpointMeta>,
    /// Channel values that the batch wrote.
    pub values: BTreeMap<ChannelName, StoredValue>,
    /// Seal of the batch; `None` if it was written without seals.
    pub seal: Option<Digest>,
}

/// A page of the batches of a thread, oldest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BatchPage {
    /// The batches.
    pub batches: Vec<StoredBatch>,
    /// Start of the next page; `None` after the newest batch.
    pub next: Option<u64>,
}

/// A channel value as it was written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoredValue {
    /// The whole value.
    Whole(Value),
    /// A list delta: the items that were appended to an earlier version of a list.
    #[serde(rename = "tail")]
    ListDelta {
        /// The checkpoint that wrote the earlier version.
        base: CheckpointId,
        /// Number of items of the earlier version that are kept.
        keep: u32,
        /// The appended items.
        items: Vec<Value>,
    },
}

/// The result of the verification of a thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealReport {
    /// Sequence number of the last event before the first seal. Events up to it are not sealed.
    pub sealed_after: u64,
    /// Sequence number of the newest event.
    pub last_seq: u64,
    /// Seal of the newest batch. A copy that is kept elsewhere reveals a later change of the
    /// history, even if all seals were changed with it.
    pub seal: Option<Digest>,
}
