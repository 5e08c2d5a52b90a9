//! List deltas: each version of a list can be read, and each item is stored once.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wattle_graph::checkpoint::Checkpoint;
use wattle_graph::event::{Event, EventKind};
use wattle_graph::id::ThreadId;
use wattle_run::ports::Store;
use wattle_run::ports::store::{Batch, CheckpointQuery};

use crate::fixtures::{
    append, batch, channel, checkpoint, create, event, from_json, incompressible_text, list_delta,
    read,
};

/// Returns a checkpoint with the hint that its list keeps items of the previous version.
fn append_items(number: u64, list: &[Value], keep: u32) -> Checkpoint {
    let mut next = checkpoint(number, Some(number - 1), &[("list", json!(list))], &[]);
    next.list_deltas = BTreeMap::from([list_delta("list", number - 1, keep)]);
    next
}

async fn list_at(store: &dyn Store, thread: &ThreadId, number: u64) -> Value {
    let tuple = read(store, thread, Some(number)).await.unwrap();
    tuple.checkpoint.values[&channel("list")].value().into_owned()
}

pub(crate) async fn every_version_of_a_list_round_trips(store: &dyn Store) {
    let thread = create(store, "t").await;
    let mut list: Vec<Value> = vec![json!("first"), json!(2.5), json!({ "deep": [null] })];
    let mut versions = vec![list.clone()];
    append(store, &thread, batch(checkpoint(1, None, &[("list", json!(list))], &[])))
        .await
        .unwrap();
    // In these versions, the list grows, loses its last items, changes in the middle, stays equal,
    // and becomes empty.
    let changes: [(usize, usize); 9] =
        [(3, 1), (4, 4), (8, 0), (5, 2), (2, 3), (5, 1), (1, 0), (0, 2), (2, 0)];
    for (number, (keep, new)) in (2..).zip(changes) {
        list.truncate(keep);
        list.extend((0..new).map(|n| json!(format!("{number} \0 {n}"))));
        append(store, &thread, batch(append_items(number, &list, keep as u32))).await.unwrap();
        versions.push(list.clone());
    }
    for (number, version) in (1..).zip(&versions) {
        assert_eq!(list_at(store, &thread, number).await, json!(version), "version {number}");
    }
    let all = store.checkpoints(&thread, &CheckpointQuery::default()).await.unwrap().items;
    let listed: Vec<Value> =
        all.iter().rev().map(|tuple| tuple.checkpoint.state()["list"].clone()).collect();
    assert_eq!(json!(listed), json!(versions));
    assert!(store.verify(&thread).await.unwrap().is_some());
}

pub(crate) async fn list_deltas_can_follow_older_versions(store: &dyn Store) {
    let thread = create(store, "t").await;
    let values = [("list", json!([1])), ("other", json!([1]))];
    append(store, &thread, batch(checkpoint(1, None, &values, &[]))).await.unwrap();
    let mut second = checkpoint(2, Some(1), &[("list", json!([1, 2]))], &[("other", 1)]);
    second.list_deltas = BTreeMap::from([list_delta("list", 1, 1)]);
    append(store, &thread, batch(second)).await.unwrap();
    append(store, &thread, batch(checkpoint(3, Some(2), &[], &[("list", 2), ("other", 1)])))
        .await
        .unwrap();
    // Both lists extend versions that are older than the previous checkpoint.
    let values = [("list", json!([1, 2, 4])), ("other", json!([1, 4]))];
    let mut fourth = checkpoint(4, Some(3), &values, &[]);
    fourth.list_deltas = BTreeMap::from([list_delta("list", 2, 2), list_delta("other", 1, 1)]);
    append(store, &thread, batch(fourth)).await.unwrap();
    // The fifth checkpoint is a fork from the second checkpoint.
    let mut fork = checkpoint(5, Some(2), &[("list", json!([1, 5]))], &[("other", 1)]);
    fork.list_deltas = BTreeMap::from([list_delta("list", 2, 1)]);
    append(store, &thread, batch(fork)).await.unwrap();
    let expected = [
        json!({ "list": [1], "other": [1] }),
        json!({ "list": [1, 2], "other": [1] }),
        json!({ "list": [1, 2], "other": [1] }),
        json!({ "list": [1, 2, 4], "other": [1, 4] }),
        json!({ "list": [1, 5], "other": [1] }),
    ];
    for (number, state) in (1..).zip(expected) {
        let tuple = read(store, &thread, Some(number)).await.unwrap();
        assert_eq!(tuple.checkpoint.state(), state, "checkpoint {number}");
    }
}

