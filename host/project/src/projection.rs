//! The trait of all projections, and the states that they need in addition to the events.
//!
//! The log does not contain states. [`Projection::needs`] names the state that an event needs. The
//! caller reads this state and passes it to [`Projection::apply`] together with the event.

use wattle_graph::checkpoint::Checkpoint;
use wattle_graph::event::{Event, RunReason};
use wattle_graph::id::{CheckpointId, Namespace};

/// A projection of a log. It takes the events of a run or of a thread in order, from the first.
///
/// A projection is a function of the events and their states: the same log yields the same outputs,
/// and a clone continues like the original.
pub trait Projection {
    /// The output for one event.
    type Output;

    /// Returns the state that an event needs, if any.
    fn needs(&self, _event: &Event) -> Option<NeededState> {
        None
    }

    /// Applies an event and returns the output for it. `state` is the state that
    /// [`needs`](Self::needs) requested. If the state is unknown, the output lacks what depends on
    /// it.
    fn apply(&mut self, event: &Event, state: &EventState) -> Self::Output;

    /// Returns true if further events have no output.
    fn is_over(&self) -> bool {
        false
    }
}

/// The state that the projection of an event needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NeededState {
    /// State at the start of the run: the newest checkpoint of the root graph before the event.
    Start,
    /// State of a checkpoint.
    Checkpoint(Namespace, CheckpointId),
    /// State of a checkpoint that an input made, and the state before the input.
    Input(Namespace, CheckpointId),
    /// State after the event: the newest checkpoint of the root graph.
    Current,
}

/// The state that was read for an event. The default is an unknown state.
#[derive(Clone, Debug, Default)]
pub struct EventState {
    /// The checkpoint with the needed state; `None` if there is none, or if it cannot be read.
    pub checkpoint: Option<Checkpoint>,
    /// For the first event of a run that continues: the events between the checkpoint from which
    /// the run continues and the start of the run. Empty for all other events.
    pub before: Vec<Event>,
    /// For [`NeededState::Input`]: the checkpoint before the input; `None` if there is none, or if
    /// the store no longer has it. `None` for all other needed states.
    pub parent: Option<Checkpoint>,
    /// True if the checkpoint before the input cannot be read.
    pub is_parent_unknown: bool,
}

/// Returns true if a run with this reason starts at the current checkpoint. A run with another
/// reason first writes a checkpoint.
pub fn goes_on(reason: RunReason) -> bool {
    !matches!(reason, RunReason::Input | RunReason::Fork)
}

#[cfg(test)]
mod tests;
