//! Rejects commands that would restart a task with a call in doubt. The restart could repeat the
//! effect, and would discard the recorded decision. It would also lose a call that its server holds
//! open for a person.

use std::collections::BTreeSet;

use wattle_graph::elicitation::{Elicitation, Elicited};
use wattle_graph::event::{CallStarted, Event, EventKind};
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::TaskId;
use wattle_graph::lineage::Lineage;

use super::site::Known;
use crate::gate::PastCalls;
use crate::hostcall::HostCall as _;
use crate::hostcall::http::{HttpRequest, is_safe};

/// Rejects a command if a task of the root graph that would restart has made a call in doubt or a
/// held call, itself or through a graph that it started.
///
/// # Errors
///
/// `conflict` if a task that would restart has made a call in doubt or a held call.
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
            && let Some((state, advice)) = unclear(known, call)
        {
            let CallStarted { task, function, summary, .. } = call;
            let text = format!(
                "task `{task}` has a call {state}: `{function} {summary}`; {advice} with `resume` \
                 alone, then write"
            );
            return Err(Failure::new(code::CONFLICT, text));
        }
    }
    Ok(())
}

/// Returns true if a task that restarts made the call, itself or through a graph that it started.
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

fn past<'k>(known: &'k Known, call: &CallStarted) -> Option<&'k PastCalls> {
    known.past(&call.task)?.scopes.get(&call.scope)
}

/// Returns true if a call has no result with which its task could continue.
fn is_open(known: &Known, call: &CallStarted) -> bool {
    past(known, call).is_some_and(|past| {
        let is_begun = past.open.contains_key(&call.call) || past.settled.contains_key(&call.call);
        is_begun && !past.answered.contains_key(&call.call)
    })
}

/// Returns why a call without a result keeps its task from restarting, and what to do about the
/// call. Returns `None` if the task may restart. The log does not record which tools are
/// idempotent, so for a tool call the last interrupt or decision about it counts.
fn unclear(known: &Known, call: &CallStarted) -> Option<(&'static str, &'static str)> {
    let doubt = Some(("in doubt", "settle it"));
    if call.function == HttpRequest::FUNCTION {
        return doubt.filter(|_| !is_safe(call.summary.split(' ').next().unwrap_or_default()));
    }
    let is_meant = |task: &TaskId, scope: &[u32], number: u32| {
        *task == call.task && scope == call.scope && number == call.call
    };
    let (seq, elicited) = known.tuple.events.iter().rev().find_map(|event| match &event.kind {
        EventKind::Asked(asked) if is_meant(&asked.task, &asked.scope, asked.call) => {
            Some((event.seq, asked.elicited.as_deref()))
        }
        EventKind::Settled(it) if is_meant(&it.task, &it.scope, it.call) => Some((event.seq, None)),
        _ => None,
    })?;
    let begun = past(known, call).and_then(|past| past.begun(call.call));
    match elicited.filter(|_| begun < Some(seq)) {
        // The server ended its side of the call with the elicitation.
        Some(Elicited { asked: Elicitation { held: None, .. }, .. }) => None,
        Some(_) => Some(("that waits for the answer of a person", "answer")),
        None => doubt,
    }
}
