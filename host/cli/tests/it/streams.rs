//! Streams of runs for chat clients, and disconnects of such clients.

use std::sync::Arc;

use serde_json::{Value, json};
use wattle_graph::event::RunStatus;
use wattle_graph::id::{RunId, ThreadId};
use wattle_kit::forgetful::ForgetfulStore;
use wattle_run::engine::Engine;
use wattle_run::hostcall::runs::{RunOutcome, RunRef, RunService as _};
use wattle_store::InMemoryStore;

use crate::fixture::{BRIEF_STOP, Fixture, write_app};
use crate::native_sandbox::{HELD, LOGGED, RELEASED, SLOW};

async fn text(fixture: &Fixture, path: &str) -> String {
    fixture.client.get(fixture.url(path)).send().await.unwrap().text().await.unwrap()
}

/// Returns the JSON messages of a stream, without heartbeat comments.
pub(crate) fn documents(text: &str) -> Vec<Value> {
    let data = text.split("\n\n").filter_map(|block| block.strip_prefix("data: "));
    data.filter_map(|data| serde_json::from_str(data).ok()).collect()
}

pub(crate) fn types(documents: &[Value]) -> Vec<&str> {
    documents.iter().map(|it| it["type"].as_str().unwrap()).collect()
}

/// Starts a run and waits until it is interrupted.
async fn ask(fixture: &Fixture, name: &str) -> RunRef {
    let start = json!({ "input": { "name": name }, "wait": true });
    let (_, run) = fixture.post("/api/v1/apps/greeter/runs", &start).await;
    reference(&run)
}

/// Starts a run that does not end by itself.
async fn begin_slow(fixture: &Fixture) -> RunRef {
    let start = json!({ "input": { "name": SLOW } });
    let (status, run) = fixture.post("/api/v1/apps/greeter/runs", &start).await;
    assert_eq!(status, 202, "{run}");
    reference(&run)
}

fn reference(run: &Value) -> RunRef {
    let text = |name: &str| run[name].as_str().unwrap();
    RunRef { thread: ThreadId::new(text("thread")).unwrap(), run: RunId::new(text("run")).unwrap() }
}

/// Connects a client, and waits until it has received the start of a run.
async fn follow(fixture: &Fixture, path: &str) -> reqwest::Response {
    let mut response = fixture.client.get(fixture.url(path)).send().await.unwrap();
    assert!(response.chunk().await.unwrap().is_some());
    response
}

#[tokio::test]
async fn a_run_is_streamed_as_a_message_of_the_ai_sdk() {
    let fixture = Fixture::start("").await;
    let run = ask(&fixture, LOGGED).await;
    let path = format!("/apps/greeter/talk/{}", run.thread);
    let response = fixture.client.get(fixture.url(&path)).send().await.unwrap();
    let headers = response.headers().clone();
    assert!(headers["content-type"].to_str().unwrap().starts_with("text/event-stream"));
    for (name, value) in [
        ("x-vercel-ai-ui-message-stream", "v1"),
        ("cache-control", "no-cache"),
        ("x-accel-buffering", "no"),
    ] {
        assert_eq!(headers[name], value);
    }
    let text = response.text().await.unwrap();
    assert!(text.ends_with("data: [DONE]\n\n"), "{text}");
    let chunks = documents(&text);
    assert_eq!(types(&chunks), ["start", "data-node_io", "data-interrupt", "finish"]);
    assert_eq!(chunks[0]["messageId"], format!("msg_{}", run.run));
    assert_eq!(chunks[1]["data"]["name"], LOGGED);
    let question = &chunks[2]["data"];
    assert_eq!(question["payload"], json!({ "about": "hello Logged" }));
    assert_eq!(question["responseSchema"], json!({ "type": "boolean" }));
    assert!(question["expiresAt"].as_str().unwrap().ends_with('Z'), "{question}");
    assert_eq!(chunks[3]["finishReason"], "other");
}

#[tokio::test]
async fn a_run_is_streamed_as_ag_ui_events() {
    let fixture = Fixture::start("").await;
    let run = ask(&fixture, "Ada").await;
    let events = documents(&text(&fixture, &format!("/apps/greeter/agent/{}", run.thread)).await);
    assert_eq!(
        types(&events),
        [
            "RUN_STARTED",
            "STEP_STARTED",
            "STEP_FINISHED",
            "STEP_STARTED",
            "STEP_FINISHED",
            "STATE_SNAPSHOT",
            "RUN_FINISHED"
        ]
    );
    assert_eq!(events[5]["snapshot"]["greeting"], "hello Ada");
    let outcome = &events[6]["outcome"];
    assert_eq!(outcome["type"], "interrupt");
    assert_eq!(outcome["interrupts"][0]["metadata"]["payload"]["about"], "hello Ada");
}

