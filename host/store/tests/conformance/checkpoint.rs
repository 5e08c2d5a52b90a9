//! Checkpoints: values, versions of channels, namespaces, pending events.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;
use wattle_graph::checkpoint::CheckpointSource;
use wattle_graph::event::EventKind;
use wattle_graph::id::{Namespace, NodeName, ThreadId};
use wattle_run::ports::Store;
use wattle_run::ports::store::{Batch, CheckpointOutline, StoreError, ThreadRecord};

use crate::fixtures::{
    append, batch, channel, checkpoint, create, event, events, from_json, id, incompressible_text,
    list_delta, read, record, run, run_id, seqs, thread_id,
};

pub(crate) async fn missing_thread_or_checkpoint_is_none(store: &dyn Store) {
    assert_eq!(read(store, &thread_id("missing"), None).await, None);
    assert_eq!(store.thread(&thread_id("missing")).await.unwrap(), None);
    let thread = create(store, "t").await;
    assert_eq!(read(store, &thread, None).await, None);
    append(store, &thread, batch(checkpoint(1, None, &[], &[]))).await.unwrap();
    for missing in [9, 0] {
        assert_eq!(read(store, &thread, Some(missing)).await, None);
        let outline = store.checkpoint_outline(&thread, &Namespace::root(), id(missing)).await;
        assert_eq!(outline.unwrap(), None);
    }
    let outline = store.checkpoint_outline(&thread_id("missing"), &Namespace::root(), id(1)).await;
    assert_eq!(outline.unwrap(), None);
}

pub(crate) async fn checkpoint_round_trips(store: &dyn Store) {
    let thread = create(store, "t").await;
    let mut first = checkpoint(0, None, &[("a", json!(1))], &[]);
    first.meta.source = CheckpointSource::Update;
    append(store, &thread, batch(first.clone())).await.unwrap();
    let mut second = checkpoint(3, Some(0), &[("b", json!("x"))], &[("a", 0)]);
    second.meta.run = run_id("another");
    second.meta.at_ms = -7;
    second.meta.step = 12;
    second.meta.next = from_json(json!([{ "node": "next", "from": "before", "input": [1.5] }]));
    let sources = BTreeSet::from([NodeName::new("x").unwrap(), NodeName::new("y").unwrap()]);
    second.meta.barriers = BTreeMap::from([("join".into(), sources)]);
    second.meta.metadata = BTreeMap::from([("parents".into(), json!({ "": 0 }))]);
    append(store, &thread, batch(second.clone())).await.unwrap();
    second.values.insert(channel("a"), json!(1).into());
    assert_eq!(read(store, &thread, None).await.unwrap().checkpoint, second);
    assert_eq!(read(store, &thread, Some(3)).await.unwrap().checkpoint, second);
    assert_eq!(read(store, &thread, Some(0)).await.unwrap().checkpoint, first);
}

pub(crate) async fn values_of_every_kind_round_trip(store: &dyn Store) {
    let thread = create(store, "t").await;
    let values = [
        ("null", json!(null)),
        ("text", json!("\0 \u{1f33e} \" \\ 线")),
        ("integer", json!(u64::MAX)),
        ("negative", json!(i64::MIN)),
        ("number", json!(0.1 + 0.2)),
        ("tiny", json!(5e-324)),
        ("list", json!([1, [2], {}])),
        ("object", json!({ "z": 1, "a": { "": [] } })),
        ("empty", json!("")),
    ];
    append(store, &thread, batch(checkpoint(1, None, &values, &[]))).await.unwrap();
    let tuple = read(store, &thread, None).await.unwrap();
    for (name, value) in values {
        let read = &tuple.checkpoint.values[name];
        assert_eq!(*read, value, "{name}");
        assert_eq!(json!(read).to_string(), value.to_string(), "key order");
    }
}

pub(crate) async fn many_checkpoints_are_all_readable(store: &dyn Store) {
    let thread = create(store, "t").await;
    for number in 1..=100 {
        let parent = (number > 1).then(|| number - 1);
        let next = checkpoint(number, parent, &[("n", json!(number))], &[]);
        append(store, &thread, batch(next)).await.unwrap();
    }
    for number in 1..=100 {
        let tuple = read(store, &thread, Some(number)).await.unwrap();
        assert_eq!(tuple.checkpoint.state(), json!({ "n": number }));
        assert_eq!(tuple.checkpoint.meta.parent, (number > 1).then(|| id(number - 1)));
    }
}

pub(crate) async fn threads_are_isolated(store: &dyn Store) {
    for name in ["a", "b"] {
        let thread = create(store, name).await;
        append(store, &thread, batch(checkpoint(1, None, &[("x", json!(name))], &[])))
            .await
            .unwrap();
        append(store, &thread, Batch { base: Some(id(1)), ..events(1, 1) }).await.unwrap();
    }
    for name in ["a", "b"] {
        let tuple = read(store, &thread_id(name), None).await.unwrap();
        assert_eq!(tuple.checkpoint.state(), json!({ "x": name }));
        assert_eq!(tuple.events.len(), 1);
    }
}

