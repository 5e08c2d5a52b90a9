//! Crons: requests about crons, and the creation of their runs.

use std::sync::Arc;

use serde_json::{Value, json};
use wattle_agent_server::AgentServer;
use wattle_api::ApiConfig;

use crate::host::{Host, HostOptions};
use crate::store::{Hand, two_tenants, with_key};
use crate::threads::expire;

/// 2026-11-22T09:00:30Z.
const NOW_MS: i64 = 1_795_338_030_000;

const MINUTE_MS: i64 = 60_000;

const HOUR_MS: i64 = 60 * MINUTE_MS;

fn host() -> (Host, Arc<Hand>) {
    let clock = Hand::at(NOW_MS);
    let options = HostOptions { clock: clock.clone(), ..HostOptions::default() };
    (Host::with_options(ApiConfig::default(), options), clock)
}

fn hourly() -> Value {
    json!({
        "assistant_id": "slow",
        "schedule": "0 * * * *",
        "input": { "word": "tick" },
        "metadata": { "suite": "crons" },
    })
}

async fn on_thread(host: &Host, cron: Value) -> (String, Value) {
    let id = host.thread().await;
    let made = host.post(&format!("/threads/{id}/runs/crons"), cron).await.ok();
    (id, made)
}

/// Waits until all runs of a thread have ended, and returns them.
async fn runs(host: &Host, id: &str) -> Vec<Value> {
    let listed = host.get(&format!("/threads/{id}/runs")).await.ok();
    for run in listed.as_array().unwrap() {
        let run = run["run_id"].as_str().unwrap();
        host.get(&format!("/threads/{id}/runs/{run}/join")).await.ok();
    }
    let listed = host.get(&format!("/threads/{id}/runs")).await.ok();
    listed.as_array().unwrap().clone()
}

#[tokio::test]
async fn cron_is_created_read_changed_and_deleted() {
    let (host, _) = host();
    let made = host.post("/runs/crons", hourly()).await.ok();
    assert_eq!(made["schedule"], "0 * * * *");
    assert_eq!(made["next_run_date"], "2026-11-22T10:00:00.000000+00:00");
    assert_eq!(made["payload"]["input"], json!({ "word": "tick" }));
    assert_eq!(made["metadata"], json!({ "suite": "crons" }));
    assert_eq!(made["enabled"], true);
    for field in ["thread_id", "end_time", "timezone", "user_id", "on_run_completed"] {
        assert_eq!(made[field], Value::Null, "{field}");
    }
    let place = format!("/runs/crons/{}", made["cron_id"].as_str().unwrap());
    assert_eq!(host.get(&place).await.ok(), made);
    let change = json!({
        "schedule": "0 9 * * *",
        "timezone": "America/New_York",
        "end_time": "2027-01-01T00:00:00",
        "input": { "word": "tock" },
        "metadata": { "more": 1 },
    });
    let changed = host.call("PATCH", &place, Some(change)).await.ok();
    assert_eq!(changed["next_run_date"], "2026-11-22T14:00:00.000000+00:00");
    assert_eq!(changed["end_time"], "2027-01-01T00:00:00.000000+00:00");
    assert_eq!(changed["payload"]["input"], json!({ "word": "tock" }));
    assert_eq!(changed["metadata"], json!({ "suite": "crons", "more": 1 }));
    let change = json!({ "end_time": null, "enabled": false });
    let disabled = host.call("PATCH", &place, Some(change)).await.ok();
    assert_eq!((&disabled["end_time"], &disabled["enabled"]), (&Value::Null, &json!(false)));
    assert_eq!(
        disabled["next_run_date"], changed["next_run_date"],
        "the next time of the schedule"
    );
    assert_eq!(host.call("DELETE", &place, None).await.status, 204);
    assert_eq!(host.get(&place).await.status, 404);
    assert_eq!(host.call("DELETE", &place, None).await.status, 404);
    assert_eq!(host.get("/runs/crons/mine").await.status, 422);
}

