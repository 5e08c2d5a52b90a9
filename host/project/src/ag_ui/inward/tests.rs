//! Tests of the conversion of requests.

use serde_json::json;

use super::*;

fn user(id: &str, text: &str) -> Value {
    json!({ "id": id, "role": "user", "content": text })
}

fn result(id: &str, call: &str) -> Value {
    json!({ "id": id, "role": "tool", "toolCallId": call, "content": "3" })
}

fn assistant(id: &str, calls: &[&str]) -> Value {
    let call = |id: &&str| {
        let function = json!({ "name": "add", "arguments": "{\"a\":1}" });
        json!({ "id": id, "type": "function", "function": function })
    };
    let calls: Vec<Value> = calls.iter().map(call).collect();
    json!({ "id": id, "role": "assistant", "toolCalls": calls })
}

/// A message of the channel that requests calls.
fn asking(calls: &[&str]) -> Value {
    let call = |id: &&str| json!({ "id": id, "name": "add", "arguments": { "a": 1 } });
    let calls: Vec<Value> = calls.iter().map(call).collect();
    json!({ "id": "stored", "role": "assistant", "content": "", "tool_calls": calls })
}

/// Returns the ids of the messages that are new to a thread.
fn new_ids(messages: &[Value], known: &[Value]) -> Vec<String> {
    let new = new_messages(messages, Some(known)).unwrap();
    new.iter().map(|message| message["id"].as_str().unwrap().to_owned()).collect()
}

fn why(message: Value) -> String {
    new_messages(&[user("1", "hi"), message], None).unwrap_err().to_string()
}

#[test]
fn first_run_takes_the_whole_conversation() {
    let messages = [
        json!({ "id": "1", "role": "developer", "content": "be brief" }),
        json!({ "id": "2", "role": "user", "name": "Ada", "content": "1 + 2?" }),
        json!({ "id": "3", "role": "reasoning", "content": "hm" }),
        assistant("4", &["c"]),
        result("5", "c"),
        json!({ "id": "6", "role": "activity", "activityType": "plan", "content": {} }),
        user("7", "thanks"),
    ];
    let new = new_messages(&messages, None).unwrap();
    assert_eq!(
        new,
        [
            json!({ "id": "1", "role": "developer", "content": "be brief" }),
            json!({ "id": "2", "role": "user", "content": "1 + 2?", "name": "Ada" }),
            json!({ "id": "4", "role": "assistant", "content": "", "tool_calls": [
                { "id": "c", "name": "add", "arguments": { "a": 1 } },
            ] }),
            json!({ "id": "5", "role": "tool", "content": "3", "tool_call_id": "c",
                "status": "success" }),
            json!({ "id": "7", "role": "user", "content": "thanks" }),
        ]
    );
}

#[test]
fn only_messages_after_the_known_ones_are_new() {
    let known = [json!({ "id": "1", "role": "user", "content": "one" })];
    let (one, two) = (user("1", "one"), user("2", "two"));
    assert_eq!(new_ids(&[one.clone(), two.clone()], &known), ["2"]);
    assert_eq!(new_ids(std::slice::from_ref(&one), &known), [""; 0]);
    let answered = [one, assistant("run:text-1", &[]), two.clone()];
    assert_eq!(new_ids(&answered, &known), ["2"]);
    assert_eq!(new_ids(&answered, &[]), ["2"], "the thread has removed the first message");
    let refused = [assistant("a", &[]), user("3", "refused"), two];
    assert_eq!(new_ids(&refused, &known), ["3", "2"], "a message of a rejected request is new");
}

#[test]
fn result_is_new_only_for_an_open_call() {
    let answer = json!({ "id": "m", "role": "tool", "tool_call_id": "a", "content": "3" });
    let known = [asking(&["a", "b"]), answer];
    let messages = [
        assistant("run:text-1", &["a", "b", "x"]),
        result("run:result-a", "a"),
        result("mine", "b"),
        result("again", "b"),
        result("other", "x"),
    ];
    let new = new_messages(&messages, Some(&known)).unwrap();
    assert_eq!(
        new,
        [json!({ "id": "mine", "role": "tool", "content": "3", "tool_call_id": "b",
            "name": "add", "status": "success" })]
    );
}

#[test]
fn error_of_a_tool_is_its_result() {
    let failed = |content: &str| {
        let message = json!({
            "id": "1", "role": "tool", "toolCallId": "c", "content": content,
            "error": "no network",
        });
        let new = new_messages(&[message], None).unwrap();
        (new[0]["status"].clone(), new[0]["content"].clone())
    };
    assert_eq!(failed(""), (json!("error"), json!("no network")));
    assert_eq!(failed("it failed"), (json!("error"), json!("it failed")));
}

