//! A conversation for a page: its messages, and the stream of the current reply.

use serde_json::{Value, json};
use wattle_kit::standin::{Fault, FaultRule, Pattern};
use wattle_suite::answer::Answer;
use wattle_suite::event_stream::blocks;
use wattle_suite::expense::{CHAT, MODEL_PATH};
use wattle_suite::server::{Setup, TestServer};

/// The path of the stream in the format of `useChat`.
const STREAM: &str = "/api/chat/stream?format=ai-sdk";

async fn thread(server: &TestServer, id: &str) -> Value {
    server.get(&format!("/api/threads/{id}")).await.expect(200)
}

/// Parses the chunks of a stream.
fn chunks(answer: &Answer) -> Vec<Value> {
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(answer.header("x-vercel-ai-ui-message-stream"), "v1");
    let data = blocks(answer.body.as_str().unwrap()).filter_map(|block| block.data);
    data.filter(|it| it != "[DONE]").map(|it| serde_json::from_str(&it).unwrap()).collect()
}

#[tokio::test]
async fn s2_40_each_step_is_streamed_and_part_of_the_messages() {
    let server = Setup::expense().await.start().await;
    let answer = server.post(STREAM, &json!({ "message": "昨天打车20元" })).await;
    let id = answer.header("x-thread-id").to_owned();
    let chunks = chunks(&answer);
    let of = |kind: &str| chunks.iter().filter(|it| it["type"] == kind).collect::<Vec<_>>();
    let tools: Vec<&Value> = of("tool-input-available").iter().map(|it| &it["toolName"]).collect();
    assert_eq!(tools, ["parseDateExpression", "saveExpenseToLark"]);
    let outputs = of("tool-output-available");
    assert_eq!(outputs[1]["output"]["status"], "success");
    let words: String =
        of("text-delta").iter().filter_map(|it| it["delta"].as_str()).collect::<String>();
    assert!(words.starts_with("✅ 记账成功！"), "{words}");

    let body = thread(&server, &id).await;
    assert_eq!(body["status"], "idle");
    let messages = body["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 2);
    assert_eq!(messages[0]["parts"], json!([{ "type": "text", "text": "昨天打车20元" }]));
    let parts = messages[1]["parts"].as_array().unwrap();
    let kinds: Vec<&Value> = parts.iter().map(|part| &part["type"]).collect();
    assert_eq!(
        kinds,
        [
            "step-start",
            "tool-parseDateExpression",
            "step-start",
            "tool-saveExpenseToLark",
            "step-start",
            "text"
        ]
    );
    assert_eq!(parts[3]["state"], "output-available");
    assert_eq!(parts[3]["output"], outputs[1]["output"]);
    assert_eq!(parts[5]["text"], words);
}

#[tokio::test]
async fn a_page_that_is_loaded_during_a_run_streams_the_rest() {
    let server = Setup::expense().await.start().await;
    let first = server.tell("你好").await;
    let stream = format!("/api/threads/{}/stream", first.thread);
    assert_eq!(server.get(&stream).await.status, 204);
    let gate = server.standin().gate(Pattern::path(MODEL_PATH));
    let body = json!({ "threadId": first.thread, "message": "打车20元" });
    let slow = tokio::spawn(Answer::of(server.request("POST", CHAT).json(&body)));
    gate.arrived(1).await.unwrap();
    let shown = thread(&server, &first.thread).await;
    assert_eq!(shown["status"], "running");
    let said: Vec<&Value> =
        shown["messages"].as_array().unwrap().iter().map(|message| &message["role"]).collect();
    assert_eq!(said, ["user", "assistant", "user"]);
    let resumed = server.request("GET", &stream);
    let resumed = tokio::spawn(Answer::of(resumed));
    gate.open();
    let chunks = chunks(&resumed.await.unwrap());
    assert_eq!(chunks[0]["type"], "start");
    assert!(chunks.iter().any(|it| it["type"] == "tool-output-available"), "{chunks:?}");
    assert_eq!(slow.await.unwrap().status, 200);
    assert_eq!(thread(&server, &first.thread).await["messages"].as_array().unwrap().len(), 4);
}

#[tokio::test]
async fn a_failed_run_is_retried_without_repeating_the_message() {
    let server = Setup::expense().await.start().await;
    let down = Fault::Status { status: 401, retry_after: None, body: None };
    server.standin().fault(FaultRule::new(Pattern::path(MODEL_PATH), down));
    let answer = server.post(STREAM, &json!({ "message": "打车20元" })).await;
    let id = answer.header("x-thread-id").to_owned();
    assert!(chunks(&answer).iter().any(|it| it["type"] == "error"));
    server.standin().clear_faults();
    let retry = json!({ "threadId": id, "retry": true });
    let chunks = chunks(&server.post(STREAM, &retry).await);
    assert!(chunks.iter().any(|it| it["type"] == "tool-output-available"), "{chunks:?}");
    assert_eq!(server.booked().len(), 1);
    let shown = thread(&server, &id).await;
    let said: Vec<&Value> =
        shown["messages"].as_array().unwrap().iter().map(|message| &message["role"]).collect();
    assert_eq!(said, ["user", "assistant"]);
    let again = server.post(STREAM, &retry).await;
    assert_eq!(again.status, 409, "{}", again.body);
    assert_eq!(server.booked().len(), 1);
}

#[tokio::test]
async fn only_conversations_of_the_app_are_shown() {
    let server = Setup::expense().await.start().await;
    for path in ["/api/threads/nobody", "/api/threads/nobody/stream"] {
        let answer = server.get(path).await;
        assert_eq!(answer.status, 404, "{}", answer.body);
        assert!(answer.body["error"].as_str().unwrap().contains("对话不存在"), "{}", answer.body);
    }
    let odd = server.post("/api/chat/stream?format=morse", &json!({ "message": "早" })).await;
    assert_eq!(odd.status, 400);
}
