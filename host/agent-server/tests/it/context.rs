//! The limit on the size of a run context, at every endpoint that accepts a run context.

use serde_json::{Value, json};
use wattle_api::ApiConfig;
use wattle_run::caps::Caps;

use crate::host::{Host, HostOptions, TestResponse};
use crate::protocol::command;

const CAP: u64 = 1_000;

fn host() -> Host {
    let caps = Caps { run_context_bytes: CAP, ..Caps::default() };
    Host::with_options(ApiConfig::default(), HostOptions { caps, ..HostOptions::default() })
}

/// Returns a run context whose JSON has `bytes` bytes.
fn context(bytes: u64) -> Value {
    let least = json!({ "user": "" }).to_string().len();
    json!({ "user": "x".repeat(usize::try_from(bytes).unwrap() - least) })
}

#[track_caller]
fn assert_context_too_large(response: &TestResponse) {
    assert_eq!(response.status, 422, "{}", response.text);
    assert!(response.text.contains("raise `limits.run_context`"), "{}", response.text);
}

#[tokio::test]
async fn context_of_the_maximum_size_is_passed_to_nodes() {
    let host = host();
    let run = json!({
        "graph": "context", "input": {}, "context": context(CAP), "thread_id": "t", "wait": true,
    });
    let ended = host.post("/api/v1/apps/test/runs", run).await.ok();
    assert_eq!(ended["state"]["value"], context(CAP), "{ended}");
    let run = json!({ "assistant_id": "context", "input": {}, "context": context(CAP) });
    assert_eq!(host.post("/runs/wait", run).await.ok()["value"], context(CAP));
}

#[tokio::test]
async fn run_with_a_larger_context_is_rejected_by_both_apis() {
    let host = host();
    let native = "/api/v1/apps/test/runs";
    let run = json!({
        "graph": "context", "input": {}, "context": context(CAP + 1), "thread_id": "new",
    });
    let response = host.post(native, run.clone()).await;
    assert_context_too_large(&response);
    let details = json!({ "limit": "run_context_bytes", "field": "context", "allowed": CAP });
    assert_eq!(
        (&response.json()["code"], &response.json()["details"]),
        (&json!("limit"), &details)
    );
    let mut later = run;
    later["after_seconds"] = json!(60);
    assert_context_too_large(&host.post(native, later).await);
    assert_eq!(host.get("/api/v1/threads/new").await.status, 404, "no thread was created");

    let id = host.thread().await;
    let given = json!({ "context": context(CAP + 1) });
    let configured = json!({ "config": { "configurable": context(CAP + 1) } });
    for given in [given, configured] {
        let mut run = json!({ "assistant_id": "context", "input": {} });
        run.as_object_mut().unwrap().extend(given.as_object().unwrap().clone());
        for path in ["/runs", "/runs/wait", "/runs/stream"] {
            assert_context_too_large(&host.post(path, run.clone()).await);
            assert_context_too_large(
                &host.post(&format!("/threads/{id}{path}"), run.clone()).await,
            );
        }
        let response = command(&host, "run.start", run).await;
        assert_eq!(response["type"], "error", "{response}");
        assert!(response.to_string().contains("raise `limits.run_context`"), "{response}");
    }
    assert_eq!(host.get(&format!("/threads/{id}/runs")).await.ok(), json!([]));
}

#[tokio::test]
async fn too_large_context_of_a_cron_or_an_assistant_is_rejected() {
    let host = host();
    let cron = json!({
        "assistant_id": "context", "schedule": "0 0 * * *", "input": {},
        "context": context(CAP + 1),
    });
    assert_context_too_large(&host.post("/runs/crons", cron).await);
    let assistant = |bytes| json!({ "graph_id": "context", "context": context(bytes) });
    assert_context_too_large(&host.post("/assistants", assistant(CAP + 1)).await);
    let made = host.post("/assistants", assistant(CAP)).await.ok();
    let path = format!("/assistants/{}", made["assistant_id"].as_str().unwrap());
    assert_context_too_large(
        &host.call("PATCH", &path, Some(json!({ "context": context(CAP + 1) }))).await,
    );
    // Merged with the context of the assistant, the context of the run is too large.
    let run = json!({
        "assistant_id": made["assistant_id"], "input": {}, "context": { "more": 1 },
    });
    assert_context_too_large(&host.post("/runs/wait", run).await);
}