#[tokio::test]
async fn any_run_of_a_thread_can_be_read_by_the_native_endpoint() {
    let fixture = Fixture::start("").await;
    let first = ask(&fixture, "Ada").await;
    let answers = json!({ "answers": { "": true }, "wait": true });
    let resume = format!("/api/v1/threads/{}/resume", first.thread);
    let (_, second) = fixture.post(&resume, &answers).await;
    let events = format!("/api/v1/threads/{}/events?format=ai-sdk", first.thread);
    let newest = documents(&text(&fixture, &events).await);
    assert_eq!(newest[0]["messageId"], format!("msg_{}", reference(&second).run));
    assert_eq!(newest.last().unwrap()["finishReason"], "stop");
    let named = documents(&text(&fixture, &format!("{events}&run={}", first.run)).await);
    assert_eq!(named[0]["messageId"], format!("msg_{}", first.run));
    let ag_ui = format!("/api/v1/threads/{}/events?format=ag-ui", first.thread);
    let ag_ui = documents(&text(&fixture, &ag_ui).await);
    assert_eq!(ag_ui.last().unwrap()["outcome"]["type"], "success");
    let own = format!("/api/v1/threads/{}/events?until=idle&run={}", first.thread, first.run);
    let own = text(&fixture, &own).await;
    assert!(own.contains(first.run.as_str()) && !own.contains(reference(&second).run.as_str()));

    let (status, missing) = fixture.get(&format!("{events}&run=nobody")).await;
    assert_eq!((status, &missing["code"]), (404, &json!("not-found")), "{missing}");
    let other = ask(&fixture, "Bob").await;
    let foreign = fixture.get(&format!("{events}&run={}", other.run)).await;
    assert_eq!(foreign.0, 404, "a run of another thread");
    let wrong = fixture.get(&format!("{events}-2")).await;
    assert_eq!(wrong.0, 400, "{}", wrong.1);
}

#[tokio::test]
async fn a_failed_run_ends_with_its_message() {
    let fixture = Fixture::start("").await;
    let run = ask(&fixture, "nobody").await;
    let chunks = documents(&text(&fixture, &format!("/apps/greeter/talk/{}", run.thread)).await);
    let last = chunks.last().unwrap();
    assert_eq!(last["type"], "error");
    assert!(last["errorText"].as_str().unwrap().contains("nobody is no name"), "{last}");
    let events = documents(&text(&fixture, &format!("/apps/greeter/agent/{}", run.thread)).await);
    let last = events.last().unwrap();
    assert_eq!((&last["type"], &last["code"]), (&json!("RUN_ERROR"), &json!("rude")));
}

#[tokio::test]
async fn a_run_ends_when_its_last_client_disconnects() {
    let fixture = Fixture::start("").await;
    for route in ["talk", "agent", "stream"] {
        let run = begin_slow(&fixture).await;
        let path = format!("/apps/greeter/{route}/{}?grace_ms=0", run.thread);
        let (first, second) = (follow(&fixture, &path).await, follow(&fixture, &path).await);
        drop(first);
        drop(second);
        let ended = fixture.server.engine.wait(&run).await.unwrap();
        assert_eq!(ended.outcome, RunOutcome::Cancelled, "{route}");
        let talk = text(&fixture, &format!("/apps/greeter/talk/{}", run.thread)).await;
        assert_eq!(types(&documents(&talk)), ["start", "abort"]);
    }
}

#[tokio::test]
async fn a_client_that_reconnects_in_time_keeps_the_run() {
    let fixture = Fixture::start("").await;
    let run = begin_slow(&fixture).await;
    let path = format!("/apps/greeter/talk/{}", run.thread);
    drop(follow(&fixture, &format!("{path}?grace_ms=3600000")).await);
    // The second request has no grace period, so the grace period of the first request still
    // applies.
    let again = follow(&fixture, &path).await;
    assert!(fixture.server.engine.is_active(&run.thread));
    drop(again);
    assert!(fixture.server.engine.is_active(&run.thread));
    fixture.server.engine.cancel(&run).await.unwrap();
}

