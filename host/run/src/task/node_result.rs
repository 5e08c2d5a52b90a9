//! Outcome of a successful attempt.

use wattle_graph::event::SubgraphEnd;

use crate::ports::sandbox::NodeOutcome;

/// Outcome of a successful attempt.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeResult {
    pub outcome: NodeOutcome,
    /// Last checkpoint of the subgraph that ran as this node.
    pub subgraph_end: Option<SubgraphEnd>,
}

impl From<NodeOutcome> for NodeResult {
    fn from(outcome: NodeOutcome) -> Self {
        Self { outcome, subgraph_end: None }
    }
}
