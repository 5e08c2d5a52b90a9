//! Tests of [`to_messages`].

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::to_messages;
use crate::failure::{Failure, code};
use crate::limit::HISTORY_REPEATED_BYTES;
use crate::llm::{Message, Part, Role};
use crate::message::is_from_user;

fn read(messages: &Value) -> Result<Vec<Message>, Failure> {
    let items = messages.as_array().unwrap();
    let newest = items.iter().rposition(is_from_user).unwrap_or_default();
    to_messages(items, 0, &[], newest, &BTreeMap::new(), "talk")
}

fn show(messages: Value) -> Vec<Message> {
    read(&messages).unwrap()
}

fn text(text: &str) -> Part {
    Part::Text(text.to_owned())
}

/// Returns the arguments of each call in JSON.
fn asked(message: &Message) -> Vec<String> {
    let calls = message.parts.iter().filter_map(|part| match part {
        Part::ToolCall(call) => Some(call.arguments.to_string()),
        _ => None,
    });
    calls.collect()
}

/// Returns the id and the content of each tool result.
fn results(shown: &[Message]) -> Vec<(&str, &str)> {
    let results = shown.iter().filter_map(|message| match &message.parts[..] {
        [Part::ToolResult(result)] => Some((&*result.call_id, &*result.content)),
        _ => None,
    });
    results.collect()
}

fn roles(shown: &[Message]) -> Vec<&Role> {
    shown.iter().map(|message| &message.role).collect()
}

#[test]
fn results_follow_their_calls() {
    let call = |id| json!({ "id": id, "name": "date/parse", "arguments": { "a": 1 } });
    let shown = show(json!([
        { "role": "tool", "tool_call_id": "nobody", "content": "?" },
        { "role": "user", "content": "hi" },
        { "role": "assistant", "content": "", "reasoning": "hm",
            "tool_calls": [call("a"), call("b")] },
        { "role": "user", "content": "still there?" },
        { "role": "tool", "tool_call_id": "b", "content": "2", "arguments": { "a": 2 } },
        { "role": "tool", "tool_call_id": "a", "content": "no", "status": "error" },
    ]));
    use Role::{Assistant, Tool, User};
    assert_eq!(roles(&shown), [&User, &Assistant, &Tool, &Tool, &User]);
    let [Part::Reasoning(_), Part::ToolCall(a), Part::ToolCall(b)] = &shown[1].parts[..] else {
        panic!("{:?}", shown[1]);
    };
    assert_eq!(
        (&*a.name, &a.arguments["a"], &b.arguments["a"]),
        ("date_parse", &json!(1), &json!(2))
    );
    let Part::ToolResult(first) = &shown[2].parts[0] else { panic!("{:?}", shown[2]) };
    assert_eq!((&*first.call_id, first.is_error), ("a", true));
}

#[test]
fn repeated_call_ids_have_the_next_result() {
    let asked = |id| json!({ "role": "assistant", "tool_calls": [{ "id": id, "name": "add" }] });
    let answered = |content| json!({ "role": "tool", "tool_call_id": "a", "content": content });
    let shown = show(json!([
        answered("before"),
        asked("a"),
        asked("a"),
        answered("1"),
        answered("2"),
        asked("b"),
        asked("a"),
        { "role": "tool", "content": "of no call" },
        answered("3"),
        asked("a"),
    ]));
    assert_eq!(results(&shown), [("a", "1"), ("a", "1"), ("a", "3")]);
    use Role::{Assistant, Tool};
    assert_eq!(
        roles(&shown),
        [&Assistant, &Tool, &Assistant, &Tool, &Assistant, &Assistant, &Tool, &Assistant],
        "a call without a result has none"
    );
}

#[test]
fn results_that_calls_with_one_id_repeat_are_limited() {
    let shared = |calls: usize, bytes: usize| {
        let calls = vec![json!({ "id": "a", "name": "add" }); calls];
        json!([
            { "role": "assistant", "tool_calls": calls },
            { "role": "tool", "tool_call_id": "a", "content": "x".repeat(bytes) },
        ])
    };
    let limit = HISTORY_REPEATED_BYTES as usize;
    for (calls, bytes) in [(1, limit + 1), (16, limit / 16)] {
        assert_eq!(results(&show(shared(calls, bytes))).len(), calls);
    }
    let failure = read(&shared(17, limit / 16)).unwrap_err();
    assert_eq!(failure.code, code::LIMIT);
    assert!(failure.message.starts_with("channel `talk`: "), "{failure}");
    assert_eq!(failure.details.unwrap()["limit"], "history_repeated_bytes");
}

