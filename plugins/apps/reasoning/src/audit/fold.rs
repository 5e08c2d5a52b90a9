//! Events of a thread become rows. Pure: the same events give the same rows.
//!
//! A call gives two rows, when it began and when it was answered. Both are known only with its
//! answer, so the fold stops in front of a call that is under way and goes on from there the next
//! time. A call that can have no answer any more, since its run ended or was taken up anew, is
//! answered with an error: rows always come in pairs.

use wattle_plugin::prelude::{Deserialize, Value, json};

use crate::audit::Row;
use crate::audit::payload::{Called, error};

/// What became of some events.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Folded {
    pub(crate) rows: Vec<Row>,
    /// Number of the last event that is in the rows; 0 if none is.
    pub(crate) cursor: u64,
    /// The last run that ended.
    pub(crate) ended: Option<Ended>,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ended {
    pub(crate) run: String,
    /// `completed`, `failed`, `cancelled` or `interrupted`.
    pub(crate) status: String,
    pub(crate) failure: Option<Value>,
}

#[derive(Deserialize)]
struct Event {
    seq: u64,
    at_ms: i64,
    run: String,
    #[serde(flatten)]
    kind: Kind,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Kind {
    RunStarted {
        reason: String,
    },
    RunEnded {
        status: String,
        failure: Option<Value>,
    },
    CallStarted(Started),
    Called(Box<Called>),
    Custom {
        node: String,
        name: String,
        data: Value,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Started {
    task: String,
    #[serde(default)]
    scope: Vec<u32>,
    call: u32,
    function: String,
    summary: String,
}

/// What becomes of a call that began.
enum Fate<'a> {
    Answered(&'a Called),
    /// It never will be, since this event.
    Lost(&'a Event),
    UnderWay,
}

/// Folds events that follow each other.
///
/// # Errors
///
/// An event that is none.
pub(crate) fn fold(events: Vec<Value>) -> Result<Folded, serde_json::Error> {
    let events: Vec<Event> =
        events.into_iter().map(serde_json::from_value).collect::<Result<_, _>>()?;
    let mut folded = Folded::default();
    for (index, event) in events.iter().enumerate() {
        if let Kind::CallStarted(call) = &event.kind {
            match fate(call, &events[index + 1..]) {
                Fate::UnderWay if is_audited(&call.function) => break,
                fate => begin(&mut folded, event, call, &fate),
            }
        } else {
            if let Kind::Called(called) = &event.kind {
                begin_late(&mut folded, event, called, &events[..index]);
            }
            add(&mut folded, event);
        }
        folded.cursor = event.seq;
    }
    Ok(folded)
}

fn is_audited(function: &str) -> bool {
    is_model(function) || function == "tools.call"
}

fn is_model(function: &str) -> bool {
    matches!(function, "llm.complete" | "llm.stream")
}

fn fate<'a>(call: &Started, later: &'a [Event]) -> Fate<'a> {
    let is_same = |task: &str, scope: &[u32], number: u32| {
        task == call.task && scope == call.scope && number == call.call
    };
    for event in later {
        match &event.kind {
            Kind::Called(called) if is_same(&called.task, &called.scope, called.call) => {
                return Fate::Answered(called);
            }
            Kind::CallStarted(again) if is_same(&again.task, &again.scope, again.call) => {
                return Fate::Lost(event);
            }
            Kind::RunEnded { .. } | Kind::RunStarted { .. } => return Fate::Lost(event),
            _ => {}
        }
    }
    Fate::UnderWay
}

/// The first row of a call; both if it got lost.
fn begin(folded: &mut Folded, event: &Event, call: &Started, fate: &Fate<'_>) {
    if !is_audited(&call.function) {
        return;
    }
    let is_model = is_model(&call.function);
    let (asked, answered) = types(is_model);
    let step = step_of_call(is_model, &call.summary);
    match fate {
        Fate::Answered(called) => {
            let payload = if is_model { called.prompt() } else { called.tool_request() };
            folded.rows.push(row(event, step, asked, payload));
        }
        Fate::Lost(end) => {
            let name = if is_model { "purpose" } else { "method" };
            let id = format!("{}:{}", call.task, call.call);
            let payload = json!({ "call_id": id, name: call.summary });
            folded.rows.push(row(event, step, asked, payload.clone()));
            let mut lost = payload;
            lost["error"] = json!({ "code": "lost", "message": "the run ended before the answer" });
            folded.rows.push(Row { at_ms: end.at_ms, ..row(event, step, answered, lost) });
        }
        Fate::UnderWay => {}
    }
}

/// The first row of a call that was answered without having begun, such as one that was denied.
fn begin_late(folded: &mut Folded, event: &Event, called: &Called, before: &[Event]) {
    let has_begun = |earlier: &Event| match &earlier.kind {
        Kind::CallStarted(call) => {
            (&call.task, &call.scope, call.call) == (&called.task, &called.scope, called.call)
        }
        _ => false,
    };
    if before.iter().any(has_begun) {
        return;
    }
    let call = Started {
        task: called.task.clone(),
        scope: called.scope.clone(),
        call: called.call,
        function: called.function.clone(),
        summary: called.summary.clone(),
    };
    begin(folded, event, &call, &Fate::Answered(called));
}

fn add(folded: &mut Folded, event: &Event) {
    match &event.kind {
        Kind::Called(called) if is_audited(&called.function) => {
            let is_model = is_model(&called.function);
            let step = step_of_call(is_model, &called.summary);
            let payload = if is_model { called.response() } else { called.tool_answer() };
            folded.rows.push(row(event, step, types(is_model).1, payload));
        }
        Kind::Custom { node, name, data } => {
            let payload = json!({ "node": node, "data": data });
            folded.rows.push(row(event, step_of(name), name, payload));
        }
        Kind::RunStarted { reason } if reason == "recovery" => {
            let payload = json!({ "reason": "the host was started again" });
            folded.rows.push(row(event, "executing", "recovery_triggered", payload));
        }
        Kind::RunEnded { status, failure } => {
            let ended =
                Ended { run: event.run.clone(), status: status.clone(), failure: failure.clone() };
            folded.rows.extend(last_row(event, &ended));
            folded.ended = Some(ended);
        }
        _ => {}
    }
}

/// The row of a run that ended badly; one that ended well has said so itself.
fn last_row(event: &Event, ended: &Ended) -> Option<Row> {
    match (ended.status.as_str(), &ended.failure) {
        ("completed", _) => None,
        ("cancelled", _) => Some(row(event, "failed", "session_cancelled", json!({}))),
        (_, failure) => {
            let payload = json!({ "error": error(failure.as_ref().unwrap_or(&Value::Null)) });
            Some(row(event, "failed", "session_failed", payload))
        }
    }
}

fn row(event: &Event, step: &'static str, event_type: &str, payload: Value) -> Row {
    let run = Some(event.run.clone());
    Row { run, step, event_type: event_type.to_owned(), payload, at_ms: event.at_ms }
}

/// The event types of the two rows of a call.
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

/// The step of an event that a node emitted.
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
