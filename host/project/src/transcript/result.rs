//! Results of tool calls.

use serde_json::{Value, json};
use wattle_graph::event::Called;
use wattle_graph::message::MessageView;

/// The result of a tool call.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolCallResult {
    /// The output: the structured data of the tool, else its text (parsed if the text is a JSON
    /// object or array), else its content parts if not all of them are text.
    Output(Value),
    /// The error message.
    Error(String),
}

impl ToolCallResult {
    /// Returns the result of a host call from the journal. Returns an output of unknown form
    /// unchanged.
    pub(super) fn of_call(called: &Called) -> Self {
        match (&called.result, called.tool_output()) {
            (Err(failure), _) => Self::Error(failure.message.clone()),
            (Ok(_), Some(output)) => {
                let (text, parts) = (output.text(), json!(output.content));
                Self::new(text, &parts, output.structured, output.is_error)
            }
            (Ok(document), None) => Self::Output(document.clone()),
        }
    }

    /// Returns the result that a tool message contains.
    pub(super) fn of_message(message: MessageView<'_>) -> Self {
        let content = message.content();
        let structured = message.structured().cloned();
        Self::new(text(content), content, structured, message.is_error())
    }

    /// Creates a result. `text` is the content as text; `None` if the content has other parts.
    fn new(
        text: Option<String>,
        content: &Value,
        structured: Option<Value>,
        is_error: bool,
    ) -> Self {
        if is_error {
            return Self::Error(text.unwrap_or_else(|| content.to_string()));
        }
        let said = || text.map_or_else(|| content.clone(), data_or_text);
        Self::Output(structured.filter(|it| !it.is_null()).unwrap_or_else(said))
    }
}

/// Parses a text that is a JSON object or array. Returns any other text as a JSON string.
fn data_or_text(text: String) -> Value {
    let document: Option<Value> = serde_json::from_str(&text).ok();
    document.filter(|it| it.is_object() || it.is_array()).unwrap_or(Value::String(text))
}

/// Returns the texts of content, joined by line breaks; `None` if the content has other parts.
fn text(content: &Value) -> Option<String> {
    match content {
        Value::String(text) => Some(text.clone()),
        Value::Array(parts) => {
            let texts = parts.iter().map(|part| part.get("text").and_then(Value::as_str));
            Some(texts.collect::<Option<Vec<_>>>()?.join("\n"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use wattle_graph::event::EventKind;

    use super::*;
    use crate::sample::tool_called;

    fn result_of_output(answer: Value) -> ToolCallResult {
        match tool_called(1, "c", Ok(answer)).kind {
            EventKind::Called(called) => ToolCallResult::of_call(&called),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn output_is_structured_data_if_possible() {
        let text = |text: &str| json!([{ "text": text }]);
        let image = json!({ "image": { "source": { "url": "u" }, "media_type": "image/png" } });
        for (answer, expected) in [
            (json!({ "content": text("x"), "structured": { "a": 1 } }), json!({ "a": 1 })),
            (json!({ "content": text("{\"a\":1}") }), json!({ "a": 1 })),
            (json!({ "content": text("12") }), json!("12")),
            (json!({ "content": [{ "text": "a" }, { "text": "b" }] }), json!("a\nb")),
            (json!({ "content": [image] }), json!([image])),
            (json!({ "unknown": 1 }), json!({ "unknown": 1 })),
        ] {
            assert_eq!(result_of_output(answer), ToolCallResult::Output(expected));
        }
        let error = json!({ "content": text("too early"), "is_error": true });
        assert_eq!(result_of_output(error), ToolCallResult::Error("too early".to_owned()));
        for (content, expected) in [
            (json!("too early"), "too early"),
            (json!([{ "text": "too" }, { "text": "early" }]), "too\nearly"),
        ] {
            let message = json!({ "role": "tool", "content": content, "status": "error" });
            let message = MessageView::of(&message).unwrap();
            assert_eq!(
                ToolCallResult::of_message(message),
                ToolCallResult::Error(expected.to_owned())
            );
        }
    }
}
