//! Tests of the conversion of requests.

use super::*;

fn new_messages(messages: &[Value], known: Option<&[Value]>) -> Result<Vec<Value>, InputError> {
    super::new_messages(messages, known, &|text| serde_json::from_str(text).ok())
}

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

/// Returns an assistant message of the channel that requests tool calls.
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
fn only_messages_after_the_last_known_message_are_new() {
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
fn parts_of_ag_ui_become_parts_of_the_state() {
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
fn errors_name_the_position_of_the_invalid_message() {
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
        (part(json!({ "type": "text" })), "the part has no `text`"),
        (part(json!({ "type": "image" })), "the part has no `source`"),
        (part(json!({ "type": "image", "source": {} })), "`source` has no `type`"),
        (part(json!({ "type": "image", "source": { "type": "url" } })), "has no `value`"),
        (
            part(json!({ "type": "image", "source": { "type": "data", "value": "?" } })),
            "the data is not base64",
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
fn tool_call_ids_of_all_client_messages_are_returned() {
    let messages = [user("1", "hi"), assistant("2", &["a", "b"]), json!({ "toolCalls": [7, {}] })];
    let ids = tool_call_ids(&messages);
    assert_eq!(ids.iter().map(String::as_str).collect::<Vec<_>>(), ["a", "b"]);
}

fn entry(id: &str, status: ResumeStatus, payload: Value) -> ResumeEntry {
    ResumeEntry { interrupt_id: id.to_owned(), status, payload }
}

fn resolved(id: &str, payload: Value) -> ResumeEntry {
    entry(id, ResumeStatus::Resolved, payload)
}

fn cancelled(id: &str) -> ResumeEntry {
    entry(id, ResumeStatus::Cancelled, Value::Null)
}

fn pending<'i>(id: &'i str, schema: Option<&'i Value>) -> Pending<'i> {
    Pending { id, response_schema: schema }
}

#[test]
fn every_pending_interrupt_needs_exactly_one_resume_entry() {
    let open = [pending("a", None), pending("b", None)];
    let both = [resolved("a", json!(1)), resolved("b", Value::Null)];
    let given = answers(&both, &open, false).unwrap().unwrap();
    assert_eq!(json!(given), json!({ "a": 1, "b": null }));
    let refused = |entries: &[ResumeEntry], open: &[Pending<'_>], has_messages| {
        answers(entries, open, has_messages).unwrap_err()
    };
    let id = || "a".to_owned();
    let twice = [both[0].clone(), both[0].clone()];
    assert_eq!(refused(&twice, &open, false), InputError::Duplicate { id: id() });
    let stale = refused(&both, &open[1..], false);
    assert_eq!(stale, InputError::NotPending { id: id() });
    let missing = refused(&both[1..], &open, false);
    assert_eq!(missing, InputError::Unanswered { ids: vec![id()] });
    assert!(stale.is_conflict() && missing.is_conflict());
    assert_eq!(refused(&[], &open[..1], true), missing, "a message is no answer");
}

#[test]
fn cancelled_entry_for_an_answered_interrupt_is_ignored() {
    assert_eq!(answers(&[cancelled("a")], &[], false), Ok(None));
    let given = answers(&[cancelled("a"), resolved("b", json!(1))], &[pending("b", None)], false);
    assert_eq!(json!(given.unwrap()), json!({ "b": 1 }));
}

#[test]
fn elicitations_and_approvals_can_be_cancelled() {
    let action = json!({ "properties": { "action": { "enum": ["accept", "decline", "cancel"] } } });
    let several = json!({ "type": "object", "properties": { "one": action, "two": action } });
    let decision = |name: &str| json!({ "properties": { "decision": { "const": name } } });
    let approval = json!({ "oneOf": [decision("approve"), decision("reject")] });
    for (schema, answer) in [
        (&action, json!({ "action": "cancel" })),
        (&several, json!({ "one": { "action": "cancel" }, "two": { "action": "cancel" } })),
        (&approval, json!({ "decision": "reject" })),
    ] {
        let given = answers(&[cancelled("a")], &[pending("a", Some(schema))], false);
        assert_eq!(json!(given.unwrap()), json!({ "a": answer }));
    }
    let lenient = json!({ "oneOf": [decision("approve")] });
    for schema in [None, Some(&json!({ "type": "boolean" })), Some(&json!({})), Some(&lenient)] {
        let refused = answers(&[cancelled("a")], &[pending("a", schema)], false).unwrap_err();
        assert_eq!(refused, InputError::NotCancellable { ids: vec!["a".to_owned()] });
        assert!(!refused.is_conflict());
    }
}

#[test]
fn new_message_replaces_cancelled_interrupts() {
    let approval = json!({ "oneOf": [{ "properties": { "decision": { "const": "reject" } } }] });
    let open = [pending("a", None), pending("b", Some(&approval))];
    assert_eq!(answers(&[cancelled("a"), cancelled("b")], &open, true), Ok(None));
    let one = [resolved("a", json!(1)), cancelled("b")];
    let given = answers(&one, &open, true).unwrap().unwrap();
    assert_eq!(json!(given), json!({ "a": 1, "b": { "decision": "reject" } }));
    let other = [cancelled("a"), resolved("b", json!(1))];
    let refused = answers(&other, &open, true).unwrap_err();
    assert_eq!(refused, InputError::NotCancellable { ids: vec!["a".to_owned()] });
}

#[test]
fn unknown_members_and_null_members_are_accepted() {
    let input: RunAgentInput = serde_json::from_value(json!({
        "threadId": "t", "runId": "r", "messages": [], "tools": [{}], "context": [],
        "protocolVersion": "1.1", "later": 1, "state": null, "resume": null,
    }))
    .unwrap();
    assert_eq!(
        (input.state, input.forwarded_props, input.resume),
        (Value::Null, Value::Null, None)
    );
    let resume: ResumeEntry = serde_json::from_value(json!({
        "interruptId": "i", "status": "cancelled", "metadata": {},
    }))
    .unwrap();
    assert_eq!(resume, cancelled("i"));
}
