//! Files of older formats are read and written.
//!
//! The files `old_formats/format-*.redb.lz4` were written by the last versions with these formats,
//! and are compressed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;
use wattle_graph::id::{Digest, Namespace};
use wattle_run::ports::Store;
use wattle_run::ports::blob::BlobRef;
use wattle_run::ports::store::{Batch, PendingQuery, PruneStrategy, SealReport};
use wattle_store::RedbStore;

use crate::fixtures::{
    all_runs, append, batch, checkpoint, events, id, read, run, seqs, thread_id,
};
use crate::pending::{names, pending_run};

fn unpacked(dir: &Path) -> PathBuf {
    unpack(dir, include_bytes!("old_formats/format-1.redb.lz4"))
}

fn unpack(dir: &Path, packed: &[u8]) -> PathBuf {
    let path = dir.join("wattle.redb");
    fs::write(&path, lz4_flex::block::decompress_size_prepended(packed).unwrap()).unwrap();
    path
}

fn first_list() -> Value {
    json!([1, 2.5, u64::MAX])
}

#[tokio::test]
async fn format_1_file_is_read() {
    let dir = TempDir::new().unwrap();
    let store = RedbStore::open(unpacked(dir.path())).unwrap();
    let thread = thread_id("old");
    let head = store.thread(&thread).await.unwrap().unwrap();
    assert_eq!((head.last_seq, head.last_checkpoint, head.current), (5, Some(id(3)), Some(id(2))));
    assert_eq!((head.pruned_seq, head.seal), (0, None));
    let picture = BlobRef(Digest::of(b"picture"));
    let tuple = read(&store, &thread, Some(1)).await.unwrap();
    let state = json!({ "a": "a1", "list": first_list(), "picture": picture.to_string() });
    assert_eq!(tuple.checkpoint.state(), state);
    assert_eq!(seqs(&tuple.events), [3, 4]);
    let child = store.checkpoint(&thread, &Namespace::new("child:1"), None).await.unwrap().unwrap();
    assert_eq!(child.checkpoint.state(), json!({ "inner": { "deep": [null, true] } }));
    assert!(store.mentions(&thread, picture).await.unwrap());
    assert_eq!(all_runs(&store, &thread).await, [run(&thread, "run")]);
    let back = thread_id("back");
    assert_eq!(store.thread(&back).await.unwrap().unwrap().current, Some(id(1)));
    assert_eq!(seqs(&store.events(&back, 66, 9).await.unwrap()), [67, 68, 69, 70]);
    let unsealed = SealReport { sealed_after: 5, last_seq: 5, seal: None };
    assert_eq!(store.verify(&thread).await.unwrap(), Some(unsealed));
}

#[tokio::test]
async fn format_2_file_is_read_and_written() {
    let dir = TempDir::new().unwrap();
    let path = unpack(dir.path(), include_bytes!("old_formats/format-2.redb.lz4"));
    let survey = RedbStore::survey_file(&path).unwrap();
    assert_eq!((survey.threads, survey.damaged.len()), (2, 0), "{:?}", survey.damaged);
    let store = RedbStore::open(&path).unwrap();
    let thread = thread_id("old");
    let picture = BlobRef(Digest::of(b"picture"));
    let tuple = read(&store, &thread, None).await.unwrap();
    let state = json!({ "a": "a1", "list": [1, 2, 3], "picture": picture.to_string() });
    assert_eq!(tuple.checkpoint.state(), state);
    assert_eq!(seqs(&tuple.events), [5]);
    assert_eq!(all_runs(&store, &thread).await, [run(&thread, "run")]);
    let before = store.verify(&thread).await.unwrap().unwrap();
    assert_eq!((before.sealed_after, before.last_seq), (0, 5));
    let mut next = checkpoint(3, Some(2), &[("list", json!([1, 2, 3, 4]))], &[("a", 1)]);
    next.list_deltas = BTreeMap::from([crate::fixtures::list_delta("list", 2, 3)]);
    append(&store, &thread, Batch { base: Some(id(2)), ..batch(next) }).await.unwrap();
    append(&store, &thread, Batch { base: Some(id(3)), ..events(6, 6) }).await.unwrap();
    let long = thread_id("long");
    assert_eq!(seqs(&store.events(&long, 70, 3).await.unwrap()), [71, 72, 73]);
    drop(store);
    let survey = RedbStore::survey_file(&path).unwrap();
    assert_eq!((survey.threads, survey.damaged.len()), (2, 0), "{:?}", survey.damaged);
    let store = RedbStore::open(&path).unwrap();
    let state = read(&store, &thread, None).await.unwrap().checkpoint.state();
    assert_eq!(state, json!({ "a": "a1", "list": [1, 2, 3, 4] }));
    assert_eq!(store.verify(&thread).await.unwrap().unwrap().last_seq, 6);
    store.prune(&thread, PruneStrategy::KeepLatest).await.unwrap();
    assert_eq!(store.verify(&thread).await.unwrap().unwrap().last_seq, 6);
}

