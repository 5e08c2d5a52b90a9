//! Cancels of runs.

use serde_json::{Value, json};

use crate::host::Host;

async fn begun(host: &Host) -> (String, String) {
    host.hold();
    let id = host.thread().await;
    let run = json!({ "assistant_id": "slow", "input": { "word": "a" } });
    let made = host.post(&format!("/threads/{id}/runs"), run).await;
    host.begun(1).await;
    (id, made.header("content-location").to_owned())
}

#[tokio::test]
async fn cancelled_run_has_status_interrupted() {
    let host = Host::new();
    let (_, run) = begun(&host).await;
    let cancelled = host.post(&format!("{run}/cancel?wait=0&action=interrupt"), Value::Null).await;
    assert_eq!((cancelled.status, cancelled.text.as_str()), (202, ""));
    assert_eq!(host.get(&run).await.ok()["status"], "interrupted");
    let again = host.post(&format!("{run}/cancel"), Value::Null).await;
    assert_eq!(again.status, 404, "nothing is left to cancel");
}

#[tokio::test]
async fn cancel_with_wait_returns_values() {
    let host = Host::new();
    let (_, run) = begun(&host).await;
    let cancelled = host.post(&format!("{run}/cancel?wait=true"), Value::Null).await;
    assert_eq!(cancelled.ok(), json!({ "word": "a" }));
    assert_eq!(host.post(&format!("{run}/cancel?action=odd"), Value::Null).await.status, 422);
}

#[tokio::test]
async fn cancel_with_rollback_deletes_the_run() {
    let host = Host::new();
    let (id, run) = begun(&host).await;
    let cancelled = host.post(&format!("{run}/cancel?action=rollback"), Value::Null).await;
    assert_eq!(cancelled.status, 202);
    assert_eq!(host.get(&run).await.status, 404);
    let state = host.get(&format!("/threads/{id}/state")).await.ok();
    assert_eq!(state["values"], json!({}), "its thread has the state from before the run");
}

#[tokio::test]
async fn cancel_by_status_cancels_several_runs() {
    let host = Host::new();
    let (id, run) = begun(&host).await;
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
