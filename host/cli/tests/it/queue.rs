//! Runs of the native API on a busy thread.

use serde_json::{Value, json};
use wattle_kit::clock::ManualClock;

use crate::crons::at;
use crate::fixture::{Fixture, write_app};
use crate::native_sandbox::SLOW;

const RUNS: &str = "/api/v1/apps/greeter/runs";

/// Requests a run on thread `t`, with additional fields of the request.
async fn ask(fixture: &Fixture, name: &str, more: Value) -> (u16, Value) {
    let mut body = json!({ "input": { "name": name }, "thread_id": "t" });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    fixture.post(RUNS, &body).await
}

fn id(run: &Value) -> String {
    run["run"].as_str().unwrap().to_owned()
}

async fn ended(fixture: &Fixture, run: &Value) -> Value {
    fixture.get(&format!("/api/v1/runs/{}/wait", id(run))).await.1
}

async fn cancel(fixture: &Fixture, run: &Value) -> Value {
    fixture.post(&format!("/api/v1/runs/{}/cancel", id(run)), &json!({})).await.1
}

/// Returns ids and statuses of all runs of the thread, oldest first.
async fn listed(fixture: &Fixture) -> Vec<(String, String)> {
    let (_, runs) = fixture.get("/api/v1/threads/t/runs").await;
    let status = |run: &Value| run["status"].as_str().unwrap().to_owned();
    runs.as_array().unwrap().iter().map(|run| (id(run), status(run))).collect()
}

/// Starts a server and a run that keeps thread `t` busy. Returns both.
async fn at_work() -> (Fixture, Value) {
    let fixture = Fixture::start("").await;
    let (status, slow) = ask(&fixture, SLOW, json!({})).await;
    assert_eq!((status, &slow["status"]), (202, &json!("running")), "{slow}");
    (fixture, slow)
}

#[tokio::test]
async fn runs_of_a_thread_start_in_the_order_of_their_requests() {
    let (fixture, slow) = at_work().await;
    let (status, first) = ask(&fixture, "Ada", json!({})).await;
    assert_eq!((status, &first["status"]), (202, &json!("pending")), "{first}");
    assert!(first["created_ms"].is_i64() && first["due_ms"].is_i64(), "{first}");
    assert!(first.get("started_ms").is_none(), "{first}");
    let (_, second) = ask(&fixture, "Bob", json!({ "multitask_strategy": "enqueue" })).await;
    let order = [(&slow, "running"), (&first, "pending"), (&second, "pending")];
    let order = order.map(|(run, status)| (id(run), status.to_owned()));
    assert_eq!(listed(&fixture).await, order);
    let (_, known) = fixture.get(&format!("/api/v1/runs/{}", id(&first))).await;
    assert_eq!(known["status"], "pending");

    let url = format!("/api/v1/threads/t/events?until=idle&run={}", id(&second));
    let (first, cancelled, events) =
        tokio::join!(ended(&fixture, &first), cancel(&fixture, &slow), fixture.get(&url));
    assert_eq!(cancelled["status"], "cancelled");
    assert_eq!(first["state"]["greeting"], "hello Ada", "{first}");
    let events = events.1.as_str().unwrap().to_owned();
    assert!(events.contains("event: run_ended"), "the stream lasts until the run ends: {events}");
    let second = ended(&fixture, &second).await;
    assert_eq!(second["state"]["greeting"], "hello Bob", "{second}");
    let again = ended(&fixture, &first).await;
    assert_eq!(again["state"], first["state"], "a later run does not change the end of this one");
    assert_eq!(again["interrupts"][0]["id"], first["interrupts"][0]["id"], "{again}");
    fixture.server.shutdown().await;
}

#[tokio::test]
async fn a_request_with_wait_also_waits_while_its_run_is_pending() {
    let (fixture, slow) = at_work().await;
    let begun = async {
        while listed(&fixture).await.len() < 2 {
            tokio::task::yield_now().await;
        }
        cancel(&fixture, &slow).await
    };
    let (answer, _) = tokio::join!(ask(&fixture, "Ada", json!({ "wait": true })), begun);
    assert_eq!((answer.0, &answer.1["state"]["greeting"]), (200, &json!("hello Ada")));
    fixture.server.shutdown().await;
}

