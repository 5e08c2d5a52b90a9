//! The reply to the last user message of a conversation, and the steps that led to it.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use wattle_plugin::prelude::JsonSchema;

/// A message in the state.
#[derive(Debug, Deserialize)]
pub(crate) struct Message {
    #[serde(default)]
    pub(crate) id: String,
    pub(crate) role: String,
    #[serde(default)]
    pub(crate) content: Value,
    #[serde(default)]
    pub(crate) tool_calls: Vec<Call>,
    #[serde(default)]
    pub(crate) tool_call_id: String,
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) status: String,
    #[serde(default)]
    structured: Value,
}

impl Message {
    /// Returns true if the user sent the message.
    pub(crate) fn is_user(&self) -> bool {
        self.role == "user"
    }
}

/// A tool call that a model requested.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Call {
    pub(crate) id: String,
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) arguments: Value,
}

/// A step that led to a reply.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub(crate) enum Step {
    /// A model turn: its text and the tool calls that it requested.
    Model { content: String, tool_calls: Vec<Call> },
    /// A tool call: its arguments and its result.
    Tool { call_id: String, tool: String, arguments: Value, status: String, result: Value },
}

/// The reply to the last user message, with its steps.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Talk {
    /// Text of the last model turn; empty if it has none.
    pub(crate) reply: String,
    /// In order.
    pub(crate) steps: Vec<Step>,
}

impl Talk {
    /// Reads the channel with the conversation. Invalid messages are skipped, so that they do not
    /// suppress the reply.
    pub(crate) fn read(messages: &Value) -> Self {
        let all = messages.as_array().map(Vec::as_slice).unwrap_or_default();
        let all: Vec<Message> =
            all.iter().filter_map(|message| Message::deserialize(message).ok()).collect();
        let start = all.iter().rposition(Message::is_user);
        let since = &all[start.map_or(0, |index| index + 1)..];
        let mut talk = Self::default();
        for message in since {
            match message.role.as_str() {
                "assistant" => {
                    let content = text(&message.content);
                    talk.reply.clone_from(&content);
                    let tool_calls = message.tool_calls.clone();
                    talk.steps.push(Step::Model { content, tool_calls });
                }
                "tool" => talk.steps.push(tool(message, since)),
                _ => {}
            }
        }
        talk
    }
}

/// Returns true if the last message is an assistant message without tool calls. A conversation
/// without a valid last message needs no reply, so the result is true as well.
pub(crate) fn is_answered(messages: &Value) -> bool {
    let last = messages.as_array().and_then(|all| all.last());
    match last.map(Message::deserialize) {
        Some(Ok(last)) => last.role == "assistant" && last.tool_calls.is_empty(),
        _ => true,
    }
}

fn tool(message: &Message, since: &[Message]) -> Step {
    let asked = since.iter().flat_map(|message| &message.tool_calls);
    let mut asked = asked.filter(|call| call.id == message.tool_call_id);
    Step::Tool {
        call_id: message.tool_call_id.clone(),
        tool: message.name.clone(),
        arguments: asked.next().map(|call| call.arguments.clone()).unwrap_or_default(),
        status: message.status.clone(),
        result: answer_of(message),
    }
}

/// Returns the result of a tool: its structured output, or its text without one.
pub(crate) fn answer_of(message: &Message) -> Value {
    match &message.structured {
        Value::Null => Value::String(text(&message.content)),
        structured => structured.clone(),
    }
}

/// Returns the text of a message, whose content may be a list of parts.
pub(crate) fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            parts.iter().filter_map(|part| part.get("text").and_then(Value::as_str)).collect()
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Talk, is_answered};

    fn messages() -> Value {
        json!([
            {"role": "user", "content": "早"},
            {"role": "assistant", "content": "早上好"},
            {"role": "user", "content": "打车20元"},
            {"role": "assistant", "content": "", "tool_calls":
                [{"id": "a", "name": "save", "arguments": {"amount": 20}},
                 {"id": "b", "name": "fly"}]},
            {"role": "tool", "tool_call_id": "a", "name": "save", "content": "{}",
                "status": "success", "structured": {"status": "success"}},
            {"role": "tool", "tool_call_id": "b", "name": "fly", "content": [{"text": "no wings"}],
                "status": "error"},
            {"role": "assistant", "content": "好了"},
        ])
    }

    #[test]
    fn steps_begin_after_the_last_user_message() {
        let talk = Talk::read(&messages());
        assert_eq!(talk.reply, "好了");
        let steps = serde_json::to_value(&talk.steps).unwrap();
        let calls = json!([{"id": "a", "name": "save", "arguments": {"amount": 20}},
            {"id": "b", "name": "fly", "arguments": null}]);
        assert_eq!(
            steps,
            json!([
                {"type": "model", "content": "", "toolCalls": calls},
                {"type": "tool", "callId": "a", "tool": "save", "arguments": {"amount": 20},
                    "status": "success", "result": {"status": "success"}},
                {"type": "tool", "callId": "b", "tool": "fly", "arguments": null,
                    "status": "error", "result": "no wings"},
                {"type": "model", "content": "好了", "toolCalls": []},
            ])
        );
    }

    #[test]
    fn conversation_is_answered_by_a_last_message_of_the_model() {
        let messages = messages();
        let all = messages.as_array().unwrap();
        let answered: Vec<bool> =
            (0..=all.len()).map(|end| is_answered(&json!(all[..end]))).collect();
        assert_eq!(answered, [true, false, true, false, false, false, false, true]);
    }

    #[test]
    fn invalid_conversations_have_no_reply() {
        for messages in [json!(null), json!([]), json!([1, {"role": 2}])] {
            assert_eq!(Talk::read(&messages), Talk::default());
        }
    }
}
