//! The shapes of responses and streams over real HTTP. The snapshots were compared with the
//! responses of a LangGraph server for the same graph. Ids and times are left out.

use std::fmt::Write as _;

use serde_json::{Value, json};
use wattle_suite::server::TestServer;

use super::{setup, thread};

/// Values that differ from run to run, and their placeholders.
const FILTERS: [(&str, &str); 5] = [
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<uuid>"),
    (r"\b[0-9a-f]{32}\b", "<hex>"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)", "<time>"),
    (r"\b\d{13}(-\d+(\.\d+)?)?\b", "<ms>"),
    (r#""seq":\d+"#, r#""seq":<n>"#),
];

/// The stream modes of the reference.
const MODES: [&str; 7] =
    ["values", "updates", "messages-tuple", "custom", "tasks", "checkpoints", "debug"];

fn check(name: &str, seen: &str) {
    insta::with_settings!({ filters => FILTERS.to_vec(), omit_expression => true }, {
        insta::assert_snapshot!(name, seen);
    });
}

fn check_json(name: &str, seen: &Value) {
    check(name, &format!("{seen:#}"));
}

/// Returns the server-sent events of a stream: type and data, each on a line.
fn frames(text: &str) -> String {
    let mut seen = String::new();
    for frame in text.split("\r\n\r\n") {
        let field = |name: &str| frame.lines().find_map(|line| line.strip_prefix(name));
        if let (Some(kind), Some(data)) = (field("event: "), field("data: ")) {
            writeln!(seen, "{kind}\n  {data}").unwrap();
        }
    }
    seen
}

async fn streamed(server: &TestServer, thread: &str, run: &Value) -> String {
    let answer = server.post(&format!("/threads/{thread}/runs/stream"), run).await;
    assert!(answer.header("content-type").starts_with("text/event-stream"));
    let place = answer.header("content-location").to_owned();
    assert_eq!(answer.header("location"), format!("{place}/stream"));
    let text = answer.expect(200);
    frames(text.as_str().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interrupt_and_its_answer_match_snapshots() {
    let server = setup().await.start().await;
    let id = thread(&server).await;
    let input = json!({ "messages": [], "value": "i", "items": [] });
    let run = json!({ "assistant_id": "agent", "input": input, "stream_mode": MODES });
    check("stream_interrupt", &streamed(&server, &id, &run).await);
    let found = server.get(&format!("/threads/{id}")).await.expect(200);
    check_json("thread_interrupted", &found);
    check_json("state_interrupted", &server.get(&format!("/threads/{id}/state")).await.expect(200));

    let resume = json!({
        "assistant_id": "agent",
        "command": { "resume": "yes" },
        "stream_mode": ["values", "updates", "messages", "tasks"],
        "stream_subgraphs": true,
        "stream_resumable": true,
    });
    check("stream_resume", &streamed(&server, &id, &resume).await);
    check_json("runs", &server.get(&format!("/threads/{id}/runs")).await.expect(200));
    check_json("state", &server.get(&format!("/threads/{id}/state")).await.expect(200));
    let three = json!({ "limit": 3 });
    let history = server.post(&format!("/threads/{id}/history"), &three).await.expect(200);
    check_json("history", &history);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn assistants_of_the_graphs_match_snapshots() {
    let server = setup().await.start().await;
    let wanted = json!({ "graph_id": "agent" });
    check_json("assistants", &server.post("/assistants/search", &wanted).await.expect(200));
}

/// Reads an endless stream until the root graph has the given lifecycle event.
async fn until(response: &mut reqwest::Response, text: &mut String, wanted: &str) {
    let is_there = |text: &str| {
        let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
        data.filter_map(|data| serde_json::from_str::<Value>(data).ok()).any(|event| {
            let params = &event["params"];
            params["namespace"] == json!([]) && params["data"]["event"] == wanted
        })
    };
    while !is_there(text) || !text.ends_with("\r\n\r\n") {
        let chunk = response.chunk().await.unwrap().expect("the stream continues");
        text.push_str(&String::from_utf8_lossy(&chunk));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn typed_events_match_snapshots() {
    let server = setup().await.start().await;
    let id = thread(&server).await;
    let command = async |id_of_command: u64, method: &str, params: Value| {
        let command = json!({ "id": id_of_command, "method": method, "params": params });
        server.post(&format!("/threads/{id}/commands"), &command).await.expect(200)
    };
    let input = json!({ "messages": [], "value": "i", "items": [] });
    let start = json!({ "assistant_id": "agent", "input": input });
    let mut started = command(1, "run.start", start).await;
    // The applied sequence number depends on timing.
    assert!(started["meta"]["applied_through_seq"].take().is_u64());
    check_json("command", &started);

    let channels = ["values", "updates", "messages", "tools", "lifecycle", "input", "custom"];
    let wanted = json!({ "channels": channels });
    let path = format!("/threads/{id}/stream/events");
    let mut response = server.request("POST", &path).json(&wanted).send().await.unwrap();
    let mut text = String::new();
    until(&mut response, &mut text, "interrupted").await;
    let state = server.get(&format!("/threads/{id}/state")).await.expect(200);
    let question = &state["interrupts"][0]["id"];
    command(2, "input.respond", json!({ "interrupt_id": question, "response": "yes" })).await;
    until(&mut response, &mut text, "completed").await;
    check("events", &frames(&text));
}
