//! Edits and forks as documents.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use wattle_graph::failure::Failure;

use crate::document::options::OptionsDocument;

/// Edits of a thread.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EditsDocument {
    /// The subgraph to edit, which stands still in the middle of its work or keeps its state over
    /// invocations; the thread's own graph without it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The checkpoint to edit; where the thread stands without it. An earlier one forks. Of a
    /// subgraph only the newest can be edited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<u64>,
    /// The edits: each list is one superstep. All of them are made, or none.
    pub supersteps: Vec<Vec<EditDocument>>,
    /// The app of a thread that is to be made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app: Option<String>,
    /// Its graph; without it, the only one of the app.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub graph: Option<String>,
    /// Facts for the checkpoints that are made.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, Value>,
}

/// One edit.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EditDocument {
    /// The node as which it writes: its edges and branches lead on. `__input__` writes as an input,
    /// `END` lets nothing run next, `__copy__` changes nothing. Without it, the only node that made
    /// the checkpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub as_node: Option<String>,
    /// Channel values, to be combined with those that are there.
    pub values: BTreeMap<String, Value>,
    /// Channels whose value is replaced and not combined.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub overwrite: BTreeSet<String>,
}

/// Where to go on from the past of a thread: `checkpoint`, or `call`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ForkDocument {
    /// A checkpoint; its tasks run anew and its questions are asked again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<u64>,
    /// Channel values on top of its state: the entry runs next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// A host call that gets another answer; what was done before it counts as done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<CallDocument>,
    /// Goes on in a copy of the thread.
    pub copy: bool,
    /// Id of the copy; a fresh one without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<String>,
    /// How it runs, in place of what the graph says.
    #[serde(skip_serializing_if = "OptionsDocument::is_default")]
    pub options: OptionsDocument,
    /// Answer when the run has ended or stands still, not at once.
    pub wait: bool,
}

/// A host call and its other answer: `answer` or `failure`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CallDocument {
    /// Sequence number of its `called` event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// Or its task, with `scope` and `call`: the newest entry of that place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// Which calls of the task it is inside of; none for a call of the node itself.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scope: Vec<u32>,
    /// Its number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<u32>,
    /// The answer that it gets, in the form that its journal entry shows.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub answer: Option<Value>,
    /// The failure that it gets, with `code` and `message`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub failure: Option<Failure>,
}

/// An answer that is there, also if it is `null`.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}
