//! Runs that were created on one host, as other hosts see and start them.

use std::time::Duration;

use serde_json::{Value, json};
use wattle_run::ports::memory::{MemoryScope, PutItem};

use super::{LEASE_MS, NOW_MS, SharedState, create_run, executions, items, run_until_idle, slow};
use crate::host::Host;

/// Starts a run and enqueues another run. Returns the thread and the paths of both runs.
async fn waiting(host: &Host) -> (String, String, String) {
    host.hold();
    let thread = host.thread().await;
    let first = create_run(host, &thread, slow("a")).await;
    host.wait_for_started(1).await;
    let second = create_run(host, &thread, slow("b")).await;
    (thread, first, second)
}

async fn status(host: &Host, place: &str) -> Value {
    host.get(place).await.ok()["status"].clone()
}

#[tokio::test]
async fn pending_run_is_cancelled_on_any_host() {
    let common = SharedState::new();
    let (one, two) = (common.host().await, common.host().await);
    let (thread, _, waits) = waiting(&one).await;
    let cancelled = two.post(&format!("{waits}/cancel"), Value::Null).await;
    assert_eq!((cancelled.status, cancelled.text.as_str()), (202, ""));
    for host in [&one, &two] {
        assert_eq!(status(host, &waits).await, "interrupted");
    }
    assert_eq!(two.post(&format!("{waits}/cancel"), Value::Null).await.status, 404);
    let last = create_run(&one, &thread, slow("c")).await;
    one.release.send_replace(true);
    assert_eq!(items(&one, &last).await, json!(["a", "c"]));
    assert_eq!(executions([&one, &two]), 2, "no host starts the cancelled run");
}

#[tokio::test]
async fn pending_run_can_be_deleted_through_any_host() {
    for way in ["rollback", "delete"] {
        let common = SharedState::new();
        let (one, two) = (common.host().await, common.host().await);
        let (thread, _, waits) = waiting(&one).await;
        let gone = match way {
            "rollback" => two.post(&format!("{waits}/cancel?action=rollback"), Value::Null).await,
            _ => two.call("DELETE", &waits, None).await,
        };
        assert!((200..300).contains(&gone.status), "{way}: {}", gone.text);
        for host in [&one, &two] {
            assert_eq!(host.get(&waits).await.status, 404, "{way}");
        }
        let last = create_run(&one, &thread, slow("c")).await;
        one.release.send_replace(true);
        assert_eq!(items(&one, &last).await, json!(["a", "c"]), "{way}");
    }
}

#[tokio::test]
async fn pending_runs_are_cancelled_by_status_on_any_host() {
    let common = SharedState::new();
    let (one, two) = (common.host().await, common.host().await);
    let (_, first, waits) = waiting(&one).await;
    let cancelled = two.post("/runs/cancel", json!({ "status": "pending" })).await;
    assert_eq!(cancelled.status, 204, "{}", cancelled.text);
    assert_eq!(status(&one, &waits).await, "interrupted");
    assert_eq!(status(&one, &first).await, "running");
    let cancelled = two.post("/runs/cancel", json!({ "status": "pending" })).await;
    assert_eq!(cancelled.status, 404, "no run is pending any more");
}

#[tokio::test]
async fn interrupt_and_rollback_remove_pending_runs_of_other_hosts() {
    for (strategy, others) in [("interrupt", json!("interrupted")), ("rollback", Value::Null)] {
        let common = SharedState::new();
        let (one, two) = (common.host().await, common.host().await);
        let thread = one.thread().await;
        let mut later = slow("a");
        later["after_seconds"] = json!(3_600);
        let waits = create_run(&one, &thread, later).await;
        let mut refused = slow("b");
        refused["multitask_strategy"] = json!("reject");
        let refused = two.post(&format!("/threads/{thread}/runs"), refused).await;
        assert_eq!(refused.status, 409, "{}", refused.text);
        let mut first = slow("c");
        first["multitask_strategy"] = json!(strategy);
        let first = create_run(&two, &thread, first).await;
        assert_eq!(items(&two, &first).await, json!(["c"]));
        assert_eq!(one.get(&waits).await.json()["status"], others, "{strategy}");
    }
}

