//! A run of a cron that two hosts create at the same time.

use serde_json::{Value, json};

use super::crons::{FIRST_MS, HOUR_MS, count, hourly, on_thread};
use super::{NOW_MS, SharedState, create_run, executions, items, run_until_idle, slow};
use crate::host::Host;

/// Returns the runs of a thread that a cron created, including pending runs.
async fn ticks(host: &Host, id: &str) -> Vec<Value> {
    let listed = host.get(&format!("/threads/{id}/runs")).await.ok();
    let listed = listed.as_array().unwrap().clone();
    listed.into_iter().filter(|run| run["metadata"]["cron_id"].is_string()).collect()
}

async fn values(host: &Host, id: &str) -> Value {
    host.get(&format!("/threads/{id}/state")).await.ok()["values"]["items"].clone()
}

#[tokio::test]
async fn cron_run_that_ended_on_another_host_is_not_created_again() {
    let common = SharedState::new();
    let ((one, gates), two) = (common.host_with_gates().await, common.host().await);
    let id = on_thread(&one, hourly()).await;
    common.clock.advance(HOUR_MS);
    let gate = gates.hold("lease");
    let (next, ()) = tokio::join!(one.server.create_due_runs(), async {
        let held = gate.reached().await;
        two.server.create_due_runs().await;
        assert_eq!(count(&two, &id).await, 1);
        drop(held);
    });
    assert_eq!(next, Some(FIRST_MS + HOUR_MS));
    assert_eq!(count(&one, &id).await, 1);
    assert_eq!(ticks(&one, &id).await.len(), 1, "the record of the run stays");
    assert_eq!((executions([&one, &two]), values(&one, &id).await), (1, json!(["tick"])));
}

#[tokio::test]
async fn pending_cron_run_that_ended_on_another_host_is_not_created_again() {
    let common = SharedState::new();
    let ((one, gates), two) = (common.host_with_gates().await, common.host().await);
    let id = on_thread(&one, hourly()).await;
    two.hold();
    create_run(&two, &id, slow("a")).await;
    two.wait_for_started(1).await;
    common.clock.advance(HOUR_MS);
    let gate = gates.hold("pending");
    let (next, ()) = tokio::join!(one.server.create_due_runs(), async {
        let held = gate.reached().await;
        two.server.create_due_runs().await;
        two.release.send_replace(true);
        assert_eq!(count(&two, &id).await, 2);
        drop(held);
    });
    assert_eq!(next, Some(FIRST_MS + HOUR_MS));
    run_until_idle().await;
    let tick = ticks(&one, &id).await.remove(0);
    assert_eq!(tick["status"], "success");
    assert_eq!((executions([&one, &two]), values(&one, &id).await), (2, json!(["a", "tick"])));
}

#[tokio::test]
async fn multitask_strategy_of_a_cron_does_not_cancel_its_own_run() {
    let common = SharedState::new();
    let ((one, gates), two) = (common.host_with_gates().await, common.host().await);
    let mut cron = hourly();
    cron["multitask_strategy"] = json!("interrupt");
    let id = on_thread(&one, cron).await;
    two.hold();
    common.clock.advance(HOUR_MS);
    let gate = gates.hold("pending");
    let (next, ()) = tokio::join!(one.server.create_due_runs(), async {
        let held = gate.reached().await;
        two.server.create_due_runs().await;
        two.wait_for_started(1).await;
        drop(held);
    });
    assert_eq!(next, Some(FIRST_MS + HOUR_MS));
    two.release.send_replace(true);
    assert_eq!(count(&two, &id).await, 1);
    assert_eq!(ticks(&two, &id).await[0]["status"], "success");
    assert_eq!(executions([&one, &two]), 1);
}

#[tokio::test]
async fn failed_creation_keeps_the_cron_run_of_another_host() {
    let common = SharedState::new();
    let ((one, gates), two) = (common.host_with_gates().await, common.host().await);
    let id = on_thread(&one, hourly()).await;
    two.hold();
    common.clock.advance(HOUR_MS);
    let gate = gates.hold("lease");
    let (next, ()) = tokio::join!(one.server.create_due_runs(), async {
        let held = gate.reached().await;
        create_run(&two, &id, slow("a")).await;
        two.wait_for_started(1).await;
        two.server.create_due_runs().await;
        held.fail();
    });
    // The other host has stored the next due time by then.
    assert_eq!(next, Some(FIRST_MS + HOUR_MS));
    let waits = ticks(&two, &id).await;
    assert_eq!((waits.len(), &waits[0]["status"]), (1, &json!("pending")));
    two.release.send_replace(true);
    let place = format!("/threads/{id}/runs/{}", waits[0]["run_id"].as_str().unwrap());
    assert_eq!(items(&two, &place).await, json!(["a", "tick"]));
    assert_eq!(executions([&one, &two]), 2);
}

/// Creates a cron with stateless runs whose threads are kept.
async fn alone(host: &Host) {
    let mut cron = hourly();
    cron["on_run_completed"] = json!("keep");
    host.post("/runs/crons", cron).await.ok();
}

#[tokio::test]
async fn cron_run_that_fails_to_start_is_pending_on_its_new_thread() {
    let common = SharedState::new();
    let ((one, gates), two) = (common.host_with_gates().await, common.host().await);
    alone(&one).await;
    common.clock.advance(HOUR_MS);
    // The run fails to start together with its thread. The thread is created without it.
    gates.fail("lease");
    assert_eq!(one.server.create_due_runs().await, Some(FIRST_MS + HOUR_MS));
    assert!(gates.are_passed());
    two.server.create_due_runs().await;
    let all = threads(&one).await;
    assert_eq!(all.len(), 1);
    let tick = ticks(&one, &all[0]).await.remove(0);
    let place = format!("/threads/{}/runs/{}", all[0], tick["run_id"].as_str().unwrap());
    assert_eq!(items(&one, &place).await, json!(["tick"]));
    assert_eq!((count(&one, &all[0]).await, executions([&one, &two])), (1, 1));
}

async fn threads(host: &Host) -> Vec<String> {
    let all = host.post("/threads/search", json!({})).await.ok();
    let ids = all.as_array().unwrap().iter().map(|it| it["thread_id"].as_str().unwrap());
    ids.map(str::to_owned).collect()
}

#[tokio::test]
async fn cron_run_is_retried_while_another_host_creates_its_thread() {
    let common = SharedState::new();
    let ((one, gates), two) = (common.host_with_gates().await, common.host().await);
    alone(&one).await;
    common.clock.advance(HOUR_MS);
    let gate = gates.hold("lease done");
    let (_, next) = tokio::join!(one.server.create_due_runs(), async {
        let _held = gate.reached().await;
        two.server.create_due_runs().await
    });
    assert_eq!(next, Some(NOW_MS + HOUR_MS + 15_000), "the creation is retried after 15 s");
    let all = threads(&one).await;
    assert_eq!((all.len(), count(&one, &all[0]).await), (1, 1));
    assert_eq!(executions([&one, &two]), 1);
}