#[tokio::test]
async fn a_run_without_clients_is_cancelled_even_if_its_log_is_unreadable() {
    let store = Arc::new(ForgetfulStore::over(Arc::new(InMemoryStore::new())));
    let fixture = Fixture::start_on(store.clone()).await;
    let run = begin_slow(&fixture).await;
    store.forget(true);
    // The stream is aborted, and no client reconnects.
    text(&fixture, &format!("/apps/greeter/stream/{}?grace_ms=0", run.thread)).await;
    let ended = fixture.server.engine.wait(&run).await.unwrap();
    assert_eq!(ended.outcome, RunOutcome::Cancelled);
}

#[tokio::test]
async fn a_stop_of_the_host_cancels_no_runs() {
    let fixture = Fixture::start(BRIEF_STOP).await;
    let run = begin_slow(&fixture).await;
    let path = format!("/apps/greeter/talk/{}?grace_ms=0", run.thread);
    let mut response = follow(&fixture, &path).await;
    let engine: Engine = fixture.server.engine.clone();
    let store = Arc::clone(&engine.ports().store);
    fixture.server.shutdown().await;
    while let Some(chunk) = response.chunk().await.unwrap() {
        assert!(!chunk.starts_with(b"data: [DONE]"), "the run is not over");
    }
    let record = store.run(&run.run).await.unwrap().unwrap();
    assert_eq!(record.status, RunStatus::Running, "it is recovered after the next start");
}

#[tokio::test]
async fn an_app_cannot_hand_off_to_a_thread_of_another_app() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["greeter", "other"] {
        write_app(&folder.path().join("plugins"), name);
    }
    let fixture = Fixture::start_in(folder, "").await;
    let run = begin_slow(&fixture).await;
    for route in ["talk", "agent", "stream"] {
        let path = format!("/apps/other/{route}/{}?grace_ms=0", run.thread);
        let (status, problem) = fixture.get(&path).await;
        assert_eq!((status, &problem["code"]), (404, &json!("not-found")), "{route}: {problem}");
    }
    assert!(fixture.server.engine.is_active(&run.thread), "nobody followed it");
    fixture.server.engine.cancel(&run).await.unwrap();
}

#[tokio::test]
async fn a_run_ends_if_its_client_disconnects_before_the_hand_off() {
    let fixture = Fixture::start("").await;
    let request = fixture.client.post(fixture.url("/apps/greeter/late/t?grace_ms=0"));
    let client = tokio::spawn(request.send());
    HELD.notified().await;
    let thread = ThreadId::new("t").unwrap();
    let record = fixture.server.engine.ports().store.thread(&thread).await.unwrap().unwrap().record;
    let run = RunRef { thread, run: record.run.unwrap() };
    client.abort();
    assert!(client.await.unwrap_err().is_cancelled());
    // The server may notice the disconnect before or after the handler continues.
    fixture.get("/healthz").await;
    RELEASED.notify_one();
    let ended = fixture.server.engine.wait(&run).await.unwrap();
    assert_eq!(ended.outcome, RunOutcome::Cancelled);
}

#[tokio::test]
async fn a_handler_whose_client_has_disconnected_keeps_the_slot_of_its_request() {
    let fixture = Fixture::start(&format!("{BRIEF_STOP}[server.limits]\nopen = 1\n")).await;
    let request = fixture.client.post(fixture.url("/apps/greeter/late/t"));
    let client = tokio::spawn(request.send());
    HELD.notified().await;
    client.abort();
    assert!(client.await.unwrap_err().is_cancelled());
    // The server notices the disconnect within some of these requests.
    for _ in 0..100 {
        assert_eq!(fixture.get("/apps/greeter/echo/x").await.0, 429);
    }
    RELEASED.notify_one();
    while fixture.get("/apps/greeter/echo/x").await.0 != 200 {
        tokio::task::yield_now().await;
    }
    fixture.server.shutdown().await;
}

#[tokio::test]
async fn a_stop_ends_a_handler_whose_client_has_disconnected() {
    let fixture = Fixture::start(BRIEF_STOP).await;
    let request = fixture.client.post(fixture.url("/apps/greeter/late/t"));
    let client = tokio::spawn(request.send());
    HELD.notified().await;
    client.abort();
    assert!(client.await.unwrap_err().is_cancelled());
    let store = Arc::downgrade(&fixture.server.engine.ports().store);
    fixture.server.shutdown().await;
    assert!(store.upgrade().is_none(), "nothing holds the store any more");
}
