//! The end of a run, which all callers that wait for the run share.

use wattle_graph::checkpoint::Checkpoint;

use crate::hostcall::runs::{EndedRun, RunOutcome, RunRef};

/// A run that has ended or is interrupted. The values of its last checkpoint are shared, not
/// copied.
pub(crate) struct RunEnd {
    /// The run.
    pub(crate) run: RunRef,
    /// Outcome of the run.
    pub(crate) outcome: RunOutcome,
    /// Last checkpoint of the root graph.
    pub(crate) checkpoint: Checkpoint,
}

impl RunEnd {
    /// Returns the ended run with a copy of its state.
    pub(crate) fn to_ended_run(&self) -> EndedRun {
        let (run, outcome) = (self.run.clone(), self.outcome.clone());
        EndedRun { run, outcome, state: self.checkpoint.state() }
    }
}