#[tokio::test]
async fn cron_on_a_thread_of_another_graph_is_refused() {
    let (host, _) = host();
    let (id, made) = on_thread(&host, hourly()).await;
    let run = json!({ "assistant_id": "slow", "input": { "word": "a" } });
    host.post(&format!("/threads/{id}/runs/wait"), run).await.ok();
    let mut other = hourly();
    other["assistant_id"] = json!("agent");
    let refused = host.post(&format!("/threads/{id}/runs/crons"), other).await;
    assert_eq!(refused.status, 409, "{}", refused.text);
    let place = format!("/runs/crons/{}", made["cron_id"].as_str().unwrap());
    let change = json!({ "assistant_id": "agent" });
    assert_eq!(host.call("PATCH", &place, Some(change)).await.status, 409);
    assert_eq!(host.get(&place).await.ok()["assistant_id"], made["assistant_id"]);
    let change = json!({ "assistant_id": "agent", "enabled": false });
    assert_eq!(host.call("PATCH", &place, Some(change)).await.ok()["enabled"], false);
}

#[tokio::test]
async fn config_in_the_payload_of_a_cron_contains_the_cron_id() {
    let (host, _) = host();
    let mut cron = hourly();
    cron["context"] = json!({ "user": "u" });
    let made = host.post("/runs/crons", cron).await.ok();
    let of_cron = json!({ "configurable": { "cron_id": made["cron_id"] } });
    assert_eq!(made["payload"]["config"], of_cron);
    // A client sends back what it has read.
    let place = format!("/runs/crons/{}", made["cron_id"].as_str().unwrap());
    let change = json!({ "config": of_cron, "context": { "user": "v" } });
    let changed = host.call("PATCH", &place, Some(change)).await.ok();
    assert_eq!(changed["payload"]["config"], of_cron);
    assert_eq!(changed["payload"]["context"], json!({ "user": "v" }));
}

#[tokio::test]
async fn native_list_has_the_newest_and_the_next_run() {
    let (host, clock) = host();
    let made = host.post("/runs/crons", hourly()).await.ok();
    let cron = async || host.get("/api/v1/crons").await.ok()["items"][0].clone();
    let ten_ms = NOW_MS - MINUTE_MS / 2 + HOUR_MS;
    let listed = cron().await;
    assert_eq!((&listed["cron"], &listed["schedule"]), (&made["cron_id"], &made["schedule"]));
    assert_eq!((&listed["app"], &listed["graph"]), (&json!("test"), &json!("slow")));
    assert_eq!((&listed["next_ms"], &listed["is_enabled"]), (&json!(ten_ms), &json!(true)));
    assert_eq!(listed.get("last"), None, "no run was created yet: {listed}");
    clock.advance(HOUR_MS);
    host.server.create_due_runs().await;
    let listed = cron().await;
    let last = listed["last"].clone();
    assert_eq!((&last["due_ms"], &listed["next_ms"]), (&json!(ten_ms), &json!(ten_ms + HOUR_MS)));
    assert!(last["run"].is_string(), "{listed}");
    // A change of the cron does not change what it has done.
    let place = format!("/runs/crons/{}", made["cron_id"].as_str().unwrap());
    host.call("PATCH", &place, Some(json!({ "enabled": false }))).await.ok();
    let listed = cron().await;
    assert_eq!((&listed["last"], listed.get("next_ms")), (&last, None));
    assert_eq!(listed["is_enabled"], false);
}

#[tokio::test]
async fn run_of_a_cron_without_an_input_has_an_empty_input() {
    let (host, clock) = host();
    let mut cron = hourly();
    cron.as_object_mut().unwrap().remove("input");
    cron["on_run_completed"] = json!("keep");
    host.post("/runs/crons", cron).await.ok();
    clock.advance(HOUR_MS);
    host.server.create_due_runs().await;
    let threads = host.post("/threads/search", json!({})).await.ok();
    let id = threads[0]["thread_id"].as_str().unwrap();
    let begun = runs(&host, id).await;
    assert_eq!((begun.len(), &begun[0]["status"]), (1, &json!("success")));
    assert_eq!(begun[0]["kwargs"]["input"], json!({}));
    let state = host.get(&format!("/threads/{id}/state")).await.ok();
    assert_eq!(state["values"]["items"], json!([null]), "the node had no word");
}

#[tokio::test]
async fn run_of_a_cron_without_an_input_starts_or_continues_its_thread() {
    let (host, clock) = host();
    let mut cron = hourly();
    cron.as_object_mut().unwrap().remove("input");
    let (new, _) = on_thread(&host, cron.clone()).await;
    let stopped = host.thread().await;
    let run = json!({
        "assistant_id": "slow", "input": { "word": "a" }, "interrupt_before": ["hold"],
    });
    host.post(&format!("/threads/{stopped}/runs/wait"), run).await.ok();
    host.post(&format!("/threads/{stopped}/runs/crons"), cron).await.ok();
    clock.advance(HOUR_MS);
    host.server.create_due_runs().await;
    for (id, count, item) in [(new, 1, Value::Null), (stopped, 2, json!("a"))] {
        let begun = runs(&host, &id).await;
        assert_eq!((begun.len(), &begun[0]["status"]), (count, &json!("success")), "{begun:?}");
        let state = host.get(&format!("/threads/{id}/state")).await.ok();
        assert_eq!(state["values"]["items"], json!([item]));
    }
}

