//! One point of a thread's lineage: channel values and what runs next.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::{ChannelName, CheckpointId, Namespace, NodeName, RunId};

/// Values of all channels that have one. Shared, since most do not change in a step.
pub type Values = BTreeMap<ChannelName, Arc<Value>>;

/// How a checkpoint came to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// From the input of a run.
    Input,
    /// From a superstep.
    Loop,
    /// From an edit by a client.
    Update,
    /// From an earlier checkpoint.
    Fork,
}

/// A node that is to run in the next superstep, and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trigger {
    /// The node to run.
    pub node: NodeName,
    /// The node or input that led here; `None` for the entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<NodeName>,
    /// An input of its own in place of the state (a `send`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Arc<Value>>,
}

/// Everything about a checkpoint but the values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckpointMeta {
    /// Number in the thread.
    pub id: CheckpointId,
    /// The checkpoint before.
    pub parent: Option<CheckpointId>,
    /// Nested graph it belongs to; root if empty.
    #[serde(default)]
    pub namespace: Namespace,
    /// Superstep that runs next from here, from 0.
    pub step: u32,
    /// How it came to be.
    pub source: Source,
    /// The run that wrote it.
    pub run: RunId,
    /// Milliseconds since 1970, from the host's clock.
    pub at_ms: i64,
    /// What runs next, in a fixed order; empty at the end.
    pub next: Vec<Trigger>,
    /// Barriers (`join` edges) that some but not all of their sources have reached.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub barriers: BTreeMap<String, BTreeSet<NodeName>>,
    /// Version of each channel: the checkpoint that last wrote it.
    pub versions: BTreeMap<ChannelName, CheckpointId>,
    /// Free facts for filters (`source`, `step` and `run` can be filtered by without them).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, Value>,
}

impl CheckpointMeta {
    /// Channels that this checkpoint itself wrote.
    pub fn changed(&self) -> impl Iterator<Item = &ChannelName> {
        self.versions.iter().filter(|(_, version)| **version == self.id).map(|(name, _)| name)
    }
}

/// A checkpoint with the values of all channels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Everything but the values.
    pub meta: CheckpointMeta,
    /// Values of all channels that have one.
    pub values: Values,
}

impl Checkpoint {
    /// The state as one JSON object.
    pub fn state(&self) -> Value {
        Value::Object(
            self.values.iter().map(|(name, value)| (name.to_string(), (**value).clone())).collect(),
        )
    }
}
