//! Checkpoints: the state of a graph after an input, a superstep, an edit or a fork, with the
//! triggers of the next superstep.

mod channel_map;
mod list;
mod value;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::{ChannelName, CheckpointId, Digest, Namespace, NodeName, RunId};
use crate::omit::is_zero;

pub(crate) use self::list::id_hash;

pub use self::channel_map::ChannelMap;
pub use self::list::SharedList;
pub use self::value::{ChannelValue, Content};

/// The values of all channels that have a value.
pub type Values = ChannelMap<ChannelValue>;

/// The version of each channel that has a value: the checkpoint that last wrote it.
pub type Versions = ChannelMap<CheckpointId>;

/// How a checkpoint was created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckpointSource {
    /// By the input of a run.
    Input,
    /// By a superstep.
    Loop,
    /// By an edit of a client.
    Update,
    /// By a fork from an earlier checkpoint.
    Fork,
}

/// A node that the next superstep runs, and what triggered it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trigger {
    /// The node to run.
    pub node: NodeName,
    /// The node whose edge, branch, `goto` or send is the trigger; `None` for the entry and for a
    /// client's command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<NodeName>,
    /// Input of the task in place of the state; only a send has an input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Arc<Value>>,
    /// Timeout of one attempt in milliseconds, in place of the timeout of the node; only a send has
    /// a timeout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

impl Trigger {
    /// Creates the trigger of an edge, a branch, a `goto` or the entry. Its task reads the state.
    pub fn without_input(node: NodeName, from: Option<NodeName>) -> Self {
        Self { node, from, input: None, timeout_ms: None }
    }
}

/// A case of a branch that a superstep or an edit took.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakenCase {
    /// Name of the branch.
    pub branch: String,
    /// Index of the case in the branch, from 0.
    pub case: u32,
}

/// A checkpoint without the channel values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckpointMeta {
    /// Number of the checkpoint in its thread.
    pub id: CheckpointId,
    /// The previous checkpoint; `None` for the first.
    pub parent: Option<CheckpointId>,
    /// Namespace of the subgraph; empty for the root graph.
    #[serde(default)]
    pub namespace: Namespace,
    /// Number of the superstep that runs next, from 0.
    pub step: u32,
    /// How the checkpoint was created.
    pub source: CheckpointSource,
    /// The run that created the checkpoint.
    pub run: RunId,
    /// Time of creation by the host's clock, in milliseconds since 1970.
    pub at_ms: i64,
    /// Digest of the graph and components that created the checkpoint; `None` in checkpoints of
    /// older hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Digest>,
    /// Triggers of the next superstep, in a fixed order; empty at the end of the graph.
    pub next: Vec<Trigger>,
    /// Barriers (edges from several nodes) that some but not all of their sources have reached, by
    /// the [key](crate::graph::Edge::key) of the edge.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub barriers: BTreeMap<String, BTreeSet<NodeName>>,
    /// Triggers of deferred nodes (`defer`), in a fixed order. They run once no other node is
    /// triggered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deferred: Vec<Trigger>,
    /// Number of tasks that the run has finished up to this checkpoint. The number of a checkpoint
    /// of the root graph includes the tasks of all graphs of the run. The number of a checkpoint of
    /// a subgraph includes only the tasks of that subgraph.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tasks: u64,
    /// Nodes whose tasks or edits created the checkpoint, in order; empty for an input.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writers: Vec<NodeName>,
    /// Newest checkpoint of each subgraph that keeps its state between invocations.
    #[serde(rename = "children", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub subgraph_checkpoints: BTreeMap<Namespace, CheckpointId>,
    /// Checkpoints of the parent graphs, the root graph first.
    #[serde(rename = "parents", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parent_graphs: BTreeMap<Namespace, CheckpointId>,
    /// Version of each channel.
    pub versions: Versions,
    /// Sequence number of the `checkpointed` event, set only if the checkpoint was persisted later
    /// than that event (durability `exit`). In the log, the events between that event and
    /// the persistence belong to the checkpoint at which the run started.
    #[serde(rename = "made_seq", default, skip_serializing_if = "Option::is_none")]
    pub event_seq: Option<u64>,
    /// Metadata set by the client that makes an edit, for filtering the history. Filters by
    /// `source`, `step` and `run` need no metadata.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, Value>,
}

impl CheckpointMeta {
    /// Returns the channels that this checkpoint wrote.
    pub fn written_channels(&self) -> impl Iterator<Item = &ChannelName> {
        self.versions.iter().filter(|(_, version)| **version == self.id).map(|(name, _)| name)
    }
}

/// A list delta: a written list begins with items of an earlier version of its channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListDelta {
    /// Checkpoint of the earlier version.
    pub base: CheckpointId,
    /// Number of leading items that both versions share.
    #[serde(rename = "keep")]
    pub prefix_len: u32,
}

/// A checkpoint with the values of all channels.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Id, triggers, versions and the other fields without the values.
    pub meta: CheckpointMeta,
    /// The values of all channels that have a value.
    pub values: Values,
    /// Written lists that begin with items of their previous version. A store can write only the
    /// remaining items of such a list; ignoring this field is correct.
    #[serde(rename = "tails", default, skip_serializing)]
    pub list_deltas: BTreeMap<ChannelName, ListDelta>,
    /// Cases of branches that the superstep or the edit took, in the order of the branches. The
    /// event of the checkpoint records them. A store does not keep them, so a checkpoint that was
    /// read has none.
    #[serde(skip)]
    pub taken: Vec<TakenCase>,
}

impl PartialEq for Checkpoint {
    fn eq(&self, other: &Self) -> bool {
        self.meta == other.meta && self.values == other.values
    }
}

impl Checkpoint {
    /// Creates a checkpoint without list deltas and without taken cases.
    pub fn new(meta: CheckpointMeta, values: Values) -> Self {
        Self { meta, values, list_deltas: BTreeMap::new(), taken: Vec::new() }
    }

    /// Returns the state as one JSON object.
    pub fn state(&self) -> Value {
        let field = |(name, value): (&ChannelName, &ChannelValue)| {
            (name.to_string(), value.value().into_owned())
        };
        Value::Object(self.values.iter().map(field).collect())
    }
}
