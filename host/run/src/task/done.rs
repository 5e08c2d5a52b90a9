//! Outcome of a successful attempt.

use wattle_graph::event::SubgraphEnd;

use crate::ports::sandbox::NodeOutcome;

/// Outcome of a successful attempt.
#[derive(Clone, Debug, Default)]
pub(crate) struct Done {
    pub outcome: NodeOutcome,
    /// Last checkpoint of the subgraph that ran as this node.
    pub child: Option<SubgraphEnd>,
}

impl From<NodeOutcome> for Done {
    fn from(outcome: NodeOutcome) -> Self {
        Self { outcome, child: None }
    }
}
