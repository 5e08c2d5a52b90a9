//! Several runs of one thread: the thread queue and multitask strategies.

use serde_json::{Value, json};

use crate::host::{Host, request};

fn slow(word: &str, strategy: &str) -> Value {
    json!({ "assistant_id": "slow", "input": { "word": word }, "multitask_strategy": strategy })
}

async fn create_run(host: &Host, id: &str, run: Value) -> String {
    let made = host.post(&format!("/threads/{id}/runs"), run).await;
    made.ok();
    made.header("content-location").to_owned()
}

async fn status(host: &Host, place: &str) -> Value {
    host.get(place).await.ok()["status"].clone()
}

#[tokio::test]
async fn enqueued_runs_start_in_order() {
    let host = Host::new();
    host.hold();
    let id = host.thread().await;
    let mut places = Vec::new();
    for word in ["a", "b", "c"] {
        places.push(create_run(&host, &id, slow(word, "enqueue")).await);
    }
    host.wait_for_started(1).await;
    assert_eq!(status(&host, &places[0]).await, "running");
    assert_eq!(status(&host, &places[1]).await, "pending");
    assert_eq!(host.get(&format!("/threads/{id}")).await.ok()["status"], "busy");
    let pending = host.get(&format!("/threads/{id}/runs?status=pending&limit=1000")).await.ok();
    assert_eq!(pending.as_array().unwrap().len(), 2);
    host.release.send_replace(true);
    let last = host.get(&format!("{}/join", places[2])).await.ok();
    assert_eq!(last["items"], json!(["a", "b", "c"]));
    for place in &places {
        assert_eq!(status(&host, place).await, "success");
    }
    assert_eq!(host.get(&format!("/threads/{id}")).await.ok()["status"], "idle");
}

