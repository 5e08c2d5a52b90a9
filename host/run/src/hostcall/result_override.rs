//! Overridden results: which host calls accept one, and the format that each call requires.

use serde::de::DeserializeOwned;
use serde_json::Value;
use wattle_graph::call::CallKind;
use wattle_graph::event::Called;
use wattle_graph::failure::{Failure, code};
use wattle_graph::llm::{Completion, CompletionRequest, Delta, ImageRequest};
use wattle_graph::tool::ToolRequest;

use crate::hostcall::HostCall;
use crate::hostcall::clock::{self, RandomBytes, Zoned};
use crate::hostcall::http::HttpRequest;
use crate::hostcall::memory::{DeleteDocument, PutDocument};
use crate::hostcall::sql::Query;
use crate::hostcall::stream;
use crate::hostcall::tools::ListTools;
use crate::json::check_depth;

/// What shows the format of an overridden result: the call has a recorded one.
const OVERRIDE_FORMAT: &str = "the journal entry of the call";

/// What shows the format of the output of an in-doubt call, which has no recorded result.
const SETTLED_FORMAT: &str = "the documentation of the failure `in-doubt`";

/// Checks that `result` can override the recorded result of a call in a re-execution.
///
/// # Errors
///
/// `unsupported` for calls whose output refers to something outside of the journal, `invalid` for
/// an output that does not have the call's type.
pub(crate) fn check_override(
    called: &Called,
    result: &Result<Value, Failure>,
) -> Result<(), Failure> {
    let check = output_check(&called.function).ok_or_else(|| not_overridable(called))?;
    match result {
        Err(_) if is_infallible(&called.function) => Err(Failure::new(
            code::INVALID,
            format!("`{}` never fails; override its output instead", called.function),
        )),
        Err(_) => Ok(()),
        Ok(answer) => run_output_check(&called.function, check, answer, OVERRIDE_FORMAT),
    }
}

/// Checks that the guest can deserialize the output that a decision gives for an in-doubt call.
///
/// # Errors
///
/// `invalid` for an output that does not have the call's type.
pub(crate) fn check_settled(function: &str, answer: &Value) -> Result<(), Failure> {
    let check = match function {
        PutDocument::FUNCTION | DeleteDocument::FUNCTION => {
            Some(deserializes_as::<()> as OutputCheck)
        }
        _ => output_check(function),
    };
    match check {
        Some(check) => run_output_check(function, check, answer, SETTLED_FORMAT),
        None => check_depth("the output", answer),
    }
}

/// Checks an output. The error describes the mismatch.
type OutputCheck = fn(&Value) -> Result<(), String>;

/// Returns the check for the output of a function that accepts an override.
fn output_check(function: &str) -> Option<OutputCheck> {
    Some(match function {
        CompletionRequest::FUNCTION | stream::FUNCTION => deserializes_as::<Completion>,
        ImageRequest::FUNCTION => deserializes_as::<<ImageRequest as HostCall>::Output>,
        HttpRequest::FUNCTION => deserializes_as::<<HttpRequest as HostCall>::Output>,
        Query::FUNCTION => deserializes_as::<<Query as HostCall>::Output>,
        ToolRequest::FUNCTION => deserializes_as::<<ToolRequest as HostCall>::Output>,
        ListTools::FUNCTION => deserializes_as::<<ListTools as HostCall>::Output>,
        clock::NOW | clock::FROM_ZONE => deserializes_as::<i64>,
        clock::MONOTONIC => deserializes_as::<u64>,
        clock::TO_ZONE => deserializes_as::<Zoned>,
        clock::TIME_ZONE => deserializes_as::<String>,
        clock::RANDOM => deserializes_as::<RandomBytes>,
        _ => return None,
    })
}

/// Checks an output. `format_place` names what shows the format to a person.
fn run_output_check(
    function: &str,
    check: OutputCheck,
    answer: &Value,
    format_place: &str,
) -> Result<(), Failure> {
    check_depth("the output", answer)?;
    check(answer).map_err(|message| {
        let text =
            format!("invalid output for `{function}`: {message}; {format_place} shows the format");
        Failure::new(code::INVALID, text)
    })
}

/// Sets the id of the message that a model's output becomes.
pub(crate) fn set_message_id(called: &mut Called, id: String) {
    let is_completion = called.kind().is_some_and(CallKind::is_completion);
    if let (true, Ok(Value::Object(answer))) = (is_completion, &mut called.result) {
        answer.insert("id".to_owned(), id.into());
    }
}

/// Returns the output of a model call as the deltas of a stream.
pub(crate) fn deltas(called: &Called) -> Vec<Delta> {
    called.completion().map(|answer| answer.deltas()).unwrap_or_default()
}

fn deserializes_as<T: DeserializeOwned>(answer: &Value) -> Result<(), String> {
    T::deserialize(answer).map(drop).map_err(|error| error.to_string())
}

/// Returns true if the function has no failure that a guest can receive.
fn is_infallible(function: &str) -> bool {
    [clock::NOW, clock::MONOTONIC, clock::TIME_ZONE, clock::RANDOM].contains(&function)
}

fn not_overridable(called: &Called) -> Failure {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The page whose table shows the format of outputs.
    const PAGE: &str = include_str!("../../../docs/errors/in-doubt.md");

    #[test]
    fn the_documented_outputs_are_valid_only_with_their_required_fields() {
        // Text in code is every second piece.
        let code = |cell: &'static str| cell.split('`').skip(1).step_by(2);
        let (_, table) = PAGE.split_once("| call | function |").unwrap();
        let mut documented = Vec::new();
        for row in table.lines().skip(2).take_while(|line| line.starts_with('|')) {
            let cells: Vec<&str> = row.split(" | ").collect();
            let [_, functions, fields, example] = cells[..] else { panic!("{row}") };
            let output: Value = serde_json::from_str(code(example).next().unwrap()).unwrap();
            for function in code(functions) {
                check_settled(function, &output).unwrap();
                for field in code(fields) {
                    let mut partial = output.clone();
                    partial.as_object_mut().unwrap().remove(field).unwrap();
                    let refused = check_settled(function, &partial).unwrap_err();
                    assert!(
                        refused.message.contains(&format!("missing field `{field}`")),
                        "{refused}"
                    );
                }
                documented.push(function);
            }
        }
        let all = ["http.send", "tools.call", "llm.complete", "llm.stream", "sql.query"];
        assert_eq!(documented, all);
    }
}
