//! Clients that leave while what they asked for is being done.

use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use futures::FutureExt as _;
use serde_json::{Value, json};

use crate::host::{Answer, Host, request};

/// Longest wait for something that is about to happen.
const SOON: Duration = Duration::from_secs(10);

/// Sends a request, and leaves as soon as there is anything to wait for.
#[track_caller]
fn leave(host: &Host, request: Request<Body>) {
    assert!(host.raw(request).now_or_never().is_none(), "it was answered at once");
}

/// Asks again and again until the answer is as wanted.
async fn until(ask: impl AsyncFn() -> Answer, is_it: impl Fn(&Answer) -> bool) {
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

fn is_first(answer: &Answer, status: &str) -> bool {
    answer.ok()[0]["status"] == status
}

#[tokio::test]
async fn a_run_whose_client_leaves_while_it_begins_is_cancelled() {
    for way in ["wait", "stream"] {
        let host = Host::new();
        host.hold();
        let runs = format!("/threads/{}/runs", host.thread().await);
        leave(&host, request("POST", &format!("{runs}/{way}"), Some(slow("cancel"))));
        until(async || host.get(&runs).await, |answer| is_first(answer, "interrupted")).await;
    }
}

#[tokio::test]
async fn one_without_a_thread_is_cancelled_too() {
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
async fn a_run_that_goes_on_without_its_client_ends_by_itself() {
    let host = Host::new();
    host.hold();
    let runs = format!("/threads/{}/runs", host.thread().await);
    leave(&host, request("POST", &format!("{runs}/wait"), Some(slow("continue"))));
    // A run in the background has no client that could leave it.
    leave(&host, request("POST", &runs, Some(slow("cancel"))));
    host.begun(1).await;
    host.let_go.send_replace(true);
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
async fn a_thread_is_deleted_as_a_whole() {
    let host = Host::new();
    host.hold();
    let thread = format!("/threads/{}", host.thread().await);
    host.post(&format!("{thread}/runs"), slow("continue")).await.ok();
    host.begun(1).await;
    leave(&host, request("DELETE", &thread, None));
    until(async || host.get(&thread).await, |answer| answer.status == 404).await;
}

#[tokio::test]
async fn several_runs_are_asked_for_and_cancelled_as_a_whole() {
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
    host.begun(3).await;
    leave(&host, request("POST", "/runs/cancel", Some(json!({ "status": "all" }))));
    until(async || count("busy").await, |answer| answer.ok() == 0).await;
}