#[tokio::test]
async fn crons_are_searched_and_counted() {
    let (host, clock) = host();
    let (thread, first) = on_thread(&host, hourly()).await;
    clock.advance(1);
    let mut second = hourly();
    second["enabled"] = json!(false);
    second["schedule"] = json!("30 * * * *");
    second["assistant_id"] = json!("agent");
    second["metadata"] = json!({ "suite": "others" });
    let second = host.post("/runs/crons", second).await.ok();
    let search = async |wanted: Value| host.post("/runs/crons/search", wanted).await;
    let all = search(json!({ "limit": 20 })).await;
    assert_eq!(all.header("x-pagination-total"), "2");
    assert_eq!(all.ok(), json!([second, first]));
    assert_eq!(search(json!({ "thread_id": thread })).await.ok(), json!([first]));
    assert_eq!(search(json!({ "assistant_id": "agent" })).await.ok(), json!([second]));
    let by_id = json!({ "assistant_id": first["assistant_id"] });
    assert_eq!(search(by_id).await.ok(), json!([first]));
    let assistant = host.post("/assistants", json!({ "graph_id": "slow" })).await.ok();
    let mut of_made = hourly();
    of_made["assistant_id"] = assistant["assistant_id"].clone();
    let of_made = host.post("/runs/crons", of_made).await.ok();
    let by_id = json!({ "assistant_id": assistant["assistant_id"] });
    assert_eq!(search(by_id).await.ok(), json!([of_made]));
    let place = format!("/runs/crons/{}", of_made["cron_id"].as_str().unwrap());
    assert_eq!(host.call("DELETE", &place, None).await.status, 204);
    assert_eq!(search(json!({ "enabled": true })).await.ok(), json!([first]));
    let facts = json!({ "metadata": { "suite": "others" } });
    assert_eq!(search(facts.clone()).await.ok(), json!([second]));
    let page = json!({ "limit": 1, "sort_by": "next_run_date", "sort_order": "desc" });
    let page = search(page).await;
    assert_eq!(page.header("x-pagination-next"), "1");
    assert_eq!(page.ok(), json!([first]));
    let fields = search(json!({ "select": ["cron_id", "now"], "limit": 1 })).await.ok();
    assert_eq!(fields[0].as_object().unwrap().len(), 2);
    assert!(fields[0]["now"].as_str().unwrap().starts_with("2026-11-22T09:00:30"));
    assert_eq!(search(json!({ "sort_by": "mood" })).await.status, 422);
    let count = async |wanted: Value| host.post("/runs/crons/count", wanted).await.ok();
    assert_eq!(count(json!({})).await, 2);
    assert_eq!(count(facts).await, 1);
    host.call("DELETE", &format!("/threads/{thread}"), None).await;
    assert_eq!(count(json!({})).await, 1, "deleting a thread deletes its crons");
}

#[tokio::test]
async fn run_is_created_when_its_cron_is_due() {
    let (host, clock) = host();
    let (id, cron) = on_thread(&host, hourly()).await;
    assert_eq!(host.server.create_due_runs().await, Some(NOW_MS - 30_000 + HOUR_MS));
    assert!(runs(&host, &id).await.is_empty());
    clock.advance(HOUR_MS);
    let next_ms = host.server.create_due_runs().await;
    assert_eq!(next_ms, Some(NOW_MS - 30_000 + 2 * HOUR_MS));
    host.server.create_due_runs().await;
    let begun = runs(&host, &id).await;
    assert_eq!(begun.len(), 1);
    assert_eq!(begun[0]["status"], "success");
    assert_eq!(begun[0]["metadata"]["cron_id"], cron["cron_id"]);
    assert_eq!(begun[0]["metadata"]["suite"], "crons");
    clock.advance(HOUR_MS);
    host.server.create_due_runs().await;
    assert_eq!(runs(&host, &id).await.len(), 2);
    let state = host.get(&format!("/threads/{id}/state")).await.ok();
    assert_eq!(state["values"]["items"], json!(["tick", "tick"]));
}