#[test]
fn provider_state_and_reasoning_come_first() {
    let state = json!({ "type": "provider_state", "provider": "google", "n": 1.0 });
    let shown = show(json!([
        { "role": "assistant", "content": "so", "reasoning": "hm", "provider_state": state },
        { "role": "assistant", "content": "so", "reasoning": null, "provider_state": null },
        { "role": "assistant", "content": null, "reasoning": "" },
        { "role": "assistant", "tool_calls": [], "structured": 1, "usage": 7 },
    ]));
    let reasoning = |text: &str| Part::Reasoning(text.to_owned());
    assert_eq!(shown[0].parts, [Part::Other(state), reasoning("hm"), text("so")]);
    assert_eq!(shown[1].parts, [text("so")]);
    assert_eq!(shown[2].parts, [reasoning("")]);
    assert_eq!(shown.len(), 3, "messages without parts are omitted");
}

#[test]
fn arguments_are_those_of_the_call_or_of_a_person() {
    let calls = json!([
        { "id": "a", "name": "add" },
        { "id": "b", "name": "add", "arguments": "{\"a\": 1" },
        { "id": "c", "name": "add", "arguments": { "z": 1, "a": 1.5 } },
    ]);
    let shown = show(json!([
        { "role": "assistant", "tool_calls": calls },
        { "role": "tool", "tool_call_id": "a", "arguments": { "b": 1 } },
        { "role": "tool", "tool_call_id": "c", "arguments": null },
    ]));
    assert_eq!(asked(&shown[0]), [r#"{"b":1}"#, r#""{\"a\": 1""#, r#"{"z":1,"a":1.5}"#]);
}

#[test]
fn roles_are_converted() {
    let said = |role: &str| json!({ "role": role, "content": "hi" });
    let shown = show(json!([said("developer"), said("system"), said("critic")]));
    let critic = Role::Other("critic".to_owned());
    assert_eq!(roles(&shown), [&Role::System, &Role::System, &critic]);
}

#[test]
fn unsupported_parts_do_not_affect_others() {
    let audio = json!({ "type": "audio", "mime_type": "audio/wav", "data": "aGVsbG8=" });
    let audio = json!({ "other": audio });
    let told = text("[audio audio/wav, 5 bytes, not shown]");
    let picture =
        json!({ "image": { "source": { "url": "https://a/b" }, "media_type": "image/*" } });
    let said = |role: &str, content: Value| {
        let mut shown = show(json!([{ "role": role, "content": content }]));
        shown.remove(0).parts
    };
    let parts = said("user", json!([{ "text": "look" }, audio, { "text": "" }, picture]));
    assert_eq!(parts[..2], [text("look"), told.clone()]);
    assert!(matches!(parts[2..], [Part::Image(_)]), "{parts:?}");
    let parts = said("system", json!([audio, picture, { "reasoning": "hm" }]));
    let seen = "[image image/*, https://a/b, not shown]";
    assert_eq!(parts, [told, text(seen), text("hm")]);
    let state = json!({ "other": { "type": "provider_state", "provider": "google" } });
    assert_eq!(said("user", json!([{ "text": "a" }, state])), [text("a")]);
    let parts = said("assistant", json!([state, { "reasoning": "hm" }, { "text": "a" }]));
    assert!(matches!(parts[..], [Part::Other(_), Part::Reasoning(_), Part::Text(_)]));
}

#[test]
fn calls_and_reasoning_in_blocks_are_not_repeated() {
    let block = |block: Value| json!({ "other": block });
    let shown = show(json!([
        { "role": "assistant", "tool_calls": [{ "id": "a", "name": "draw" }], "content": [
            block(json!({ "type": "redacted_thinking", "data": "x" })),
            { "text": "I draw." },
            block(json!({ "type": "tool_use", "id": "a", "name": "draw", "input": {} })),
            block(json!({ "type": "tool_use", "id": "b", "name": "sing", "input": {} })),
        ] },
        { "role": "tool", "tool_call_id": "a", "content": [
            block(json!({ "type": "audio", "mime_type": "audio/wav", "data": "aGVsbG8=" })),
        ] },
    ]));
    let [Part::Text(said), Part::Text(sung), Part::ToolCall(_)] = &shown[0].parts[..] else {
        panic!("{:?}", shown[0]);
    };
    assert_eq!((&**said, &**sung), ("I draw.", "[tool_use, sing, 53 bytes, not shown]"));
    assert_eq!(results(&shown), [("a", "[audio audio/wav, 5 bytes, not shown]")]);
}

#[test]
fn results_without_text_are_not_empty() {
    let picture =
        json!({ "image": { "source": { "url": "https://a/b.png" }, "media_type": "image/png" } });
    for (content, status, told) in [
        (json!(""), "success", "done"),
        (json!([{ "text": "" }]), "success", "done"),
        (json!([picture]), "success", "done"),
        (json!(""), "error", "the tool failed and gave no reason"),
    ] {
        let shown = show(json!([
            { "role": "assistant", "tool_calls": [{ "id": "a", "name": "draw" }] },
            { "role": "tool", "tool_call_id": "a", "content": content, "status": status },
        ]));
        assert_eq!(results(&shown), [("a", told)], "{content}");
    }
}

#[test]
fn images_of_tools_follow_all_results() {
    let picture =
        json!({ "image": { "source": { "url": "https://a/b.png" }, "media_type": "image/png" } });
    let shown = show(json!([
        { "role": "assistant", "tool_calls": [{ "id": "a", "name": "draw" }] },
        { "role": "tool", "tool_call_id": "a", "content": [{ "text": "here" }, picture] },
    ]));
    assert_eq!(roles(&shown), [&Role::Assistant, &Role::Tool, &Role::User]);
    assert_eq!(shown[2].parts.len(), 2);
}

/// The host writes references to blobs in lower case, and a description has the text of the state.
#[test]
fn blobs_are_parsed_only_if_models_get_them() {
    let blob = format!("blob:{}", "0A".repeat(32));
    let said = |role: &str| {
        let image = json!({ "source": { "blob": blob }, "media_type": "image/png" });
        let shown = show(json!([{ "role": role, "content": [{ "image": image }] }]));
        json!(shown[0].parts)
    };
    let image = json!({ "source": { "blob": blob.to_lowercase() }, "media_type": "image/png" });
    assert_eq!(said("user"), json!([{ "image": image }]));
    let told = format!("[image image/png, {blob}, not shown]");
    assert_eq!(said("assistant"), json!([{ "text": told }]));
}

#[test]
fn invalid_messages_are_named_by_position() {
    for (message, why) in [
        (json!({ "role": 7 }), "invalid type: integer `7`, expected a string"),
        (json!({ "content": "hi" }), "missing field `role`"),
        (json!({ "role": "tool", "name": 7 }), "invalid type: integer `7`, expected a string"),
        (
            json!({ "role": "assistant", "tool_calls": null }),
            "invalid type: null, expected a sequence",
        ),
        (json!({ "role": "assistant", "tool_calls": [{ "id": "a" }] }), "missing field `name`"),
        (json!("hi"), "invalid type: string \"hi\", expected struct Stored"),
        (json!(["user", "hi"]), "invalid type: sequence, expected struct Stored"),
    ] {
        let user = json!({ "role": "user" });
        let items = [user.clone(), user, message];
        for (split, place) in [(3, "message 6 of channel `talk`"), (1, "message 1 of `append`")] {
            let (listed, append) = items.split_at(split);
            let failure = to_messages(listed, 4, append, 5, &BTreeMap::new(), "talk").unwrap_err();
            assert_eq!(failure.code, code::INVALID);
            assert_eq!(failure.message, format!("{place} cannot be read: {why}"));
        }
    }
    assert!(read(&json!([{ "role": "user", "id": 7, "content": 7, "extra": {} }])).is_ok());
}

#[test]
fn older_messages_that_models_cannot_get_are_described() {
    for (message, told) in [
        (json!({ "role": "critic", "content": "no" }), "[message, critic, 32 bytes, not shown]"),
        (json!({ "role": 7 }), "[message, 10 bytes, not shown]"),
        (json!({ "role": "assistant", "tool_calls": null }), "[message, assistant, 38 bytes,"),
        (json!({ "role": "tool", "name": 7 }), "[message, tool, 24 bytes, not shown]"),
        (json!("hi"), "[message, 4 bytes, not shown]"),
        (json!(["user", "hi"]), "[message, 13 bytes, not shown]"),
    ] {
        let mut named = message.clone();
        if let Some(fields) = named.as_object_mut() {
            fields.insert("id".to_owned(), json!("m-1"));
        }
        for message in [message, named] {
            let shown = show(json!([message, { "role": "user", "content": "and now?" }]));
            assert_eq!(roles(&shown), [&Role::User, &Role::User], "{message}");
            let [Part::Text(described)] = &shown[0].parts[..] else { panic!("{shown:?}") };
            assert!(described.starts_with(told), "{described}");
        }
    }
}

#[test]
fn older_result_that_cannot_be_read_stays_with_its_call() {
    for (status, is_error) in [("success", false), ("error", true)] {
        let shown = show(json!([
            { "role": "assistant", "tool_calls": [{ "id": "a", "name": "add" }] },
            { "role": "tool", "tool_call_id": "a", "name": 7, "content": "3", "status": status },
            { "role": "user", "content": "and now?" },
        ]));
        assert_eq!(results(&shown), [("a", "3")]);
        let Part::ToolResult(result) = &shown[1].parts[0] else { panic!("{shown:?}") };
        assert_eq!(result.is_error, is_error);
    }
}
