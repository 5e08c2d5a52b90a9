//! Conversion of the conversation in the state into messages of the AI SDK. Each message of the
//! user is followed by one message of the assistant with texts and tool calls, as in the host's
//! stream.

use serde::Deserialize;
use wattle_plugin::prelude::{Value, json};

use crate::talk::{Message, answer_of, text};

/// Error of a tool call without a result.
const UNANSWERED: &str = "这一步没有完成";

/// Returns the messages of a channel. If `whole` is false, the messages after the last one of the
/// user are omitted.
pub(crate) fn messages(channel: &Value, whole: bool) -> Vec<Value> {
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
            let parts = [json!({ "type": "text", "text": text(&user.content) })];
            json!({ "id": user.id, "role": "user", "parts": parts })
        }));
        shown.extend(assistant(rest));
    }
    shown
}

/// Returns one message for all messages that follow a message of the user.
fn assistant(messages: &[Message]) -> Option<Value> {
    let first = messages.iter().find(|message| message.role == "assistant")?;
    let turns = messages.iter().filter(|message| message.role == "assistant");
    let parts: Vec<Value> = turns.flat_map(|turn| parts(turn, messages)).collect();
    Some(json!({ "id": first.id, "role": "assistant", "parts": parts }))
}

/// Returns the parts of a model turn, with the results of its tool calls.
fn parts(turn: &Message, messages: &[Message]) -> Vec<Value> {
    let mut parts = vec![json!({ "type": "step-start" })];
    let words = text(&turn.content);
    if !words.is_empty() {
        parts.push(json!({ "type": "text", "text": words, "state": "done" }));
    }
    for call in &turn.tool_calls {
        let answer = messages.iter().find(|it| it.tool_call_id == call.id && it.role == "tool");
        let mut part = json!({
            "type": format!("tool-{}", call.name),
            "toolCallId": call.id,
            "input": call.arguments,
        });
        match answer.map(|it| (it.status == "error", answer_of(it))) {
            Some((false, output)) => {
                part["state"] = json!("output-available");
                part["output"] = output;
            }
            failed => {
                let why = failed.map(|(_, answer)| answer);
                let why = why.and_then(|it| it.as_str().map(str::to_owned));
                part["state"] = json!("output-error");
                part["errorText"] = json!(why.unwrap_or_else(|| UNANSWERED.to_owned()));
            }
        }
        parts.push(part);
    }
    parts
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Value, json};

    use super::messages;

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
        let shown = messages(&channel(), true);
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
        let shown = messages(&channel(), false);
        let ids: Vec<&str> = shown.iter().filter_map(|it| it["id"].as_str()).collect();
        assert_eq!(ids, ["u1", "a1", "u2"]);
        for channel in [json!(null), json!([]), json!([1, {"role": 2}])] {
            assert!(messages(&channel, false).is_empty());
        }
        assert_eq!(messages(&json!([{"role": "assistant", "content": "hi"}]), true).len(), 1);
    }
}