#[tokio::test]
async fn missed_cron_fires_once_after_downtime() {
    let (host, clock) = host();
    let (id, cron) = on_thread(&host, hourly()).await;
    clock.advance(10 * HOUR_MS);
    host.server.create_due_runs().await;
    host.server.create_due_runs().await;
    assert_eq!(runs(&host, &id).await.len(), 1);
    let place = format!("/runs/crons/{}", cron["cron_id"].as_str().unwrap());
    let next = host.get(&place).await.ok()["next_run_date"].clone();
    assert_eq!(next, "2026-11-22T20:00:00.000000+00:00");
}

#[tokio::test]
async fn several_hosts_create_one_run_per_due_time() {
    let (host, clock) = host();
    let (id, _) = on_thread(&host, hourly()).await;
    let mut kept = hourly();
    kept["on_run_completed"] = json!("keep");
    host.post("/runs/crons", kept).await.ok();
    let others = [AgentServer::new(&host.state), AgentServer::new(&host.state)];
    for hour in 1..=3 {
        clock.advance(HOUR_MS);
        tokio::join!(
            host.server.create_due_runs(),
            others[0].create_due_runs(),
            others[1].create_due_runs()
        );
        assert_eq!(runs(&host, &id).await.len(), hour);
        let threads = host.post("/threads/count", json!({})).await.ok();
        assert_eq!(threads, json!(hour + 1));
    }
}

#[tokio::test]
async fn cron_run_is_enqueued_on_a_busy_thread() {
    let (host, clock) = host();
    host.hold();
    let (id, _) = on_thread(&host, hourly()).await;
    let busy = json!({ "assistant_id": "slow", "input": { "word": "busy" } });
    host.post(&format!("/threads/{id}/runs"), busy).await.ok();
    host.wait_for_started(1).await;
    clock.advance(HOUR_MS);
    let other = AgentServer::new(&host.state);
    tokio::join!(host.server.create_due_runs(), other.create_due_runs());
    assert_eq!(host.get(&format!("/threads/{id}/runs")).await.ok().as_array().unwrap().len(), 2);
    host.release.send_replace(true);
    assert_eq!(runs(&host, &id).await.len(), 2);
    let state = host.get(&format!("/threads/{id}/state")).await.ok();
    assert_eq!(state["values"]["items"], json!(["busy", "tick"]));
}

#[tokio::test]
async fn run_of_a_client_is_checked_on_a_busy_thread_even_with_a_cron_id() {
    let (host, _) = host();
    host.hold();
    let id = host.thread().await;
    let path = format!("/threads/{id}/runs");
    let busy = json!({ "assistant_id": "slow", "input": { "word": "busy" } });
    host.post(&path, busy.clone()).await.ok();
    host.wait_for_started(1).await;
    let mut invalid = busy;
    invalid["config"] = json!({ "recursion_limit": 0 });
    invalid["metadata"] = json!({ "cron_id": "c" });
    let refused = host.post(&path, invalid).await;
    assert_eq!(refused.status, 422, "{}", refused.text);
    host.release.send_replace(true);
    assert_eq!(runs(&host, &id).await.len(), 1);
}

#[tokio::test]
async fn cron_respects_end_time_and_enabled() {
    let (host, clock) = host();
    let mut ending = hourly();
    ending["end_time"] = json!("2026-11-22T10:30:00+00:00");
    let (ends, _) = on_thread(&host, ending).await;
    let mut resting = hourly();
    resting["enabled"] = json!(false);
    let (rests, cron) = on_thread(&host, resting).await;
    for _ in 0..3 {
        clock.advance(HOUR_MS);
        host.server.create_due_runs().await;
    }
    assert_eq!(runs(&host, &ends).await.len(), 1);
    assert!(runs(&host, &rests).await.is_empty());
    let place = format!("/runs/crons/{}", cron["cron_id"].as_str().unwrap());
    host.call("PATCH", &place, Some(json!({ "enabled": true }))).await.ok();
    host.server.create_due_runs().await;
    assert!(runs(&host, &rests).await.is_empty(), "a disabled cron has no due time");
    clock.advance(HOUR_MS);
    host.server.create_due_runs().await;
    assert_eq!(runs(&host, &rests).await.len(), 1);
    host.call("DELETE", &place, None).await;
    clock.advance(HOUR_MS);
    host.server.create_due_runs().await;
    assert_eq!(runs(&host, &rests).await.len(), 1);
}