pub(crate) async fn unchanged_channels_keep_their_values(store: &dyn Store) {
    let thread = create(store, "t").await;
    let first = checkpoint(1, None, &[("a", json!("a1")), ("b", json!("b1"))], &[]);
    append(store, &thread, batch(first)).await.unwrap();
    let second = checkpoint(2, Some(1), &[("b", json!("b2"))], &[("a", 1)]);
    append(store, &thread, batch(second)).await.unwrap();
    // Values of unchanged channels are ignored.
    let mut third = checkpoint(3, Some(2), &[("c", json!("c3"))], &[("a", 1), ("b", 2)]);
    third.values.insert(channel("a"), json!("ignored").into());
    append(store, &thread, batch(third)).await.unwrap();
    let state = read(store, &thread, None).await.unwrap().checkpoint.state();
    assert_eq!(state, json!({ "a": "a1", "b": "b2", "c": "c3" }));
}

pub(crate) async fn older_checkpoints_keep_their_values(store: &dyn Store) {
    let thread = create(store, "t").await;
    append(store, &thread, batch(checkpoint(1, None, &[("a", json!(1))], &[]))).await.unwrap();
    append(store, &thread, batch(checkpoint(2, Some(1), &[("a", json!(2))], &[]))).await.unwrap();
    append(store, &thread, batch(checkpoint(3, Some(2), &[], &[("a", 2)]))).await.unwrap();
    for (number, value) in [(1, 1), (2, 2), (3, 2)] {
        let tuple = read(store, &thread, Some(number)).await.unwrap();
        assert_eq!(tuple.checkpoint.state(), json!({ "a": value }));
    }
}

pub(crate) async fn dropped_channel_has_no_value(store: &dyn Store) {
    let thread = create(store, "t").await;
    let first = checkpoint(1, None, &[("a", json!(1)), ("b", json!(1))], &[]);
    append(store, &thread, batch(first)).await.unwrap();
    append(store, &thread, batch(checkpoint(2, Some(1), &[], &[("a", 1)]))).await.unwrap();
    // A channel without a value has a version but no value in the checkpoint.
    let mut third = checkpoint(3, Some(2), &[], &[]);
    third.meta.versions.insert(channel("a"), id(3));
    append(store, &thread, batch(third)).await.unwrap();
    assert_eq!(read(store, &thread, Some(2)).await.unwrap().checkpoint.state(), json!({ "a": 1 }));
    assert_eq!(read(store, &thread, Some(3)).await.unwrap().checkpoint.state(), json!({}));
}

pub(crate) async fn each_namespace_has_a_newest_checkpoint(store: &dyn Store) {
    let thread = create(store, "t").await;
    for (number, namespace) in [(1, ""), (2, "child"), (3, "child:1"), (4, "")] {
        let mut next = checkpoint(number, None, &[("x", json!(number))], &[]);
        next.meta.namespace = Namespace::new(namespace);
        append(store, &thread, batch(next)).await.unwrap();
    }
    for (namespace, newest) in
        [("", Some(4)), ("child", Some(2)), ("child:1", Some(3)), ("c", None)]
    {
        let tuple = store.checkpoint(&thread, &Namespace::new(namespace), None).await.unwrap();
        assert_eq!(tuple.map(|tuple| tuple.checkpoint.meta.id), newest.map(id), "{namespace}");
    }
    let elsewhere = store.checkpoint(&thread, &Namespace::new("child"), Some(id(4))).await.unwrap();
    assert_eq!(elsewhere, None, "an id of another namespace");
    let outline = store.checkpoint_outline(&thread, &Namespace::new("child"), id(4)).await.unwrap();
    assert_eq!(outline, None, "an id of another namespace");
}

pub(crate) async fn pending_events_belong_to_their_base(store: &dyn Store) {
    let thread = create(store, "t").await;
    append(store, &thread, events(1, 1)).await.unwrap();
    let first = checkpoint(1, None, &[], &[]);
    append(store, &thread, Batch { checkpoint: Some(first), ..events(2, 2) }).await.unwrap();
    append(store, &thread, Batch { base: Some(id(1)), ..events(3, 4) }).await.unwrap();
    let second = checkpoint(2, Some(1), &[], &[]);
    let step = Batch { base: Some(id(1)), checkpoint: Some(second), ..events(5, 5) };
    append(store, &thread, step).await.unwrap();
    append(store, &thread, Batch { base: Some(id(2)), ..events(6, 6) }).await.unwrap();
    // A second event whose base is the first checkpoint.
    append(store, &thread, Batch { base: Some(id(1)), ..events(7, 7) }).await.unwrap();
    let pending = async |number| seqs(&read(store, &thread, Some(number)).await.unwrap().events);
    assert_eq!(pending(1).await, [3, 4, 5, 7]);
    assert_eq!(pending(2).await, [6]);
    assert_eq!(seqs(&read(store, &thread, None).await.unwrap().events), [6]);
}

