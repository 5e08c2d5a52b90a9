//! A disk that is full for a while. A limit on the size of files simulates it, in a separate
//! process.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;
use tokio::signal::unix::{SignalKind, signal};
use wattle_graph::id::ThreadId;
use wattle_run::ports::Memory as _;
use wattle_run::ports::Store as _;
use wattle_run::ports::memory::{MemoryScope, PutItem};
use wattle_run::ports::store::{Batch, LeaseHolder, PendingQuery, QueueCondition, StoreError};
use wattle_store::{RedbMemory, RedbStore};

use crate::fixtures::{all_events, append, create, event, events, seqs, thread_id};
use crate::pending::{begins, begun, names, pending_run};

const FOLDER: &str = "WATTLE_STORE_FULL_FOLDER";

/// The signal that a process gets for a write beyond the limit.
const SIGXFSZ: i32 = 25;

/// Size of each event in bytes. A few events fill the free space of the file.
const LARGE: usize = 300_000;

/// Number of attempts, a tenth of a second apart.
const TRIES: usize = 300;

#[test]
fn full_disk_is_reported_and_writes_resume() {
    let dir = TempDir::new().unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["disk_full::on_a_full_disk", "--exact", "--ignored", "--nocapture"])
        .env(FOLDER, dir.path())
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {stdout}{stderr}", output.status);
    assert!(stdout.contains("1 passed"), "{stdout}");
}

/// Sets the maximum size of a file that this process writes.
fn limit(bytes: Option<u64>) {
    let bytes = bytes.map_or("unlimited".to_owned(), |bytes| bytes.to_string());
    let (pid, limit) = (std::process::id().to_string(), format!("--fsize={bytes}:"));
    let set = Command::new("prlimit").args(["--pid", &pid, &limit]).status().unwrap();
    assert!(set.success());
}

fn size(path: &Path) -> u64 {
    std::fs::metadata(path).unwrap().len()
}

