//! Copies of threads.

use serde_json::json;
use wattle_graph::id::{Digest, RunId, ThreadId};
use wattle_run::ports::Store;
use wattle_run::ports::blob::BlobRef;
use wattle_run::ports::store::{
    Batch, LeaseHolder, PruneStrategy, StoreError, ThreadRecord, ThreadStatus,
};

use crate::fixtures::{
    all_runs, append, batch, checkpoint, create, events, id, read, record, run_id, seqs, thread_id,
};
use crate::retention::{all, three_runs};

fn renamed(run: &RunId) -> RunId {
    run_id(&format!("copy of {run}"))
}

/// Returns the incarnation of a copy.
fn incarnation(copy: &ThreadId) -> RunId {
    run_id(&format!("incarnation of {copy}"))
}

async fn copy(store: &dyn Store, from: &ThreadId, to: &str) -> Result<ThreadId, StoreError> {
    let to = thread_id(to);
    store.copy_thread(from, &to, &incarnation(&to), &renamed).await.map(|()| to)
}

pub(crate) async fn copy_has_the_whole_history(store: &dyn Store) {
    let thread = three_runs(store, "t").await;
    let blob = BlobRef(Digest::of(b"blob"));
    let next = checkpoint(4, Some(3), &[("a", json!(blob.to_string()))], &[("list", 3)]);
    append(store, &thread, batch(next)).await.unwrap();
    append(store, &thread, Batch { current: Some(id(2)), ..Batch::default() }).await.unwrap();
    let copied = copy(store, &thread, "\0 copy").await.unwrap();
    let (old, new) = (all(store, &thread).await, all(store, &copied).await);
    assert_eq!(old.len(), new.len());
    for (mut old, new) in old.into_iter().zip(new) {
        old.checkpoint.meta.run = renamed(&old.checkpoint.meta.run);
        old.events.iter_mut().for_each(|event| event.run = renamed(&event.run));
        assert_eq!(new, old);
    }
    let source = store.thread(&thread).await.unwrap().unwrap();
    let head = store.thread(&copied).await.unwrap().unwrap();
    assert_eq!((head.current, head.last_checkpoint), (Some(id(2)), Some(id(4))));
    assert_eq!((head.last_seq, head.pruned_seq), (6, 0));
    assert_eq!(head.record.origin(), &thread);
    assert_eq!(head.record.run, source.record.run.as_ref().map(renamed));
    assert_eq!(head.record.context, source.record.context);
    assert_eq!(head.record.incarnation, Some(incarnation(&copied)));
    let runs = all_runs(store, &copied).await;
    let names: Vec<&str> = runs.iter().map(|run| run.id.as_str()).collect();
    assert_eq!(names, ["copy of t one", "copy of t two", "copy of t three"]);
    assert!(runs.iter().all(|run| run.thread == copied));
    assert!(runs.iter().all(|run| renamed(run.origin()) == run.id));
    assert_eq!(seqs(&store.events(&copied, 0, 9).await.unwrap()), [1, 2, 3, 4, 5, 6]);
    assert!(store.mentions(&copied, blob).await.unwrap());
    store.verify(&copied).await.unwrap().unwrap();
    let again = copy(store, &copied, "third").await.unwrap();
    let head = store.thread(&again).await.unwrap().unwrap();
    assert_eq!(head.record.origin(), &thread, "the original of the original");
    let runs = all_runs(store, &again).await;
    assert!(runs.iter().all(|run| renamed(&renamed(run.origin())) == run.id));
}

pub(crate) async fn copy_of_a_thread_without_runs_has_its_own_incarnation(store: &dyn Store) {
    let thread = create(store, "t").await;
    let copied = copy(store, &thread, "copy").await.unwrap();
    let head = store.thread(&copied).await.unwrap().unwrap();
    assert_eq!(head.record.incarnation, Some(incarnation(&copied)));
    assert_eq!((head.record.run, head.record.origin), (None, Some(thread)));
}