pub(crate) async fn pending_events_keep_their_order_across_batches(store: &dyn Store) {
    let thread = create(store, "t").await;
    append(store, &thread, batch(checkpoint(1, None, &[], &[]))).await.unwrap();
    let finished = |seq, task: &str| {
        let mut event = event(seq, json!(null));
        event.kind = EventKind::TaskFinished(from_json(json!({
            "task": task,
            "node": "node",
            "base": 1,
            "writes": [
                { "channel": "a", "value": task },
                { "channel": "a", "value": null, "overwrite": true },
            ],
            "duration_us": 5,
        })));
        event
    };
    let all = [finished(1, "z"), finished(2, "a"), finished(3, "z")];
    for event in &all {
        let batch =
            Batch { base: Some(id(1)), events: vec![event.clone()].into(), ..Batch::default() };
        append(store, &thread, batch).await.unwrap();
    }
    assert_eq!(read(store, &thread, None).await.unwrap().events, all);
}

pub(crate) async fn new_checkpoint_has_no_pending_events(store: &dyn Store) {
    let thread = create(store, "t").await;
    append(store, &thread, batch(checkpoint(1, None, &[], &[]))).await.unwrap();
    append(store, &thread, Batch { base: Some(id(1)), ..events(1, 3) }).await.unwrap();
    append(store, &thread, batch(checkpoint(2, Some(1), &[], &[]))).await.unwrap();
    assert!(read(store, &thread, None).await.unwrap().events.is_empty());
}

pub(crate) async fn unchanged_channel_is_not_written_again(store: &dyn Store) {
    let thread = create(store, "t").await;
    let text = incompressible_text(131_072);
    let large = [("large", json!(text)), ("n", json!(0))];
    append(store, &thread, batch(checkpoint(1, None, &large, &[]))).await.unwrap();
    let before = store.stored_bytes(&thread).await.unwrap();
    assert!(before > 400_000, "{before}");
    for number in 2..=51 {
        let mut next =
            checkpoint(number, Some(number - 1), &[("n", json!(number))], &[("large", 1)]);
        next.values.insert(channel("large"), large[0].1.clone().into());
        append(store, &thread, batch(next)).await.unwrap();
    }
    let grown = store.stored_bytes(&thread).await.unwrap() - before;
    assert!(grown < 50 * 1024, "50 small checkpoints took {grown} bytes");
    let last = read(store, &thread, Some(51)).await.unwrap();
    assert!(last.checkpoint.values["large"] == large[0].1);
}

pub(crate) async fn current_checkpoint_can_move_back(store: &dyn Store) {
    let thread = create(store, "t").await;
    append(store, &thread, batch(checkpoint(1, None, &[("a", json!(1))], &[]))).await.unwrap();
    append(store, &thread, batch(checkpoint(2, Some(1), &[("a", json!(2))], &[]))).await.unwrap();
    append(store, &thread, Batch { current: Some(id(1)), ..events(1, 1) }).await.unwrap();
    let head = store.thread(&thread).await.unwrap().unwrap();
    assert_eq!((head.current, head.last_checkpoint), (Some(id(1)), Some(id(2))));
    // Checkpoint ids are not reused, and the newest checkpoint of a namespace has the highest id.
    let again = batch(checkpoint(2, Some(1), &[], &[]));
    assert!(append(store, &thread, again).await.is_err());
    assert_eq!(read(store, &thread, None).await.unwrap().checkpoint.meta.id, id(2));
    append(store, &thread, batch(checkpoint(3, Some(1), &[], &[("a", 1)]))).await.unwrap();
    let head = store.thread(&thread).await.unwrap().unwrap();
    assert_eq!((head.current, head.last_checkpoint), (Some(id(3)), Some(id(3))));
    assert_eq!(read(store, &thread, None).await.unwrap().checkpoint.state(), json!({ "a": 1 }));
}

pub(crate) async fn fork_reads_values_of_an_older_checkpoint(store: &dyn Store) {
    let thread = create(store, "t").await;
    let values = [("a", json!("a1")), ("b", json!("b1"))];
    append(store, &thread, batch(checkpoint(1, None, &values, &[]))).await.unwrap();
    append(store, &thread, batch(checkpoint(2, Some(1), &[("a", json!("a2"))], &[("b", 1)])))
        .await
        .unwrap();
    append(store, &thread, batch(checkpoint(3, Some(2), &[("b", json!("b3"))], &[("a", 2)])))
        .await
        .unwrap();
    append(store, &thread, batch(checkpoint(4, Some(2), &[], &[("a", 2), ("b", 1)])))
        .await
        .unwrap();
    let state = read(store, &thread, None).await.unwrap().checkpoint.state();
    assert_eq!(state, json!({ "a": "a2", "b": "b1" }));
}

