//! The events of a thread that a session uses.

use wattle_plugin::prelude::{Failure, Value};
use wattle_plugin::runs::{CallStarted, Called, Event, EventKind, Streamed};
pub(crate) use wattle_plugin::runs::{RunLog as Run, by_run as runs_of};

use crate::channel;

/// The node that calls the model.
pub(crate) const AGENT: &str = "agent";

/// The node that calls tools.
pub(crate) const TOOLS: &str = "tools";

/// Returns true if an event changes a session. Deltas of text do not, and there are hundreds of
/// them.
pub(crate) fn matters(event: &Event) -> bool {
    match &event.kind {
        EventKind::RunStarted(_) | EventKind::RunEnded(_) => true,
        EventKind::CallStarted(call) => begins_step(call),
        EventKind::Called(called) => ends_step(called),
        _ => false,
    }
}

/// Returns true if the graph starts a tool call. Calls that tools make are not steps of a session.
pub(crate) fn begins_step(call: &CallStarted) -> bool {
    call.scope.is_empty() && call.kind.is_tool()
}

/// Returns true if a tool call of the graph has ended.
pub(crate) fn ends_step(called: &Called) -> bool {
    called.scope.is_empty() && called.node == TOOLS && called.kind.is_tool()
}

/// Returns true if the graph starts a model call.
pub(crate) fn begins_turn(call: &CallStarted) -> bool {
    call.scope.is_empty() && call.kind.is_model()
}

/// Returns true if a model call of the agent has ended.
pub(crate) fn ends_turn(called: &Called) -> bool {
    called.scope.is_empty() && called.node == AGENT && called.kind.is_model()
}

/// Returns true if deltas are part of the conversation.
pub(crate) fn is_talk(pieces: &Streamed) -> bool {
    pieces.scope.is_empty() && pieces.node == AGENT
}

/// Parses an event, without the parts that are not used here: writes of tasks and results of calls
/// are long documents.
///
/// # Errors
///
/// Returns an error if the value is not an event.
pub(crate) fn read(event: &Value) -> Result<Event, Failure> {
    let mut event = Event::read(event)?;
    match &mut event.kind {
        EventKind::TaskFinished(task) => {
            task.writes.retain(|write| write.channel == channel::MESSAGES);
        }
        EventKind::Called(called) if !ends_step(called) && !ends_turn(called) => {
            event.kind = EventKind::Other;
        }
        _ => {}
    }
    Ok(event)
}
