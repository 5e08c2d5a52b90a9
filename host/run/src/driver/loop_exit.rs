//! Results of the superstep loop of a graph.

use wattle_graph::failure::Failure;
use wattle_graph::step::ParentOutcome;

/// Reason why a superstep loop ended or paused.
pub(crate) enum LoopExit {
    /// No task is left to run.
    Completed,
    /// A task returned an outcome for the parent graph.
    ParentOutcome(ParentOutcome),
    /// An interrupt has no answer, or a breakpoint was reached.
    Interrupted,
    /// A drain was requested.
    Drained,
    /// A task failed permanently, or the graph cannot continue.
    Failed(Failure),
    /// The run was cancelled.
    Cancelled,
    /// The log of the thread cannot be written.
    LogLost(Failure),
}
