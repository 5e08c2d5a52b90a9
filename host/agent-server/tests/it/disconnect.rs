//! Clients that disconnect while their requests are being executed.

use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use futures::FutureExt as _;
use serde_json::{Value, json};

use crate::host::{Host, TestResponse, request};

/// Timeout of the wait for an expected effect.
const SOON: Duration = Duration::from_secs(10);

/// Sends a request, and drops the response future after one poll, as if the client had
/// disconnected.
#[track_caller]
fn leave(host: &Host, request: Request<Body>) {
    assert!(host.raw(request).now_or_never().is_none(), "the response was immediate");
}

/// Repeats a request until the response meets a condition.
async fn until(ask: impl AsyncFn() -> TestResponse, is_it: impl Fn(&TestResponse) -> bool) {
    let looking = async {
        while !is_it(&ask().await) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(SOON, looking).await.unwrap();
}

fn slow(on_disconnect: &str) -> Value {
    json!({
        "assistant_id": "slow", "input": { "word": "a" }, "on_disconnect": on_disconnect,
    })
}

fn is_first(answer: &TestResponse, status: &str) -> bool {
    answer.ok()[0]["status"] == status
}

#[tokio::test]
async fn disconnect_during_the_start_cancels_the_run() {
    for way in ["wait", "stream"] {
        let host = Host::new();
        host.hold();
        let runs = format!("/threads/{}/runs", host.thread().await);
        leave(&host, request("POST", &format!("{runs}/{way}"), Some(slow("cancel"))));
        until(async || host.get(&runs).await, |answer| is_first(answer, "interrupted")).await;
    }
}

#[tokio::test]
async fn disconnect_cancels_a_stateless_run() {
    for way in ["wait", "stream"] {
        let host = Host::new();
        host.hold();
        let mut wanted = slow("cancel");
        wanted["on_completion"] = json!("keep");
        leave(&host, request("POST", &format!("/runs/{way}"), Some(wanted)));
        let search = async || host.post("/threads/search", json!({})).await;
        until(search, |answer| answer.ok()[0].is_object()).await;
        let thread = search().await.ok()[0]["thread_id"].as_str().unwrap().to_owned();
        let runs = format!("/threads/{thread}/runs");
        until(async || host.get(&runs).await, |answer| is_first(answer, "interrupted")).await;
    }
}

#[tokio::test]
async fn run_continues_after_a_disconnect_by_default() {
    let host = Host::new();
    host.hold();
    let runs = format!("/threads/{}/runs", host.thread().await);
    leave(&host, request("POST", &format!("{runs}/wait"), Some(slow("continue"))));
    // A run in the background has no client that could disconnect.
    leave(&host, request("POST", &runs, Some(slow("cancel"))));
    host.wait_for_started(1).await;
    host.release.send_replace(true);
    until(
        async || host.get(&runs).await,
        |answer| {
            let runs = answer.ok();
            let runs = runs.as_array().unwrap();
            runs.len() == 2 && runs.iter().all(|run| run["status"] == "success")
        },
    )
    .await;
}

#[tokio::test]
async fn delete_of_a_thread_completes_after_a_disconnect() {
    let host = Host::new();
    host.hold();
    let thread = format!("/threads/{}", host.thread().await);
    host.post(&format!("{thread}/runs"), slow("continue")).await.ok();
    host.wait_for_started(1).await;
    leave(&host, request("DELETE", &thread, None));
    until(async || host.get(&thread).await, |answer| answer.status == 404).await;
}

#[tokio::test]
async fn batch_and_cancel_complete_after_a_disconnect() {
    let host = Host::new();
    host.hold();
    let kept = || {
        let mut run = slow("continue");
        run["on_completion"] = json!("keep");
        run
    };
    leave(&host, request("POST", "/runs/batch", Some(json!([kept(), kept(), kept()]))));
    let count = async |status: &str| host.post("/threads/count", json!({ "status": status })).await;
    until(async || count("busy").await, |answer| answer.ok() == 3).await;
    host.wait_for_started(3).await;
    leave(&host, request("POST", "/runs/cancel", Some(json!({ "status": "all" }))));
    until(async || count("busy").await, |answer| answer.ok() == 0).await;
}
