//! How an attempt of a task ended well.

use wattle_graph::event::ChildEnd;

use crate::ports::sandbox::NodeOutcome;

/// How one attempt ended well.
#[derive(Clone, Debug, Default)]
pub(crate) struct Done {
    /// What the node decided.
    pub outcome: NodeOutcome,
    /// Where the graph ended that ran as this node.
    pub child: Option<ChildEnd>,
}

impl From<NodeOutcome> for Done {
    fn from(outcome: NodeOutcome) -> Self {
        Self { outcome, child: None }
    }
}
