//! Seals and exports of batches.

use serde_json::{Value, json};
use wattle_graph::checkpoint::ListDelta;
use wattle_graph::id::{Digest, ThreadId};
use wattle_graph::seal::Sealer;
use wattle_graph::weight::weight;
use wattle_run::ports::Store;
use wattle_run::ports::store::{
    Batch, BatchPage, PruneStrategy, SealReport, StoredBatch, StoredValue,
};

use crate::fixtures::{append, batch, checkpoint, create, event, events, id, run_id, thread_id};
use crate::retention::three_runs;

fn json_of<T: serde::Serialize + ?Sized>(record: &T) -> Vec<u8> {
    serde_json::to_vec(record).unwrap()
}

/// Computes the seal of a batch from its export.
fn seal_of(previous: Option<Digest>, batch: &StoredBatch) -> Digest {
    let mut sealer = Sealer::new(previous, batch.base);
    sealer.part(&if batch.events.is_empty() { Vec::new() } else { json_of(&batch.events) });
    if let Some(meta) = &batch.checkpoint {
        sealer.part(&json_of(meta));
        for (channel, value) in &batch.values {
            let (list_delta, json) = match value {
                StoredValue::Whole(value) => (None, json_of(value)),
                StoredValue::ListDelta { base, keep, items } => {
                    (Some(ListDelta { base: *base, prefix_len: *keep }), json_of(items))
                }
            };
            sealer.value(channel.as_str(), list_delta, &json);
        }
    }
    sealer.finish()
}

async fn exported(store: &dyn Store, thread: &ThreadId, bytes: usize) -> Vec<StoredBatch> {
    let mut all: Vec<StoredBatch> = Vec::new();
    let mut from = None;
    loop {
        let page = store.batches(thread, from, bytes).await.unwrap();
        all.extend(page.batches);
        match page.next {
            Some(next) => from = Some(next),
            None => return all,
        }
    }
}

pub(crate) async fn seals_can_be_recomputed_from_an_export(store: &dyn Store) {
    let thread = three_runs(store, "t").await;
    let values = [
        ("float", json!([0.1 + 0.2, 1e300, -0.0, 5e-324])),
        ("integer", json!([u64::MAX, i64::MIN])),
        ("object", json!({ "z": 1, "a": { "y": null, "b": "\0 \u{1f33e} \" \\ /" } })),
        ("text", json!("x".repeat(3000))),
    ];
    let data = json!({ "second": 2.5, "first": [u64::MAX] });
    let next = Batch {
        base: Some(id(3)),
        events: vec![event(7, data)].into(),
        ..batch(checkpoint(4, Some(3), &values, &[("list", 3)]))
    };
    append(store, &thread, next).await.unwrap();
    let batches = exported(store, &thread, usize::MAX).await;
    assert_eq!(batches.len(), 7);
    let mut seal = None;
    for batch in &batches {
        // Writes and reads the batch as an export does.
        let read: StoredBatch = serde_json::from_slice(&json_of(batch)).unwrap();
        assert_eq!(&read, batch);
        seal = Some(seal_of(seal, &read));
        assert_eq!(batch.seal, seal);
    }
    let head = store.thread(&thread).await.unwrap().unwrap();
    assert_eq!(head.seal, seal);
    let verified = SealReport { sealed_after: 0, last_seq: 7, seal };
    assert_eq!(store.verify(&thread).await.unwrap(), Some(verified));
}

pub(crate) async fn lists_are_exported_as_list_deltas(store: &dyn Store) {
    let thread = three_runs(store, "t").await;
    let batches = exported(store, &thread, usize::MAX).await;
    let lists: Vec<&StoredValue> = batches
        .iter()
        .flat_map(|batch| &batch.values)
        .filter(|(channel, _)| channel.as_str() == "list")
        .map(|(_, value)| value)
        .collect();
    let list_delta = |base, keep, items: Value| StoredValue::ListDelta {
        base: id(base),
        keep,
        items: items.as_array().unwrap().clone(),
    };
    let expected = [
        &StoredValue::Whole(json!(["one"])),
        &list_delta(1, 1, json!(["two"])),
        &list_delta(2, 2, json!(["three"])),
    ];
    assert_eq!(lists, expected);
}

