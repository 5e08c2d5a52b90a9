//! Folds the events of a thread into rows. The fold is pure: the same events give the same rows.
//!
//! A call has a row for its start and a row for its result. Both rows need the result, so the fold
//! stops before a pending call and continues there the next time. A call that can no longer get a
//! result, because its run ended or was recovered, gets an error instead: the rows of calls always
//! form pairs.

use wattle_plugin::prelude::{Failure, Value, json};
use wattle_plugin::runs::{CallKind, CallStarted, Called, Custom, Event, EventKind};

use crate::audit::Row;
use crate::audit::payload;

/// Result of a fold.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Folded {
    pub(crate) rows: Vec<Row>,
    /// Sequence number of the last folded event; 0 if there is none.
    pub(crate) cursor: u64,
    /// The last run that ended.
    pub(crate) run_end: Option<RunEnd>,
}

/// End of a run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RunEnd {
    pub(crate) run: String,
    /// `completed`, `failed`, `cancelled` or `interrupted`.
    pub(crate) status: String,
    pub(crate) failure: Option<Failure>,
}

/// Outcome of a started call.
enum Fate<'a> {
    Answered(&'a Called),
    /// The call can have no result since this event.
    Lost(&'a Event),
    UnderWay,
}

/// Folds consecutive events.
///
/// # Errors
///
/// `invalid` if a document is not an event.
pub(crate) fn fold(events: &[Value]) -> Result<Folded, Failure> {
    let events: Vec<Event> = events.iter().map(Event::read).collect::<Result<_, _>>()?;
    let mut folded = Folded::default();
    for (index, event) in events.iter().enumerate() {
        if let EventKind::CallStarted(call) = &event.kind {
            match fate(call, &events[index + 1..]) {
                Fate::UnderWay if is_audited(&call.kind) => break,
                fate => begin(&mut folded, event, call, &fate),
            }
        } else {
            if let EventKind::Called(called) = &event.kind {
                begin_late(&mut folded, event, called, &events[..index]);
            }
            add(&mut folded, event);
        }
        folded.cursor = event.seq;
    }
    Ok(folded)
}

fn is_audited(call: &CallKind) -> bool {
    call.is_model() || call.is_tool()
}

fn fate<'a>(call: &CallStarted, later: &'a [Event]) -> Fate<'a> {
    let is_same = |task: &str, scope: &[u32], number: u32| {
        task == call.task && scope == call.scope && number == call.call
    };
    for event in later {
        match &event.kind {
            EventKind::Called(called) if is_same(&called.task, &called.scope, called.call) => {
                return Fate::Answered(called);
            }
            EventKind::CallStarted(again) if is_same(&again.task, &again.scope, again.call) => {
                return Fate::Lost(event);
            }
            EventKind::RunEnded(_) | EventKind::RunStarted(_) => return Fate::Lost(event),
            _ => {}
        }
    }
    Fate::UnderWay
}

/// Adds the first row of a call, or both rows if it was lost.
fn begin(folded: &mut Folded, event: &Event, call: &CallStarted, fate: &Fate<'_>) {
    if !is_audited(&call.kind) {
        return;
    }
    let is_model = call.kind.is_model();
    let (start_type, result_type) = types(is_model);
    let step = step_of_call(is_model, &call.summary);
    match fate {
        Fate::Answered(called) => {
            let payload =
                if is_model { payload::prompt(called) } else { payload::tool_request(called) };
            folded.rows.push(row(event, step, start_type, payload));
        }
        Fate::Lost(end) => {
            let name = if is_model { "purpose" } else { "method" };
            let id = format!("{}:{}", call.task, call.call);
            let payload = json!({ "call_id": id, name: call.summary });
            folded.rows.push(row(event, step, start_type, payload.clone()));
            let mut lost = payload;
            lost["error"] = json!({ "code": "lost", "message": "the run ended before the answer" });
            folded.rows.push(Row { at_ms: end.at_ms, ..row(event, step, result_type, lost) });
        }
        Fate::UnderWay => {}
    }
}

/// Adds the first row of a call that has a result and no start, such as a denied call.
fn begin_late(folded: &mut Folded, event: &Event, called: &Called, before: &[Event]) {
    let has_begun = |earlier: &Event| match &earlier.kind {
        EventKind::CallStarted(call) => {
            (&call.task, &call.scope, call.call) == (&called.task, &called.scope, called.call)
        }
        _ => false,
    };
    if before.iter().any(has_begun) {
        return;
    }
    let call = CallStarted {
        task: called.task.clone(),
        scope: called.scope.clone(),
        call: called.call,
        kind: called.kind.clone(),
        summary: called.summary.clone(),
    };
    begin(folded, event, &call, &Fate::Answered(called));
}

fn add(folded: &mut Folded, event: &Event) {
    match &event.kind {
        EventKind::Called(called) if is_audited(&called.kind) => {
            let is_model = called.kind.is_model();
            let step = step_of_call(is_model, &called.summary);
            let payload =
                if is_model { payload::response(called) } else { payload::tool_answer(called) };
            folded.rows.push(row(event, step, types(is_model).1, payload));
        }
        EventKind::Custom(Custom { node, name, data }) => {
            let payload = json!({ "node": node, "data": data });
            folded.rows.push(row(event, step_of(name), name, payload));
        }
        EventKind::RunStarted(run) if run.reason == "recovery" => {
            let payload = json!({ "reason": "the host was started again" });
            folded.rows.push(row(event, "executing", "recovery_triggered", payload));
        }
        EventKind::RunEnded(end) => {
            let (run, status) = (event.run.clone(), end.status.clone());
            let run_end = RunEnd { run, status, failure: end.failure.clone() };
            folded.rows.extend(last_row(event, &run_end));
            folded.run_end = Some(run_end);
        }
        _ => {}
    }
}

/// Returns the row of a run that did not complete. A completed run has emitted its own row.
fn last_row(event: &Event, run_end: &RunEnd) -> Option<Row> {
    match (run_end.status.as_str(), &run_end.failure) {
        ("completed", _) => None,
        ("cancelled", _) => Some(row(event, "failed", "session_cancelled", json!({}))),
        (_, failure) => {
            let payload = json!({ "error": payload::error(failure.as_ref()) });
            Some(row(event, "failed", "session_failed", payload))
        }
    }
}

fn row(event: &Event, step: &'static str, event_type: &str, payload: Value) -> Row {
    let run = Some(event.run.clone());
    Row { run, step, event_type: event_type.to_owned(), payload, at_ms: event.at_ms }
}

/// Returns the event types of the two rows of a call.
fn types(is_model: bool) -> (&'static str, &'static str) {
    if is_model {
        ("llm_prompt_sent", "llm_response_received")
    } else {
        ("mcp_call_requested", "mcp_call_completed")
    }
}

fn step_of_call(is_model: bool, method: &str) -> &'static str {
    match method {
        _ if is_model => "llm",
        "graph.list_data_attributes" => "discovery",
        "graph.get_data_attribute_related_ontologies" | "graph.list_ontologies" => "locating",
        method if method.starts_with("mcp.data.") => "executing",
        _ => "planning",
    }
}

/// Returns the step of an event that a node emitted.
fn step_of(name: &str) -> &'static str {
    match name {
        "intent_parsed" => "understanding",
        "attributes_matched" => "attributes",
        "ontologies_located" | "ontology_selected" => "locating",
        "task_planned" | "plan_generated" => "planning",
        "clarification_asked" => "clarification",
        "session_completed" => "completed",
        _ => "executing",
    }
}

#[cfg(test)]
mod tests;
