//! Folds the events of a thread into rows. The fold is pure: the same events give the same rows.
//!
//! A call has a row for its start and a row for its result. Both rows need the result, so the fold
//! stops before a pending call and continues there the next time. A call that can no longer get a
//! result, because its run ended or was recovered, gets an error instead: the rows of calls always
//! form pairs.

use wattle_plugin::prelude::{Failure, Value, json};
use wattle_plugin::projection::calls::{Item, pairs};
use wattle_plugin::runs::{CallStarted, Called, Custom, Event, EventKind};

use crate::audit::Row;
use crate::audit::payload;

/// Result of a fold.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Folded {
    pub(crate) rows: Vec<Row>,
    /// Sequence number of the last folded event; 0 if there is none.
    pub(crate) cursor: u64,
    /// The end of a run, which is the last folded event.
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

/// Folds consecutive events up to the first end of a run, because each end settles a turn.
pub(crate) fn fold(events: &[Event]) -> Folded {
    let end = events.iter().position(|event| matches!(event.kind, EventKind::RunEnded(_)));
    let events = end.map_or(events, |end| &events[..=end]);
    let pairs = pairs(events, |call| call.is_model() || call.is_tool());
    let mut folded = Folded { cursor: pairs.last, ..Folded::default() };
    for item in pairs.items {
        match item {
            Item::Started { event, called } => folded.rows.push(start(event, called)),
            Item::Ended { event, called } => folded.rows.push(result(event, called)),
            Item::Lost { event, call, end } => folded.rows.extend(lost(event, call, end)),
            Item::Other(event) => add(&mut folded, event),
        }
    }
    folded
}

/// Returns the first row of a call.
fn start(event: &Event, called: &Called) -> Row {
    let is_model = called.kind.is_model();
    let payload = if is_model { payload::prompt(called) } else { payload::tool_request(called) };
    row(event, step_of_call(is_model, &called.summary), types(is_model).0, payload)
}

/// Returns the second row of a call.
fn result(event: &Event, called: &Called) -> Row {
    let is_model = called.kind.is_model();
    let payload = if is_model { payload::response(called) } else { payload::tool_answer(called) };
    row(event, step_of_call(is_model, &called.summary), types(is_model).1, payload)
}

/// Returns both rows of a call that can no longer get a result.
fn lost(event: &Event, call: &CallStarted, end: &Event) -> [Row; 2] {
    let is_model = call.kind.is_model();
    let (start_type, result_type) = types(is_model);
    let step = step_of_call(is_model, &call.summary);
    let name = if is_model { "purpose" } else { "method" };
    let id = format!("{}:{}", call.task, call.call);
    let payload = json!({ "call_id": id, name: call.summary });
    let mut lost = payload.clone();
    lost["error"] = json!({ "code": "lost", "message": "the run ended before the answer" });
    let second = Row { at_ms: end.at_ms, ..row(event, step, result_type, lost) };
    [row(event, step, start_type, payload), second]
}

fn add(folded: &mut Folded, event: &Event) {
    match &event.kind {
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
