//! Empty completions, and tool calls whose arguments are incomplete.

use serde_json::{Value, json};
use wattle_kit::standin::{Fault, FaultRule, Pattern};
use wattle_suite::desk::{Desk, MODEL_PATH, last_words, messages, tool_messages};
use wattle_suite::server::{Setup, TestServer};

/// Starts a server whose model returns these completions first.
async fn answering(answers: &[Value]) -> TestServer {
    let server = Setup::desk(&Desk::default()).await.start().await;
    let contents = answers.iter().cloned().collect();
    server.standin().fault(FaultRule::new(Pattern::path(MODEL_PATH), Fault::Script { contents }));
    server
}

/// Returns a call of a tool that accepts any arguments, with arguments that are not complete JSON.
fn half_written() -> Value {
    json!({ "tool_calls": [{ "name": "flagged", "arguments": "{\"number\": 1" }] })
}

/// Returns the tools that were called on a thread, from the event log.
async fn called(server: &TestServer, run: &Value) -> Vec<String> {
    let events = server.events(run["thread"].as_str().unwrap()).await;
    let calls = events.iter().filter(|event| event.data["function"] == "tools.call");
    calls
        .filter(|event| event.event == "called")
        .map(|event| event.data["request"]["tool"].to_string())
        .collect()
}

#[tokio::test]
async fn an_empty_completion_is_requested_again_once() {
    let server = answering(&[json!(""), json!("here I am")]).await;
    let run = server.chat("hello").await;
    assert_eq!(last_words(&run), "here I am");
    assert_eq!(messages(&run).len(), 2, "the empty completion is discarded: {run}");
    assert_eq!(server.model_requests("chat").len(), 2);
}

#[tokio::test]
async fn two_empty_completions_fail_the_run_and_the_thread_continues() {
    let server = answering(&[json!(""), json!(" ")]).await;
    let run = server.say(None, "hello").await;
    assert_eq!((&run["status"], &run["failure"]["code"]), (&json!("failed"), &json!("no-answer")));
    let words = run["failure"]["message"].as_str().unwrap();
    assert!(words.contains("`chat`") && words.contains("neither text nor tool calls"), "{words}");
    let run = server.say(run["thread"].as_str(), "are you there?").await;
    assert_eq!(run["status"], "completed", "{run}");
}

#[tokio::test]
async fn empty_completions_after_a_tool_call_fail_the_run() {
    let call = json!({ "tool_calls": [{ "name": "echo", "arguments": { "text": "a" } }] });
    let server = answering(&[call, json!(""), json!("")]).await;
    let run = server.say(None, "hello").await;
    assert_eq!(run["failure"]["code"], "no-answer", "{run}");
    assert_eq!(called(&server, &run).await.len(), 1, "the tool is not called again");
}

#[tokio::test]
async fn incomplete_arguments_are_requested_again_once() {
    let whole = json!({ "tool_calls": [{ "name": "flagged", "arguments": { "number": 1 } }] });
    let server = answering(&[half_written(), whole, json!("done")]).await;
    let run = server.chat("hello").await;
    let answers = tool_messages(&run);
    assert_eq!(answers.len(), 1, "{run}");
    assert_eq!(answers[0]["structured"]["raw"], json!({ "number": 1 }));
}

#[tokio::test]
async fn incomplete_arguments_never_reach_a_tool() {
    let server = answering(&[half_written(), half_written(), json!("I give up")]).await;
    let run = server.chat("hello").await;
    let answers = tool_messages(&run);
    assert_eq!((answers.len(), &answers[0]["status"]), (1, &json!("error")), "{run}");
    let told = answers[0]["content"].as_str().unwrap();
    assert!(told.contains("are incomplete") && told.contains("`flagged`"), "{told}");
    assert_eq!(called(&server, &run).await, [""; 0]);
    assert_eq!(last_words(&run), "I give up");
}
