//! Events of a thread, as far as they mean something to a session.

use wattle_plugin::prelude::{Failure, Value, code, runs};
use wattle_plugin::runs::{CallStarted, Called, Event, EventKind, RunEnded, Streamed};

use crate::channel;

/// Events that are read at once. Some carry all that a video says, so a page is small.
const PAGE: u32 = 100;

/// The node that talks.
pub(crate) const AGENT: &str = "agent";

/// The node that calls tools.
pub(crate) const TOOLS: &str = "tools";

/// Whether an event changes what is known of a session: pieces of text come by the hundred.
pub(crate) fn matters(event: &Event) -> bool {
    match &event.kind {
        EventKind::RunStarted(_) | EventKind::RunEnded(_) => true,
        EventKind::CallStarted(call) => begins_step(call),
        EventKind::Called(called) => ends_step(called),
        _ => false,
    }
}

/// Whether the graph calls a tool. Calls that tools make are no steps of a session.
pub(crate) fn begins_step(call: &CallStarted) -> bool {
    call.scope.is_empty() && call.kind.is_tool()
}

/// Whether the graph called a tool.
pub(crate) fn ends_step(called: &Called) -> bool {
    called.scope.is_empty() && called.node == TOOLS && called.kind.is_tool()
}

/// Whether the graph asks a model.
pub(crate) fn begins_turn(call: &CallStarted) -> bool {
    call.scope.is_empty() && call.kind.is_model()
}

/// Whether the graph asked a model.
pub(crate) fn ends_turn(called: &Called) -> bool {
    called.scope.is_empty() && called.node == AGENT && called.kind.is_model()
}

/// Whether pieces of an answer are part of the conversation.
pub(crate) fn is_talk(pieces: &Streamed) -> bool {
    pieces.scope.is_empty() && pieces.node == AGENT
}

/// The events of one run.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    /// Its id.
    pub(crate) id: String,
    /// In order, never none.
    pub(crate) events: Vec<Event>,
}

impl Run {
    /// The event with which it ended, when, and how.
    pub(crate) fn ended(&self) -> Option<(u64, i64, &RunEnded)> {
        self.events.iter().rev().find_map(|event| match &event.kind {
            EventKind::RunEnded(ended) => Some((event.seq, event.at_ms, ended)),
            _ => None,
        })
    }
}

/// Puts the events of each run together. Runs of a thread follow each other.
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

/// All events of a thread after one; `None` if there is no such thread.
pub(crate) fn events(thread_id: &str, after: u64) -> Result<Option<Vec<Event>>, Failure> {
    let mut events: Vec<Event> = Vec::new();
    loop {
        let seen = events.last().map_or(after, |event| event.seq);
        let page = match runs::events(thread_id, seen, PAGE) {
            Err(failure) if failure.code == code::NOT_FOUND => return Ok(None),
            page => page?,
        };
        let is_last = page.len() < PAGE as usize;
        for event in page {
            events.push(read(&event)?);
        }
        if is_last {
            return Ok(Some(events));
        }
    }
}

/// An event without what is of no use here: tasks write and calls answer long documents.
///
/// # Errors
///
/// It is none.
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
