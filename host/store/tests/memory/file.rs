//! The file of the long-term memory: its content after a restart, and the files that are refused.

use std::path::Path;

use redb::{Database, TableDefinition};
use serde_json::json;
use tempfile::TempDir;
use wattle_run::ports::Memory;
use wattle_run::ports::memory::PutItem;
use wattle_store::RedbMemory;

use crate::fixtures::{NOW_MS, get, item, no_tenant, put};

fn refused(path: &Path) -> String {
    RedbMemory::open(path).unwrap_err().message
}

#[tokio::test]
async fn documents_survive_a_restart() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("memory.redb");
    let memory = RedbMemory::open(&path).unwrap();
    put(&memory, &["a", "\0"], "\u{1f980}", json!({ "n": 1 })).await;
    let kept = PutItem { ttl_ms: Some(10), ..item(&["a"], "soon", json!(1)) };
    memory.put(&no_tenant(), kept, NOW_MS).await.unwrap();
    drop(memory);
    let memory = RedbMemory::open(&path).unwrap();
    assert_eq!(get(&memory, &["a", "\0"], "\u{1f980}").await.unwrap().value, json!({ "n": 1 }));
    assert_eq!(memory.sweep(NOW_MS + 10).await.unwrap(), 1);
}

#[tokio::test]
async fn unawaited_changes_are_written() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("memory.redb");
    let memory = RedbMemory::open(&path).unwrap();
    let no_tenant = no_tenant();
    for n in 0..20 {
        let key = n.to_string();
        let mut waiting = Box::pin(memory.put(&no_tenant, item(&["a"], &key, json!(n)), NOW_MS));
        let polled = futures::poll!(&mut waiting);
        drop((polled, waiting));
    }
    drop(memory);
    let memory = RedbMemory::open(&path).unwrap();
    assert!(
        get(&memory, &["a"], "0").await.is_some() && get(&memory, &["a"], "19").await.is_some()
    );
}

#[test]
fn second_open_is_refused() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("memory.redb");
    let _memory = RedbMemory::open(&path).unwrap();
    assert!(refused(&path).contains("is in use"));
}

#[test]
fn foreign_and_newer_files_are_refused() {
    let dir = TempDir::new().unwrap();
    let text = dir.path().join("text");
    std::fs::write(&text, "not a database").unwrap();
    assert!(refused(&text).contains("move it away"), "{}", refused(&text));
    assert_eq!(std::fs::read(&text).unwrap(), b"not a database");

    let meta: TableDefinition<'_, &str, u64> = TableDefinition::new("memory");
    let newer = dir.path().join("newer.redb");
    drop(RedbMemory::open(&newer).unwrap());
    let database = Database::open(&newer).unwrap();
    let transaction = database.begin_write().unwrap();
    transaction.open_table(meta).unwrap().insert("format", 3).unwrap();
    transaction.commit().unwrap();
    drop(database);
    assert!(refused(&newer).contains("use a newer wattle"), "{}", refused(&newer));

    let other: TableDefinition<'_, &str, u64> = TableDefinition::new("other");
    let foreign = dir.path().join("foreign.redb");
    let database = Database::create(&foreign).unwrap();
    let transaction = database.begin_write().unwrap();
    transaction.open_table(other).unwrap();
    transaction.commit().unwrap();
    drop(database);
    assert!(refused(&foreign).contains("another program"), "{}", refused(&foreign));
    assert!(refused(&dir.path().join("no/such")).contains("cannot open its file"));
}
