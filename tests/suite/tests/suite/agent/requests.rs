//! What the model gets of a conversation. The expected messages are written out, so that no change
//! of their conversion goes unnoticed: it would change behavior and miss the caches of providers.

use serde_json::{Value, json};
use wattle_graph::event::EventKind;
use wattle_graph::id::ThreadId;
use wattle_kit::standin::{Fault, FaultRule, Pattern};
use wattle_run::hostcall::runs::RunService;
use wattle_run::limit::JOURNAL_REQUEST_BYTES;
use wattle_suite::desk::{Desk, MODEL_PATH, last_words, tool_messages};
use wattle_suite::server::{Setup, TestServer};

const SYSTEM: &str = "system = \"Be brief.\"";

/// Text of an image that providers accept.
const PICTURE: &str = "data:image/png;base64,iVBORw0KGgo=";

async fn server(agent: &str) -> TestServer {
    Setup::desk(&Desk::with(agent)).await.start().await
}

/// Makes the model return these completions first.
fn script(server: &TestServer, answers: &[Value]) {
    let contents = answers.iter().cloned().collect();
    server.standin().fault(FaultRule::new(Pattern::path(MODEL_PATH), Fault::Script { contents }));
}

/// Starts a run with these messages, and waits until it ends.
async fn run(server: &TestServer, messages: Value) -> Value {
    server.run("desk", "chat", json!({ "messages": messages })).await
}

/// Returns the messages of each model request on the thread of a run, from the event log. A request
/// with a short conversation is there as the model got it.
async fn requests(server: &TestServer, run: &Value) -> Vec<Value> {
    let thread = ThreadId::new(run["thread"].as_str().unwrap()).unwrap();
    let events = server.running.engine.events(&thread, 0, usize::MAX).await.unwrap();
    let asked = events.iter().filter_map(|event| match &event.kind {
        EventKind::Called(called) => called.completion_request(),
        _ => None,
    });
    asked.map(|request| json!(request.messages)).collect()
}

/// Asserts that the model gets a conversation in one form, after the system message.
async fn check(conversation: Value, mut expected: Value) {
    let server = server(SYSTEM).await;
    script(&server, &[json!("well")]);
    let run = run(&server, conversation.clone()).await;
    expected.as_array_mut().unwrap().insert(0, said("system", "Be brief."));
    assert_eq!(requests(&server, &run).await[0], expected, "{conversation}");
}

fn text(text: &str) -> Value {
    json!({ "text": text })
}

/// Returns a message for the model with one text.
fn said(role: &str, content: &str) -> Value {
    json!({ "role": role, "parts": [text(content)] })
}

/// Returns a message for the model with one tool call without arguments.
fn asked(id: &str, name: &str) -> Value {
    let call = json!({ "id": id, "name": name, "arguments": {} });
    json!({ "role": "assistant", "parts": [{ "tool_call": call }] })
}

/// Returns a message for the model with a tool result.
fn result(id: &str, content: &str, is_error: bool) -> Value {
    let result = json!({ "call_id": id, "content": content, "is_error": is_error });
    json!({ "role": "tool", "parts": [{ "tool_result": result }] })
}

/// Returns a stored user message.
fn user(content: &str) -> Value {
    json!({ "role": "user", "content": content })
}

/// Returns a stored message with one tool call without arguments.
fn call(id: &str, name: &str) -> Value {
    let call = json!({ "id": id, "name": name, "arguments": {} });
    json!({ "role": "assistant", "content": "", "tool_calls": [call] })
}

/// Returns a stored tool result.
fn answer(id: &str, content: Value) -> Value {
    json!({ "role": "tool", "tool_call_id": id, "name": "echo", "content": content,
        "status": "success" })
}

