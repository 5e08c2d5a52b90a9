//! Tests of the conversion of messages in both directions.

use serde_json::{Value, json};

use super::{ReadContext, from_wire, from_wire_all, of_request, to_wire};

fn read(message: Value) -> Result<Value, String> {
    read_within(&message, usize::MAX)
}

/// Reads a message whose arguments are parsed up to a length.
fn read_within(message: &Value, most: usize) -> Result<Value, String> {
    let mut made = 0;
    let mut new_id = || {
        made += 1;
        format!("new-{made}")
    };
    let parse =
        |text: &str| serde_json::from_str::<Value>(text).ok().filter(|_| text.len() <= most);
    from_wire(message, &mut ReadContext { new_id: &mut new_id, parse: &parse })
}

fn read_all(messages: &Value) -> Result<Value, String> {
    let parse = |text: &str| serde_json::from_str::<Value>(text).ok();
    from_wire_all(messages, &mut ReadContext { new_id: &mut || "m".to_owned(), parse: &parse })
}

#[test]
fn messages_have_the_form_of_langgraph_servers() {
    for (ours, theirs) in [
        (
            json!({ "id": "ai-msg-2", "role": "assistant", "content": "", "tool_calls": [
                { "id": "tc-1", "name": "search", "arguments": { "query": "v3" } },
            ] }),
            json!({
                "content": "", "additional_kwargs": {}, "response_metadata": {}, "type": "ai",
                "name": null, "id": "ai-msg-2",
                "tool_calls": [
                    { "name": "search", "args": { "query": "v3" }, "id": "tc-1", "type": "tool_call" },
                ],
                "invalid_tool_calls": [], "usage_metadata": null,
            }),
        ),
        (
            json!({ "id": "m", "role": "tool", "content": "result for 'v3'", "tool_call_id": "tc-1" }),
            json!({
                "content": "result for 'v3'", "additional_kwargs": {}, "response_metadata": {},
                "type": "tool", "name": null, "id": "m", "tool_call_id": "tc-1", "artifact": null,
                "status": "success",
            }),
        ),
        (
            json!({ "id": "u", "role": "user", "content": "hi" }),
            json!({
                "content": "hi", "additional_kwargs": {}, "response_metadata": {}, "type": "human",
                "name": null, "id": "u",
            }),
        ),
        (json!("no message"), json!("no message")),
        (json!({ "a": 1 }), json!({ "a": 1 })),
    ] {
        let shown = to_wire(&ours);
        assert_eq!(shown.to_string(), theirs.to_string());
    }
}

#[test]
fn all_forms_of_a_client_message_are_converted() {
    let hi = json!({ "id": "new-1", "role": "user", "content": "hi" });
    for form in [
        json!("hi"),
        json!(["user", "hi"]),
        json!(["human", "hi"]),
        json!({ "role": "user", "content": "hi" }),
        json!({ "role": "human", "content": "hi", "id": null }),
        json!({ "type": "human", "content": "hi", "additional_kwargs": {}, "name": null }),
        json!({ "lc": 1, "type": "constructor",
            "id": ["langchain_core", "messages", "HumanMessage"], "kwargs": { "content": "hi" } }),
    ] {
        assert_eq!(read(form.clone()), Ok(hi.clone()), "{form}");
    }
    let call = json!({ "id": "new-1", "role": "assistant", "content": "", "tool_calls": [
        { "id": "c", "name": "add", "arguments": { "a": 1 } },
    ] });
    for calls in [
        json!([{ "name": "add", "args": { "a": 1 }, "id": "c", "type": "tool_call" }]),
        json!([{ "id": "c", "type": "function",
            "function": { "name": "add", "arguments": "{\"a\": 1}" } }]),
    ] {
        assert_eq!(read(json!({ "type": "ai", "tool_calls": calls })), Ok(call.clone()));
    }
    let further = json!([{ "function": {} }, { "id": "c", "type": "function",
        "function": { "name": "add", "arguments": "{\"a\": 1}" } }]);
    let older = json!({ "type": "ai", "content": "", "tool_calls": [],
        "additional_kwargs": { "tool_calls": further } });
    assert_eq!(read(older).unwrap()["tool_calls"], call["tool_calls"]);
    let remove = json!({ "type": "remove", "id": "m", "content": "" });
    assert_eq!(read(remove), Ok(json!({ "id": "m", "role": "remove" })));
}

