//! Runs that wait on one host, as seen and taken on by others.

use serde_json::{Value, json};
use wattle_run::ports::memory::{MemoryScope, PutItem};

use super::{Common, LEASE_MS, NOW_MS, begin, items, settle, slow};
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
    let (one, gates) = common.gated().await;
    let (_, _, waits) = waiting(&one).await;
    gates.fail("lease");
    gates.fail("lease");
    one.let_go.send_replace(true);
    assert_eq!(items(&one, &waits).await, json!(["a", "b"]));
    assert!(gates.are_passed());
    assert_eq!(status(&one, &waits).await, "success");
}

/// The stages of all entries.
async fn stages(common: &Common) -> Vec<Value> {
    let namespace = ["agent".to_owned(), "waiting".to_owned()];
    let scope = MemoryScope::Host(None);
    let all = common.memory.list(&scope, &namespace, "", 10, NOW_MS).await.unwrap();
    all.into_iter().map(|item| item.value["stage"]["kind"].clone()).collect()
}

#[tokio::test]
async fn a_run_that_was_taken_out_halfway_is_not_begun() {
    let common = Common::new();
    let (one, (two, gates)) = (common.host().await, common.gated().await);
    let (_, first, waits) = waiting(&one).await;
    gates.fail("put runs");
    assert_eq!(two.post(&format!("{waits}/cancel"), Value::Null).await.status, 500);
    assert_eq!(stages(&common).await, ["dropped"]);
    one.let_go.send_replace(true);
    assert_eq!(items(&one, &first).await, json!(["a"]));
    settle().await;
    assert_eq!(status(&one, &waits).await, "interrupted");
    assert_eq!((*one.begun.borrow(), stages(&common).await), (1, Vec::new()));
}

#[tokio::test]
async fn what_was_taken_out_halfway_is_brought_to_its_end_while_all_hosts_live() {
    let common = Common::new();
    let (one, (two, gates)) = (common.host().await, common.gated().await);
    let (_, _, waits) = waiting(&one).await;
    gates.fail("put runs");
    assert_eq!(two.post(&format!("{waits}/cancel"), Value::Null).await.status, 500);
    let three = common.host().await;
    assert_eq!(status(&three, &waits).await, "interrupted");
    assert_eq!(stages(&common).await, Vec::<Value>::new());
}

#[tokio::test]
async fn a_run_that_was_put_into_the_queue_unheard_begins_all_the_same() {
    let common = Common::new();
    let (one, gates) = common.gated().await;
    let (thread, first, _) = waiting(&one).await;
    gates.fail("put_if waiting done");
    let unheard = one.post(&format!("/threads/{thread}/runs"), slow("c")).await;
    assert_eq!(unheard.status, 500, "{}", unheard.text);
    assert_eq!(stages(&common).await, ["waiting", "waiting"]);
    one.agents.look_around().await;
    one.agents.look_around().await;
    one.let_go.send_replace(true);
    items(&one, &first).await;
    one.begun(3).await;
    settle().await;
    let state = one.get(&format!("/threads/{thread}/state")).await.ok();
    assert_eq!(state["values"]["items"], json!(["a", "b", "c"]));
    assert_eq!((*one.begun.borrow(), stages(&common).await), (3, Vec::new()));
}

#[tokio::test]
async fn a_large_input_is_kept_once_the_run_has_begun_by_the_log_alone() {
    let common = Common::new();
    let one = common.host().await;
    let (thread, first, waits) = waiting(&one).await;
    let large = "x".repeat(65 << 10);
    let mut run = slow(&large);
    run["multitask_strategy"] = json!("interrupt");
    let at_once = begin(&one, &thread, run).await;
    one.begun(2).await;
    let later = begin(&one, &thread, slow(&large)).await;
    let small = begin(&one, &thread, slow("b")).await;
    for (place, is_kept) in [(&at_once, false), (&later, true), (&small, true)] {
        assert_eq!(one.get(place).await.ok()["kwargs"]["input"].is_object(), is_kept, "{place}");
    }
    one.let_go.send_replace(true);
    items(&one, &small).await;
    for (place, is_kept) in [(&first, true), (&waits, true), (&later, false), (&small, true)] {
        assert_eq!(one.get(place).await.ok()["kwargs"]["input"].is_object(), is_kept, "{place}");
    }
}

#[tokio::test]
async fn a_run_that_comes_to_the_queue_while_its_host_looks_around_waits_on() {
    let common = Common::new();
    let (one, gates) = common.gated().await;
    let gate = gates.hold("list waiting done");
    let ((_, first, waits), ()) = tokio::join!(
        async {
            let held = gate.reached().await;
            let found = waiting(&one).await;
            drop(held);
            found
        },
        one.agents.look_around(),
    );
    one.let_go.send_replace(true);
    items(&one, &first).await;
    settle().await;
    assert_eq!(*one.begun.borrow(), 2);
    assert_eq!(items(&one, &waits).await, json!(["a", "b"]));
}
