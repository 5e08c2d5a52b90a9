//! What a store has written, as exports show it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use wattle_graph::checkpoint::CheckpointMeta;
use wattle_graph::event::Event;
use wattle_graph::id::{ChannelName, CheckpointId, Digest};

/// What was written of a batch, for exports and for checking seals.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredBatch {
    /// The checkpoint that its events belong to.
    pub base: Option<CheckpointId>,
    /// Its events.
    pub events: Vec<Event>,
    /// Facts of the checkpoint in it.
    pub checkpoint: Option<CheckpointMeta>,
    /// What it wrote of the checkpoint's channels.
    pub values: BTreeMap<ChannelName, StoredValue>,
    /// Seal of everything up to its end; `None` if it was written before there were seals.
    pub seal: Option<Digest>,
}

/// Some batches of a thread, oldest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BatchPage {
    /// The batches.
    pub batches: Vec<StoredBatch>,
    /// Where the next page begins; `None` after the newest batch.
    pub next: Option<u64>,
}

/// What was written of a channel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoredValue {
    /// All of it.
    Whole(Value),
    /// The end of a list; its beginning stands in an earlier version.
    Tail {
        /// The earlier version.
        base: CheckpointId,
        /// How many of its items stay.
        keep: u32,
        /// The items after them.
        items: Vec<Value>,
    },
}

/// What checking the seals of a thread found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verified {
    /// Sequence number of the last event before the first seal: what came before it is not sealed.
    pub sealed_after: u64,
    /// The newest event.
    pub last_seq: u64,
    /// Seal of everything up to it: a copy that is kept elsewhere shows later whether the past was
    /// changed together with its seals.
    pub seal: Option<Digest>,
}