#[test]
fn parts_become_parts_of_the_state() {
    const PNG: &str = "iVBORw0KGgo=";
    let source = |kind: &str, value: &str, media_type: &str| json!({ "type": kind, "value": value, "mimeType": media_type });
    let content = json!([
        { "type": "text", "text": "look" },
        { "type": "image", "source": source("data", PNG, "image/png") },
        { "type": "image", "source": { "type": "url", "value": "https://a/b" } },
        { "type": "document", "source": source("data", "aGVsbG8=", "text/plain") },
        { "type": "audio", "source": source("url", "https://a/c", "audio/wav") },
        { "type": "image", "source": { "type": "file", "value": "file-1", "provider": "openai" } },
        { "type": "of a later version" },
        { "type": "image", "source": { "type": "of a later version", "value": 7 } },
    ]);
    let message = json!({ "id": "1", "role": "user", "content": content });
    let new = new_messages(&[message], None).unwrap();
    let image = |url: &str, media_type: &str| json!({ "image": { "source": { "url": url }, "media_type": media_type } });
    let audio = json!({ "type": "audio", "url": "https://a/c", "mime_type": "audio/wav" });
    assert_eq!(
        new[0]["content"],
        json!([
            { "text": "look" },
            image(&format!("data:image/png;base64,{PNG}"), "image/png"),
            image("https://a/b", "image/*"),
            { "text": "hello" },
            { "other": audio },
            { "other": { "type": "image", "file_id": "file-1" } },
        ])
    );
    let unknown =
        json!({ "id": "1", "role": "user", "content": [{ "type": "of a later version" }] });
    assert_eq!(new_messages(&[unknown], None).unwrap()[0]["content"], "");
}

#[test]
fn invalid_messages_are_named_by_position() {
    let part = |part: Value| json!({ "id": "2", "role": "user", "content": [part] });
    for (message, reason) in [
        (json!("hi"), "must be an object"),
        (json!({ "role": "user", "content": "hi" }), "needs an `id`"),
        (json!({ "id": "", "role": "user", "content": "hi" }), "needs an `id`"),
        (json!({ "id": "2", "content": "hi" }), "needs a `role`"),
        (json!({ "id": "2", "role": "remove" }), "`remove` is not a role; use one of `user`"),
        (json!({ "id": "2", "role": "user" }), "needs `content`"),
        (json!({ "id": "2", "role": "user", "content": 7 }), "`content` must be a string"),
        (json!({ "id": "2", "role": "tool", "content": "x" }), "needs `toolCallId`"),
        (json!({ "id": "2", "role": "assistant", "toolCalls": 7 }), "must be an array"),
        (part(json!({ "text": "x" })), "part 0 of `content`: a part needs a `type`"),
        (part(json!({ "type": "text" })), "it has no `text`"),
        (part(json!({ "type": "image" })), "it has no `source`"),
        (part(json!({ "type": "image", "source": {} })), "`source` has no `type`"),
        (part(json!({ "type": "image", "source": { "type": "url" } })), "has no `value`"),
        (
            part(json!({ "type": "image", "source": { "type": "data", "value": "?" } })),
            "its data is not base64",
        ),
    ] {
        let why = why(message.clone());
        let place = "field `messages[1]` of the request is not valid: ";
        assert!(why.starts_with(place) && why.contains(reason), "{message}: {why}");
    }
}

#[test]
fn known_messages_are_not_converted() {
    let broken = json!({ "id": "1", "role": "user", "content": [{ "type": "image" }] });
    let known = [json!({ "id": "1", "role": "user", "content": "one" })];
    assert_eq!(new_ids(&[broken, user("2", "two")], &known), ["2"]);
}

#[test]
fn calls_of_the_client_are_collected() {
    let messages = [user("1", "hi"), assistant("2", &["a", "b"]), json!({ "toolCalls": [7, {}] })];
    let ids = tool_call_ids(&messages);
    assert_eq!(ids.iter().map(String::as_str).collect::<Vec<_>>(), ["a", "b"]);
}

#[test]
fn members_of_later_versions_and_null_are_accepted() {
    let input: RunAgentInput = serde_json::from_value(json!({
        "threadId": "t", "runId": "r", "messages": [], "tools": [{}], "context": [],
        "protocolVersion": "1.1", "later": 1, "state": null,
    }))
    .unwrap();
    assert_eq!((input.state, input.forwarded_props), (Value::Null, Value::Null));
}
