//! Messages of the state as messages of the AI SDK, which `useChat` shows.
//!
//! Each message of the user is followed by one message of the assistant with texts and tool calls,
//! as in the host's stream of the format [`AiSdk`](crate::web::StreamFormat::AiSdk).

use serde_json::Value;

use crate::chat::stored::{self, Stored};
use crate::chat::ui::{CallState, Role, UiMessage, UiPart};
use crate::message::ToolCall;

/// Converts the value of a channel with the reducer `messages`. Invalid messages are skipped.
///
/// If `whole` is false, the messages after the last one of the user are omitted: the stream of an
/// active run has them from its beginning. `unfinished` is the error of a tool call without a
/// result, for users.
pub(super) fn of_state(channel: &Value, whole: bool, unfinished: &str) -> Vec<UiMessage> {
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
            let parts = vec![UiPart::user_text(user.text())];
            UiMessage { id: user.id.clone(), role: Role::User, parts }
        }));
        messages.extend(assistant(rest, unfinished));
    }
    messages
}

/// Returns one message for all messages that follow a message of the user.
fn assistant(messages: &[Stored], unfinished: &str) -> Option<UiMessage> {
    let mut turns = messages.iter().filter(|message| message.is_assistant()).peekable();
    let id = turns.peek()?.id.clone();
    let parts = turns.flat_map(|turn| parts(turn, messages, unfinished)).collect();
    Some(UiMessage { id, role: Role::Assistant, parts })
}

/// Returns the parts of a model turn, with the results of its tool calls.
fn parts(turn: &Stored, messages: &[Stored], unfinished: &str) -> Vec<Value> {
    let mut parts = vec![UiPart::step_start()];
    let text = turn.text();
    if !text.is_empty() {
        parts.push(UiPart::assistant_text("text", text));
    }
    let state = |call| call_state(call, messages, unfinished);
    parts.extend(turn.tool_calls.iter().map(|call| UiPart::tool(call, state(call))));
    parts
}

/// Returns the result of a tool call, or an error if the call has no result.
fn call_state(call: &ToolCall, messages: &[Stored], unfinished: &str) -> CallState {
    let result = messages.iter().find(|it| it.tool_call_id == call.id && it.is_tool());
    match result {
        Some(result) if result.status == "error" => CallState::Error(result.text()),
        Some(result) => CallState::Output(result.result()),
        None => CallState::Error(unfinished.to_owned()),
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
    fn error_of_a_tool_with_data_is_its_text() {
        let channel = json!([
            {"id": "a", "role": "assistant", "content": "", "tool_calls":
                [{"id": "c", "name": "save", "arguments": {}}]},
            {"id": "t", "role": "tool", "tool_call_id": "c", "name": "save",
                "content": "the limit is 10", "status": "error", "structured": {"limit": 10}},
        ]);
        assert_eq!(shown(&channel, true)[0]["parts"][1]["errorText"], "the limit is 10");
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