pub(crate) async fn invalid_delta_hints_are_ignored(store: &dyn Store) {
    let thread = create(store, "t").await;
    let values = [("list", json!([1, 2])), ("text", json!("x"))];
    append(store, &thread, batch(checkpoint(1, None, &values, &[]))).await.unwrap();
    let hints = [
        ("list", 1, 3, json!([1, 2, 3])),
        ("list", 1, 9, json!([1])),
        ("list", 1, 0, json!([])),
        ("text", 1, 1, json!(["x"])),
        ("list", 1, 1, json!("no list")),
        ("missing", 1, 1, json!([1])),
    ];
    for (number, (name, base, keep, value)) in (2..).zip(hints) {
        let mut next = checkpoint(number, Some(1), &[(name, value.clone())], &[]);
        next.list_deltas = BTreeMap::from([list_delta(name, base, keep)]);
        append(store, &thread, batch(next)).await.unwrap();
        let tuple = read(store, &thread, Some(number)).await.unwrap();
        assert_eq!(tuple.checkpoint.values[&channel(name)], value, "{name} in {number}");
    }
}

/// Returns the batch that an engine writes for a superstep: the event with the item, and the
/// checkpoint with the list.
fn step(number: u64, list: &[Value]) -> Batch {
    let item = list.last().unwrap();
    let mut finished: Event = event(number, json!(null));
    finished.kind = EventKind::TaskFinished(from_json(json!({
        "task": format!("task {number}"),
        "node": "node",
        "base": number - 1,
        "writes": [{ "channel": "list", "value": item }],
        "duration_us": 5,
    })));
    let next = append_items(number, list, list.len() as u32 - 1);
    Batch { events: vec![finished].into(), ..batch(next) }
}

pub(crate) async fn items_of_a_growing_list_are_stored_once(store: &dyn Store) {
    let thread = create(store, "t").await;
    append(store, &thread, batch(checkpoint(0, None, &[("list", json!([]))], &[]))).await.unwrap();
    let text = incompressible_text(20_000);
    let mut list = Vec::new();
    let mut log_bytes = 0;
    for number in 1..=200_u64 {
        // Each item has 1 KB that compression hardly shortens.
        list.push(json!(format!("{number} {}", &text[number as usize * 640..][..1000])));
        let step = step(number, &list);
        log_bytes += step.events.json().unwrap().len();
        append(store, &thread, step).await.unwrap();
    }
    let state_bytes = serde_json::to_vec(&list).unwrap().len();
    let stored = store.stored_bytes(&thread).await.unwrap();
    let bound = 2 * (state_bytes + log_bytes) as u64;
    assert!(stored <= bound, "{stored} bytes for {state_bytes} of state, {log_bytes} of log");
    assert_eq!(list_at(store, &thread, 200).await, json!(list));
    assert_eq!(list_at(store, &thread, 77).await, json!(list[..77]));
}

pub(crate) async fn long_delta_chains_stay_small_and_readable(store: &dyn Store) {
    let thread = create(store, "t").await;
    append(store, &thread, batch(checkpoint(0, None, &[("list", json!([]))], &[]))).await.unwrap();
    let mut list: Vec<Value> = Vec::new();
    let mut tickets = Vec::new();
    for number in 1..=1500_u64 {
        list.push(json!(format!("item {number}")));
        let next = append_items(number, &list, list.len() as u32 - 1);
        tickets.push(store.append(&thread, batch(next)).await);
    }
    for ticket in tickets {
        ticket.await.unwrap();
    }
    for number in [1_usize, 255, 256, 257, 258, 700, 1023, 1499, 1500] {
        assert_eq!(list_at(store, &thread, number as u64).await, json!(list[..number]));
    }
    let max_metadata_bytes = 1500 * 300;
    let state_bytes = serde_json::to_vec(&list).unwrap().len() as u64;
    let stored = store.stored_bytes(&thread).await.unwrap();
    assert!(
        stored < max_metadata_bytes + 4 * state_bytes,
        "{stored} bytes for {state_bytes} of state"
    );
    let mut next = checkpoint(1501, Some(1500), &[("x", json!(1))], &[("list", 1500)]);
    next.values.insert(channel("list"), json!(list).into());
    append(store, &thread, batch(next.clone())).await.unwrap();
    assert_eq!(read(store, &thread, None).await.unwrap().checkpoint, next);
}
