//! Documents that streams and answers share.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use wattle_graph::event::Asked;

/// The key under which open questions stand among the values of a run.
pub const INTERRUPT: &str = "__interrupt__";

/// The key under which a failure stands in place of the values of a run.
pub const ERROR: &str = "__error__";

/// The address of a checkpoint, or of a graph without one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Checkpoint {
    /// The checkpoint; the newest without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint_id: Option<String>,
    /// The thread.
    #[serde(default)]
    pub thread_id: String,
    /// The subgraph; the thread's own graph if empty.
    #[serde(default)]
    pub checkpoint_ns: String,
    /// Checkpoints of the graphs around it, by namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint_map: Option<Value>,
}

impl Checkpoint {
    /// The checkpoint that it names, itself or in the map under its graph.
    pub fn id(&self) -> Option<&str> {
        let mapped = || self.checkpoint_map.as_ref()?.get(&self.checkpoint_ns)?.as_str();
        self.checkpoint_id.as_deref().filter(|id| !id.is_empty()).or_else(mapped)
    }
}

/// A question to a person.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Interrupt {
    /// What the person needs to see.
    pub value: Value,
    /// Its id, which an answer may name.
    pub id: String,
    /// What an answer must look like.
    pub response_schema: Option<Value>,
}

impl From<&Asked> for Interrupt {
    fn from(asked: &Asked) -> Self {
        Self {
            value: asked.payload.clone(),
            id: asked.interrupt.to_string(),
            response_schema: asked.response_schema.clone(),
        }
    }
}