#[tokio::test]
async fn the_multitask_strategy_applies_to_earlier_runs() {
    let (fixture, slow) = at_work().await;
    let (status, refused) = ask(&fixture, "Ada", json!({ "multitask_strategy": "reject" })).await;
    assert_eq!((status, &refused["code"]), (409, &json!("busy")), "{refused}");
    let (_, pending) = ask(&fixture, "Ada", json!({})).await;

    let strategy = json!({ "multitask_strategy": "interrupt" });
    let (status, slower) = ask(&fixture, SLOW, strategy).await;
    assert_eq!((status, &slower["status"]), (202, &json!("running")), "{slower}");
    let left = [(&slow, "cancelled"), (&pending, "cancelled"), (&slower, "running")];
    assert_eq!(listed(&fixture).await, left.map(|(run, status)| (id(run), status.to_owned())));

    let strategy = json!({ "multitask_strategy": "rollback", "wait": true });
    let (status, last) = ask(&fixture, "Bob", strategy).await;
    assert_eq!((status, &last["state"]["greeting"]), (200, &json!("hello Bob")), "{last}");
    let runs = listed(&fixture).await;
    assert!(runs.iter().all(|(run, _)| *run != id(&slower)), "{runs:?}");

    let (status, unknown) = ask(&fixture, "Ada", json!({ "multitask_strategy": "later" })).await;
    assert_eq!((status, &unknown["code"]), (400, &json!("invalid")), "{unknown}");
    fixture.server.shutdown().await;
}

#[tokio::test]
async fn a_cancelled_pending_run_never_starts() {
    let (fixture, slow) = at_work().await;
    let (_, pending) = ask(&fixture, "Ada", json!({})).await;
    let url = format!("/api/v1/threads/t/events?until=idle&run={}", id(&pending));
    let (events, cancelled) = tokio::join!(fixture.get(&url), cancel(&fixture, &pending));
    assert_eq!(cancelled["status"], "cancelled");
    assert_eq!(events.1, "", "a stream of it ends");
    let (_, last) = ask(&fixture, "Bob", json!({})).await;
    cancel(&fixture, &slow).await;
    let last = ended(&fixture, &last).await;
    assert_eq!(last["state"]["greeting"], "hello Bob", "{last}");
    let (_, known) = fixture.get(&format!("/api/v1/runs/{}", id(&pending))).await;
    assert_eq!((&known["status"], known.get("started_ms")), (&json!("cancelled"), None));

    let (_, slow) = ask(&fixture, SLOW, json!({})).await;
    ask(&fixture, "Ada", json!({})).await;
    let url = fixture.url("/api/v1/threads/t");
    assert_eq!(fixture.client.delete(&url).send().await.unwrap().status(), 204);
    assert_eq!(fixture.get(&format!("/api/v1/runs/{}", id(&slow))).await.0, 404);
    fixture.server.shutdown().await;
}

#[tokio::test]
async fn a_run_that_cannot_start_is_rejected_before_it_is_enqueued() {
    let (fixture, slow) = at_work().await;
    for (more, status, code) in [
        (json!({ "input": { "unknown": 1 } }), 400, "invalid"),
        (json!({ "input": 1 }), 400, "invalid"),
        (json!({ "graph": "Other" }), 409, "conflict"),
        (json!({ "options": { "interrupt_before": ["nobody"] } }), 400, "invalid"),
        (json!({ "after_seconds": -1 }), 400, "invalid"),
        (json!({ "input": 1, "multitask_strategy": "rollback" }), 400, "invalid"),
        (json!({ "input": 1, "thread_id": "new", "after_seconds": 9 }), 400, "invalid"),
    ] {
        let (refused, problem) = ask(&fixture, "Ada", more.clone()).await;
        assert_eq!((refused, &problem["code"]), (status, &json!(code)), "{more}: {problem}");
    }
    let left = listed(&fixture).await;
    assert_eq!(left, [(id(&slow), "running".to_owned())], "no run was cancelled for it");
    assert_eq!(fixture.get("/api/v1/threads/new").await.0, 404);
    cancel(&fixture, &slow).await;
    // The run is also rejected on an idle thread.
    let (status, problem) = ask(&fixture, "Ada", json!({ "graph": "Other" })).await;
    assert_eq!((status, &problem["code"]), (409, &json!("conflict")), "{problem}");
    fixture.server.shutdown().await;
}

#[tokio::test]
async fn a_run_starts_when_it_is_due() {
    let clock = ManualClock::at_ms(1_000_000);
    let folder = tempfile::tempdir().unwrap();
    write_app(&folder.path().join("plugins"), "greeter");
    let fixture = Fixture::start_as(folder, "", at(&clock)).await;
    let (status, later) = ask(&fixture, "Ada", json!({ "after_seconds": 60 })).await;
    assert_eq!((status, &later["status"]), (202, &json!("pending")), "{later}");
    assert_eq!((&later["created_ms"], &later["due_ms"]), (&json!(1_000_000), &json!(1_060_000)));
    let (_, thread) = fixture.get("/api/v1/threads/t").await;
    assert_eq!(thread["status"], "idle", "{thread}");
    // A run that is due now starts before the delayed run.
    let (_, now) = ask(&fixture, "Bob", json!({ "wait": true })).await;
    assert_eq!(now["state"]["greeting"], "hello Bob", "{now}");
    let (ended, ()) = tokio::join!(ended(&fixture, &later), async {
        clock.advance_ms(60_000);
    });
    assert_eq!(ended["state"]["greeting"], "hello Ada", "{ended}");
    fixture.server.shutdown().await;
}
