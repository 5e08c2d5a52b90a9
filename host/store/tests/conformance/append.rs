//! Batches: order, conflicts, refusals, sizes.

use serde_json::{Value, json};
use wattle_graph::id::ThreadId;
use wattle_run::ports::Store;
use wattle_run::ports::store::{Batch, RecoveryCount, StoreError, ThreadRecord};

use crate::fixtures::{
    all_runs, append, batch, checkpoint, create, event, events, id, incompressible_text, read,
    record, run, seqs, thread_id,
};

fn is_conflict(result: Result<(), StoreError>, newest: u64, found: u64) -> bool {
    matches!(result, Err(StoreError::Conflict { newest: n, found: f, .. }) if (n, f) == (newest, found))
}

fn is_invalid(result: Result<(), StoreError>) -> bool {
    matches!(result, Err(StoreError::InvalidBatch { .. }))
}

pub(crate) async fn batches_are_appended_in_order(store: &dyn Store) {
    let thread = create(store, "t").await;
    append(store, &thread, events(1, 2)).await.unwrap();
    append(store, &thread, events(3, 3)).await.unwrap();
    let head = store.thread(&thread).await.unwrap().unwrap();
    assert_eq!((head.last_seq, head.last_checkpoint, head.current), (3, None, None));
    assert_eq!(head.record, record(&thread));
    assert_eq!(seqs(&store.events(&thread, 0, 10).await.unwrap()), [1, 2, 3]);
}

pub(crate) async fn gap_or_repetition_of_sequence_numbers_is_a_conflict(store: &dyn Store) {
    let thread = create(store, "t").await;
    append(store, &thread, events(1, 2)).await.unwrap();
    assert!(is_conflict(append(store, &thread, events(4, 4)).await, 2, 4));
    assert!(is_conflict(append(store, &thread, events(2, 3)).await, 2, 2));
    let missing = thread_id("missing");
    assert!(is_conflict(append(store, &missing, events(5, 5)).await, 0, 5));
    append(store, &thread, events(3, 3)).await.unwrap();
}

pub(crate) async fn batches_queued_behind_a_conflict_conflict(store: &dyn Store) {
    let (thread, other) = (create(store, "t").await, create(store, "other").await);
    append(store, &thread, events(1, 1)).await.unwrap();
    let stale = store.append(&thread, events(1, 2)).await;
    let queued = store.append(&thread, events(3, 3)).await;
    let innocent = store.append(&other, events(1, 1)).await;
    assert!(is_conflict(stale.await, 1, 1));
    assert!(is_conflict(queued.await, 1, 3));
    innocent.await.unwrap();
    assert_eq!(store.thread(&thread).await.unwrap().unwrap().last_seq, 1);
}

/// The writer appended the batch before it knew that the store had refused its previous batch.
pub(crate) async fn batch_without_events_after_a_conflict_conflicts(store: &dyn Store) {
    let thread = create(store, "t").await;
    let (before, changed) = (record(&thread), ThreadRecord { updated_ms: 99, ..record(&thread) });
    let first = Batch { checkpoint: Some(checkpoint(1, None, &[], &[])), ..events(1, 1) };
    append(store, &thread, first).await.unwrap();
    let new_record = Batch { record: Some(changed.clone()), ..Batch::default() };
    let new_checkpoint = batch(checkpoint(2, Some(1), &[("a", json!(1))], &[]));
    let moved = Batch { current: Some(id(1)), ..new_record.clone() };
    let refused = store.append(&thread, events(3, 3)).await;
    let mut queued = Vec::new();
    for batch in [new_record.clone(), new_checkpoint, moved] {
        queued.push(store.append(&thread, Batch { after_seq: Some(3), ..batch }).await);
    }
    assert!(is_conflict(refused.await, 1, 3));
    for ticket in queued {
        assert!(is_conflict(ticket.await, 1, 4));
    }
    let late = Batch { after_seq: Some(0), ..new_record.clone() };
    assert!(is_conflict(append(store, &thread, late).await, 1, 1));
    let head = store.thread(&thread).await.unwrap().unwrap();
    assert_eq!((head.record, head.last_checkpoint), (before, Some(id(1))));
    append(store, &thread, Batch { after_seq: Some(1), ..new_record }).await.unwrap();
    assert_eq!(store.thread(&thread).await.unwrap().unwrap().record, changed);
}

