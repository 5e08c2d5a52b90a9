//! Which host calls can be given another answer, and what an answer that is given must look like.

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

/// Checks that a re-executed guest can be given `result` in place of the answer that a call got.
///
/// # Errors
///
/// `unsupported` for calls whose answer stands for something outside of the journal, `invalid` for
/// an answer that is not of the call's type.
pub(crate) fn check_replacement(
    called: &Called,
    result: &Result<Value, Failure>,
) -> Result<(), Failure> {
    let form = form(&called.function).ok_or_else(|| cannot_be_replaced(called))?;
    match result {
        Err(_) if always_answers(&called.function) => Err(Failure::new(
            code::INVALID,
            format!("`{}` never fails, so it cannot be made to; give an answer", called.function),
        )),
        Err(_) => Ok(()),
        Ok(answer) => check_form(&called.function, form, answer),
    }
}

/// Checks that an answer that somebody else gives for a call in doubt is one that the guest can
/// read.
///
/// # Errors
///
/// `invalid` for an answer that is not of the call's type.
pub(crate) fn check_settled(function: &str, answer: &Value) -> Result<(), Failure> {
    let form = match function {
        "memory.put" | "memory.delete" => Some(reads_as::<()> as Form),
        _ => form(function),
    };
    match form {
        Some(form) => check_form(function, form, answer),
        None => check_depth("the answer", answer),
    }
}

/// Tells what an answer is not.
type Form = fn(&Value) -> Result<(), String>;

/// The form of answers that can be replaced.
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
    check_depth("the answer", answer)?;
    form(answer).map_err(|message| {
        let text = format!(
            "the answer is none of `{function}`: {message}; its journal entry shows the form"
        );
        Failure::new(code::INVALID, text)
    })
}

/// Gives an answer of a model the id of the message that it becomes.
pub(crate) fn name(called: &mut Called, id: String) {
    let is_completion = called.kind().is_some_and(CallKind::is_completion);
    if let (true, Ok(Value::Object(answer))) = (is_completion, &mut called.result) {
        answer.insert("id".to_owned(), id.into());
    }
}

/// An answer of a model as the pieces that it would have arrived in.
pub(crate) fn pieces(called: &Called) -> Vec<Delta> {
    called.completion().map(|answer| answer.deltas()).unwrap_or_default()
}

fn reads_as<T: DeserializeOwned>(answer: &Value) -> Result<(), String> {
    T::deserialize(answer).map(drop).map_err(|error| error.to_string())
}

/// Whether the function has no failure that a guest could get.
fn always_answers(function: &str) -> bool {
    ["clock.now", "clock.monotonic", "clock.time-zone", "random.bytes"].contains(&function)
}

fn cannot_be_replaced(called: &Called) -> Failure {
    let Called { function, call, .. } = called;
    Failure::new(
        code::UNSUPPORTED,
        format!(
            "call {call} is `{function}`, whose answer cannot be replaced, since it stands for \
             something outside of the journal; answers of models, tools, HTTP, SQL queries, clock \
             and random numbers can"
        ),
    )
}
