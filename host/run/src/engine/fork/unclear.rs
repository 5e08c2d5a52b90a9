//! Effects of which nobody knows whether they were had: a command that makes their tasks begin anew
//! would have them a second time, and would forget what was decided of them.

use std::collections::BTreeSet;

use wattle_graph::event::{CallStarted, Event, EventKind};
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::TaskId;
use wattle_graph::lineage::Lineage;

use super::site::Known;
use crate::hostcall::HostCall as _;
use crate::hostcall::http::{HttpRequest, is_safe};

/// Refuses to let tasks of a thread's own graph begin anew over such an effect, be it their own or
/// one of a graph that they started.
///
/// # Errors
///
/// `conflict`.
pub(super) fn refuse_unclear(
    known: &Known,
    lineage: &Lineage,
    afresh: &BTreeSet<TaskId>,
) -> Result<(), Failure> {
    let afresh: BTreeSet<&TaskId> = afresh.iter().filter(|task| !lineage.has_ended(task)).collect();
    let events = &known.tuple.events;
    for event in events {
        if let EventKind::CallStarted(call) = &event.kind
            && begins_anew(event, call, &afresh, events)
            && is_open(known, call)
            && is_unclear(known, call)
        {
            let text = format!(
                "task `{}` has a call of which nobody knows whether it had its effect: `{} {}`; \
                 settle it with `resume` alone, then write",
                call.task, call.function, call.summary
            );
            return Err(Failure::new(code::CONFLICT, text));
        }
    }
    Ok(())
}

/// Whether a call is of a task that begins anew, or of a graph that such a task started.
fn begins_anew(
    event: &Event,
    call: &CallStarted,
    afresh: &BTreeSet<&TaskId>,
    events: &[Event],
) -> bool {
    let path = event.namespace.path();
    let Some(outermost) = path.first() else { return afresh.contains(&call.task) };
    if let Some(task) = outermost.task() {
        return afresh.contains(&task);
    }
    events.iter().any(|event| match &event.kind {
        EventKind::TaskStarted(begun) => {
            afresh.contains(&begun.task) && begun.node.as_str() == outermost.node()
        }
        _ => false,
    })
}

/// Whether a call has no answer that its task would go on from.
fn is_open(known: &Known, call: &CallStarted) -> bool {
    let past = known.past(&call.task).and_then(|past| past.scopes.get(&call.scope));
    past.is_some_and(|past| {
        let is_begun = past.open.contains_key(&call.call) || past.settled.contains_key(&call.call);
        is_begun && !past.answered.contains_key(&call.call)
    })
}

/// Whether a call without an answer is one to decide about, or was decided about. Which tools may
/// be called twice only their servers know, so a call of one is found by the question about it.
fn is_unclear(known: &Known, call: &CallStarted) -> bool {
    if call.function == HttpRequest::FUNCTION {
        return !is_safe(call.summary.split(' ').next().unwrap_or_default());
    }
    known.tuple.events.iter().any(|event| match &event.kind {
        EventKind::Asked(asked) => {
            asked.task == call.task && asked.scope == call.scope && asked.call == call.call
        }
        EventKind::Settled(settled) => {
            settled.task == call.task && settled.scope == call.scope && settled.call == call.call
        }
        _ => false,
    })
}