#[tokio::test]
async fn results_follow_the_calls_of_their_message_in_order() {
    let calls = json!([
        { "id": "a", "name": "tools/echo", "arguments": { "text": "x", "a": 1 } },
        { "id": "b", "name": "add", "arguments": { "a": 1 } },
    ]);
    let failed = json!({ "role": "tool", "tool_call_id": "a", "content": "no", "status": "error" });
    let edited = json!({ "role": "tool", "tool_call_id": "b", "content": "2",
        "status": "success", "arguments": { "a": 2 } });
    let conversation = json!([
        answer("nobody", json!("?")),
        user("hi"),
        { "role": "assistant", "content": "well", "reasoning": "hm", "tool_calls": calls },
        edited,
        failed,
        user("go on"),
    ]);
    let parts = json!([
        { "reasoning": "hm" },
        text("well"),
        { "tool_call": { "id": "a", "name": "tools_echo", "arguments": { "text": "x", "a": 1 } } },
        { "tool_call": { "id": "b", "name": "add", "arguments": { "a": 2 } } },
    ]);
    let expected = json!([
        said("user", "hi"),
        { "role": "assistant", "parts": parts },
        result("a", "no", true),
        result("b", "2", false),
        said("user", "go on"),
    ]);
    check(conversation, expected).await;
}

#[tokio::test]
async fn images_of_tools_are_a_message_after_the_results() {
    let image = json!({ "image": { "source": { "url": PICTURE }, "media_type": "image/png" } });
    let audio = json!({ "other": { "type": "audio", "mime_type": "audio/wav", "data": "aGk=" } });
    let conversation = json!([
        { "role": "user", "content": [text("look"), image, text(""), audio] },
        call("c", "echo"),
        answer("c", json!([text("here"), image])),
        user("and?"),
    ]);
    let told = text("[audio audio/wav, 2 bytes, not shown]");
    let pictures = json!([text("The images that the tools returned:"), image]);
    let expected = json!([
        { "role": "user", "parts": [text("look"), image, told] },
        asked("c", "echo"),
        result("c", "here", false),
        { "role": "user", "parts": pictures },
        said("user", "and?"),
    ]);
    check(conversation, expected).await;
}

#[tokio::test]
async fn calls_with_the_same_id_have_their_own_results() {
    let conversation = json!([
        user("hi"),
        call("a", "echo"),
        answer("a", json!("1")),
        call("a", "echo"),
        answer("a", json!("")),
        user("go on"),
    ]);
    let expected = json!([
        said("user", "hi"),
        asked("a", "echo"),
        result("a", "1", false),
        asked("a", "echo"),
        result("a", "done", false),
        said("user", "go on"),
    ]);
    check(conversation, expected).await;
}

#[tokio::test]
async fn provider_state_and_reasoning_come_before_the_text() {
    let state = json!({ "type": "provider_state", "provider": "elsewhere", "n": 1.5 });
    let conversation = json!([
        user("hi"),
        { "role": "assistant", "content": "so", "reasoning": "hm", "provider_state": state },
        user("go on"),
    ]);
    let parts = json!([{ "other": state }, { "reasoning": "hm" }, text("so")]);
    let expected = json!([
        said("user", "hi"),
        { "role": "assistant", "parts": parts },
        said("user", "go on"),
    ]);
    check(conversation, expected).await;
}

#[tokio::test]
async fn call_without_a_result_is_closed_directly_after_it() {
    let cancelled = "the call was cancelled before it returned a result";
    let conversation = json!([user("hi"), call("a", "echo"), user("one"), user("two")]);
    let expected = json!([
        said("user", "hi"),
        asked("a", "echo"),
        result("a", cancelled, true),
        said("user", "one"),
        said("user", "two"),
    ]);
    check(conversation, expected).await;
}

#[tokio::test]
async fn conversation_without_messages_has_the_system_message() {
    let server = server(SYSTEM).await;
    script(&server, &[json!("well")]);
    let run = server.run("desk", "chat", json!({})).await;
    assert_eq!(requests(&server, &run).await[0], json!([said("system", "Be brief.")]), "{run}");
}

#[tokio::test]
async fn changed_message_is_changed_for_the_model() {
    let server = server(SYSTEM).await;
    script(&server, &[json!("one"), json!("two")]);
    let message = |content: &str| json!({ "id": "m1", "role": "user", "content": content });
    let first = run(&server, json!([message("hi")])).await;
    let input = json!({ "messages": [message("hello"), user("and?")] });
    let again = json!({ "graph": "chat", "input": input, "thread_id": first["thread"],
        "wait": true });
    let second = server.post("/api/v1/apps/desk/runs", &again).await.expect(200);
    let expected = json!([
        said("system", "Be brief."),
        said("user", "hello"),
        said("assistant", "one"),
        said("user", "and?"),
    ]);
    assert_eq!(requests(&server, &second).await[1], expected, "{second}");
}

