//! Runs that wait on one host, as seen and taken on by others.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};
use wattle_run::ports::memory::{MemoryScope, PutItem};

use super::{Common, LEASE_MS, NOW_MS, begin, items, slow};
use crate::host::Host;

/// A host with a run at work and one that waits: the thread, and the places of both.
async fn waiting(host: &Host) -> (String, String, String) {
    host.hold();
    let thread = host.thread().await;
    let first = begin(host, &thread, slow("a")).await;
    host.begun(1).await;
    let second = begin(host, &thread, slow("b")).await;
    (thread, first, second)
}

async fn status(host: &Host, place: &str) -> Value {
    host.get(place).await.ok()["status"].clone()
}

#[tokio::test]
async fn a_run_that_waits_is_cancelled_on_any_host() {
    let common = Common::new();
    let (one, two) = (common.host().await, common.host().await);
    let (thread, _, waits) = waiting(&one).await;
    let cancelled = two.post(&format!("{waits}/cancel"), Value::Null).await;
    assert_eq!((cancelled.status, cancelled.text.as_str()), (202, ""));
    for host in [&one, &two] {
        assert_eq!(status(host, &waits).await, "interrupted");
    }
    assert_eq!(two.post(&format!("{waits}/cancel"), Value::Null).await.status, 404);
    let last = begin(&one, &thread, slow("c")).await;
    one.let_go.send_replace(true);
    assert_eq!(items(&one, &last).await, json!(["a", "c"]));
    assert_eq!(*one.begun.borrow(), 2, "its host does not begin it");
}

#[tokio::test]
async fn runs_that_wait_are_taken_away_on_any_host() {
    for way in ["rollback", "delete"] {
        let common = Common::new();
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
        let last = begin(&one, &thread, slow("c")).await;
        one.let_go.send_replace(true);
        assert_eq!(items(&one, &last).await, json!(["a", "c"]), "{way}");
    }
}

#[tokio::test]
async fn many_that_wait_are_cancelled_on_any_host() {
    let common = Common::new();
    let (one, two) = (common.host().await, common.host().await);
    let (_, first, waits) = waiting(&one).await;
    let cancelled = two.post("/runs/cancel", json!({ "status": "pending" })).await;
    assert_eq!(cancelled.status, 204, "{}", cancelled.text);
    assert_eq!(status(&one, &waits).await, "interrupted");
    assert_eq!(status(&one, &first).await, "running");
    let cancelled = two.post("/runs/cancel", json!({ "status": "pending" })).await;
    assert_eq!(cancelled.status, 404, "nothing waits any more");
}

#[tokio::test]
async fn a_run_in_place_of_others_takes_the_turns_of_those_on_other_hosts() {
    for (strategy, others) in [("interrupt", json!("interrupted")), ("rollback", Value::Null)] {
        let common = Common::new();
        let (one, two) = (common.host().await, common.host().await);
        let thread = one.thread().await;
        let mut later = slow("a");
        later["after_seconds"] = json!(3_600);
        let waits = begin(&one, &thread, later).await;
        let mut refused = slow("b");
        refused["multitask_strategy"] = json!("reject");
        let refused = two.post(&format!("/threads/{thread}/runs"), refused).await;
        assert_eq!(refused.status, 409, "{}", refused.text);
        let mut first = slow("c");
        first["multitask_strategy"] = json!(strategy);
        let first = begin(&two, &thread, first).await;
        assert_eq!(items(&two, &first).await, json!(["c"]));
        assert_eq!(one.get(&waits).await.json()["status"], others, "{strategy}");
    }
}

#[tokio::test]
async fn the_host_of_a_run_that_waits_long_hears_that_it_does_not() {
    let common = Common::new();
    let (one, two) = (common.host().await, common.host().await);
    let thread = one.thread().await;
    let mut later = slow("a");
    later["after_seconds"] = json!(3_600);
    let waits = begin(&one, &thread, later).await;
    let path = format!("/threads/{thread}");
    assert_eq!(one.get(&path).await.ok()["status"], "busy");
    let join = format!("{waits}/join");
    let (joined, cancelled) = tokio::join!(one.get(&join), async {
        let cancelled = two.post(&format!("{waits}/cancel"), Value::Null).await;
        one.agents.look_around().await;
        cancelled
    });
    assert_eq!((joined.status, cancelled.status), (200, 202));
    assert_eq!(one.get(&path).await.ok()["status"], "idle");
}