/// The process that [`full_disk_is_reported_and_writes_resume`] starts. It is not an independent
/// test.
#[tokio::test]
#[ignore = "started by another test, in a process whose files are limited"]
async fn on_a_full_disk() {
    // The default action of the signal would end the process.
    let _ignored = signal(SignalKind::from_raw(SIGXFSZ)).unwrap();
    let folder = crate::path_from_env(FOLDER);
    let path = folder.join("wattle.redb");
    let store = RedbStore::open(&path).unwrap();
    let thread = create(&store, "t").await;
    let other = create(&store, "other").await;
    append(&store, &thread, events(1, 50)).await.unwrap();

    limit(Some(size(&path)));
    let mut newest = 50;
    let full = loop {
        let next = vec![event(
            newest + 1,
            json!("x".repeat(LARGE) + &crate::fixtures::incompressible_text(40_000)),
        )];
        match append(&store, &thread, Batch { events: next.into(), ..Batch::default() }).await {
            Ok(()) => newest += 1,
            Err(error) => break error,
        }
    };
    assert_backend_error(&full);
    // A further append fails with the same error, and not with a conflict.
    assert_backend_error(
        &append(&store, &thread, events(newest + 2, newest + 2)).await.unwrap_err(),
    );

    // From here on, the process cannot write any byte.
    limit(Some(0));
    assert_backend_error(
        &append(&store, &thread, events(newest + 1, newest + 1)).await.unwrap_err(),
    );
    assert_backend_error(&append(&store, &other, events(1, 1)).await.unwrap_err());
    assert_backend_error(&store.check_writable().await.unwrap_err());
    let holder = LeaseHolder("host".into());
    assert_backend_error(&store.acquire_lease(&other, &holder).await.unwrap_err());
    for _ in 0..3 {
        let read = all_events(&store, &thread).await;
        assert_eq!(seqs(&read), (1..=newest).collect::<Vec<_>>());
        assert!(store.thread_snapshot(&other).await.unwrap().is_some());
    }

    limit(None);
    can_be_written(&store).await;
    let seq = store.thread(&thread).await.unwrap().unwrap().last_seq;
    assert_eq!(seq, newest);
    append(&store, &thread, events(seq + 1, seq + 2)).await.unwrap();
    // A batch that continues one that was refused fails with the reason, and not with a conflict.
    assert_backend_error(&append(&store, &other, events(2, 2)).await.unwrap_err());
    append(&store, &other, events(1, 1)).await.unwrap();

    // A refused batch must not count as a successful write.
    limit(Some(0));
    let mut tries = 0;
    while store.check_writable().await.is_ok() {
        tries += 1;
        assert!(tries < TRIES);
        append(&store, &thread, events(1, 1)).await.unwrap_err();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    limit(None);
    can_be_written(&store).await;
    pending_runs_match_the_file(&store, &other).await;

    // After a failed compaction too, no lease is granted until the file is open again.
    limit(Some(0));
    assert_backend_error(&store.compact().await.unwrap_err());
    assert_backend_error(&store.acquire_lease(&other, &holder).await.unwrap_err());
    assert!(store.thread_snapshot(&other).await.unwrap().is_some());
    limit(None);
    can_be_written(&store).await;
    store.acquire_lease(&other, &holder).await.unwrap();
    drop(store);
    let store = RedbStore::open(&path).unwrap();
    assert_eq!(store.thread(&thread_id("t")).await.unwrap().unwrap().last_seq, seq + 2);
    store.verify(&thread).await.unwrap().unwrap();
    memory_reports_a_full_disk(&folder).await;
}

/// Checks the pending runs after a failed commit, before and after the file is opened again.
async fn pending_runs_match_the_file(store: &RedbStore, thread: &ThreadId) {
    let all = || PendingQuery { limit: 9, ..PendingQuery::default() };
    let (waits, ghost) = (pending_run(thread, "waits", 0), pending_run(thread, "ghost", 0));
    assert!(store.enqueue(&waits, None).await.unwrap());
    let begin = || append(store, thread, begins(&begun(&waits, 1), QueueCondition::Pending));
    limit(Some(0));
    let (began, added) = tokio::join!(begin(), store.enqueue(&ghost, None));
    assert_backend_error(&began.unwrap_err());
    assert_backend_error(&added.unwrap_err());
    assert_eq!(names(store, all()).await, ["waits"]);
    limit(None);
    can_be_written(store).await;
    assert_eq!(names(store, all()).await, ["waits"]);
    begin().await.unwrap();
    assert!(names(store, all()).await.is_empty());
}

async fn memory_reports_a_full_disk(folder: &Path) {
    let path = folder.join("memory.redb");
    let memory = RedbMemory::open(&path).unwrap();
    let scope = MemoryScope::Tenant(None);
    let item = |key: usize, text: &str| PutItem {
        namespace: vec!["a".into()],
        key: key.to_string(),
        ..serde_json::from_value(json!({
            "namespace": ["a"], "key": "k", "value": { "text": text }, "ttl_ms": null,
        }))
        .unwrap()
    };
    memory.put(&scope, item(0, "first"), 1).await.unwrap();
    limit(Some(0));
    let text = "x".repeat(LARGE);
    let mut key = 0;
    let failure = loop {
        key += 1;
        if let Err(failure) = memory.put(&scope, item(key, &text), 1).await {
            break failure;
        }
    };
    assert!(failure.message.contains("long-term memory cannot"), "{failure}");
    let first = memory.get(&scope, &["a".into()], "0", 1).await.unwrap().unwrap();
    assert_eq!(first.value, json!({ "text": "first" }));
    limit(None);
    let mut tries = 0;
    while let Err(failure) = memory.put(&scope, item(key, &text), 1).await {
        tries += 1;
        assert!(tries < TRIES, "{failure}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(memory.get(&scope, &["a".into()], &key.to_string(), 1).await.unwrap().is_some());
}

/// Waits until the store can be written again.
async fn can_be_written(store: &RedbStore) {
    let mut tries = 0;
    while let Err(error) = store.check_writable().await {
        tries += 1;
        assert!(tries < TRIES, "{error}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn assert_backend_error(error: &StoreError) {
    assert!(matches!(error, StoreError::Backend { .. }), "{error}");
    assert!(!error.to_string().contains("write conflict"), "{error}");
}
