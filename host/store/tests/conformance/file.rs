//! What the file store must show beyond the ports: it outlives its process, and refuses files
//! that it cannot read.

use std::fs;
use std::path::Path;

use redb::{Database, TableDefinition};
use serde_json::json;
use tempfile::TempDir;
use wattle_run::ports::Store;
use wattle_run::ports::store::{Batch, StoreError, ThreadQuery};
use wattle_store::RedbStore;

use crate::sample::{
    append, batch, checkpoint, create, events, id, read, run, run_id, seqs, thread_id,
};

#[tokio::test]
async fn everything_is_there_after_a_reopen() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("wattle.redb");
    let store = RedbStore::open(&path).unwrap();
    let thread = create(&store, "t").await;
    create(&store, "gone").await;
    append(&store, &thread, batch(checkpoint(1, None, &[("a", json!("a1"))], &[]))).await.unwrap();
    let whole = Batch {
        run: Some(run(&thread, "r")),
        checkpoint: Some(checkpoint(2, Some(1), &[("b", json!("b2"))], &[("a", 1)])),
        ..events(1, 200)
    };
    append(&store, &thread, whole).await.unwrap();
    append(&store, &thread, Batch { current: Some(id(1)), ..Batch::default() }).await.unwrap();
    let head = store.thread(&thread).await.unwrap();
    let tuple = read(&store, &thread, None).await;
    drop(store);

    let store = RedbStore::open(&path).unwrap();
    assert_eq!(store.thread(&thread).await.unwrap(), head);
    assert_eq!(read(&store, &thread, None).await, tuple);
    assert_eq!(store.run(&run_id("r")).await.unwrap(), Some(run(&thread, "r")));
    assert_eq!(store.threads(&ThreadQuery::default()).await.unwrap().len(), 2);
    assert_eq!(*store.watch(&thread).borrow(), 200);
    // The next batch goes on where the last process stopped, channels included.
    store.delete_thread(&thread_id("gone")).await.unwrap();
    create(&store, "new").await;
    append(&store, &thread, events(201, 201)).await.unwrap();
    append(&store, &thread, batch(checkpoint(3, Some(2), &[], &[("a", 1), ("b", 2)])))
        .await
        .unwrap();
    let state = read(&store, &thread, None).await.unwrap().checkpoint.state();
    assert_eq!(state, json!({ "a": "a1", "b": "b2" }));
    assert!(store.events(&thread_id("new"), 0, 9).await.unwrap().is_empty());
}

#[tokio::test]
async fn dropping_the_last_handle_writes_what_waits() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("wattle.redb");
    let store = RedbStore::open(&path).unwrap();
    let thread = create(&store, "t").await;
    for seq in 1..=300 {
        drop(store.clone().append(&thread, events(seq, seq)).await);
    }
    drop(store);
    let store = RedbStore::open(&path).unwrap();
    assert_eq!(store.thread(&thread).await.unwrap().unwrap().last_seq, 300);
}

#[test]
fn a_second_store_on_the_same_file_is_refused() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("wattle.redb");
    let _first = RedbStore::open(&path).unwrap();
    let error = refusal(&path);
    assert!(matches!(error, StoreError::Backend { .. }));
    assert!(error.to_string().contains("is in use; stop the other wattle"), "{error}");
}

#[test]
fn a_newer_format_is_refused() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("wattle.redb");
    drop(RedbStore::open(&path).unwrap());
    set_format(&path, 7);
    assert!(matches!(refusal(&path), StoreError::NewerFormat { found: 7, known: 1, .. }));
    set_format(&path, 1);
    RedbStore::open(&path).unwrap();
}

#[test]
fn files_of_other_programs_are_refused() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("wattle.redb");
    for content in [vec![7; 100], vec![0; 100_000], b"SQLite format 3\0".repeat(500)] {
        fs::write(&path, content).unwrap();
        let error = refusal(&path);
        assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
    }
    fs::remove_file(&path).unwrap();
    let database = Database::create(&path).unwrap();
    let transaction = database.begin_write().unwrap();
    let other: TableDefinition<'_, u64, u64> = TableDefinition::new("other");
    transaction.open_table(other).unwrap();
    transaction.commit().unwrap();
    drop(database);
    let error = refusal(&path);
    assert!(error.to_string().contains("tables of another program"), "{error}");
}

#[test]
fn a_missing_folder_is_an_error_that_names_it() {
    let dir = TempDir::new().unwrap();
    let error = refusal(&dir.path().join("missing/wattle.redb"));
    assert!(error.to_string().contains("missing/wattle.redb"), "{error}");
}

#[tokio::test]
async fn a_cut_file_is_a_typed_error() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("wattle.redb");
    let store = RedbStore::open(&path).unwrap();
    let thread = create(&store, "t").await;
    for seq in 1..=200 {
        append(&store, &thread, events(seq, seq)).await.unwrap();
    }
    drop(store);
    let whole = fs::read(&path).unwrap();
    for part in [1, 100, 4095, 4096, 8192, 65_536, whole.len() / 2, whole.len() - 4096] {
        fs::write(&path, &whole[..part]).unwrap();
        let error = refusal(&path);
        assert!(matches!(error, StoreError::Corrupt { .. }), "cut at {part}: {error}");
    }
    fs::write(&path, &whole).unwrap();
    let store = RedbStore::open(&path).unwrap();
    assert_eq!(seqs(&store.events(&thread, 199, 9).await.unwrap()), [200]);
}

#[tokio::test]
async fn space_of_deleted_threads_is_used_again() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("wattle.redb");
    let store = RedbStore::open(&path).unwrap();
    let mut sizes = Vec::new();
    for round in 0..6 {
        let thread = create(&store, &format!("t{round}")).await;
        for number in 1..=40 {
            let values = [("a", json!(noise(number + round * 100)))];
            append(&store, &thread, batch(checkpoint(number, None, &values, &[]))).await.unwrap();
        }
        store.delete_thread(&thread).await.unwrap();
        sizes.push(fs::metadata(&path).unwrap().len());
    }
    assert!(sizes[5] <= sizes[1] * 2, "the file grows: {sizes:?}");
}

fn noise(seed: u64) -> String {
    let digits = (0..2_000_u64).map(|n| (n + seed).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    digits.map(|digit| format!("{digit:016x}")).collect::<Vec<_>>().concat()
}

fn refusal(path: &Path) -> StoreError {
    RedbStore::open(path).unwrap_err()
}

fn set_format(path: &Path, format: u64) {
    let database = Database::create(path).unwrap();
    let transaction = database.begin_write().unwrap();
    let facts: TableDefinition<'_, &str, u64> = TableDefinition::new("wattle");
    transaction.open_table(facts).unwrap().insert("format", format).unwrap();
    transaction.commit().unwrap();
}
