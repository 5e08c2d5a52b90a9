//! JSON objects that streams and responses share.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use wattle_graph::event::InterruptRaised;

/// Key of the pending interrupts among the values of a run.
pub const INTERRUPT: &str = "__interrupt__";

/// Key of the failure that a failed run has in place of its values.
pub const ERROR: &str = "__error__";

/// Name of the task that applies the input of a run.
pub const START: &str = "__start__";

/// The address of a checkpoint, or of a graph without a checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Checkpoint {
    /// Id of the checkpoint; absent for the newest one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint_id: Option<String>,
    /// Id of the thread.
    #[serde(default)]
    pub thread_id: String,
    /// Namespace of the subgraph; empty for the root graph.
    #[serde(default)]
    pub checkpoint_ns: String,
    /// Ids of the checkpoints of the parent graphs; the keys are namespaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint_map: Option<Value>,
}

impl Checkpoint {
    /// Returns the id of the checkpoint: `checkpoint_id`, or else the entry of `checkpoint_map` for
    /// the namespace.
    pub fn id(&self) -> Option<&str> {
        let mapped = || self.checkpoint_map.as_ref()?.get(&self.checkpoint_ns)?.as_str();
        self.checkpoint_id.as_deref().filter(|id| !id.is_empty()).or_else(mapped)
    }
}

/// A pending interrupt of a run, in the form of the Agent Server API.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Interrupt {
    /// Payload of the question.
    pub value: Value,
    /// Id of the interrupt, by which an answer can name it.
    pub id: String,
    /// JSON Schema of the answer.
    pub response_schema: Option<Value>,
}

impl From<&InterruptRaised> for Interrupt {
    fn from(raised: &InterruptRaised) -> Self {
        Self {
            value: raised.payload.clone(),
            id: raised.interrupt.to_string(),
            response_schema: raised.response_schema.clone(),
        }
    }
}
