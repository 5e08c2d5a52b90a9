//! JSON representation of run options.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use wattle_graph::definition::NodeSet;
use wattle_run::ports::store::{Durability, RunOptions};

/// Settings of the graph that a run overrides. Absent settings keep the value of the graph.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
#[schema(as = OptionsDocument)]
pub struct RunOptionsDocument {
    /// Maximum number of supersteps of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recursion_limit: Option<u32>,
    /// Maximum number of tasks of a superstep that run in parallel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_concurrency: Option<u32>,
    /// Nodes before which the run stops: a list of names, or `"*"` for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub interrupt_before: Option<NodeSet>,
    /// Nodes after which the run stops: a list of names, or `"*"` for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub interrupt_after: Option<NodeSet>,
    /// What waits for the disk: `commit` (default), `sync`, `async` or `exit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub durability: Option<Durability>,
}

impl RunOptionsDocument {
    /// Returns true if the run overrides no setting.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl From<RunOptionsDocument> for RunOptions {
    fn from(document: RunOptionsDocument) -> Self {
        Self {
            recursion_limit: document.recursion_limit,
            max_concurrency: document.max_concurrency,
            interrupt_before: document.interrupt_before,
            interrupt_after: document.interrupt_after,
            durability: document.durability.unwrap_or_default(),
        }
    }
}