#[test]
fn arguments_of_calls_are_read_in_every_form() {
    let one = json!({ "a": 1 });
    for (sent, expected) in [
        (json!({}), json!({})),
        (json!({ "args": null }), json!({})),
        (json!({ "args": null, "arguments": "{\"a\": 1}" }), one.clone()),
        (json!({ "args": [] }), json!({})),
        (json!({ "input": { "a": 1 } }), one.clone()),
        (json!({ "arguments": "" }), json!({})),
        (json!({ "arguments": " \n" }), json!({})),
        (json!({ "arguments": "null" }), json!({})),
        (json!({ "arguments": "[]" }), json!({})),
        (json!({ "arguments": "\"\"" }), json!({})),
        (json!({ "arguments": "\"{}\"" }), json!({})),
        (json!({ "arguments": "{} {\"a\": 1}" }), one.clone()),
        (json!({ "arguments": "\"{\\\"a\\\": 1}\"" }), one),
        (json!({ "arguments": r#"{"q": "caf\ud83d"}"# }), json!({ "q": "caf\u{fffd}" })),
        (json!({ "arguments": r#"{"q": "\ud83d\ude00"}"# }), json!({ "q": "\u{1f600}" })),
        (json!({ "arguments": "{\"a\": " }), json!("{\"a\": ")),
        (json!({ "arguments": "\"word\"" }), json!("\"word\"")),
        (json!({ "arguments": "{} or" }), json!("{} or")),
        (json!({ "args": [1] }), json!([1])),
    ] {
        let mut function = sent.clone();
        function["name"] = "add".into();
        for call in [function.clone(), json!({ "id": "c", "function": function })] {
            let message = read(json!({ "type": "ai", "tool_calls": [call] })).unwrap();
            assert_eq!(message["tool_calls"][0]["arguments"], expected, "{sent}");
        }
    }
}

#[test]
fn arguments_above_a_limit_stay_texts() {
    let text = r#"{"a": 1}"#;
    let call = json!({ "name": "add", "arguments": text });
    let twice = json!({ "name": "add", "arguments": json!(text).to_string() });
    let message = json!({ "type": "ai", "content": "", "tool_calls": [call, twice],
        "additional_kwargs": {} });
    let older =
        json!({ "type": "ai", "content": "", "additional_kwargs": { "tool_calls": [call] } });
    let arguments = |message: &Value, call: usize, most: usize| {
        read_within(message, most).unwrap()["tool_calls"][call]["arguments"].clone()
    };
    for (message, call, sent) in [(&message, 0, text), (&older, 0, text), (&message, 1, text)] {
        assert_eq!(arguments(message, call, 100), json!({ "a": 1 }), "{sent}");
        let kept = arguments(message, call, text.len() - 1);
        assert!(kept.as_str().is_some_and(|kept| kept.contains("1}")), "{kept}");
    }
}

#[test]
fn errors_name_the_position_of_the_invalid_message() {
    for (message, why) in [
        (json!(7), "must be a string, or an object"),
        (json!({ "content": "hi" }), "needs a `role`"),
        (json!({ "role": "nobody", "content": "hi" }), "`nobody` is not a role"),
        (json!({ "role": "user" }), "needs `content`"),
        (json!({ "role": "user", "content": 7 }), "must be a string or an array"),
        (json!({ "role": "user", "content": [{ "type": "text" }] }), "no `text`"),
        (json!({ "role": "user", "content": "hi", "id": 7 }), "`id` of a message"),
        (json!({ "role": "tool", "content": "3" }), "needs `tool_call_id`"),
        (json!({ "type": "remove" }), "must name its `id`"),
        (json!({ "type": "ai", "tool_calls": [{}] }), "needs a `name`"),
    ] {
        let error = read(message.clone()).unwrap_err();
        assert!(error.contains(why), "{message}: {error}");
    }
    let error = read_all(&json!(["hi", 7])).unwrap_err();
    assert!(error.starts_with("message at index 1: "), "{error}");
}

#[test]
fn one_message_or_an_array_becomes_an_array_of_messages() {
    for (sent, count) in [
        (json!("hi"), 1),
        (json!(["user", "hi"]), 1),
        (json!(["hello", "hi"]), 2),
        (json!([["user", "hi"], ["ai", "ho"]]), 2),
        (json!({ "role": "user", "content": "hi" }), 1),
        (json!([]), 0),
    ] {
        let read = read_all(&sent).unwrap();
        assert_eq!(read.as_array().map(Vec::len), Some(count), "{sent}");
    }
}

#[test]
fn messages_round_trip() {
    let blocks = json!([
        { "type": "text", "text": "look", "index": 0 },
        { "type": "image_url", "image_url": { "url": "data:image/png;base64,iVBORw==" } },
        { "type": "audio", "data": "x" },
    ]);
    for theirs in [
        json!({ "content": blocks, "additional_kwargs": { "a": 1 }, "response_metadata": { "b": 2 },
            "type": "human", "name": "ann", "id": "m", "future": true }),
        json!({ "content": "hm", "additional_kwargs": { "reasoning_content": "so",
            "provider_state": { "type": "provider_state", "provider": "google" } },
            "response_metadata": {}, "type": "ai", "name": null, "id": "m",
            "tool_calls": [{ "name": "f", "args": {}, "id": "c", "type": "tool_call" }],
            "invalid_tool_calls": [], "usage_metadata": { "total_tokens": 3 } }),
        json!({ "content": "3", "additional_kwargs": {}, "response_metadata": {}, "type": "tool",
            "name": "add", "id": "m", "tool_call_id": "c", "artifact": [1], "status": "error" }),
        json!({ "content": [{ "type": "text", "text": "x" }], "additional_kwargs": {},
            "response_metadata": {}, "type": "system", "name": null, "id": "m" }),
    ] {
        let ours = read(theirs.clone()).unwrap();
        assert_eq!(to_wire(&ours), theirs, "{ours}");
    }
    let ours = json!({ "id": "m", "role": "tool", "content": [{ "text": "3" }], "name": "add",
        "tool_call_id": "c", "status": "success", "arguments": { "a": 2 }, "structured": 3 });
    assert_eq!(read(to_wire(&ours)).unwrap(), ours);
}

#[test]
fn stored_blocks_are_dropped_when_the_content_changes() {
    let block = json!([{ "type": "text", "text": "look", "index": 0 }]);
    let mut ours = read(json!({ "type": "human", "content": block })).unwrap();
    assert_eq!(ours["content"], json!([{ "text": "look" }]));
    assert_eq!(to_wire(&ours)["content"], block);
    ours["content"] = json!("rewritten");
    assert_eq!(to_wire(&ours)["content"], "rewritten");
}

#[test]
fn messages_of_a_completion_request_have_the_form_of_the_api() {
    let convert = |message: Value| of_request(&serde_json::from_value(message).unwrap());
    let user = convert(json!({ "role": "user", "parts": [{ "text": "hi" }] }));
    assert_eq!(user, [to_wire(&json!({ "role": "user", "content": "hi" }))]);
    let picture =
        json!({ "image": { "source": { "url": "https://a/b" }, "media_type": "image/png" } });
    let parts = json!([{ "text": "look" }, picture]);
    let user = convert(json!({ "role": "user", "parts": parts }));
    let shown = json!({ "type": "image_url", "image_url": { "url": "https://a/b" } });
    assert_eq!(user[0]["content"], json!([{ "type": "text", "text": "look" }, shown]));
    let state = json!({ "type": "provider_state", "provider": "p" });
    let call = json!({ "id": "c", "name": "find", "arguments": { "q": 1 } });
    let said = convert(json!({ "role": "assistant", "parts": [
        { "other": state }, { "reasoning": "hm" }, { "text": "so" }, { "tool_call": call },
    ] }));
    let kept = json!({ "role": "assistant", "content": "so", "reasoning": "hm",
        "provider_state": state, "tool_calls": [call] });
    assert_eq!(said, [to_wire(&kept)]);
    let result = json!({ "call_id": "c", "content": "none", "is_error": true });
    let told = convert(json!({ "role": "tool", "parts": [{ "tool_result": result }] }));
    let kept = json!({ "role": "tool", "tool_call_id": "c", "content": "none", "status": "error" });
    assert_eq!(told, [to_wire(&kept)]);
}
