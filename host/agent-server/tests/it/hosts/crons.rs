//! Crons whose runs several hosts could create.

use serde_json::{Value, json};
use uuid::{Builder, Uuid};
use wattle_graph::id::ThreadId;
use wattle_run::engine::threads::NewThread;

use super::{NOW_MS, SharedState, executions};
use crate::host::Host;

pub(super) const HOUR_MS: i64 = 3_600_000;

/// The first due time.
pub(super) const FIRST_MS: i64 = NOW_MS - 30_000 + HOUR_MS;

pub(super) fn hourly() -> Value {
    json!({ "assistant_id": "slow", "schedule": "0 * * * *", "input": { "word": "tick" } })
}

pub(super) async fn on_thread(host: &Host, cron: Value) -> String {
    let id = host.thread().await;
    host.post(&format!("/threads/{id}/runs/crons"), cron).await.ok();
    id
}

/// Waits until all runs of a thread have ended, and returns their number.
pub(super) async fn count(host: &Host, id: &str) -> usize {
    let listed = host.get(&format!("/threads/{id}/runs")).await.ok();
    for run in listed.as_array().unwrap() {
        let run = run["run_id"].as_str().unwrap();
        host.get(&format!("/threads/{id}/runs/{run}/join")).await.ok();
    }
    listed.as_array().unwrap().len()
}

/// Returns the ids of the threads of stateless runs, which are also the ids of the runs.
async fn own_runs(host: &Host, other: &str) -> Vec<String> {
    let all = host.post("/threads/search", json!({})).await.ok();
    let ids = all.as_array().unwrap().iter().map(|it| it["thread_id"].as_str().unwrap());
    ids.filter(|id| *id != other).map(str::to_owned).collect()
}

#[tokio::test]
async fn due_time_while_a_host_creates_a_run_is_not_skipped() {
    let common = SharedState::new();
    let (host, gates) = common.host_with_gates().await;
    let id = on_thread(&host, hourly()).await;
    common.clock.advance(HOUR_MS);
    let gate = gates.hold("get crons");
    let (next, ()) = tokio::join!(host.server.create_due_runs(), async {
        // The host handles the cron an hour after listing it.
        let held = gate.reached().await;
        common.clock.advance(HOUR_MS);
        drop(held);
    });
    assert_eq!(next, Some(FIRST_MS + HOUR_MS));
    assert_eq!(host.server.create_due_runs().await, Some(FIRST_MS + 2 * HOUR_MS));
    assert_eq!(count(&host, &id).await, 2);
    assert_eq!(executions([&host]), 2);
}

#[tokio::test]
async fn clock_that_was_ahead_delays_no_run() {
    let common = SharedState::new();
    let (host, other) = (common.host().await, common.host().await);
    let id = on_thread(&host, hourly()).await;
    // With a clock that is ahead, a run is created and the next due time is a day late.
    common.clock.advance(24 * HOUR_MS);
    assert_eq!(host.server.create_due_runs().await, Some(FIRST_MS + 24 * HOUR_MS));
    common.clock.advance(-24 * HOUR_MS);
    assert_eq!(host.server.create_due_runs().await, Some(FIRST_MS));
    // Clock differences of a few seconds do not make a host recompute the due times of another
    // host.
    common.clock.advance(HOUR_MS);
    assert_eq!(host.server.create_due_runs().await, Some(FIRST_MS + HOUR_MS));
    common.clock.advance(-40_000);
    assert_eq!(other.server.create_due_runs().await, Some(FIRST_MS + HOUR_MS));
    assert_eq!(count(&host, &id).await, 1, "the first run was created while the clock was ahead");
    common.clock.advance(40_000 + HOUR_MS);
    assert_eq!(host.server.create_due_runs().await, Some(FIRST_MS + 2 * HOUR_MS));
    assert_eq!(count(&host, &id).await, 2);
}

#[tokio::test]
async fn concurrent_schedulers_create_each_run_once() {
    for kept in [false, true] {
        let common = SharedState::new();
        let hosts = [common.host().await, common.host().await, common.host().await];
        let mut cron = hourly();
        cron["multitask_strategy"] = json!(if kept { "interrupt" } else { "enqueue" });
        let id = on_thread(&hosts[0], cron.clone()).await;
        cron["on_run_completed"] = json!("keep");
        hosts[1].post("/runs/crons", cron).await.ok();
        for hour in 1..=4_i64 {
            common.clock.advance(HOUR_MS);
            let [one, two, three] = &hosts;
            let next = tokio::join!(
                one.server.create_due_runs(),
                two.server.create_due_runs(),
                three.server.create_due_runs(),
            );
            let wanted = Some(FIRST_MS + hour * HOUR_MS);
            assert_eq!(next, (wanted, wanted, wanted));
            assert_eq!(i64::try_from(count(two, &id).await).unwrap(), hour);
            let listed = two.get(&format!("/threads/{id}/runs")).await.ok();
            let is_done = |run: &Value| run["status"] == "success";
            assert!(listed.as_array().unwrap().iter().all(is_done), "{listed:#}");
            let threads = three.post("/threads/count", json!({})).await.ok();
            assert_eq!(threads, json!(hour + 1));
        }
        let state = hosts[1].get(&format!("/threads/{id}/state")).await.ok();
        assert_eq!(state["values"]["items"], json!(["tick", "tick", "tick", "tick"]));
        // The hosts execute four runs on the thread and four stateless runs.
        for run in own_runs(&hosts[0], &id).await {
            hosts[0].get(&format!("/threads/{run}/runs/{run}/join")).await.ok();
        }
        assert_eq!(executions(hosts.each_ref()), 8);
    }
}

#[tokio::test]
async fn cron_run_is_created_on_the_thread_that_a_dead_host_created() {
    let common = SharedState::new();
    let host = common.host().await;
    let mut cron = hourly();
    cron["on_run_completed"] = json!("keep");
    let cron = host.post("/runs/crons", cron).await.ok();
    let due = cron["next_run_date"].as_str().unwrap();
    let id: Uuid = cron["cron_id"].as_str().unwrap().parse().unwrap();
    let [_, _, _, _, _, _, rest @ ..] = Uuid::new_v5(&id, due.as_bytes()).into_bytes();
    let run = Builder::from_unix_timestamp_millis(FIRST_MS.cast_unsigned(), &rest);
    let run = run.into_uuid().to_string();
    let thread = Some(ThreadId::new(&run).unwrap());
    host.engine.create_thread(NewThread { thread, ..NewThread::default() }).await.unwrap();
    common.clock.advance(HOUR_MS);
    assert_eq!(host.server.create_due_runs().await, Some(FIRST_MS + HOUR_MS));
    let begun = host.get(&format!("/runs/{run}")).await.ok();
    assert_eq!((&begun["thread_id"], &begun["metadata"]["cron_id"]), (&json!(run), &json!(id)));
    assert_eq!(count(&host, &run).await, 1);
    assert_eq!(host.post("/threads/count", json!({})).await.ok(), 1);
    assert_eq!(executions([&host]), 1);
}