#[tokio::test]
async fn call_with_an_id_of_the_conversation_gets_another_one() {
    let server = server(SYSTEM).await;
    let echo = json!({ "id": "a", "name": "echo", "arguments": { "text": "x" } });
    script(&server, &[json!({ "tool_calls": [echo] }), json!("well")]);
    let conversation = json!([user("hi"), call("a", "echo"), answer("a", json!("1")), user("go")]);
    let run = run(&server, conversation).await;
    assert_eq!(tool_messages(&run)[1]["tool_call_id"], "a-2", "{run}");
    let again = json!({ "id": "a-2", "name": "echo", "arguments": { "text": "x" } });
    let expected = json!([
        said("system", "Be brief."),
        said("user", "hi"),
        asked("a", "echo"),
        result("a", "1", false),
        said("user", "go"),
        { "role": "assistant", "parts": [{ "tool_call": again }] },
        result("a-2", "x", false),
    ]);
    assert_eq!(requests(&server, &run).await[1], expected);
}

#[tokio::test]
async fn request_for_the_document_follows_the_answer() {
    let server = server(
        "answer = { name = \"verdict\", channel = \"result\", schema = { type = \"object\", \
         properties = { ok = { type = \"boolean\" } }, required = [\"ok\"], \
         additionalProperties = false } }",
    )
    .await;
    let run = server.chat("hello").await;
    let expected = json!([
        said("user", "hello"),
        said("assistant", &last_words(&run)),
        said("user", "Give your answer again, as the requested document."),
    ]);
    assert_eq!(requests(&server, &run).await[1], expected);
}

/// The log has the digest of the conversation. The model gets its text nevertheless.
#[tokio::test]
async fn long_conversation_reaches_the_model_and_not_the_log() {
    let server = server(SYSTEM).await;
    let long = "x".repeat(2 * JOURNAL_REQUEST_BYTES);
    script(&server, &[json!("one"), json!("two")]);
    let run = server.chat(&long).await;
    let run = server.say(run["thread"].as_str(), "go on").await;
    assert_eq!(last_words(&run), "two");
    for asked in requests(&server, &run).await {
        assert_eq!(asked, json!([said("system", "Be brief.")]));
    }
    let sent = server.model_requests("chat").pop().unwrap();
    assert!(sent.body_bytes > long.len(), "{}", sent.body_bytes);
    let sent = sent.body.unwrap()["messages"].as_array().cloned().unwrap();
    let roles: Vec<&Value> = sent.iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["system", "user", "assistant", "user"]);
    assert_eq!((&sent[2]["content"], &sent[3]["content"]), (&json!("one"), &json!("go on")));
}

/// The agent reads all messages, and not only those of the current turn.
#[tokio::test]
async fn tools_that_see_the_conversation_see_all_of_it() {
    let server = server("state = [\"messages\"]").await;
    let run = server.chat("hello").await;
    let run = server.say(run["thread"].as_str(), "call whoami {}").await;
    let seen = &tool_messages(&run)[0]["structured"]["state"]["messages"];
    let seen = seen.as_array().unwrap_or_else(|| panic!("{run}"));
    let contents: Vec<&Value> = seen.iter().map(|message| &message["content"]).collect();
    assert_eq!(
        (contents.len(), contents[0], contents[2]),
        (3, &json!("hello"), &json!("call whoami {}"))
    );
}

/// An item that cannot be read would otherwise fail all later turns of its thread.
#[tokio::test]
async fn invalid_message_is_described_once_a_user_has_written_after_it() {
    let server = server(SYSTEM).await;
    script(&server, &[json!("sure")]);
    let invalid = json!({ "role": 7, "content": "?" });
    let turn = run(&server, json!([user("hi"), user("go on"), invalid])).await;
    assert_eq!((&turn["status"], &turn["failure"]["code"]), (&json!("failed"), &json!("invalid")));
    let told = turn["failure"]["message"].as_str().unwrap();
    assert!(told.contains("message 2 of channel `messages` cannot be read"), "{told}");
    assert!(server.model_requests("chat").is_empty());
    let turn = run(&server, json!([user("hi"), invalid, user("go on")])).await;
    assert_eq!(last_words(&turn), "sure");
    let sent = server.model_requests("chat").pop().unwrap().body.unwrap();
    assert_eq!(sent["messages"][2]["content"], "[message, 24 bytes, not shown]");
}
