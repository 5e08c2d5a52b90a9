//! Crons that several hosts change at the same time.

use serde_json::{Value, json};

use super::crons::{FIRST_MS, HOUR_MS, count, hourly, on_thread};
use super::{SharedState, executions};
use crate::host::{Host, TestResponse};

const MINUTE_MS: i64 = 60_000;

/// The full hour before the first due time.
const NINE_MS: i64 = FIRST_MS - HOUR_MS;

async fn make(host: &Host, cron: Value) -> String {
    let made = host.post("/runs/crons", cron).await.ok();
    format!("/runs/crons/{}", made["cron_id"].as_str().unwrap())
}

async fn patch(host: &Host, path: &str, change: Value) -> TestResponse {
    host.call("PATCH", path, Some(change)).await
}

#[tokio::test]
async fn concurrent_changes_of_two_hosts_are_merged() {
    let common = SharedState::new();
    let ((one, gates), two) = (common.host_with_gates().await, common.host().await);
    let path = make(&one, hourly()).await;
    let gate = gates.hold("compare_and_set crons");
    let (changed, ()) =
        tokio::join!(patch(&one, &path, json!({ "schedule": "*/10 * * * *" })), async {
            let held = gate.reached().await;
            patch(&two, &path, json!({ "input": { "word": "other" } })).await.ok();
            drop(held);
        });
    let changed = changed.ok();
    assert_eq!(changed, two.get(&path).await.ok());
    assert_eq!(changed["schedule"], "*/10 * * * *");
    assert_eq!(changed["payload"]["input"], json!({ "word": "other" }));
    assert_eq!(two.server.create_due_runs().await, Some(NINE_MS + 10 * MINUTE_MS));
}

#[tokio::test]
async fn next_due_time_follows_the_last_change() {
    let common = SharedState::new();
    let ((one, gates), two) = (common.host_with_gates().await, common.host().await);
    let path = make(&one, hourly()).await;
    let gate = gates.hold("compare_and_set crons done");
    let (changed, ()) =
        tokio::join!(patch(&one, &path, json!({ "schedule": "*/10 * * * *" })), async {
            let held = gate.reached().await;
            patch(&two, &path, json!({ "schedule": "*/30 * * * *" })).await.ok();
            drop(held);
        });
    changed.ok();
    assert_eq!(one.get(&path).await.ok()["schedule"], "*/30 * * * *");
    assert_eq!(one.server.create_due_runs().await, Some(NINE_MS + 30 * MINUTE_MS));
}

#[tokio::test]
async fn next_due_time_follows_a_change_during_the_creation_of_a_run() {
    let common = SharedState::new();
    let ((one, gates), (two, others)) =
        (common.host_with_gates().await, common.host_with_gates().await);
    let id = on_thread(&one, hourly()).await;
    let found = one.post("/runs/crons/search", json!({})).await.ok();
    let path = format!("/runs/crons/{}", found[0]["cron_id"].as_str().unwrap());
    common.clock.advance(HOUR_MS);
    let (begins, notes) = (others.hold("get crons done"), gates.hold("compare_and_set dues"));
    let server = two.server.clone();
    let began = tokio::spawn(async move { server.create_due_runs().await });
    // The second host has read the old cron. The first host has changed the cron and is about to
    // store the due time.
    let read = begins.reached().await;
    let (changed, ()) =
        tokio::join!(patch(&one, &path, json!({ "schedule": "*/10 * * * *" })), async {
            let held = notes.reached().await;
            drop(read);
            assert_eq!(began.await.unwrap(), Some(FIRST_MS + HOUR_MS));
            drop(held);
        });
    changed.ok();
    assert_eq!(one.server.create_due_runs().await, Some(FIRST_MS + 10 * MINUTE_MS));
    assert_eq!((count(&two, &id).await, executions([&one, &two])), (1, 1));
}

#[tokio::test]
async fn cron_runs_even_if_the_host_that_enables_it_crashes() {
    let common = SharedState::new();
    let ((one, gates), two) = (common.host_with_gates().await, common.host().await);
    let mut cron = hourly();
    cron["enabled"] = json!(false);
    let id = on_thread(&one, cron).await;
    let found = one.post("/runs/crons/search", json!({})).await.ok();
    let path = format!("/runs/crons/{}", found[0]["cron_id"].as_str().unwrap());
    assert_eq!(two.server.create_due_runs().await, None);
    let gate = gates.hold("compare_and_set crons done");
    tokio::select! {
        _ = patch(&one, &path, json!({ "enabled": true })) => panic!("the request is held"),
        _held = gate.reached() => {}
    }
    assert_eq!(two.server.create_due_runs().await, Some(FIRST_MS));
    common.clock.advance(HOUR_MS);
    two.server.create_due_runs().await;
    assert_eq!((count(&two, &id).await, executions([&two])), (1, 1));
}

#[tokio::test]
async fn cron_disabled_after_it_was_listed_does_not_run() {
    let common = SharedState::new();
    let ((one, gates), two) = (common.host_with_gates().await, common.host().await);
    let id = on_thread(&one, hourly()).await;
    let found = one.post("/runs/crons/search", json!({})).await.ok();
    let path = format!("/runs/crons/{}", found[0]["cron_id"].as_str().unwrap());
    common.clock.advance(HOUR_MS);
    // The host has listed the cron as due.
    let gate = gates.hold("get dues");
    let (next, ()) = tokio::join!(one.server.create_due_runs(), async {
        let held = gate.reached().await;
        patch(&two, &path, json!({ "enabled": false })).await.ok();
        drop(held);
    });
    assert_eq!((next, count(&one, &id).await, executions([&one, &two])), (None, 0, 0));
}