pub(crate) async fn batch_without_events_replaces_the_record_of_a_run(store: &dyn Store) {
    let thread = create(store, "t").await;
    let mut run = run(&thread, "r");
    let started = Batch { run: Some(run.clone()), ..events(1, 1) };
    append(store, &thread, started).await.unwrap();
    run.recovery_count = RecoveryCount { without_progress: 2, is_handed_over: true };
    let replaced = Batch { run: Some(run.clone()), after_seq: Some(1), ..Batch::default() };
    append(store, &thread, replaced).await.unwrap();
    assert_eq!(store.run(&run.id).await.unwrap(), Some(run));
}

pub(crate) async fn refused_batch_writes_nothing(store: &dyn Store) {
    let thread = create(store, "t").await;
    let mut changed = record(&thread);
    changed.updated_ms = 99;
    let stale = Batch {
        record: Some(changed),
        run: Some(run(&thread, "r")),
        checkpoint: Some(checkpoint(1, None, &[("a", json!(1))], &[])),
        ..events(2, 3)
    };
    let before = store.stored_bytes(&thread).await.unwrap();
    assert!(is_conflict(append(store, &thread, stale).await, 0, 2));
    assert_eq!(store.thread(&thread).await.unwrap().unwrap().record, record(&thread));
    assert!(all_runs(store, &thread).await.is_empty());
    assert_eq!(read(store, &thread, None).await, None);
    assert_eq!(store.stored_bytes(&thread).await.unwrap(), before);
}

pub(crate) async fn first_batch_of_a_thread_needs_a_thread_record(store: &dyn Store) {
    let thread = thread_id("t");
    assert!(is_invalid(append(store, &thread, events(1, 1)).await));
    assert_eq!(store.thread(&thread).await.unwrap(), None);
    let whole = Batch { record: Some(record(&thread)), ..events(1, 1) };
    append(store, &thread, whole).await.unwrap();
}

pub(crate) async fn invalid_batches_are_refused(store: &dyn Store) {
    let thread = create(store, "t").await;
    append(store, &thread, batch(checkpoint(5, None, &[("a", json!(1))], &[]))).await.unwrap();
    let other = thread_id("other");
    let gap = vec![event(1, json!(1)), event(3, json!(3))];
    let mut unversioned = checkpoint(6, Some(5), &[("a", json!(1))], &[]);
    unversioned.meta.versions.clear();
    // A `Vec` and not an array, because batches are too large for the stack.
    let refused = vec![
        ("gap between the events", Batch { events: gap.into(), ..Batch::default() }),
        ("record of another thread", Batch { record: Some(record(&other)), ..Batch::default() }),
        ("run of another thread", Batch { run: Some(run(&other, "r")), ..Batch::default() }),
        ("checkpoint id in use", batch(checkpoint(5, None, &[], &[]))),
        ("lower checkpoint id", batch(checkpoint(4, None, &[], &[]))),
        ("parent does not exist yet", batch(checkpoint(6, Some(6), &[], &[]))),
        ("version does not exist yet", batch(checkpoint(6, Some(5), &[], &[("a", 7)]))),
        ("version was never written", batch(checkpoint(6, Some(5), &[], &[("a", 3)]))),
        ("value without version", batch(unversioned)),
        ("base does not exist yet", Batch { base: Some(id(6)), ..events(1, 1) }),
        (
            "current checkpoint does not exist yet",
            Batch { current: Some(id(6)), ..Batch::default() },
        ),
        (
            "current checkpoint was never written",
            Batch { current: Some(id(2)), ..Batch::default() },
        ),
        (
            "two current checkpoints",
            Batch { current: Some(id(5)), ..batch(checkpoint(6, Some(5), &[], &[])) },
        ),
    ];
    for (what, batch) in refused {
        assert!(is_invalid(append(store, &thread, batch).await), "{what}");
    }
    let head = store.thread(&thread).await.unwrap().unwrap();
    assert_eq!((head.last_seq, head.last_checkpoint), (0, Some(id(5))));
}