pub(crate) async fn subgraphs_do_not_move_the_current_checkpoint(store: &dyn Store) {
    let thread = create(store, "t").await;
    let current = async || store.thread(&thread).await.unwrap().unwrap().current;
    let nested = |number| {
        let mut next = checkpoint(number, None, &[("x", json!(number))], &[]);
        next.meta.namespace = Namespace::new("child");
        batch(next)
    };
    append(store, &thread, nested(1)).await.unwrap();
    assert_eq!(current().await, None);
    append(store, &thread, batch(checkpoint(2, None, &[], &[]))).await.unwrap();
    append(store, &thread, nested(3)).await.unwrap();
    assert_eq!(current().await, Some(id(2)));
    assert_eq!(store.thread(&thread).await.unwrap().unwrap().last_checkpoint, Some(id(3)));
    for refused in [1, 3, 4] {
        let back = Batch { current: Some(id(refused)), ..Batch::default() };
        let error = append(store, &thread, back).await.unwrap_err();
        assert!(matches!(error, StoreError::InvalidBatch { .. }), "{refused}: {error}");
    }
    assert_eq!(current().await, Some(id(2)));
}

async fn check_latest(store: &dyn Store, thread: &ThreadId) {
    let latest = store.thread_snapshot(thread).await.unwrap().unwrap();
    assert_eq!(Some(&latest.head), store.thread(thread).await.unwrap().as_ref());
    let tuple = match latest.head.current {
        Some(id) => store.checkpoint(thread, &Namespace::root(), Some(id)).await.unwrap(),
        None => None,
    };
    assert_eq!(latest.tuple, tuple);
    if let Some(mut tuple) = tuple {
        let at = tuple.checkpoint.meta.id;
        let outline = store.checkpoint_outline(thread, &Namespace::root(), at).await.unwrap();
        tuple.checkpoint.values.clear();
        assert_eq!(outline, Some(CheckpointOutline { head: latest.head.clone(), tuple }));
    }
    let run = latest.head.record.run.clone();
    assert_eq!(latest.run.map(|run| run.id), run);
}

pub(crate) async fn thread_snapshot_matches_separate_reads(store: &dyn Store) {
    assert_eq!(store.thread_snapshot(&thread_id("missing")).await.unwrap(), None);
    let thread = create(store, "t").await;
    check_latest(store, &thread).await;
    let record = ThreadRecord { run: Some(run_id("second")), ..record(&thread) };
    for name in ["first", "second"] {
        let run = Some(run(&thread, name));
        let record = Some(record.clone());
        append(store, &thread, Batch { run, record, ..Batch::default() }).await.unwrap();
    }
    let large = json!("x".repeat(100_000));
    let values = [("a", json!([1])), ("b", json!("b1")), ("large", large)];
    append(store, &thread, batch(checkpoint(1, None, &values, &[]))).await.unwrap();
    append(store, &thread, Batch { base: Some(id(1)), ..events(1, 2) }).await.unwrap();
    check_latest(store, &thread).await;
    let mut grown = checkpoint(2, Some(1), &[("a", json!([1, 2]))], &[("b", 1), ("large", 1)]);
    grown.list_deltas.extend([list_delta("a", 1, 1)]);
    append(store, &thread, batch(grown)).await.unwrap();
    append(store, &thread, batch(checkpoint(3, Some(2), &[("b", json!("b3"))], &[("a", 2)])))
        .await
        .unwrap();
    check_latest(store, &thread).await;
    // The fourth checkpoint is a fork: the newest versions belong to the other branch.
    append(store, &thread, batch(checkpoint(4, Some(2), &[], &[("a", 2), ("b", 1)])))
        .await
        .unwrap();
    check_latest(store, &thread).await;
    let state =
        store.thread_snapshot(&thread).await.unwrap().unwrap().tuple.unwrap().checkpoint.state();
    assert_eq!(state, json!({ "a": [1, 2], "b": "b1" }));
    // The fifth checkpoint belongs to a subgraph with the same channel names.
    let mut nested = checkpoint(5, None, &[("a", json!([5]))], &[]);
    nested.meta.namespace = Namespace::new("child");
    append(store, &thread, batch(nested)).await.unwrap();
    check_latest(store, &thread).await;
    append(store, &thread, Batch { current: Some(id(1)), ..Batch::default() }).await.unwrap();
    check_latest(store, &thread).await;
    assert_eq!(
        seqs(&store.thread_snapshot(&thread).await.unwrap().unwrap().tuple.unwrap().events),
        [1, 2]
    );
}
