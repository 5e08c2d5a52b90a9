//! Payloads of the rows of calls.

use wattle_plugin::llm::Attempt;
use wattle_plugin::prelude::{Failure, Value, json};
use wattle_plugin::runs::Called;

/// Maximum bytes of a result in a row. A longer result is truncated.
const ANSWER_BYTES: usize = 16 << 10;

/// Returns the id that both rows of a call have.
fn id(called: &Called) -> String {
    format!("{}:{}", called.task, called.call)
}

/// Returns the payload for the request of a model call.
pub(super) fn prompt(called: &Called) -> Value {
    let mut payload = json!({ "call_id": id(called), "node": called.node });
    match called.request.get("messages") {
        Some(messages) => {
            payload["route"] = called.request["route"].clone();
            payload["purpose"] =
                called.request.pointer("/response_schema/name").cloned().unwrap_or_default();
            payload["messages"] = messages.clone();
            // Names the messages that the host added from a channel.
            if let Some(history) = called.request.get("history") {
                payload["history"] = history.clone();
            }
        }
        // The log has only the beginning of a long request.
        None => payload["request"] = called.request.clone(),
    }
    payload
}

/// Returns the payload for the result of a model call. What the row has of a completion is its JSON
/// in the log.
pub(super) fn response(called: &Called) -> Value {
    let mut payload = ended(called);
    match (&called.result, called.completion()) {
        (Ok(output), Some(completion)) => {
            for field in ["model", "finish_reason", "usage"] {
                payload[field] = output[field].clone();
            }
            payload["content"] = capped(completion.structured.as_ref().unwrap_or(&output["parts"]));
            if let Some(attempts) = output.get("attempts") {
                payload["fallback"] = json!(is_fallback(&completion.attempts()));
                payload["attempts"] = attempts.clone();
            }
        }
        (Ok(output), None) => payload["content"] = capped(output),
        (Err(failure), _) => payload["error"] = error(Some(failure)),
    }
    payload
}

/// Returns the payload for the request of a tool call.
pub(super) fn tool_request(called: &Called) -> Value {
    let arguments = called.request.get("arguments").unwrap_or(&called.request);
    json!({ "call_id": id(called), "node": called.node, "method": called.summary,
            "arguments": arguments })
}

/// Returns the payload for the result of a tool call.
pub(super) fn tool_answer(called: &Called) -> Value {
    let mut payload = ended(called);
    payload["method"] = json!(called.summary);
    match &called.result {
        Ok(answer) if answer["is_error"] == json!(true) => {
            payload["error"] = json!({ "code": "tool-error", "message": text(answer) });
        }
        Ok(answer) => {
            let said = answer.get("structured").filter(|data| !data.is_null());
            payload["result"] = capped(said.unwrap_or(&answer["content"]));
        }
        Err(failure) => payload["error"] = error(Some(failure)),
    }
    payload
}

fn ended(called: &Called) -> Value {
    json!({ "call_id": id(called), "node": called.node, "duration_ms": called.duration_us / 1_000 })
}

/// Returns true if the last attempt used another provider or model than the first one.
fn is_fallback(attempts: &[Attempt]) -> bool {
    match attempts {
        [first, .., last] => (&first.provider, &first.model) != (&last.provider, &last.model),
        _ => false,
    }
}

/// Returns the code and the message of a failure, which are null without one.
pub(super) fn error(failure: Option<&Failure>) -> Value {
    let (code, message) = failure.map(|it| (&it.code, &it.message)).unzip();
    json!({ "code": code, "message": message })
}

/// Returns the text of a tool's output.
fn text(answer: &Value) -> String {
    let parts = answer["content"].as_array().into_iter().flatten();
    parts.filter_map(|part| part["text"].as_str()).collect()
}

/// Returns a document, or the beginning of the text of a long one.
fn capped(document: &Value) -> Value {
    let text = document.to_string();
    if text.len() <= ANSWER_BYTES {
        return document.clone();
    }
    let end = (0..=ANSWER_BYTES).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    json!({ "head": text[..end], "bytes": text.len() })
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::json;

    use super::{ANSWER_BYTES, Attempt, capped, is_fallback};

    #[test]
    fn long_results_are_truncated_between_characters() {
        let short = json!({"items": [1]});
        assert_eq!(capped(&short), short);
        let long = capped(&json!("值".repeat(ANSWER_BYTES)));
        assert!(long["head"].as_str().unwrap().len() <= ANSWER_BYTES);
        assert_eq!(long["bytes"], ANSWER_BYTES * 3 + 2);
    }

    #[test]
    fn attempt_with_another_model_is_a_fallback() {
        let attempt = |provider: &str| Attempt {
            provider: provider.to_owned(),
            model: "m".to_owned(),
            tries: 1,
            error: None,
        };
        let (one, two) = (attempt("a"), attempt("b"));
        assert!(is_fallback(&[one.clone(), two]));
        assert!(!is_fallback(&[one.clone(), one]));
        assert!(!is_fallback(&[]));
    }
}