#[tokio::test]
async fn what_waits_on_a_host_that_is_silent_is_taken_up_by_one_other() {
    let common = Common::new();
    let hosts = [common.host().await, common.host().await, common.host().await];
    let [one, two, three] = &hosts;
    let (_, _, waits) = waiting(one).await;
    common.clock.advance(LEASE_MS - 1);
    assert_eq!(two.agents.recover().await, 0, "its host may still live");
    common.clock.advance(1);
    let (by_two, by_three) = tokio::join!(two.agents.recover(), three.agents.recover());
    assert_eq!(by_two + by_three, 1);
    assert_eq!(two.agents.recover().await + three.agents.recover().await, 0);
    one.let_go.send_replace(true);
    assert_eq!(items(two, &waits).await, json!(["a", "b"]));
    let begun = hosts.each_ref().map(|host| *host.begun.borrow());
    // It was not dead, and finds that it has not to begin it any more.
    assert_eq!((begun[0], begun[1] + begun[2]), (1, 1), "{begun:?}");
}

#[tokio::test]
async fn what_waits_for_its_time_is_taken_up_and_begins_then() {
    let common = Common::new();
    let (one, two) = (common.host().await, common.host().await);
    let thread = one.thread().await;
    let mut later = slow("a");
    later["after_seconds"] = json!(3_600);
    let waits = begin(&one, &thread, later).await;
    one.die();
    common.clock.advance(3_600_000);
    assert_eq!(two.agents.recover().await, 1);
    assert_eq!(items(&two, &waits).await, json!(["a"]));
}

#[tokio::test]
async fn a_run_that_its_host_died_over_is_not_begun_twice() {
    let common = Common::new();
    let one = common.host().await;
    let (_, first, waits) = waiting(&one).await;
    // As a host leaves it that died right after it had begun the first one, or was about to begin
    // the second one.
    let thread = first.split('/').nth(2).unwrap();
    for place in [&first, &waits] {
        let run = place.rsplit('/').next().unwrap();
        let value = json!({
            "run": run, "thread": thread, "tenant": null, "host": "dead",
            "stage": { "kind": "taken" },
        });
        put(&common, "waiting", &format!("{thread}/{run}"), value).await;
    }
    let two = common.host().await;
    one.let_go.send_replace(true);
    assert_eq!(items(&two, &waits).await, json!(["a", "b"]));
    assert_eq!((*one.begun.borrow(), *two.begun.borrow()), (1, 1));
}

async fn put(common: &Common, kind: &str, key: &str, value: Value) {
    let (namespace, key) = (vec!["agent".to_owned(), kind.to_owned()], key.to_owned());
    let item = PutItem { namespace, key, value, ttl_ms: None, refresh_on_read: false };
    common.memory.put(&MemoryScope::Host(None), item, NOW_MS).await.unwrap();
}

#[tokio::test]
async fn any_number_of_runs_and_webhooks_is_taken_up() {
    let common = Common::new();
    let one = common.host().await;
    let (_, _, waits) = waiting(&one).await;
    // More than one search may look at.
    for number in 0..=wattle_run::limit::MEMORY_SCANNED {
        let run = format!("00000000-0000-4000-8000-{number:012}");
        let value = json!({
            "run": run, "thread": "t", "tenant": null, "host": "dead",
            "stage": { "kind": "dropped", "forget": true },
        });
        put(&common, "waiting", &format!("t/{run}"), value).await;
        let value = json!({
            "run": run, "thread": "t", "tenant": null, "url": "https://hooks.example/",
            "attempts": 0, "next_ms": 0, "is_told": true, "host": "dead",
        });
        put(&common, "webhooks", &run, value).await;
    }
    common.clock.advance(LEASE_MS);
    let two = common.host().await;
    one.let_go.send_replace(true);
    assert_eq!(items(&two, &waits).await, json!(["a", "b"]));
    let namespace = ["agent".to_owned(), "waiting".to_owned()];
    let left = common.memory.list(&MemoryScope::Host(None), &namespace, "", 10, NOW_MS).await;
    assert_eq!(left, Ok(Vec::new()), "what was to be dropped is dropped");
    let scope = MemoryScope::Host(None);
    let namespace = ["agent".to_owned(), "webhooks".to_owned()];
    let last = format!("00000000-0000-4000-8000-{:012}", wattle_run::limit::MEMORY_SCANNED);
    let hook = common.memory.get(&scope, &namespace, &last, NOW_MS).await.unwrap();
    assert_ne!(hook.map(|hook| hook.value["host"].clone()), Some(json!("dead")));
}

#[tokio::test]
async fn a_run_waits_on_while_the_store_is_away() {
    let common = Common::new();
    let one = common.host().await;
    let (_, _, waits) = waiting(&one).await;
    common.store.failing.store(2, Ordering::SeqCst);
    one.let_go.send_replace(true);
    assert_eq!(items(&one, &waits).await, json!(["a", "b"]));
    assert_eq!(common.store.failing.load(Ordering::SeqCst), 0);
    assert_eq!(status(&one, &waits).await, "success");
}