pub(crate) async fn tickets_resolve_in_order(store: &dyn Store) {
    let threads: Vec<ThreadId> =
        [create(store, "a").await, create(store, "b").await, create(store, "c").await].into();
    let mut tickets = Vec::new();
    for seq in 1..=50 {
        for thread in &threads {
            tickets.push((thread, seq, store.append(thread, events(seq, seq)).await));
        }
    }
    for (thread, seq, ticket) in tickets {
        ticket.await.unwrap();
        let durable = store.thread(thread).await.unwrap().unwrap().last_seq;
        assert!(durable >= seq, "{durable} < {seq}");
    }
}

pub(crate) async fn dropping_a_ticket_does_not_undo_its_batch(store: &dyn Store) {
    let thread = create(store, "t").await;
    drop(store.append(&thread, events(1, 1)).await);
    append(store, &thread, events(2, 2)).await.unwrap();
    assert_eq!(seqs(&store.events(&thread, 0, 10).await.unwrap()), [1, 2]);
}

pub(crate) async fn large_values_round_trip(store: &dyn Store) {
    let thread = create(store, "t").await;
    let text = incompressible_text(1_250_000);
    assert_eq!(text.len(), 10_000_000);
    let value = json!({ "noise": text });
    let large = Batch {
        events: vec![event(1, value.clone())].into(),
        ..batch(checkpoint(1, None, &[("a", value.clone()), ("b", json!(1))], &[]))
    };
    append(store, &thread, large).await.unwrap();
    append(store, &thread, events(2, 2)).await.unwrap();
    let tuple = read(store, &thread, None).await.unwrap();
    assert!(tuple.checkpoint.state() == json!({ "a": value, "b": 1 }));
    let read = store.events(&thread, 0, 10).await.unwrap();
    assert!(read == [event(1, value)]);
    assert_eq!(seqs(&store.events(&thread, 1, 10).await.unwrap()), [2]);
}

pub(crate) async fn too_deeply_nested_values_are_refused(store: &dyn Store) {
    let thread = create(store, "t").await;
    let nested = |depth: usize| (0..depth).fold(json!(0), |value: Value, _| json!([value]));
    let batch = |value| Batch { events: vec![event(1, value)].into(), ..Batch::default() };
    assert!(is_invalid(append(store, &thread, batch(nested(126))).await));
    append(store, &thread, batch(nested(100))).await.unwrap();
    assert!(store.events(&thread, 0, 1).await.unwrap()[0] == event(1, nested(100)));
}

pub(crate) async fn any_text_is_a_valid_thread_id(store: &dyn Store) {
    let long = "x".repeat(512);
    let names = ["线程", "\0", "a\0b", "a", "a/../b", "'; drop table", "\u{10ffff}", &long];
    for name in names {
        let thread = create(store, name).await;
        append(store, &thread, events(1, 1)).await.unwrap();
        let run = Batch { run: Some(run(&thread, name)), ..Batch::default() };
        append(store, &thread, run).await.unwrap();
    }
    for name in names {
        let thread = thread_id(name);
        assert_eq!(store.thread(&thread).await.unwrap().unwrap().record.id, thread);
        assert_eq!(all_runs(store, &thread).await, [run(&thread, name)]);
        assert_eq!(seqs(&store.events(&thread, 0, 9).await.unwrap()), [1]);
    }
}
