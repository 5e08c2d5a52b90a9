//! Tests of a host that receives SIGTERM while another host shares its store.

use serde_json::{Value, json};
use wattle_kit::need;
use wattle_kit::standin::Pattern;
use wattle_suite::answer::Answer;

use super::{CHAT, HELD, Pair, signal};

/// A lease that does not end during a test, so runs continue on the other host only if the first
/// hands them over.
const LONG: &str = "lease = \"1h\"";

/// Tells host A to stop, and waits until it starts no more supersteps: after that it removes the
/// file with its address.
async fn stopping(pair: &Pair) {
    let file = pair.scene.workspace.root().join("data/server.json");
    assert!(file.exists());
    signal(&pair.a, "-TERM").await;
    pair.scene.until_so("the stop", async || !file.exists()).await;
}

/// Returns the only thread as soon as it exists.
async fn thread(pair: &Pair) -> String {
    let Pair { b, scene, .. } = pair;
    let is_there = |page: &Value| page["items"].as_array().is_some_and(|them| !them.is_empty());
    let page = scene.until(b, "/api/v1/threads", is_there).await;
    page["items"][0]["thread"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_client_that_waits_at_a_stopping_host_is_told_to_retry_at_another() {
    let mut pair = need!(Pair::start_with(LONG).await);
    let start = json!({ "graph": "endless", "input": {}, "wait": true });
    let request = pair.scene.client.post(format!("{}/api/v1/apps/misdeeds/runs", pair.a.url));
    let waiting = tokio::spawn(Answer::of(request.json(&start)));
    let thread = thread(&pair).await;
    assert!(pair.a.program.terminate().await.unwrap().success());

    let answer = waiting.await.unwrap();
    assert_eq!((answer.status, answer.header("retry-after")), (503, "1"), "{}", answer.body);
    assert_eq!(answer.body["code"], "unavailable", "{}", answer.body);
    let run = answer.body["details"]["run_id"].as_str().unwrap();
    let Pair { b, scene, .. } = &pair;
    let trace = format!("/api/v1/threads/{thread}/trace");
    scene.until(b, &trace, |trace| trace["runs"][0]["recoveries"] == 1).await;
    scene.post(b, &format!("/api/v1/runs/{run}/cancel"), &json!({})).await.expect(202);
    assert_eq!(pair.ended(b, run).await["status"], "cancelled");
}

#[tokio::test]
async fn a_stopping_host_finishes_its_host_calls_and_none_is_repeated() {
    let mut pair = need!(Pair::start_with(LONG).await);
    let gate = pair.scene.standin.gate(Pattern::path(HELD));
    let (thread, run) = pair.begin("chain", &gate).await;
    stopping(&pair).await;
    gate.open();
    assert!(pair.a.program.ended().await.unwrap().success());

    let Pair { b, scene, .. } = &pair;
    assert_eq!(pair.ended(b, &run).await["status"], "completed");
    // Each of the two nodes has made one request.
    assert_eq!((scene.answered(HELD), scene.answered(CHAT)), (2, 1));
    let trace = scene.get(b, &format!("/api/v1/threads/{thread}/trace")).await;
    assert_eq!(trace["runs"][0]["recoveries"], 1, "{trace}");
}

#[tokio::test]
async fn a_client_is_answered_when_its_run_ends_while_the_host_stops() {
    let mut pair = need!(Pair::start_with(LONG).await);
    let gate = pair.scene.standin.gate(Pattern::path(HELD));
    let url = format!("{}{HELD}", pair.scene.standin.base_url);
    let input = json!({ "route": "chat", "text": "hello", "url": url });
    let start = json!({ "graph": "call_then_wait", "input": input, "wait": true });
    let request = pair.scene.client.post(format!("{}/api/v1/apps/misdeeds/runs", pair.a.url));
    let waiting = tokio::spawn(Answer::of(request.json(&start)));
    gate.arrived(1).await.unwrap();
    stopping(&pair).await;
    gate.open();
    assert_eq!(waiting.await.unwrap().expect(200)["status"], "completed");
    assert!(pair.a.program.ended().await.unwrap().success());
}

#[tokio::test]
async fn an_interrupted_agent_server_response_continues_at_its_location() {
    let mut pair = need!(Pair::start_with(LONG).await);
    let body = json!({ "assistant_id": "misdeeds/endless", "input": {} });
    let request = pair.scene.client.post(format!("{}/runs/wait", pair.a.url)).json(&body);
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 200);
    let location = response.headers()["location"].to_str().unwrap().to_owned();
    let thread = thread(&pair).await;
    let (stopped, broken) = tokio::join!(pair.a.program.terminate(), response.text());
    assert!(stopped.unwrap().success());
    assert!(broken.is_err(), "the client must not receive a complete document: {broken:?}");

    let Pair { b, scene, .. } = &pair;
    let trace = format!("/api/v1/threads/{thread}/trace");
    scene.until(b, &trace, |trace| trace["runs"][0]["recoveries"] == 1).await;
    let run = location.split('/').nth_back(1).unwrap();
    let (cancel, empty) = (format!("/api/v1/runs/{run}/cancel"), json!({}));
    let (values, cancelled) = tokio::join!(scene.get(b, &location), scene.post(b, &cancel, &empty));
    cancelled.expect(202);
    assert!(values["number"].as_u64().is_some(), "{values}");
}
