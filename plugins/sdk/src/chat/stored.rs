//! Messages of a conversation as they are in the state.

use serde::Deserialize;
use serde_json::Value;

use crate::json::Extra;
use crate::message::ToolCall;

/// A message in the state.
#[derive(Debug, Deserialize)]
pub(super) struct Stored {
    #[serde(default)]
    pub(super) id: String,
    pub(super) role: String,
    #[serde(default)]
    content: Value,
    #[serde(default)]
    pub(super) tool_calls: Vec<ToolCall>,
    #[serde(default)]
    pub(super) tool_call_id: String,
    #[serde(default)]
    pub(super) name: String,
    #[serde(default)]
    pub(super) status: String,
    #[serde(default)]
    structured: Value,
}

impl Stored {
    /// Returns true if the user sent the message.
    pub(super) fn is_user(&self) -> bool {
        self.role == "user"
    }

    /// Returns true if a model wrote the message.
    pub(super) fn is_assistant(&self) -> bool {
        self.role == "assistant"
    }

    /// Returns true if the message is the result of a tool call.
    pub(super) fn is_tool(&self) -> bool {
        self.role == "tool"
    }

    /// Returns the text of the message, whose content may be a list of parts.
    pub(super) fn text(&self) -> String {
        text_of(&self.content)
    }

    /// Returns the result of a tool: its structured output, or its text without one.
    pub(super) fn result(&self) -> Value {
        match &self.structured {
            Value::Null => Value::String(self.text()),
            structured => structured.clone(),
        }
    }
}

/// Returns the text of a content, which may be a list of parts.
pub(super) fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            parts.iter().filter_map(|part| part.get("text").and_then(Value::as_str)).collect()
        }
        _ => String::new(),
    }
}

/// Returns the tool calls that a message requests. Missing fields are empty.
pub(super) fn calls(message: &Value) -> impl Iterator<Item = ToolCall> {
    message["tool_calls"].as_array().into_iter().flatten().map(|call| {
        let text = |key: &str| call[key].as_str().unwrap_or_default().to_owned();
        let arguments = call["arguments"].clone();
        ToolCall { id: text("id"), name: text("name"), arguments, extra: Extra::new() }
    })
}

/// Reads the messages of a channel. Invalid messages are skipped, so that they do not suppress the
/// others.
pub(super) fn read(channel: &Value) -> Vec<Stored> {
    let all = channel.as_array().map(Vec::as_slice).unwrap_or_default();
    all.iter().filter_map(|message| Stored::deserialize(message).ok()).collect()
}

/// Returns true if the last message is an assistant message without tool calls. A conversation
/// without a valid last message needs no reply, so the result is true as well.
pub(super) fn has_reply(channel: &Value) -> bool {
    let last = channel.as_array().and_then(|all| all.last());
    match last.map(Stored::deserialize) {
        Some(Ok(last)) => last.is_assistant() && last.tool_calls.is_empty(),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::has_reply;

    #[test]
    fn reply_is_a_last_message_of_the_model_without_tool_calls() {
        let call = json!({"id": "c", "name": "save"});
        let messages = [
            json!({"role": "user", "content": "a taxi, 20"}),
            json!({"role": "assistant", "content": "", "tool_calls": [call]}),
            json!({"role": "tool", "tool_call_id": "c", "content": "{}"}),
            json!({"role": "assistant", "content": "saved"}),
            json!({"role": 2}),
        ];
        let replied = |channel: Value| has_reply(&channel);
        let found: Vec<bool> =
            (0..=messages.len()).map(|end| replied(json!(messages[..end]))).collect();
        assert_eq!(found, [true, false, false, false, true, true]);
        assert!(replied(json!(null)));
    }
}
