//! Streamed responses of the stand-ins over real sockets.

use std::collections::VecDeque;

use reqwest::Client;
use serde_json::{Value, json};
use wattle_kit::standin::{
    Config, Fault, FaultRule, Handle, Pattern, Server, StreamQuirks, StreamVariant,
};

const CHAT: &str = "/v1/chat/completions";

async fn start() -> Handle {
    Server::start(Config::default()).await.unwrap()
}

/// Returns a chat request for a stream.
fn chat(model: &str, text: &str) -> Value {
    json!({"model": model, "stream": true, "messages": [{"role": "user", "content": text}]})
}

async fn post(server: &Handle, path: &str, body: &Value) -> reqwest::Response {
    let request = Client::new().post(format!("{}{path}", server.base_url));
    let request = request.header("x-api-key", "k").header("x-goog-api-key", "k");
    request.bearer_auth("k").json(body).send().await.unwrap()
}

/// Returns the JSON data of all events in a stream.
async fn data(response: reqwest::Response) -> Vec<Value> {
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let text = response.text().await.unwrap();
    let lines = text.lines().filter_map(|line| line.strip_prefix("data: "));
    lines.filter(|line| *line != "[DONE]").map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Joins the strings at a JSON pointer of all events.
fn joined(documents: &[Value], place: &str) -> String {
    documents.iter().filter_map(|document| document.pointer(place)?.as_str()).collect()
}

#[tokio::test]
async fn every_format_streams_the_same_text() {
    let server = start().await;
    let words = "Thank you, I have read your message: 你好";
    let openai = data(post(&server, CHAT, &chat("m", "你好")).await).await;
    assert_eq!(joined(&openai, "/choices/0/delta/content"), words);

    let path = "/v1beta/models/m:streamGenerateContent?alt=sse";
    let asked = json!({"contents": [{"role": "user", "parts": [{"text": "你好"}]}]});
    let gemini = data(post(&server, path, &asked).await).await;
    assert_eq!(joined(&gemini, "/candidates/0/content/parts/0/text"), words);
    assert_eq!(joined(&gemini, "/candidates/0/finishReason"), "STOP");

    let mut asked = chat("m", "你好");
    asked["max_tokens"] = json!(10);
    let anthropic = data(post(&server, "/v1/messages", &asked).await).await;
    assert_eq!(joined(&anthropic, "/delta/text"), words);
    assert_eq!(anthropic.last().unwrap()["type"], "message_stop");
}

#[tokio::test]
async fn scripts_are_followed_line_by_line() {
    let server = start().await;
    let calls = json!({"tool_calls": [{"name": "add", "arguments": {"a": 1}}]});
    let contents = VecDeque::from([json!("first"), calls]);
    server.fault(FaultRule::new(Pattern::path(CHAT), Fault::Script { contents }));
    let first = data(post(&server, CHAT, &chat("m", "Hi")).await).await;
    assert_eq!(joined(&first, "/choices/0/delta/content"), "first");
    let second = data(post(&server, CHAT, &chat("m", "Hi")).await).await;
    let place = "/choices/0/delta/tool_calls/0/function";
    assert_eq!(joined(&second, &format!("{place}/name")), "add");
    assert_eq!(joined(&second, &format!("{place}/arguments")), "{\"a\":1}");
    assert_eq!(joined(&second, "/choices/0/finish_reason"), "tool_calls");
    let third = data(post(&server, CHAT, &chat("m", "Hi")).await).await;
    assert!(joined(&third, "/choices/0/delta/content").starts_with("Thank you"));
}

#[tokio::test]
async fn variants_are_selected_by_name() {
    let server = start().await;
    let order = |variant: &str| {
        let fault = json!({"kind": "stream", "variant": variant});
        json!({"path": CHAT, "times": 1, "fault": fault})
    };
    post(&server, "/__faults", &order("plain_json")).await;
    let plain = post(&server, CHAT, &chat("m", "Hi")).await;
    assert_eq!(plain.headers()["content-type"], "application/json");
    assert_eq!(plain.json::<Value>().await.unwrap()["object"], "chat.completion");
    post(&server, "/__faults", &order("reasoning")).await;
    let thought = data(post(&server, CHAT, &chat("m", "Hi")).await).await;
    assert!(joined(&thought, "/choices/0/delta/reasoning_content").contains("\"Hi\""));
    post(&server, "/__faults", &order("cut")).await;
    post(&server, CHAT, &chat("m", "Hi")).await.text().await.unwrap_err();
    let refused = post(&server, "/__faults", &order("backwards")).await;
    assert_eq!(refused.status(), 400);
    assert!(server.requests().iter().all(|entry| !entry.aborted));
}

#[tokio::test]
async fn a_stream_gate_releases_events_one_by_one() {
    let server = start().await;
    let gate = server.stream_gate(Pattern::model("slow"));
    let mut response = post(&server, CHAT, &chat("slow", "Hi")).await;
    gate.arrived(1).await.unwrap();
    gate.release(1);
    let first = response.chunk().await.unwrap().unwrap();
    assert!(String::from_utf8_lossy(&first).contains("\"role\""));
    gate.arrived(2).await.unwrap();
    // Other streams are not held.
    data(post(&server, CHAT, &chat("other", "Hi")).await).await;
    drop(gate);
    let mut rest = Vec::new();
    while let Some(chunk) = response.chunk().await.unwrap() {
        rest.extend(chunk);
    }
    assert!(String::from_utf8_lossy(&rest).ends_with("data: [DONE]\n\n"));
}

#[tokio::test]
async fn a_client_that_disconnects_in_the_middle_is_recorded() {
    let server = start().await;
    let gate = server.stream_gate(Pattern::any());
    let response = post(&server, CHAT, &chat("m", "Hi")).await;
    gate.release(1);
    gate.arrived(2).await.unwrap();
    assert!(!server.requests()[0].aborted);
    drop(response);
    server.wait_for_request(|entry| entry.aborted).await.unwrap();
}

#[tokio::test]
async fn frames_can_split_characters() {
    let server = start().await;
    let quirks = StreamQuirks::of(StreamVariant::SplitUtf8);
    server.fault(FaultRule::new(Pattern::any(), Fault::Stream(quirks)));
    let mut response = post(&server, CHAT, &chat("m", "你好 你好 你好")).await;
    let mut cut = false;
    while let Some(chunk) = response.chunk().await.unwrap() {
        cut |= std::str::from_utf8(&chunk).is_err();
    }
    assert!(cut);
}