pub(crate) async fn copy_is_independent_of_its_original(store: &dyn Store) {
    let thread = three_runs(store, "t").await;
    let before = (store.thread(&thread).await.unwrap(), all(store, &thread).await);
    let copied = copy(store, &thread, "copy").await.unwrap();
    append(store, &copied, Batch { base: Some(id(3)), ..events(7, 7) }).await.unwrap();
    let older = [("one", 1), ("two", 2), ("list", 3)];
    append(store, &copied, batch(checkpoint(4, Some(3), &[("three", json!(4))], &older)))
        .await
        .unwrap();
    assert_eq!((store.thread(&thread).await.unwrap(), all(store, &thread).await), before);
    store.delete_thread(&thread).await.unwrap();
    let state = read(store, &copied, None).await.unwrap().checkpoint.state();
    assert_eq!(
        state,
        json!({ "one": "one", "two": "two", "three": 4, "list": ["one", "two", "three"] })
    );
    let older = read(store, &copied, Some(2)).await.unwrap().checkpoint.state();
    assert_eq!(older, json!({ "one": "one", "two": "two", "list": ["one", "two"] }));
}

pub(crate) async fn pruned_thread_can_be_copied(store: &dyn Store) {
    let thread = three_runs(store, "t").await;
    store.prune(&thread, PruneStrategy::KeepLatest).await.unwrap();
    let copied = copy(store, &thread, "copy").await.unwrap();
    let head = store.thread(&copied).await.unwrap().unwrap();
    assert_eq!((head.last_seq, head.pruned_seq), (6, 5));
    let (old, new) = (all(store, &thread).await, all(store, &copied).await);
    assert_eq!(new.len(), 1);
    assert_eq!(new[0].checkpoint.values, old[0].checkpoint.values);
    store.verify(&copied).await.unwrap().unwrap();
}

pub(crate) async fn copy_of_a_missing_thread_creates_nothing(store: &dyn Store) {
    let copied = copy(store, &thread_id("missing"), "copy").await.unwrap();
    assert_eq!(store.thread(&copied).await.unwrap(), None);
}

pub(crate) async fn copy_onto_an_existing_thread_is_refused(store: &dyn Store) {
    let thread = three_runs(store, "t").await;
    let other = create(store, "other").await;
    let before = store.thread(&other).await.unwrap();
    let error = copy(store, &thread, "other").await.unwrap_err();
    assert!(matches!(error, StoreError::InvalidBatch { .. }), "{error}");
    let itself = copy(store, &thread, "t").await.unwrap_err();
    assert!(matches!(itself, StoreError::InvalidBatch { .. }), "{itself}");
    assert_eq!(store.thread(&other).await.unwrap(), before);
    assert!(all_runs(store, &other).await.is_empty());
    // Runs of the copy need new ids.
    let to = thread_id("copy");
    let same = store.copy_thread(&thread, &to, &incarnation(&to), &RunId::clone).await.unwrap_err();
    assert!(matches!(same, StoreError::InvalidBatch { .. }), "{same}");
    assert_eq!(store.thread(&to).await.unwrap(), None);
}

pub(crate) async fn active_thread_is_not_copied(store: &dyn Store) {
    let thread = three_runs(store, "t").await;
    let epoch = store.acquire_lease(&thread, &LeaseHolder("a".to_owned())).await.unwrap();
    let error = copy(store, &thread, "copy").await.unwrap_err();
    assert!(matches!(error, StoreError::Leased { .. }), "{error}");
    store.release_lease(&thread, epoch).await.unwrap();
    // The thread has a run whose host has died and that no other host has recovered yet.
    let running = ThreadRecord { status: ThreadStatus::Running, ..record(&thread) };
    append(store, &thread, Batch { record: Some(running), ..Batch::default() }).await.unwrap();
    let error = copy(store, &thread, "copy").await.unwrap_err();
    assert!(matches!(error, StoreError::InvalidBatch { .. }), "{error}");
    assert_eq!(store.thread(&thread_id("copy")).await.unwrap(), None);
}

pub(crate) async fn watch_receives_the_copy(store: &dyn Store) {
    let thread = three_runs(store, "t").await;
    let mut watch = store.watch(&thread_id("copy"));
    assert_eq!(*watch.borrow_and_update(), 0);
    copy(store, &thread, "copy").await.unwrap();
    assert_eq!(*watch.wait_for(|newest| *newest > 0).await.unwrap(), 6);
}