#[tokio::test]
async fn reject_strategy_rejects_a_second_run() {
    let host = Host::new();
    host.hold();
    let id = host.thread().await;
    create_run(&host, &id, slow("a", "reject")).await;
    let second = host.post(&format!("/threads/{id}/runs"), slow("b", "reject")).await;
    assert_eq!(second.status, 409, "{}", second.text);
    assert_eq!(host.get(&format!("/threads/{id}/runs")).await.ok().as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn interrupt_cancels_earlier_runs_and_keeps_them() {
    let host = Host::new();
    host.hold();
    let id = host.thread().await;
    let first = create_run(&host, &id, slow("a", "enqueue")).await;
    let waiting = create_run(&host, &id, slow("b", "enqueue")).await;
    host.wait_for_started(1).await;
    let second = create_run(&host, &id, slow("c", "interrupt")).await;
    assert_eq!(status(&host, &first).await, "interrupted");
    assert_eq!(status(&host, &waiting).await, "interrupted");
    host.release.send_replace(true);
    let ended = host.get(&format!("{second}/join")).await.ok();
    assert_eq!(ended, json!({ "items": ["c"], "word": "c" }));
    let history = host.post(&format!("/threads/{id}/history"), json!({ "limit": 9 })).await.ok();
    assert!(history.as_array().unwrap().iter().any(|it| it["values"]["word"] == "a"));
}

#[tokio::test]
async fn rollback_deletes_the_running_run() {
    let host = Host::new();
    let id = host.thread().await;
    host.call("PATCH", &format!("/threads/{id}"), Some(json!({ "metadata": { "u": 1 } })))
        .await
        .ok();
    host.hold();
    let first = create_run(&host, &id, slow("a", "enqueue")).await;
    host.wait_for_started(1).await;
    let second = create_run(&host, &id, slow("b", "rollback")).await;
    assert_eq!(host.get(&first).await.status, 404);
    host.release.send_replace(true);
    assert_eq!(host.get(&format!("{second}/join")).await.ok()["items"], json!(["b"]));
    let history = host.post(&format!("/threads/{id}/history"), json!({ "limit": 9 })).await.ok();
    assert!(history.as_array().unwrap().iter().all(|it| it["values"]["word"] != "a"));
    let thread = host.get(&format!("/threads/{id}")).await.ok();
    assert_eq!(thread["metadata"]["u"], 1, "the metadata of the thread stays");
}

#[tokio::test]
async fn delete_of_the_only_started_run_keeps_runs_that_never_started() {
    let host = Host::new();
    let id = host.thread().await;
    let first = create_run(&host, &id, slow("a", "enqueue")).await;
    host.get(&format!("{first}/join")).await.ok();
    let mut run = slow("b", "enqueue");
    run["after_seconds"] = json!(3600);
    let later = create_run(&host, &id, run.clone()).await;
    let cancelled = create_run(&host, &id, run).await;
    assert_eq!(host.post(&format!("{cancelled}/cancel"), json!({})).await.status, 202);
    assert_eq!(host.call("DELETE", &first, None).await.status, 204);
    assert_eq!(host.get(&first).await.status, 404);
    assert_eq!(status(&host, &cancelled).await, "interrupted");
    assert_eq!(status(&host, &later).await, "pending");
    assert_eq!(host.post(&format!("{later}/cancel"), json!({})).await.status, 202);
}

#[tokio::test]
async fn delayed_run_makes_its_thread_busy() {
    let host = Host::new();
    let id = host.thread().await;
    let mut run = slow("a", "enqueue");
    run["after_seconds"] = json!(3600);
    let later = create_run(&host, &id, run).await;
    assert_eq!(status(&host, &later).await, "pending");
    assert_eq!(host.get(&format!("/threads/{id}")).await.ok()["status"], "busy");
    let cancelled = host.post(&format!("{later}/cancel"), json!({})).await;
    assert_eq!((cancelled.status, cancelled.text.as_str()), (202, ""));
    assert_eq!(status(&host, &later).await, "interrupted");
    assert_eq!(host.get(&format!("/threads/{id}")).await.ok()["status"], "idle");
    let mut soon = slow("b", "enqueue");
    soon["after_seconds"] = json!(0.2);
    let soon = create_run(&host, &id, soon).await;
    assert_eq!(host.get(&format!("{soon}/join")).await.ok()["items"], json!(["b"]));
}

#[tokio::test]
async fn pending_run_survives_a_restart_of_the_server() {
    let host = Host::new();
    host.hold();
    let id = host.thread().await;
    create_run(&host, &id, slow("a", "enqueue")).await;
    host.wait_for_started(1).await;
    let waiting = create_run(&host, &id, slow("b", "enqueue")).await;
    let (_server, router) = host.another_server();
    host.release.send_replace(true);
    let join = request("GET", &format!("{waiting}/join"), None);
    let response = tower::ServiceExt::oneshot(router, join).await.unwrap();
    let ended = crate::host::read(response).await.ok();
    assert_eq!(ended["items"], json!(["a", "b"]));
}

#[tokio::test]
async fn stream_of_a_pending_run_starts_with_the_run() {
    let host = Host::new();
    host.hold();
    let id = host.thread().await;
    create_run(&host, &id, slow("a", "enqueue")).await;
    host.wait_for_started(1).await;
    let path = format!("/threads/{id}/runs/stream");
    let response = host.raw(request("POST", &path, Some(slow("b", "enqueue")))).await;
    host.release.send_replace(true);
    let frames = crate::host::read(response).await.frames();
    assert_eq!(frames[0].0, "metadata");
    assert_eq!(frames.last().unwrap().1["items"], json!(["a", "b"]));
}

#[tokio::test]
async fn too_large_list_of_runs_is_rejected_and_not_truncated() {
    let host = Host::new();
    host.hold();
    let id = host.thread().await;
    create_run(&host, &id, slow("a", "enqueue")).await;
    let large = "x".repeat(8 << 20);
    for _ in 0..5 {
        create_run(&host, &id, slow(&large, "enqueue")).await;
    }
    let path = format!("/threads/{id}/runs");
    let refused = host.get(&path).await;
    assert_eq!(refused.status, 422, "{}", refused.text.len());
    assert!(refused.text.contains("set `limit` to 3 or less"), "{}", refused.text);
    let listed = host.get(&format!("{path}?limit=3")).await.ok();
    assert_eq!(listed.as_array().unwrap().len(), 3);
}