#[tokio::test]
async fn format_3_file_is_read_and_written() {
    let dir = TempDir::new().unwrap();
    let path = unpack(dir.path(), include_bytes!("old_formats/format-3.redb.lz4"));
    let survey = RedbStore::survey_file(&path).unwrap();
    assert_eq!((survey.threads, survey.damaged.len()), (2, 0), "{:?}", survey.damaged);
    let store = RedbStore::open(&path).unwrap();
    let (thread, blank) = (
        thread_id("00000000-0000-4000-8000-000000000001"),
        thread_id("00000000-0000-4000-8000-000000000002"),
    );
    let runs = all_runs(&store, &thread).await;
    assert_eq!((runs.len(), runs[0].created_ms, runs[0].spec.is_some()), (1, None, false));
    assert!(runs[0].has_started());
    let head = store.thread(&thread).await.unwrap().unwrap();
    assert_eq!(store.verify(&thread).await.unwrap().unwrap().last_seq, head.last_seq);
    for (thread, name) in [(&thread, "r1"), (&blank, "r2"), (&thread, "r3")] {
        assert!(store.enqueue(&pending_run(thread, name, 1), None).await.unwrap());
    }
    drop(store);
    assert!(RedbStore::survey_file(&path).unwrap().damaged.is_empty());
    let store = RedbStore::open(&path).unwrap();
    let all = PendingQuery { limit: 9, ..PendingQuery::default() };
    assert_eq!(names(&store, all).await, ["r1", "r2", "r3"]);
}

#[test]
fn check_does_not_change_the_file() {
    let dir = TempDir::new().unwrap();
    let path = unpacked(dir.path());
    let before = fs::read(&path).unwrap();
    RedbStore::check(&path).unwrap();
    assert!(fs::read(&path).unwrap() == before);
    let missing = dir.path().join("missing.redb");
    RedbStore::check(&missing).unwrap();
    assert!(!missing.exists());
}

#[tokio::test]
async fn format_1_file_is_written() {
    let dir = TempDir::new().unwrap();
    let path = unpacked(dir.path());
    let store = RedbStore::open(&path).unwrap();
    let thread = thread_id("old");
    let longer = json!([1, 2.5, u64::MAX, "four", "five"]);
    let mut next = checkpoint(4, Some(2), &[("list", longer.clone())], &[("a", 1)]);
    next.list_deltas = BTreeMap::from([crate::fixtures::list_delta("list", 2, 4)]);
    append(&store, &thread, Batch { base: Some(id(2)), ..batch(next) }).await.unwrap();
    append(&store, &thread, Batch { base: Some(id(4)), ..events(6, 7) }).await.unwrap();
    drop(store);
    let store = RedbStore::open(&path).unwrap();
    let tuple = read(&store, &thread, None).await.unwrap();
    assert_eq!(tuple.checkpoint.state(), json!({ "a": "a1", "list": longer }));
    let verified = store.verify(&thread).await.unwrap().unwrap();
    assert_eq!((verified.sealed_after, verified.last_seq), (5, 7));
    assert!(verified.seal.is_some());
    store.prune(&thread, PruneStrategy::KeepLatest).await.unwrap();
    let pruned = read(&store, &thread, None).await.unwrap();
    assert_eq!(pruned, tuple);
    let verified = store.verify(&thread).await.unwrap().unwrap();
    assert_eq!((verified.sealed_after, verified.last_seq), (5, 7));
}
