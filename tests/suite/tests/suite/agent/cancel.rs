//! A cancel of whatever a run is executing: with real components, real HTTP and a real database.
//!
//! Time limits are generous. The tests verify that a cancel waits for nothing, and do not measure
//! speed.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use wattle_graph::event::EventKind;
use wattle_graph::id::ThreadId;
use wattle_kit::standin::{Entry, Outcome, Pattern};
use wattle_run::hostcall::runs::RunService;
use wattle_suite::desk::{Desk, MODEL_PATH, message, tool_messages};
use wattle_suite::server::{Setup, TestServer};

/// Detects a hang. The cancelled work would take half a minute or more.
const SOON: Duration = Duration::from_secs(5);

/// The path whose requests the stand-in holds.
const HELD: &str = "/count/held";

/// Starts a desk whose tools can compute for long, call each other and read the ledger.
async fn server() -> TestServer {
    let limits = "cpu = \"60s\", memory = \"16MiB\", output = \"1MiB\"".to_owned();
    let desk = Desk { limits, nested: "[\"tools/*\"]".to_owned(), ..Desk::default() };
    let reads = "[grants.tools]\nsql = [{ database = \"ledger\", access = \"read-only\" }]\n";
    Setup::desk(&desk).await.replace("[grants.tools]\n", reads).start().await
}

fn held(server: &TestServer) -> String {
    format!("{}{HELD}", server.standin().base_url)
}

/// Starts a run that follows a script.
async fn start(server: &TestServer, script: &str) -> Value {
    server.post("/api/v1/apps/desk/runs", &message(None, script)).await.expect(202)
}

/// Waits until the log of the run's thread has an event.
async fn until(server: &TestServer, run: &Value, wanted: impl Fn(&EventKind) -> bool) {
    let thread = ThreadId::new(run["thread"].as_str().unwrap()).unwrap();
    let engine = &server.running.engine;
    let mut newest = engine.watch(&thread);
    loop {
        let events = engine.events(&thread, 0, usize::MAX).await.unwrap();
        if events.iter().any(|event| wanted(&event.kind)) {
            return;
        }
        let has_ended = events.iter().any(|event| matches!(event.kind, EventKind::RunEnded(_)));
        assert!(!has_ended, "the run has ended before: {events:?}");
        newest.changed().await.unwrap();
    }
}

/// Waits until a run has started a call.
async fn until_called(server: &TestServer, run: &Value, wanted: &str) {
    let is_wanted =
        |kind: &EventKind| matches!(kind, EventKind::CallStarted(it) if it.function == wanted);
    until(server, run, is_wanted).await;
}

/// Cancels a run, which must end soon. The thread must be usable afterwards, and no tool call may
/// stay without a result.
async fn cancel(server: &TestServer, run: &Value) {
    let path = format!("/api/v1/runs/{}/cancel", run["run"].as_str().unwrap());
    let asked = Instant::now();
    let ended = server.post(&path, &json!({})).await.expect(202);
    assert!(asked.elapsed() < SOON, "{:?}", asked.elapsed());
    assert_eq!(ended["status"], "cancelled", "{ended}");
    let next = server.say(run["thread"].as_str(), "are you still there?").await;
    assert_eq!(next["status"], "completed", "{next}");
    for answer in tool_messages(&next) {
        assert_eq!(answer["content"], "the call was cancelled before it returned a result");
    }
}

/// Cancels a run like [`cancel`]. The host must soon drop `requests` requests of the run to
/// services.
async fn cancel_and_drop(server: &TestServer, run: &Value, requests: usize) {
    let is_gone = |entry: &Entry| entry.outcome == Outcome::Abandoned || entry.aborted;
    assert!(server.standin().requests().iter().all(|entry| !is_gone(entry)));
    let all_gone = async {
        let asked = Instant::now();
        let mut seen = BTreeSet::new();
        while seen.len() < requests {
            let next = |entry: &Entry| is_gone(entry) && !seen.contains(&entry.id);
            let entry = server.standin().wait_for_request(next).await.unwrap();
            seen.insert(entry.id);
        }
        assert!(asked.elapsed() < SOON, "{:?}", asked.elapsed());
    };
    tokio::join!(cancel(server, run), all_gone);
}

#[tokio::test]
async fn cancel_ends_a_tool_that_computes() {
    let server = server().await;
    let run = start(&server, "call spin {}").await;
    until_called(&server, &run, "tools.call").await;
    cancel(&server, &run).await;
}

#[tokio::test]
async fn cancel_ends_a_tool_that_waits_for_a_service() {
    let server = server().await;
    let gate = server.standin().gate(Pattern::path(HELD));
    let run = start(&server, &format!("call net {{\"url\":\"{}\"}}", held(&server))).await;
    gate.arrived(1).await.unwrap();
    cancel_and_drop(&server, &run, 1).await;
}