#[tokio::test]
async fn thread_of_a_stateless_cron_run_is_deleted_or_kept() {
    let (host, clock) = host();
    host.post("/runs/crons", hourly()).await.ok();
    clock.advance(HOUR_MS);
    host.server.create_due_runs().await;
    assert_eq!(host.post("/threads/count", json!({})).await.ok(), 0);
    host.wait_for_started(1).await;
    let mut kept = hourly();
    kept["on_run_completed"] = json!("keep");
    host.post("/runs/crons", kept).await.ok();
    clock.advance(HOUR_MS);
    host.server.create_due_runs().await;
    assert_eq!(host.post("/threads/count", json!({})).await.ok(), 1);
}

#[tokio::test]
async fn cron_of_an_expired_thread_is_deleted() {
    let (host, clock) = host();
    let (expired, _) = on_thread(&host, hourly()).await;
    expire(&host, &expired).await;
    let (id, _) = on_thread(&host, hourly()).await;
    let thread = wattle_graph::id::ThreadId::new(&id).unwrap();
    // Delete the thread from the store, as the host does at some time after its end.
    host.engine.ports().store.delete_thread(&thread).await.unwrap();
    clock.advance(HOUR_MS);
    assert_eq!(host.server.create_due_runs().await, None);
    assert_eq!(host.post("/runs/crons/count", json!({})).await.ok(), 0);
}

#[tokio::test]
async fn cron_that_can_never_run_is_rejected() {
    let (host, _) = host();
    let with = |field: &str, value: Value| {
        let mut cron = hourly();
        cron[field] = value;
        cron
    };
    for (status, cron) in [
        (422, with("schedule", json!("every day"))),
        (422, with("schedule", json!("0 0 30 2 *"))),
        (422, with("schedule", Value::Null)),
        (422, with("timezone", json!("Mars/Base"))),
        (422, with("end_time", json!("tomorrow"))),
        (422, with("assistant_id", json!("nobody"))),
        (422, with("multitask_strategy", json!("juggle"))),
        (422, with("on_run_completed", json!("burn"))),
        (422, with("input", json!({ "word": "x".repeat(64 << 10) }))),
        (400, with("command", json!({ "resume": 1 }))),
    ] {
        let response = host.post("/runs/crons", cron.clone()).await;
        assert_eq!(response.status, status, "{}: {}", cron["schedule"], response.text);
    }
    let missing = "/threads/01a1ffdc-22ab-744e-a2fc-8bb051a654f8/runs/crons";
    assert_eq!(host.post(missing, hourly()).await.status, 404);
    assert_eq!(host.post("/runs/crons/count", json!({})).await.ok(), 0);
}

#[tokio::test]
async fn crons_of_other_tenants_are_not_found() {
    let clock = Hand::at(NOW_MS);
    let host = two_tenants(HostOptions { clock: clock.clone(), ..HostOptions::default() });
    let made = with_key(&host, "k-a", "POST", "/runs/crons", Some(hourly())).await.ok();
    let place = format!("/runs/crons/{}", made["cron_id"].as_str().unwrap());
    assert_eq!(with_key(&host, "k-a", "GET", &place, None).await.status, 200);
    for (method, body) in [("GET", None), ("PATCH", Some(json!({}))), ("DELETE", None)] {
        assert_eq!(with_key(&host, "k-b", method, &place, body).await.status, 404);
    }
    let found = with_key(&host, "k-b", "POST", "/runs/crons/search", Some(json!({}))).await.ok();
    assert_eq!(found, json!([]));
    let thread = with_key(&host, "k-a", "POST", "/threads", Some(json!({}))).await.ok();
    let path = format!("/threads/{}/runs/crons", thread["thread_id"].as_str().unwrap());
    assert_eq!(with_key(&host, "k-b", "POST", &path, Some(hourly())).await.status, 404);
    let made = with_key(&host, "k-a", "POST", &path, Some(hourly())).await.ok();
    clock.advance(HOUR_MS);
    host.server.create_due_runs().await;
    let runs = format!("/threads/{}/runs", made["thread_id"].as_str().unwrap());
    let begun = with_key(&host, "k-a", "GET", &runs, None).await.ok();
    assert_eq!(begun.as_array().unwrap().len(), 1);
    assert_eq!(with_key(&host, "k-b", "GET", &runs, None).await.status, 404);
}
