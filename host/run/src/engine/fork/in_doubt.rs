//! Rejects commands that would restart a task with a call in doubt or with a held call. The restart
//! could repeat the effect of a call in doubt, and would discard a recorded decision about this
//! call. A held call would be lost, because the restarted task makes a new call.

use std::collections::BTreeSet;

use wattle_graph::elicitation::{Elicitation, Elicited};
use wattle_graph::event::{CallStarted, Event, EventKind};
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::TaskId;
use wattle_graph::lineage::Lineage;

use super::forked_graph::SuperstepEvents;
use crate::gate::LoggedCalls;
use crate::hostcall::HostCall as _;
use crate::hostcall::http::{HttpRequest, is_idempotent};

/// Rejects a command if a task of the root graph that would restart has made a call in doubt or a
/// held call, itself or through a graph that it started.
///
/// # Errors
///
/// `conflict` if a task that would restart has made a call in doubt or a held call.
pub(super) fn reject_in_doubt(
    known: &SuperstepEvents,
    lineage: &Lineage,
    afresh: &BTreeSet<TaskId>,
) -> Result<(), Failure> {
    let afresh: BTreeSet<&TaskId> = afresh.iter().filter(|task| !lineage.has_ended(task)).collect();
    let events = &known.tuple.events;
    for event in events {
        if let EventKind::CallStarted(call) = &event.kind
            && is_restarted(event, call, &afresh, events)
            && is_pending(known, call)
            && let Some((state, advice)) = restart_obstacle(known, call)
        {
            let CallStarted { task, function, summary, .. } = call;
            let text = format!(
                "task `{task}` has a call {state}: `{function} {summary}`; {advice} with a run \
                 that has `resume` only, then write"
            );
            return Err(Failure::new(code::CONFLICT, text));
        }
    }
    Ok(())
}

/// Returns true if a task that restarts made the call, itself or through a graph that it started.
fn is_restarted(
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

fn calls_of_scope<'k>(known: &'k SuperstepEvents, call: &CallStarted) -> Option<&'k LoggedCalls> {
    known.task(&call.task)?.calls_by_scope.get(&call.scope)
}

/// Returns true if a call has no result with which its task could continue.
fn is_pending(known: &SuperstepEvents, call: &CallStarted) -> bool {
    calls_of_scope(known, call).is_some_and(|past| {
        let is_begun =
            past.starts.contains_key(&call.call) || past.decisions.contains_key(&call.call);
        is_begun && !past.results.contains_key(&call.call)
    })
}

/// Returns why a call without a result keeps its task from restarting, and what to do about the
/// call. Returns `None` if the task may restart. The log does not record which tools are
/// idempotent, so the last interrupt or decision about a tool call decides.
fn restart_obstacle(
    known: &SuperstepEvents,
    call: &CallStarted,
) -> Option<(&'static str, &'static str)> {
    let doubt = Some(("in doubt", "settle it"));
    if call.function == HttpRequest::FUNCTION {
        return doubt
            .filter(|_| !is_idempotent(call.summary.split(' ').next().unwrap_or_default()));
    }
    let is_meant = |task: &TaskId, scope: &[u32], number: u32| {
        *task == call.task && scope == call.scope && number == call.call
    };
    let (seq, elicited) = known.tuple.events.iter().rev().find_map(|event| match &event.kind {
        EventKind::InterruptRaised(raised)
            if is_meant(&raised.task, &raised.scope, raised.call) =>
        {
            Some((event.seq, raised.elicited.as_deref()))
        }
        EventKind::Settled(it) if is_meant(&it.task, &it.scope, it.call) => Some((event.seq, None)),
        _ => None,
    })?;
    let begun = calls_of_scope(known, call).and_then(|past| past.last_start_seq(call.call));
    match elicited.filter(|_| begun < Some(seq)) {
        // The server ended its side of the call with the elicitation.
        Some(Elicited { elicitation: Elicitation { held: None, .. }, .. }) => None,
        Some(_) => Some(("that waits for the answer of a person", "answer")),
        None => doubt,
    }
}
