//! Overridden results: which host calls accept one, and the format that each call requires.

use serde::de::DeserializeOwned;
use serde_json::Value;
use wattle_graph::call::CallKind;
use wattle_graph::event::Called;
use wattle_graph::failure::{Failure, code};
use wattle_graph::llm::{Completion, CompletionRequest, Delta, ImageRequest};
use wattle_graph::tool::ToolRequest;

use crate::hostcall::HostCall;
use crate::hostcall::clock::Zoned;
use crate::hostcall::http::HttpRequest;
use crate::hostcall::sql::Query;
use crate::hostcall::stream;
use crate::hostcall::tools::ListTools;
use crate::json::check_depth;

/// Checks that `result` can override the recorded result of a call in a re-execution.
///
/// # Errors
///
/// `unsupported` for calls whose output refers to something outside of the journal, `invalid` for
/// an output that does not have the call's type.
pub(crate) fn check_replacement(
    called: &Called,
    result: &Result<Value, Failure>,
) -> Result<(), Failure> {
    let form = form(&called.function).ok_or_else(|| cannot_be_replaced(called))?;
    match result {
        Err(_) if always_answers(&called.function) => Err(Failure::new(
            code::INVALID,
            format!("`{}` never fails; override its output instead", called.function),
        )),
        Err(_) => Ok(()),
        Ok(answer) => check_form(&called.function, form, answer),
    }
}

/// Checks that the guest can deserialize the output that a decision gives for an in-doubt call.
///
/// # Errors
///
/// `invalid` for an output that does not have the call's type.
pub(crate) fn check_settled(function: &str, answer: &Value) -> Result<(), Failure> {
    let form = match function {
        "memory.put" | "memory.delete" => Some(reads_as::<()> as Form),
        _ => form(function),
    };
    match form {
        Some(form) => check_form(function, form, answer),
        None => check_depth("the output", answer),
    }
}

/// Checks an output. The error describes the mismatch.
type Form = fn(&Value) -> Result<(), String>;

/// Returns the check for the output of a function that accepts an override.
fn form(function: &str) -> Option<Form> {
    Some(match function {
        CompletionRequest::FUNCTION | stream::FUNCTION => reads_as::<Completion>,
        ImageRequest::FUNCTION => reads_as::<<ImageRequest as HostCall>::Answer>,
        HttpRequest::FUNCTION => reads_as::<<HttpRequest as HostCall>::Answer>,
        Query::FUNCTION => reads_as::<<Query as HostCall>::Answer>,
        ToolRequest::FUNCTION => reads_as::<<ToolRequest as HostCall>::Answer>,
        ListTools::FUNCTION => reads_as::<<ListTools as HostCall>::Answer>,
        "clock.now" | "clock.from-zone" => reads_as::<i64>,
        "clock.monotonic" => reads_as::<u64>,
        "clock.to-zone" => reads_as::<Zoned>,
        "clock.time-zone" => reads_as::<String>,
        "random.bytes" => reads_as::<Vec<u8>>,
        _ => return None,
    })
}

fn check_form(function: &str, form: Form, answer: &Value) -> Result<(), Failure> {
    check_depth("the output", answer)?;
    form(answer).map_err(|message| {
        let text = format!(
            "invalid output for `{function}`: {message}; its journal entry shows the format"
        );
        Failure::new(code::INVALID, text)
    })
}

/// Sets the id of the message that a model's output becomes.
pub(crate) fn name(called: &mut Called, id: String) {
    let is_completion = called.kind().is_some_and(CallKind::is_completion);
    if let (true, Ok(Value::Object(answer))) = (is_completion, &mut called.result) {
        answer.insert("id".to_owned(), id.into());
    }
}

/// Returns the output of a model call as the deltas of a stream.
pub(crate) fn pieces(called: &Called) -> Vec<Delta> {
    called.completion().map(|answer| answer.deltas()).unwrap_or_default()
}

fn reads_as<T: DeserializeOwned>(answer: &Value) -> Result<(), String> {
    T::deserialize(answer).map(drop).map_err(|error| error.to_string())
}

/// Returns true if the function has no failure that a guest can receive.
fn always_answers(function: &str) -> bool {
    ["clock.now", "clock.monotonic", "clock.time-zone", "random.bytes"].contains(&function)
}

fn cannot_be_replaced(called: &Called) -> Failure {
    let Called { function, call, .. } = called;
    Failure::new(
        code::UNSUPPORTED,
        format!(
            "call {call} is `{function}`, whose output cannot be overridden, since it refers to \
             something outside of the journal; outputs of models, tools, HTTP, SQL queries, clock \
             and random numbers can"
        ),
    )
}
