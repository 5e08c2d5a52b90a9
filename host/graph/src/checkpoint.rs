//! One point of a thread's lineage: channel values and what runs next.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::{ChannelName, CheckpointId, Digest, Namespace, NodeName, RunId};

/// Values of all channels that have one. Shared, since most do not change in a step.
pub type Values = BTreeMap<ChannelName, Arc<Value>>;

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde wants")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

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
    /// How long one attempt may take, in milliseconds, in place of the node's own (a `send`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

impl Trigger {
    /// A trigger by an edge, a branch, a `goto` or the entry.
    pub fn plain(node: NodeName, from: Option<NodeName>) -> Self {
        Self { node, from, input: None, timeout_ms: None }
    }
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
    /// Digest of the graph with its components that made it; `None` if an older host did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Digest>,
    /// What runs next, in a fixed order; empty at the end.
    pub next: Vec<Trigger>,
    /// Barriers (`join` edges) that some but not all of their sources have reached.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub barriers: BTreeMap<String, BTreeSet<NodeName>>,
    /// Nodes that are to run once nothing else is left to (`defer`), in a fixed order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deferred: Vec<Trigger>,
    /// Tasks that its run has ended in this graph, up to here.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tasks: u64,
    /// Nodes whose tasks or edits made it, in order; empty for an input.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writers: Vec<NodeName>,
    /// Newest checkpoint of each nested graph that keeps its state over invocations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub children: BTreeMap<Namespace, CheckpointId>,
    /// Checkpoints of the graphs that this one is nested in, the root first.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parents: BTreeMap<Namespace, CheckpointId>,
    /// Version of each channel: the checkpoint that last wrote it.
    pub versions: BTreeMap<ChannelName, CheckpointId>,
    /// Sequence number of the event that says it was made, if it was stored only later (durability
    /// `exit`): what happened on it until then stands in the log with an earlier checkpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_seq: Option<u64>,
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

/// How the new value of a list begins: as an earlier version did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tail {
    /// The earlier version of the channel.
    pub base: CheckpointId,
    /// How many items it begins with that are those of that version.
    pub keep: u32,
}

/// A checkpoint with the values of all channels.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Everything but the values.
    pub meta: CheckpointMeta,
    /// Values of all channels that have one.
    pub values: Values,
    /// Which of the lists that this checkpoint wrote only grew at their end. A hint to who stores
    /// it: without it, or if it is ignored, the checkpoint is the same.
    #[serde(default, skip_serializing)]
    pub tails: BTreeMap<ChannelName, Tail>,
}

impl PartialEq for Checkpoint {
    fn eq(&self, other: &Self) -> bool {
        self.meta == other.meta && self.values == other.values
    }
}

impl Checkpoint {
    /// The state as one JSON object.
    pub fn state(&self) -> Value {
        Value::Object(
            self.values.iter().map(|(name, value)| (name.to_string(), (**value).clone())).collect(),
        )
    }
}