pub(crate) async fn exports_are_paged(store: &dyn Store) {
    let thread = create(store, "t").await;
    append(store, &thread, batch(checkpoint(1, None, &[("a", json!(1))], &[]))).await.unwrap();
    for seq in 1..=20 {
        append(store, &thread, events(seq, seq)).await.unwrap();
        if seq % 4 == 0 {
            // Batches without events are exported too, each exactly once.
            let next = batch(checkpoint(seq, None, &[("a", json!(seq))], &[]));
            append(store, &thread, next).await.unwrap();
        }
    }
    let whole = exported(store, &thread, usize::MAX).await;
    assert_eq!(whole.len(), 26);
    for bytes in [0, 1, 700] {
        assert_eq!(exported(store, &thread, bytes).await, whole, "{bytes} at once");
    }
    assert_eq!(store.batches(&thread, None, 0).await.unwrap().batches.len(), 1);
    let missing = store.batches(&thread_id("missing"), None, 9).await.unwrap();
    assert_eq!(missing, BatchPage::default());
}

/// A list of empty lists takes 24 times as much memory as JSON, and compressed far fewer bytes.
pub(crate) async fn export_pages_are_bounded_in_memory(store: &dyn Store) {
    const PAGE_BYTES: usize = 200_000;
    let thread = create(store, "t").await;
    let dense = json!(vec![json!([]); 10_000]);
    assert!(json_of(&dense).len() * 3 < PAGE_BYTES && weight(&dense) > PAGE_BYTES as u64);
    for seq in 1..=3 {
        let events = vec![event(seq, dense.clone())].into();
        append(store, &thread, Batch { events, ..Batch::default() }).await.unwrap();
    }
    let page = store.batches(&thread, None, PAGE_BYTES).await.unwrap();
    assert_eq!((page.batches.len(), page.next.is_some()), (1, true));
    assert_eq!(exported(store, &thread, PAGE_BYTES).await.len(), 3);
}

/// Checks that all remaining batches of a thread are exported, in one page or in many: their seals
/// lead from the pruned seal to the newest seal of the thread.
async fn is_whole(store: &dyn Store, thread: &ThreadId) -> Vec<StoredBatch> {
    let head = store.thread(thread).await.unwrap().unwrap();
    assert!(head.pruned_seal.is_some());
    let batches = exported(store, thread, usize::MAX).await;
    let mut seal = head.pruned_seal;
    for batch in &batches {
        seal = Some(seal_of(seal, batch));
        assert_eq!(batch.seal, seal);
    }
    assert_eq!(head.seal, seal);
    assert_eq!(exported(store, thread, 0).await, batches);
    batches
}

pub(crate) async fn batches_kept_by_a_rewrite_are_exported(store: &dyn Store) {
    let thread = three_runs(store, "pruned").await;
    store.prune(&thread, PruneStrategy::KeepLatest).await.unwrap();
    let batches = is_whole(store, &thread).await;
    let made = |batch: &StoredBatch| batch.checkpoint.as_ref().map(|meta| meta.id.0);
    assert_eq!(made(&batches[0]), Some(3), "the current checkpoint");
    assert!(batches[0].events.is_empty());
    for run in ["one", "three"] {
        let thread = three_runs(store, run).await;
        store.delete_runs(&[run_id(&format!("{run} {run}"))]).await.unwrap();
        let made: Vec<u64> = is_whole(store, &thread).await.iter().filter_map(made).collect();
        assert_eq!(made, if run == "one" { [2, 3] } else { [1, 2] });
    }
}

pub(crate) async fn every_batch_changes_the_seal(store: &dyn Store) {
    let thread = create(store, "t").await;
    let seal = async || store.thread(&thread).await.unwrap().unwrap().seal;
    assert_eq!(seal().await, None);
    let mut seals = Vec::new();
    append(store, &thread, events(1, 1)).await.unwrap();
    seals.push(seal().await.unwrap());
    append(store, &thread, batch(checkpoint(1, None, &[], &[]))).await.unwrap();
    seals.push(seal().await.unwrap());
    append(store, &thread, Batch { base: Some(id(1)), ..events(2, 2) }).await.unwrap();
    seals.push(seal().await.unwrap());
    // Seals do not cover a batch that changes only the head.
    append(store, &thread, Batch { current: Some(id(1)), ..Batch::default() }).await.unwrap();
    assert_eq!(seal().await, seals.last().copied());
    seals.dedup();
    assert_eq!(seals.len(), 3);
    assert_eq!(store.verify(&thread_id("missing")).await.unwrap(), None);
    let empty = create(store, "empty").await;
    let nothing = SealReport { sealed_after: 0, last_seq: 0, seal: None };
    assert_eq!(store.verify(&empty).await.unwrap(), Some(nothing));
}
