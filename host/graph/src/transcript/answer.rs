//! What models and tools answered, read from the documents that the log holds.
//!
//! The documents are the journal's, in which a call of the engine stands as its own types write
//! it. What cannot be read is left out: a conversation with a gap is better than none.

use serde::Deserialize;
use serde_json::Value;

use crate::failure::Failure;
use crate::transcript::turn::{Reason, Voice};

/// A tool's answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// What it found: data, or a text.
    Output(Value),
    /// Why it did not work.
    Error(String),
}

impl Answer {
    /// The answer of a journaled call.
    pub(super) fn of_call(result: &Result<Value, Failure>) -> Self {
        match result {
            Ok(output) => Self::new(output, output.get("is_error") == Some(&Value::Bool(true))),
            Err(failure) => Self::Error(failure.message.clone()),
        }
    }

    /// The answer that a message of the conversation holds.
    pub(super) fn of_message(message: &Value) -> Self {
        let status = message.get("status").and_then(Value::as_str);
        Self::new(message, status == Some("error"))
    }

    fn new(answer: &Value, is_error: bool) -> Self {
        let content = answer.get("content").unwrap_or(&Value::Null);
        if is_error {
            let text = text(content).unwrap_or_else(|| content.to_string());
            return Self::Error(text);
        }
        match answer.get("structured").filter(|structured| !structured.is_null()) {
            Some(structured) => Self::Output(structured.clone()),
            None => Self::Output(output(content)),
        }
    }
}

/// Content as data where it is that, else as text.
fn output(content: &Value) -> Value {
    let Some(text) = text(content) else { return content.clone() };
    let document: Option<Value> = serde_json::from_str(&text).ok();
    document.filter(|it| it.is_object() || it.is_array()).unwrap_or(Value::String(text))
}

/// Content that consists of nothing but text.
fn text(content: &Value) -> Option<String> {
    match content {
        Value::String(text) => Some(text.clone()),
        Value::Array(parts) => {
            let texts = parts.iter().map(|part| part.get("text").and_then(Value::as_str));
            texts.collect()
        }
        _ => None,
    }
}

/// The messages of a write: one, or a list.
pub(super) fn messages(write: &Value) -> &[Value] {
    match write {
        Value::Array(messages) => messages,
        message => std::slice::from_ref(message),
    }
}

/// The model's id of a journaled tool call. The journal holds only the head of a large request, in
/// which the id comes second.
pub(super) fn call_id(request: &Value) -> Option<String> {
    if let Some(id) = request.get("call_id").and_then(Value::as_str) {
        return Some(id.to_owned());
    }
    let head = request.get("head")?.as_str()?;
    let (_tool, rest) = first_text(head.strip_prefix(r#"{"tool":"#)?)?;
    first_text(rest.strip_prefix(r#","call_id":"#)?).map(|(id, _)| id)
}

/// The JSON string that a text begins with, and what follows it.
fn first_text(text: &str) -> Option<(String, &str)> {
    let mut texts = serde_json::Deserializer::from_str(text).into_iter::<String>();
    let first = texts.next()?.ok()?;
    let rest = text.get(texts.byte_offset()..)?;
    Some((first, rest))
}

/// What a model answered.
pub(super) struct Completion {
    pub(super) parts: Vec<Spoken>,
    pub(super) reason: Reason,
}

/// One part of an answer.
pub(super) enum Spoken {
    Text(Voice, String),
    Call { id: String, name: String, arguments: Value },
}

#[derive(Deserialize)]
struct CallDocument {
    #[serde(default)]
    id: String,
    name: String,
    #[serde(default)]
    arguments: Value,
}

impl Completion {
    pub(super) fn read(document: &Value) -> Self {
        let parts = document.get("parts").and_then(Value::as_array);
        let parts = parts.into_iter().flatten().filter_map(part).collect();
        let reason = match document.get("finish_reason").and_then(Value::as_str) {
            Some("stop") => Reason::Stop,
            Some("length") => Reason::Length,
            Some("tool_calls") => Reason::ToolCalls,
            Some("content_filter") => Reason::ContentFilter,
            _ => Reason::Other,
        };
        Self { parts, reason }
    }
}

fn part(part: &Value) -> Option<Spoken> {
    let text = |name: &str| part.get(name).and_then(Value::as_str).map(str::to_owned);
    if let Some(text) = text("text") {
        return Some(Spoken::Text(Voice::Words, text));
    }
    if let Some(text) = text("reasoning") {
        return Some(Spoken::Text(Voice::Thoughts, text));
    }
    let CallDocument { id, name, arguments } =
        CallDocument::deserialize(part.get("tool_call")?).ok()?;
    Some(Spoken::Call { id, name, arguments })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_output_is_data_where_it_can_be() {
        let of = |answer: Value| Answer::of_call(&Ok(answer));
        let text = |text: &str| json!([{ "text": text }]);
        for (answer, expected) in [
            (json!({ "content": text("x"), "structured": { "a": 1 } }), json!({ "a": 1 })),
            (json!({ "content": text("{\"a\":1}") }), json!({ "a": 1 })),
            (json!({ "content": text("12") }), json!("12")),
            (json!({ "content": [{ "text": "a" }, { "text": "b" }] }), json!("ab")),
            (json!({ "content": [{ "image": 1 }] }), json!([{ "image": 1 }])),
            (json!({}), json!(null)),
        ] {
            assert_eq!(of(answer), Answer::Output(expected));
        }
        let error = json!({ "content": text("too early"), "is_error": true });
        assert_eq!(of(error), Answer::Error("too early".to_owned()));
        let message = json!({ "content": "too early", "status": "error" });
        assert_eq!(Answer::of_message(&message), Answer::Error("too early".to_owned()));
    }

    #[test]
    fn the_id_of_a_call_is_found_in_the_head_of_a_large_request() {
        assert_eq!(call_id(&json!({ "call_id": "c1" })).as_deref(), Some("c1"));
        let head = r#"{"tool":"a\"b","call_id":"c\n2","arguments":{"a":"xxx"#;
        let request = json!({ "head": head, "bytes": 99_999 });
        assert_eq!(call_id(&request).as_deref(), Some("c\n2"));
        assert_eq!(call_id(&json!({ "head": r#"{"tool":"a"# })), None);
        assert_eq!(call_id(&Value::Null), None);
    }
}
