//! The reply to the last user message of a conversation, and the steps that led to it.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::chat::stored::{self, Stored};
use crate::json::Extra;
use crate::message::ToolCall;

/// A step that led to a reply.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub(super) enum Step {
    /// A model turn: its text and the tool calls that it requested.
    Model { content: String, tool_calls: Vec<ToolCall> },
    /// A tool call: its arguments and its result.
    Tool { call_id: String, tool: String, arguments: Value, status: String, result: Value },
}

/// The reply to the last user message, with its steps.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct LastReply {
    /// Text of the last model turn; empty if it has none.
    pub(super) text: String,
    /// In order.
    pub(super) steps: Vec<Step>,
}

impl LastReply {
    /// Reads the channel with the conversation.
    pub(super) fn read(channel: &Value) -> Self {
        let all = stored::read(channel);
        let start = all.iter().rposition(Stored::is_user).map_or(0, |index| index + 1);
        let since = &all[start..];
        let mut last = Self::default();
        for message in since {
            if message.is_assistant() {
                let content = message.text();
                last.text.clone_from(&content);
                let tool_calls = message.tool_calls.iter().map(without_extra).collect();
                last.steps.push(Step::Model { content, tool_calls });
            } else if message.is_tool() {
                last.steps.push(tool(message, since));
            }
        }
        last
    }
}

/// Returns a tool call without its extension fields, which are for models.
fn without_extra(call: &ToolCall) -> ToolCall {
    ToolCall { extra: Extra::new(), ..call.clone() }
}

fn tool(message: &Stored, since: &[Stored]) -> Step {
    let calls = since.iter().flat_map(|message| &message.tool_calls);
    let mut calls = calls.filter(|call| call.id == message.tool_call_id);
    Step::Tool {
        call_id: message.tool_call_id.clone(),
        tool: message.name.clone(),
        arguments: calls.next().map(|call| call.arguments.clone()).unwrap_or_default(),
        status: message.status.clone(),
        result: message.result(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::LastReply;

    fn channel() -> Value {
        json!([
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "hello"},
            {"role": "user", "content": "a taxi, 20"},
            {"role": "assistant", "content": "", "tool_calls":
                [{"id": "a", "name": "save", "arguments": {"amount": 20}},
                 {"id": "b", "name": "fly", "extra": {"signature": "s"}}]},
            {"role": "tool", "tool_call_id": "a", "name": "save", "content": "{}",
                "status": "success", "structured": {"status": "success"}},
            {"role": "tool", "tool_call_id": "b", "name": "fly", "content": [{"text": "no wings"}],
                "status": "error"},
            {"role": "assistant", "content": "saved"},
        ])
    }

    #[test]
    fn steps_begin_after_the_last_user_message() {
        let last = LastReply::read(&channel());
        assert_eq!(last.text, "saved");
        let calls = json!([{"id": "a", "name": "save", "arguments": {"amount": 20}},
            {"id": "b", "name": "fly", "arguments": null}]);
        assert_eq!(
            json!(last.steps),
            json!([
                {"type": "model", "content": "", "toolCalls": calls},
                {"type": "tool", "callId": "a", "tool": "save", "arguments": {"amount": 20},
                    "status": "success", "result": {"status": "success"}},
                {"type": "tool", "callId": "b", "tool": "fly", "arguments": null,
                    "status": "error", "result": "no wings"},
                {"type": "model", "content": "saved", "toolCalls": []},
            ])
        );
    }

    #[test]
    fn invalid_conversations_have_no_reply() {
        for channel in [json!(null), json!([]), json!([1, {"role": 2}])] {
            assert_eq!(LastReply::read(&channel), LastReply::default());
        }
    }
}