#[tokio::test]
async fn host_notices_a_cancel_of_its_pending_run_on_another_host() {
    let common = SharedState::new();
    let (one, two) = (common.host().await, common.host().await);
    let thread = one.thread().await;
    let mut later = slow("a");
    later["after_seconds"] = json!(3_600);
    let waits = create_run(&one, &thread, later).await;
    let path = format!("/threads/{thread}");
    assert_eq!(one.get(&path).await.ok()["status"], "busy");
    let join = format!("{waits}/join");
    let (joined, cancelled) = tokio::join!(one.get(&join), async {
        two.post(&format!("{waits}/cancel"), Value::Null).await
    });
    assert_eq!((joined.status, cancelled.status), (200, 202));
    while one.get(&path).await.ok()["status"] != "idle" {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn next_run_starts_on_the_host_of_the_previous_run() {
    let common = SharedState::new();
    let (one, two) = (common.host().await, common.host().await);
    one.hold();
    let thread = one.thread().await;
    create_run(&one, &thread, slow("a")).await;
    one.wait_for_started(1).await;
    let second = create_run(&two, &thread, slow("b")).await;
    one.release.send_replace(true);
    assert_eq!(items(&two, &second).await, json!(["a", "b"]));
    assert_eq!((executions([&one]), executions([&two])), (2, 0));
}

#[tokio::test]
async fn pending_run_is_started_by_one_host() {
    let common = SharedState::new();
    let hosts = [common.host().await, common.host().await, common.host().await];
    let [one, two, three] = &hosts;
    let (_, _, waits) = waiting(one).await;
    for host in [two, three] {
        host.engine.start_recovery();
    }
    one.release.send_replace(true);
    assert_eq!(items(two, &waits).await, json!(["a", "b"]));
    run_until_idle().await;
    assert_eq!(executions([one, two, three]), 2);
}

#[tokio::test]
async fn pending_run_of_a_stopped_host_starts_on_another_host_in_order() {
    let common = SharedState::new();
    let (one, two) = (common.host().await, common.host().await);
    let thread = one.thread().await;
    let mut later = slow("a");
    later["after_seconds"] = json!(3_600);
    let waits = create_run(&one, &thread, later).await;
    one.engine.shutdown(Duration::ZERO).await;
    two.engine.start_recovery();
    let last = create_run(&two, &thread, slow("b")).await;
    common.clock.advance(3_600_000);
    assert_eq!(items(&two, &last).await, json!(["b"]));
    assert_eq!(items(&two, &waits).await, json!(["b", "a"]));
    assert_eq!((*one.started.borrow(), *two.started.borrow()), (0, 2));
}

async fn put(common: &SharedState, kind: &str, key: &str, value: Value) {
    let (namespace, key) = (vec!["agent".to_owned(), kind.to_owned()], key.to_owned());
    let item = PutItem { namespace, key, value, ttl_ms: None, refresh_on_read: false };
    common.memory.put(&MemoryScope::Host(None), item, NOW_MS).await.unwrap();
}

#[tokio::test]
async fn any_number_of_webhooks_is_taken_over() {
    let common = SharedState::new();
    // One webhook more than a search of the memory scans.
    for number in 0..=wattle_run::limit::MEMORY_SCANNED {
        let run = format!("00000000-0000-4000-8000-{number:012}");
        let value = json!({
            "run": run, "thread": "t", "tenant": null, "url": "https://hooks.example/",
            "attempts": 0, "next_ms": 0, "is_told": true, "host": "dead",
        });
        put(&common, "webhooks", &run, value).await;
    }
    common.clock.advance(LEASE_MS);
    let _two = common.host().await;
    let scope = MemoryScope::Host(None);
    let namespace = ["agent".to_owned(), "webhooks".to_owned()];
    let last = format!("00000000-0000-4000-8000-{:012}", wattle_run::limit::MEMORY_SCANNED);
    let hook = common.memory.get(&scope, &namespace, &last, NOW_MS).await.unwrap();
    assert_ne!(hook.map(|hook| hook.value["host"].clone()), Some(json!("dead")));
}

#[tokio::test]
async fn run_stays_pending_while_the_store_is_unavailable() {
    let common = SharedState::new();
    let (one, gates) = common.host_with_gates().await;
    let (_, _, waits) = waiting(&one).await;
    gates.fail("lease");
    gates.fail("lease");
    one.release.send_replace(true);
    assert_eq!(items(&one, &waits).await, json!(["a", "b"]));
    assert!(gates.are_passed());
    assert_eq!(status(&one, &waits).await, "success");
}

#[tokio::test]
async fn large_input_of_a_started_run_is_only_in_the_log() {
    let common = SharedState::new();
    let one = common.host().await;
    let (thread, first, waits) = waiting(&one).await;
    let large = "x".repeat(65 << 10);
    let mut run = slow(&large);
    run["multitask_strategy"] = json!("interrupt");
    let at_once = create_run(&one, &thread, run).await;
    one.wait_for_started(2).await;
    let later = create_run(&one, &thread, slow(&large)).await;
    let small = create_run(&one, &thread, slow("b")).await;
    for (place, is_kept) in [(&at_once, false), (&later, true), (&small, true)] {
        assert_eq!(one.get(place).await.ok()["kwargs"]["input"].is_object(), is_kept, "{place}");
    }
    one.release.send_replace(true);
    items(&one, &small).await;
    for (place, is_kept) in [(&first, true), (&waits, true), (&later, false), (&small, true)] {
        assert_eq!(one.get(place).await.ok()["kwargs"]["input"].is_object(), is_kept, "{place}");
    }
}
