//! Stateless runs.

use serde_json::{Value, json};
use wattle_api::ApiConfig;

use crate::gated_store::GatedStore;
use crate::host::{Host, HostOptions, request};
use crate::store::{two_tenants, with_key};

fn slow(word: &str) -> Value {
    json!({ "assistant_id": "slow", "input": { "word": word } })
}

#[tokio::test]
async fn thread_of_a_stateless_run_is_hidden() {
    let host = Host::new();
    let ended = host.post("/runs/wait", slow("a")).await;
    assert_eq!(ended.ok()["items"], json!(["a"]));
    let place = ended.header("content-location").to_owned();
    assert!(place.starts_with("/runs/"), "{place}");
    assert_eq!(host.get(&place).await.ok()["status"], "success");
    assert_eq!(host.post("/threads/search", json!({})).await.ok(), json!([]));
    let mut kept = slow("b");
    kept["on_completion"] = json!("keep");
    host.post("/runs/wait", kept).await.ok();
    let found = host.post("/threads/search", json!({})).await.ok();
    assert_eq!(found.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn stateless_run_is_stored_together_with_its_thread() {
    let store = GatedStore::new();
    let options = HostOptions { store: store.clone(), ..HostOptions::default() };
    let host = Host::with_options(ApiConfig::default(), options);
    host.post("/runs/wait", slow("a")).await.ok();
    assert_eq!(store.first_batch.get(), Some(&(true, true)));
}

#[tokio::test]
async fn location_resumes_a_stateless_stream() {
    let host = Host::new();
    let streamed = host.post("/runs/stream", slow("a")).await;
    let location = streamed.header("location").to_owned();
    assert!(location.starts_with("/runs/") && location.ends_with("/stream"), "{location}");
    let mut again = request("GET", &location, None);
    again.headers_mut().insert("last-event-id", "-1".parse().unwrap());
    assert_eq!(host.send(again).await.frames(), streamed.frames());
}

#[tokio::test]
async fn stateless_run_can_be_joined_and_cancelled() {
    let host = Host::new();
    let made = host.post("/runs", slow("a")).await;
    made.ok();
    let place = made.header("content-location").to_owned();
    assert_eq!(host.get(&format!("{place}/join")).await.ok()["items"], json!(["a"]));
    host.hold();
    let made = host.post("/runs", slow("b")).await;
    let place = made.header("content-location").to_owned();
    host.wait_for_started(2).await;
    assert_eq!(host.post(&format!("{place}/cancel"), Value::Null).await.status, 202);
    assert_eq!(host.get(&place).await.ok()["status"], "interrupted");
}

#[tokio::test]
async fn batch_creates_runs() {
    let host = Host::new();
    let made = host.post("/runs/batch", json!([slow("a"), slow("b")])).await.ok();
    let ids: Vec<_> = made.as_array().unwrap().iter().map(|it| it["run_id"].clone()).collect();
    assert_eq!(ids.len(), 2);
    for id in ids {
        let place = format!("/runs/{}", id.as_str().unwrap());
        host.get(&format!("{place}/join")).await.ok();
    }
    let odd = json!([slow("a"), { "assistant_id": "nobody", "input": {} }]);
    assert_eq!(host.post("/runs/batch", odd).await.status, 422);
    let mut kept = slow("c");
    kept["on_completion"] = json!("keep");
    let odd = json!([kept, { "assistant_id": "slow", "input": null }]);
    assert_eq!(host.post("/runs/batch", odd).await.status, 400);
    assert_eq!(host.post("/threads/count", json!({})).await.ok(), 0, "no run was created");
    let many = vec![slow("a"); 101];
    let refused = host.post("/runs/batch", json!(many)).await;
    assert_eq!(refused.status, 422);
    assert!(refused.text.contains("at most 100"), "{}", refused.text);
}

#[tokio::test]
async fn run_of_another_tenant_does_not_reveal_its_thread() {
    let host = two_tenants(HostOptions::default());
    let run = json!({
        "graph": "slow", "input": { "word": "a" }, "thread_id": "case-of-somebody", "wait": true,
    });
    let ran = with_key(&host, "k-b", "POST", "/api/v1/apps/test/runs", Some(run)).await.ok();
    let path = format!("/runs/{}", ran["run"].as_str().unwrap());
    let missing = with_key(&host, "k-a", "GET", &path, None).await;
    assert_eq!(missing.status, 404, "{}", missing.text);
    assert!(!missing.text.contains("case-of-somebody"), "{}", missing.text);
    assert_eq!(with_key(&host, "k-b", "GET", &path, None).await.ok()["status"], "success");
}

#[tokio::test]
async fn stateless_run_needs_an_input() {
    let host = Host::new();
    let resume = json!({ "assistant_id": "agent", "command": { "resume": 1 } });
    assert_eq!(host.post("/runs/wait", resume).await.status, 400);
    let nothing = json!({ "assistant_id": "agent", "input": null });
    assert_eq!(host.post("/runs/wait", nothing).await.status, 400);
    let malformed = json!({ "assistant_id": "agent", "input": { "messages": [1] } });
    assert_eq!(host.post("/runs/wait", malformed).await.status, 422);
    let missing = "/runs/01a1ffdc-22ab-744e-a2fc-8bb051a654f8";
    assert_eq!(host.get(missing).await.status, 404);
    assert_eq!(host.get("/runs/mine").await.status, 422);
}
