//! Cancels of runs.

use serde_json::{Value, json};

use crate::host::Host;

async fn start_slow_run(host: &Host) -> (String, String) {
    host.hold();
    let id = host.thread().await;
    let run = json!({ "assistant_id": "slow", "input": { "word": "a" } });
    let made = host.post(&format!("/threads/{id}/runs"), run).await;
    host.wait_for_started(1).await;
    (id, made.header("content-location").to_owned())
}

#[tokio::test]
async fn cancelled_run_has_status_interrupted() {
    let host = Host::new();
    let (_, run) = start_slow_run(&host).await;
    let cancelled = host.post(&format!("{run}/cancel?wait=0&action=interrupt"), Value::Null).await;
    assert_eq!((cancelled.status, cancelled.text.as_str()), (202, ""));
    assert_eq!(host.get(&run).await.ok()["status"], "interrupted");
    let again = host.post(&format!("{run}/cancel"), Value::Null).await;
    assert_eq!(again.status, 404, "the run has ended");
}

#[tokio::test]
async fn thread_of_a_cancelled_run_is_interrupted_until_the_next_run_completes() {
    let host = Host::new();
    let (id, run) = start_slow_run(&host).await;
    host.post(&format!("{run}/cancel?wait=true"), Value::Null).await.ok();
    let path = format!("/threads/{id}");
    let thread = host.get(&path).await.ok();
    let error = json!({ "error": "UserInterrupt", "message": "User interrupted the run" });
    assert_eq!((&thread["status"], &thread["error"]), (&json!("interrupted"), &error));
    let found = async |status: &str| {
        let wanted = json!({ "status": status });
        let count = host.post("/threads/count", wanted.clone()).await.ok();
        let threads = host.post("/threads/search", wanted).await.ok();
        assert_eq!(json!(threads.as_array().unwrap().len()), count, "{status}");
        let named = host.post("/threads/search", json!({ "status": status, "ids": [id] })).await;
        assert_eq!(named.ok(), threads, "{status}");
        threads.as_array().unwrap().len()
    };
    assert_eq!((found("interrupted").await, found("idle").await), (1, 0));
    let native = host.get(&format!("/api/v1{path}")).await.ok();
    assert_eq!(native["status"], "idle");
    host.release.send_replace(true);
    let go_on = json!({ "assistant_id": "slow", "input": null });
    let values = host.post(&format!("{path}/runs/wait"), go_on).await.ok();
    assert_eq!(values["items"], json!(["a"]));
    let thread = host.get(&path).await.ok();
    assert_eq!((&thread["status"], &thread["error"]), (&json!("idle"), &Value::Null));
    assert_eq!((found("interrupted").await, found("idle").await), (0, 1));
}

#[tokio::test]
async fn edit_or_rollback_after_a_cancel_changes_the_status_of_the_thread() {
    let host = Host::new();
    let (id, run) = start_slow_run(&host).await;
    let path = format!("/threads/{id}");
    let status = async || host.get(&path).await.ok()["status"].clone();
    host.post(&format!("{run}/cancel?wait=true"), Value::Null).await.ok();
    // The rollback of a second run restores the status that the thread had after the cancelled run.
    let next = json!({ "assistant_id": "slow", "input": { "word": "b" } });
    let next = host.post(&format!("{path}/runs"), next).await;
    let next = next.header("content-location").to_owned();
    host.wait_for_started(2).await;
    assert_eq!(status().await, "busy");
    let gone = host.post(&format!("{next}/cancel?action=rollback"), Value::Null).await;
    assert_eq!(gone.status, 202, "{}", gone.text);
    assert_eq!(status().await, "interrupted");
    let end = json!({ "values": null, "as_node": "__end__" });
    host.post(&format!("{path}/state"), end).await.ok();
    assert_eq!(status().await, "idle");
}

#[tokio::test]
async fn cancel_with_wait_returns_values() {
    let host = Host::new();
    let (_, run) = start_slow_run(&host).await;
    let cancelled = host.post(&format!("{run}/cancel?wait=true"), Value::Null).await;
    assert_eq!(cancelled.ok(), json!({ "word": "a" }));
    assert_eq!(host.post(&format!("{run}/cancel?action=odd"), Value::Null).await.status, 422);
}

#[tokio::test]
async fn cancel_with_rollback_deletes_the_run() {
    let host = Host::new();
    let (id, run) = start_slow_run(&host).await;
    let cancelled = host.post(&format!("{run}/cancel?action=rollback"), Value::Null).await;
    assert_eq!(cancelled.status, 202);
    assert_eq!(host.get(&run).await.status, 404);
    let state = host.get(&format!("/threads/{id}/state")).await.ok();
    assert_eq!(state["values"], json!({}), "its thread has the state from before the run");
}

#[tokio::test]
async fn cancel_by_status_cancels_several_runs() {
    let host = Host::new();
    let (id, run) = start_slow_run(&host).await;
    let waiting = json!({ "assistant_id": "slow", "input": { "word": "b" } });
    let waiting = host.post(&format!("/threads/{id}/runs"), waiting).await;
    let waiting = waiting.header("content-location").to_owned();
    let refused = host.post("/runs/cancel", json!({ "status": "odd" })).await;
    assert_eq!(refused.status, 422);
    let many = json!({ "thread_id": id, "run_ids": vec![&run; 1_001] });
    assert_eq!(host.post("/runs/cancel", many).await.status, 422);
    assert_eq!(host.post("/runs/cancel", json!({ "status": "all" })).await.status, 204);
    for run in [&run, &waiting] {
        assert_eq!(host.get(run).await.ok()["status"], "interrupted");
    }
}
