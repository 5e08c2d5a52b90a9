//! Conversion of the conversation in the state into messages of the AI SDK. Each message of the
//! user is followed by one message of the assistant with texts and tool calls, as in the host's
//! stream.

use serde::{Deserialize, Serialize};
use wattle_plugin::prelude::{JsonSchema, Value};

use crate::talk::{Call, Message, answer_of, text};

/// Error of a tool call without a result.
const UNANSWERED: &str = "这一步没有完成";

/// A message of the AI SDK.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct UiMessage {
    id: String,
    role: UiRole,
    parts: Vec<UiPart>,
}

/// The sender of a message.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum UiRole {
    User,
    Assistant,
}

/// A part of a message of the AI SDK: the start of a model turn, a text, or a tool call.
#[derive(Debug, Default, Serialize, JsonSchema)]
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
#[derive(Debug, Serialize, JsonSchema)]
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

    fn text(words: String) -> Self {
        Self { text: Some(words), ..Self::new("text") }
    }
}

/// Returns the messages of a channel. If `whole` is false, the messages after the last one of the
/// user are omitted.
pub(crate) fn messages(channel: &Value, whole: bool) -> Vec<UiMessage> {
    let all = channel.as_array().map(Vec::as_slice).unwrap_or_default();
    let all: Vec<Message> = all.iter().filter_map(|it| Message::deserialize(it).ok()).collect();
    let last = all.iter().rposition(Message::is_user).map_or(0, |index| index + 1);
    let all = if whole { &all[..] } else { &all[..last] };
    let mut shown = Vec::new();
    for turn in all.chunk_by(|_, next| !next.is_user()) {
        let (user, rest) = match turn.split_first() {
            Some((first, rest)) if first.is_user() => (Some(first), rest),
            _ => (None, turn),
        };
        shown.extend(user.map(|user| {
            let parts = vec![UiPart::text(text(&user.content))];
            UiMessage { id: user.id.clone(), role: UiRole::User, parts }
        }));
        shown.extend(assistant(rest));
    }
    shown
}

/// Returns one message for all messages that follow a message of the user.
fn assistant(messages: &[Message]) -> Option<UiMessage> {
    let first = messages.iter().find(|message| message.role == "assistant")?;
    let turns = messages.iter().filter(|message| message.role == "assistant");
    let parts = turns.flat_map(|turn| parts(turn, messages)).collect();
    Some(UiMessage { id: first.id.clone(), role: UiRole::Assistant, parts })
}

/// Returns the parts of a model turn, with the results of its tool calls.
fn parts(turn: &Message, messages: &[Message]) -> Vec<UiPart> {
    let mut parts = vec![UiPart::new("step-start")];
    let words = text(&turn.content);
    if !words.is_empty() {
        parts.push(UiPart { state: Some(UiState::Done), ..UiPart::text(words) });
    }
    parts.extend(turn.tool_calls.iter().map(|call| tool(call, messages)));
    parts
}

/// Returns the message part that shows a tool call with its result, or with an error if the call
/// has no result.
fn tool(call: &Call, messages: &[Message]) -> UiPart {
    let answer = messages.iter().find(|it| it.tool_call_id == call.id && it.role == "tool");
    let part = UiPart {
        tool_call_id: Some(call.id.clone()),
        input: Some(call.arguments.clone()),
        ..UiPart::new(format!("tool-{}", call.name))
    };
    match answer.map(|it| (it.status == "error", answer_of(it))) {
        Some((false, output)) => {
            UiPart { state: Some(UiState::OutputAvailable), output: Some(output), ..part }
        }
        failed => {
            let why = failed.and_then(|(_, answer)| answer.as_str().map(str::to_owned));
            let why = why.unwrap_or_else(|| UNANSWERED.to_owned());
            UiPart { state: Some(UiState::OutputError), error_text: Some(why), ..part }
        }
    }
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Value, json};

    use super::messages;

    fn shown(channel: &Value, whole: bool) -> Vec<Value> {
        messages(channel, whole).iter().map(|message| json!(message)).collect()
    }

    fn channel() -> Value {
        json!([
            {"id": "u1", "role": "user", "content": "打车20元"},
            {"id": "a1", "role": "assistant", "content": "好", "tool_calls":
                [{"id": "c1", "name": "save", "arguments": {"amount": 20}},
                 {"id": "c2", "name": "fly", "arguments": {}}, {"id": "c3", "name": "walk"}]},
            {"id": "t1", "role": "tool", "tool_call_id": "c1", "name": "save", "content": "{}",
                "status": "success", "structured": {"status": "success"}},
            {"id": "t2", "role": "tool", "tool_call_id": "c2", "name": "fly",
                "content": "no wings", "status": "error"},
            {"id": "a2", "role": "assistant", "content": "好了"},
            {"id": "u2", "role": "user", "content": [{"text": "再见"}]},
            {"id": "a3", "role": "assistant", "content": "再见"},
        ])
    }

    #[test]
    fn assistant_message_has_tool_calls_with_results() {
        let shown = shown(&channel(), true);
        assert_eq!(shown.len(), 4);
        let text = |text: &str| json!({"type": "text", "text": text, "state": "done"});
        let step = json!({"type": "step-start"});
        assert_eq!(
            shown[1],
            json!({"id": "a1", "role": "assistant", "parts": [
                step, text("好"),
                {"type": "tool-save", "toolCallId": "c1", "input": {"amount": 20},
                    "state": "output-available", "output": {"status": "success"}},
                {"type": "tool-fly", "toolCallId": "c2", "input": {}, "state": "output-error",
                    "errorText": "no wings"},
                {"type": "tool-walk", "toolCallId": "c3", "input": null, "state": "output-error",
                    "errorText": "这一步没有完成"},
                step, text("好了"),
            ]})
        );
        assert_eq!(shown[2]["parts"], json!([{"type": "text", "text": "再见"}]));
    }

    #[test]
    fn messages_of_an_active_run_are_omitted() {
        let shown = shown(&channel(), false);
        let ids: Vec<&str> = shown.iter().filter_map(|it| it["id"].as_str()).collect();
        assert_eq!(ids, ["u1", "a1", "u2"]);
        for channel in [json!(null), json!([]), json!([1, {"role": 2}])] {
            assert!(messages(&channel, false).is_empty());
        }
        assert_eq!(messages(&json!([{"role": "assistant", "content": "hi"}]), true).len(), 1);
    }
}
