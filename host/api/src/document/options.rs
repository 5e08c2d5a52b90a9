//! How a run runs, as a document.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use wattle_graph::definition::NodeSet;
use wattle_run::ports::store::{Durability, RunOptions};

/// How one run runs, in place of what its graph says.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OptionsDocument {
    /// Supersteps it may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recursion_limit: Option<u32>,
    /// Tasks of a superstep that run at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_concurrency: Option<u32>,
    /// Nodes before which it stands still: a list of names, or `"*"` for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub interrupt_before: Option<NodeSet>,
    /// Nodes after which it stands still: a list of names, or `"*"` for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub interrupt_after: Option<NodeSet>,
    /// What waits for the disk: `commit` (default), `sync`, `async` or `exit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub durability: Option<Durability>,
}

impl OptionsDocument {
    /// Whether nothing differs from what the graph says.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl From<OptionsDocument> for RunOptions {
    fn from(document: OptionsDocument) -> Self {
        Self {
            recursion_limit: document.recursion_limit,
            max_concurrency: document.max_concurrency,
            interrupt_before: document.interrupt_before,
            interrupt_after: document.interrupt_after,
            durability: document.durability.unwrap_or_default(),
        }
    }
}
