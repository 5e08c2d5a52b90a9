//! The events of a thread that a session uses.

use wattle_plugin::prelude::{Failure, Value, code, runs};
use wattle_plugin::runs::{CallStarted, Called, Event, EventKind, RunEnded, Streamed};

use crate::channel;

/// Number of events per request. Some contain all text of a video, so a page is small.
const PAGE: u32 = 100;

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

/// The events of one run.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    pub(crate) id: String,
    /// Events in order, at least one.
    pub(crate) events: Vec<Event>,
}

impl Run {
    /// Returns sequence number, time and content of the event that ended the run.
    pub(crate) fn ended(&self) -> Option<(u64, i64, &RunEnded)> {
        self.events.iter().rev().find_map(|event| match &event.kind {
            EventKind::RunEnded(ended) => Some((event.seq, event.at_ms, ended)),
            _ => None,
        })
    }
}

/// Groups events by run. Runs of a thread follow each other.
pub(crate) fn runs_of(events: Vec<Event>) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for event in events {
        match runs.last_mut().filter(|run| run.id == event.run) {
            Some(run) => run.events.push(event),
            None => runs.push(Run { id: event.run.clone(), events: vec![event] }),
        }
    }
    runs
}

/// Returns all events of a thread after a sequence number; `None` if there is no such thread.
pub(crate) fn events(thread_id: &str, after: u64) -> Result<Option<Vec<Event>>, Failure> {
    let mut events: Vec<Event> = Vec::new();
    loop {
        let seen = events.last().map_or(after, |event| event.seq);
        let page = match runs::events(thread_id, seen, PAGE) {
            Err(failure) if failure.code == code::NOT_FOUND => return Ok(None),
            page => page?,
        };
        if page.is_empty() {
            return Ok(Some(events));
        }
        for event in page {
            events.push(read(&event)?);
        }
    }
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
