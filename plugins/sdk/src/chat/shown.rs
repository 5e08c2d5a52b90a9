//! Messages of the state as messages of the AI SDK, which `useChat` shows.
//!
//! Each message of the user is followed by one message of the assistant with texts and tool calls,
//! as in the host's stream of the format [`AiSdk`](crate::web::StreamFormat::AiSdk).

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::chat::stored::{self, Call, Stored};

/// A message of the AI SDK.
// The schema of each app with conversations has the line above as its description.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "UiMessage")]
pub(super) struct ShownMessage {
    id: String,
    role: UiRole,
    parts: Vec<UiPart>,
}

/// The sender of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum UiRole {
    User,
    Assistant,
}

/// A part of a message of the AI SDK: the start of a model turn, a text, or a tool call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct UiPart {
    /// `step-start`, `text`, or `tool-` and the name of the tool.
    #[serde(rename = "type")]
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<UiState>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_text: Option<String>,
}

/// The state of a text of the assistant, or of a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum UiState {
    Done,
    OutputAvailable,
    OutputError,
}

impl UiPart {
    fn new(kind: impl Into<String>) -> Self {
        Self { kind: kind.into(), ..Self::default() }
    }

    fn text(text: String) -> Self {
        Self { text: Some(text), ..Self::new("text") }
    }
}

/// Converts the value of a channel with the reducer `messages`. Invalid messages are skipped.
///
/// If `whole` is false, the messages after the last one of the user are omitted: the stream of an
/// active run has them from its beginning. `unfinished` is the error of a tool call without a
/// result, for users.
pub(super) fn of_state(channel: &Value, whole: bool, unfinished: &str) -> Vec<ShownMessage> {
    let all = stored::read(channel);
    let last = all.iter().rposition(Stored::is_user).map_or(0, |index| index + 1);
    let all = if whole { &all[..] } else { &all[..last] };
    let mut messages = Vec::new();
    for turn in all.chunk_by(|_, next| !next.is_user()) {
        let (user, rest) = match turn.split_first() {
            Some((first, rest)) if first.is_user() => (Some(first), rest),
            _ => (None, turn),
        };
        messages.extend(user.map(|user| {
            let parts = vec![UiPart::text(user.text())];
            ShownMessage { id: user.id.clone(), role: UiRole::User, parts }
        }));
        messages.extend(assistant(rest, unfinished));
    }
    messages
}

/// Returns one message for all messages that follow a message of the user.
fn assistant(messages: &[Stored], unfinished: &str) -> Option<ShownMessage> {
    let mut turns = messages.iter().filter(|message| message.is_assistant()).peekable();
    let id = turns.peek()?.id.clone();
    let parts = turns.flat_map(|turn| parts(turn, messages, unfinished)).collect();
    Some(ShownMessage { id, role: UiRole::Assistant, parts })
}

/// Returns the parts of a model turn, with the results of its tool calls.
fn parts(turn: &Stored, messages: &[Stored], unfinished: &str) -> Vec<UiPart> {
    let mut parts = vec![UiPart::new("step-start")];
    let text = turn.text();
    if !text.is_empty() {
        parts.push(UiPart { state: Some(UiState::Done), ..UiPart::text(text) });
    }
    parts.extend(turn.tool_calls.iter().map(|call| tool(call, messages, unfinished)));
    parts
}

/// Returns the message part that shows a tool call with its result, or with an error if the call
/// has no result.
fn tool(call: &Call, messages: &[Stored], unfinished: &str) -> UiPart {
    let result = messages.iter().find(|it| it.tool_call_id == call.id && it.is_tool());
    let part = UiPart {
        tool_call_id: Some(call.id.clone()),
        input: Some(call.arguments.clone()),
        ..UiPart::new(format!("tool-{}", call.name))
    };
    match result.map(|it| (it.status == "error", it.result())) {
        Some((false, output)) => {
            UiPart { state: Some(UiState::OutputAvailable), output: Some(output), ..part }
        }
        failed => {
            let error = failed.and_then(|(_, output)| output.as_str().map(str::to_owned));
            let error = error.unwrap_or_else(|| unfinished.to_owned());
            UiPart { state: Some(UiState::OutputError), error_text: Some(error), ..part }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::of_state;

    fn shown(channel: &Value, whole: bool) -> Value {
        json!(of_state(channel, whole, "not completed"))
    }

    fn channel() -> Value {
        json!([
            {"id": "u1", "role": "user", "content": "a taxi, 20"},
            {"id": "a1", "role": "assistant", "content": "well", "tool_calls":
                [{"id": "c1", "name": "save", "arguments": {"amount": 20}},
                 {"id": "c2", "name": "fly", "arguments": {}}, {"id": "c3", "name": "walk"}]},
            {"id": "t1", "role": "tool", "tool_call_id": "c1", "name": "save", "content": "{}",
                "status": "success", "structured": {"status": "success"}},
            {"id": "t2", "role": "tool", "tool_call_id": "c2", "name": "fly",
                "content": "no wings", "status": "error"},
            {"id": "a2", "role": "assistant", "content": "saved"},
            {"id": "u2", "role": "user", "content": [{"text": "good"}, {"text": "bye"}]},
            {"id": "a3", "role": "assistant", "content": "bye"},
        ])
    }

    #[test]
    fn assistant_message_has_tool_calls_with_results() {
        let shown = shown(&channel(), true);
        let text = |text: &str| json!({"type": "text", "text": text, "state": "done"});
        let step = json!({"type": "step-start"});
        assert_eq!(
            shown,
            json!([
                {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "a taxi, 20"}]},
                {"id": "a1", "role": "assistant", "parts": [
                    step, text("well"),
                    {"type": "tool-save", "toolCallId": "c1", "input": {"amount": 20},
                        "state": "output-available", "output": {"status": "success"}},
                    {"type": "tool-fly", "toolCallId": "c2", "input": {}, "state": "output-error",
                        "errorText": "no wings"},
                    {"type": "tool-walk", "toolCallId": "c3", "input": null,
                        "state": "output-error", "errorText": "not completed"},
                    step, text("saved"),
                ]},
                {"id": "u2", "role": "user", "parts": [{"type": "text", "text": "goodbye"}]},
                {"id": "a3", "role": "assistant", "parts": [step, text("bye")]},
            ])
        );
    }

    #[test]
    fn conversations_are_shown_up_to_the_last_message_of_the_user() {
        let hello = json!({"id": "a", "role": "assistant", "content": "hello"});
        for (channel, whole, ids) in [
            (channel(), true, json!(["u1", "a1", "u2", "a3"])),
            (channel(), false, json!(["u1", "a1", "u2"])),
            (json!([hello]), true, json!(["a"])),
            (json!([hello]), false, json!([])),
            (json!([1, {"role": 2}, hello]), true, json!(["a"])),
            (json!([{"id": "t", "role": "tool", "content": "x"}]), true, json!([])),
            (json!(null), true, json!([])),
            (json!([]), false, json!([])),
        ] {
            let messages = shown(&channel, whole);
            let found: Vec<&Value> =
                messages.as_array().unwrap().iter().map(|message| &message["id"]).collect();
            assert_eq!(json!(found), ids, "{channel} {whole}");
        }
    }
}