#[tokio::test]
async fn cancel_ends_concurrent_tools_inside_of_a_tool() {
    let server = server().await;
    let gate = server.standin().gate(Pattern::path(HELD));
    let call = json!({ "tool": "net", "arguments": { "url": held(&server) } });
    let script = json!({ "calls": [call, call, call] });
    let run = start(&server, &format!("call nested {script}\ncall spin {{}}")).await;
    gate.arrived(3).await.unwrap();
    cancel_and_drop(&server, &run, 3).await;
}

#[tokio::test]
async fn cancel_ends_an_endless_query() {
    let server = server().await;
    let statement = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) \
                     SELECT count(*) FROM c";
    let script = json!({ "database": "ledger", "statement": statement });
    let run = start(&server, &format!("call other_db {script}")).await;
    until_called(&server, &run, "tools.call").await;
    cancel(&server, &run).await;
}

#[tokio::test]
async fn cancel_ends_a_streamed_completion_and_keeps_its_deltas() {
    let server = server().await;
    let gate = server.standin().stream_gate(Pattern::path(MODEL_PATH));
    let run = start(&server, "say something that takes several pieces, if you please").await;
    gate.release(3);
    until(&server, &run, |kind| matches!(kind, EventKind::Streamed(_))).await;
    gate.arrived(4).await.unwrap();
    let path = format!("/api/v1/runs/{}/cancel", run["run"].as_str().unwrap());
    let asked = Instant::now();
    server.post(&path, &json!({})).await.expect(202);
    let gone =
        server.standin().wait_for_request(|it| it.aborted || it.outcome == Outcome::Abandoned);
    gone.await.unwrap();
    assert!(asked.elapsed() < SOON, "{:?}", asked.elapsed());
    gate.open();
    let events = server.events(run["thread"].as_str().unwrap()).await;
    let kinds: Vec<&str> = events.iter().map(|event| event.event.as_str()).collect();
    assert!(kinds.contains(&"streamed"), "the deltas are kept: {kinds:?}");
    let next = server.say(run["thread"].as_str(), "are you still there?").await;
    assert_eq!(next["status"], "completed", "{next}");
}

#[tokio::test]
async fn cancel_ends_a_completion_without_stream() {
    let setup = Setup::desk(&Desk::default()).await;
    let whole = "[model.providers.standin]\nstream = false\n";
    let server = setup.replace("[model.providers.standin]\n", whole).start().await;
    let gate = server.standin().gate(Pattern::path(MODEL_PATH));
    let run = start(&server, "hello").await;
    gate.arrived(1).await.unwrap();
    let path = format!("/api/v1/runs/{}/cancel", run["run"].as_str().unwrap());
    let asked = Instant::now();
    let ended = server.post(&path, &json!({})).await.expect(202);
    assert_eq!(ended["status"], "cancelled", "{ended}");
    server.standin().wait_for_request(|it| it.outcome == Outcome::Abandoned).await.unwrap();
    assert!(asked.elapsed() < SOON, "{:?}", asked.elapsed());
    gate.open();
    let next = server.say(run["thread"].as_str(), "are you still there?").await;
    assert_eq!(next["status"], "completed", "{next}");
}

#[tokio::test]
async fn completion_of_a_cancelled_run_is_reused() {
    let graph = "[graphs.call_then_wait]\nentry = \"call_then_wait\"\n\
                 [graphs.call_then_wait.channels.route]\n[graphs.call_then_wait.channels.text]\n\
                 [graphs.call_then_wait.channels.url]\n[graphs.call_then_wait.channels.body]\n\
                 [graphs.call_then_wait.nodes.call_then_wait]\n";
    let server = Setup::misdeeds(graph).await.start().await;
    let gate = server.standin().gate(Pattern::path(HELD));
    let input = json!({ "route": "chat", "text": "go", "url": held(&server) });
    let begin = json!({ "graph": "call_then_wait", "input": input });
    let run = server.post("/api/v1/apps/misdeeds/runs", &begin).await.expect(202);
    gate.arrived(1).await.unwrap();
    let path = format!("/api/v1/runs/{}/cancel", run["run"].as_str().unwrap());
    server.post(&path, &json!({})).await.expect(202);
    gate.open();
    let again = json!({ "graph": "call_then_wait", "input": input, "thread_id": run["thread"],
        "wait": true });
    let ended = server.post("/api/v1/apps/misdeeds/runs", &again).await.expect(200);
    assert_eq!(ended["status"], "completed", "{ended}");
    assert_eq!(server.model_requests("chat").len(), 1);
    let thread = run["thread"].as_str().unwrap();
    let trace = server.get(&format!("/api/v1/threads/{thread}/trace")).await.expect(200);
    let call = &trace["runs"][1]["steps"][0]["tasks"][0]["attempts"][0]["calls"][0];
    assert!(call["reused"].is_u64() && call["input_tokens"].is_null(), "{trace}");
    assert_eq!(trace["totals"]["model_calls"], 1);
}
