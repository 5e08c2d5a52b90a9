//! How a walk through a graph ends.

use wattle_graph::failure::Failure;
use wattle_graph::step::ParentOutcome;

/// How a walk ended, or why it paused.
pub(crate) enum End {
    /// Nothing is left to run.
    Completed,
    /// Tasks want something of the graph above.
    ToParent(ParentOutcome),
    /// A question has no answer, or a static interrupt was reached.
    Interrupted,
    /// It was asked to stand still.
    Drained,
    /// A task failed for good, or the graph could not go on.
    Failed(Failure),
    /// The run was cancelled.
    Cancelled,
    /// Nothing more can be written about this thread.
    LogLost(Failure),
}
