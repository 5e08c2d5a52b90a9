//! Tests of the file store alone: data survives a restart, and files that cannot be read are
//! refused.

use std::fs;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;

use futures::poll;
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use serde_json::json;
use tempfile::TempDir;
use wattle_graph::event::{Answered, Event, EventKind};
use wattle_graph::id::{InterruptId, Namespace, TaskId};
use wattle_graph::principal::Principal;
use wattle_graph::weight::weight;
use wattle_kit::clock::ManualClock;
use wattle_kit::turns::hold_all_turns;
use wattle_run::caller_id::CallerId;
use wattle_run::log::{Commit, ThreadLog};
use wattle_run::ports::Store;
use wattle_run::ports::store::{
    Batch, LeaseHolder, PendingQuery, PruneStrategy, StoreError, ThreadQuery,
};
use wattle_run::reads::{ReadTurns, TurnSpan};
use wattle_run::state_cache::StateCache;
use wattle_store::RedbStore;
use wattle_store::disk::{PENDING_LIMIT_BYTES, PENDING_MEMORY_BYTES};

use crate::fixtures::{
    append, batch, checkpoint, create, event, events, id, list_delta, read, run, run_id, seqs,
    thread_id,
};
use crate::pending::{names, pending_run};

#[tokio::test]
async fn threads_survive_a_reopen() {
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
    assert_eq!(store.threads(&ThreadQuery::default()).await.unwrap().items.len(), 2);
    assert_eq!(*store.watch(&thread).borrow(), 200);
    // The next batch continues the log and the channels of the previous process.
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
async fn pending_runs_survive_a_reopen() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("wattle.redb");
    let store = RedbStore::open(&path).unwrap();
    let thread = create(&store, "t").await;
    for name in ["r2", "r1", "r3"] {
        assert!(store.enqueue(&pending_run(&thread, name, 1), None).await.unwrap());
    }
    assert!(store.dequeue(&run_id("r1"), None).await.unwrap());
    drop(store);
    let store = RedbStore::open(&path).unwrap();
    let all = || PendingQuery { limit: 9, ..PendingQuery::default() };
    assert_eq!(names(&store, all()).await, ["r2", "r3"]);
    assert!(store.enqueue(&pending_run(&thread, "r1", 1), None).await.unwrap());
    assert_eq!(names(&store, all()).await, ["r2", "r3", "r1"]);
    drop(store);
    assert!(RedbStore::survey_file(&path).unwrap().damaged.is_empty());
    RedbStore::repair_file(&path).unwrap();
    let store = RedbStore::open(&path).unwrap();
    assert_eq!(names(&store, all()).await, ["r2", "r3", "r1"]);
}

#[tokio::test]
async fn dropping_the_store_flushes_the_queue() {
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
fn second_store_on_one_file_is_refused() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("wattle.redb");
    let _first = RedbStore::open(&path).unwrap();
    let error = refusal(&path);
    assert!(matches!(error, StoreError::Backend { .. }));
    assert!(error.to_string().contains("is in use; stop the other wattle"), "{error}");
}

#[test]
fn newer_format_is_refused() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("wattle.redb");
    drop(RedbStore::open(&path).unwrap());
    set_format(&path, 7);
    assert!(matches!(refusal(&path), StoreError::NewerFormat { found: 7, known: 4, .. }));
    for older in [2, 3, 4] {
        set_format(&path, older);
        RedbStore::open(&path).unwrap();
    }
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
fn missing_folder_is_named_in_the_error() {
    let dir = TempDir::new().unwrap();
    let error = refusal(&dir.path().join("missing/wattle.redb"));
    assert!(error.to_string().contains("missing/wattle.redb"), "{error}");
}

#[tokio::test]
async fn truncated_file_is_refused_or_rebuilt() {
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
        match RedbStore::open(&path) {
            Err(error) => assert!(matches!(error, StoreError::Corrupt { .. }), "{part}: {error}"),
            // The file was rebuilt from the part that was not cut off.
            Ok(store) => match store.events(&thread, 0, 999).await {
                Ok(events) => assert_eq!(events.len(), 200, "{part}"),
                Err(error) => assert!(error.to_string().contains("thread `t`"), "{part}: {error}"),
            },
        }
    }
    fs::write(&path, &whole).unwrap();
    let store = RedbStore::open(&path).unwrap();
    assert_eq!(seqs(&store.events(&thread, 199, 9).await.unwrap()), [200]);
}

#[tokio::test]
async fn space_of_deleted_threads_is_reused() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("wattle.redb");
    let store = RedbStore::open(&path).unwrap();
    let mut sizes = Vec::new();
    for round in 0..6 {
        let thread = create(&store, &format!("t{round}")).await;
        for number in 1..=40 {
            let values = [("a", json!(incompressible_text(number + round * 100)))];
            append(&store, &thread, batch(checkpoint(number, None, &values, &[]))).await.unwrap();
        }
        store.delete_thread(&thread).await.unwrap();
        sizes.push(fs::metadata(&path).unwrap().len());
    }
    assert!(sizes[5] <= sizes[1] * 2, "the file grows: {sizes:?}");
}

#[tokio::test]
async fn lease_epochs_are_not_reused_after_a_reopen() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("wattle.redb");
    let (thread, holder) = (thread_id("t"), LeaseHolder("host".into()));
    let mut epochs = Vec::new();
    for _ in 0..4 {
        let store = RedbStore::open(&path).unwrap();
        for _ in 0..3 {
            epochs.push(store.acquire_lease(&thread, &holder).await.unwrap());
        }
    }
    assert!(epochs.is_sorted_by(|a, b| a < b), "{epochs:?}");
}

#[tokio::test]
async fn compacted_file_is_smaller_and_intact() {
    let dir = TempDir::new().unwrap();
    let store = RedbStore::open(dir.path().join("wattle.redb")).unwrap();
    let kept = create(&store, "kept").await;
    let gone = create(&store, "gone").await;
    for number in 1..=60 {
        for thread in [&kept, &gone] {
            let values = [("a", json!(incompressible_text(number)))];
            append(&store, thread, batch(checkpoint(number, None, &values, &[]))).await.unwrap();
        }
    }
    store.delete_thread(&gone).await.unwrap();
    store.prune(&kept, PruneStrategy::KeepLatest).await.unwrap();
    let newest = read(&store, &kept, None).await;
    // Concurrent reads and appends wait.
    let busy = tokio::spawn({
        let (store, kept) = (store.clone(), kept.clone());
        async move {
            for seq in 1..=50 {
                append(&store, &kept, events(seq, seq)).await.unwrap();
                assert_eq!(store.thread(&kept).await.unwrap().unwrap().last_seq, seq);
            }
        }
    });
    let sizes = store.compact().await.unwrap();
    busy.await.unwrap();
    assert!(sizes.after_bytes * 4 < sizes.before_bytes, "{sizes:?}");
    assert_eq!(read(&store, &kept, None).await, newest);
    assert_eq!(store.thread(&kept).await.unwrap().unwrap().last_seq, 50);
}

#[tokio::test]
async fn verify_detects_external_changes() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("wattle.redb");
    let store = RedbStore::open(&path).unwrap();
    let thread = create(&store, "t").await;
    append(&store, &thread, events(1, 2)).await.unwrap();
    let paid = vec![event(3, json!("paid 100"))].into();
    append(&store, &thread, Batch { events: paid, ..batch_of(1) }).await.unwrap();
    append(&store, &thread, batch_of(2)).await.unwrap();
    append(&store, &thread, events(4, 5)).await.unwrap();
    let answered = vec![answered_by(6, "jane")].into();
    append(&store, &thread, Batch { events: answered, ..Batch::default() }).await.unwrap();
    store.verify(&thread).await.unwrap().unwrap();
    drop(store);
    for (old, new, seq) in [
        (&b"paid 100"[..], &b"paid 900"[..], 3),
        (b"\"at_ms\":1", b"\"at_ms\":7", 1),
        (b"value 2", b"value 3", 4),
        (b"\"user\":\"jane\"", b"\"user\":\"joan\"", 6),
    ] {
        change(&path, old, new);
        let store = RedbStore::open(&path).unwrap();
        let error = store.verify(&thread).await.unwrap_err();
        assert!(matches!(error, StoreError::Broken { seq: at, .. } if at == seq), "{error}");
        drop(store);
        change(&path, new, old);
    }
    let store = RedbStore::open(&path).unwrap();
    store.verify(&thread).await.unwrap().unwrap();
}

/// Returns the event by which a user answers an interrupt.
fn answered_by(seq: u64, user: &str) -> Event {
    let answered = Answered {
        interrupt: InterruptId::new("question").unwrap(),
        task: TaskId::new("task").unwrap(),
        answer: json!(true),
        principal: Some(Principal { user: Some(user.to_owned()), ..Principal::default() }),
    };
    Event { kind: EventKind::Answered(answered), ..event(seq, json!(null)) }
}

/// Returns a batch with a checkpoint whose value is stored as plain text.
fn batch_of(number: u64) -> Batch {
    let parent = (number > 1).then(|| number - 1);
    batch(checkpoint(number, parent, &[("a", json!(format!("value {number}")))], &[]))
}

/// Changes the first log entry that contains some bytes.
fn change(path: &Path, old: &[u8], new: &[u8]) {
    let database = Database::create(path).unwrap();
    let transaction = database.begin_write().unwrap();
    {
        let mut log = transaction.open_table(LOG).unwrap();
        let found = log.iter().unwrap().find_map(|entry| {
            let (number, bytes) = entry.unwrap();
            let at = bytes.value().windows(old.len()).position(|window| window == old)?;
            Some((number.value(), at, bytes.value().to_vec()))
        });
        let (number, at, mut bytes) = found.unwrap();
        bytes[at..at + new.len()].copy_from_slice(new);
        log.insert(number, bytes.as_slice()).unwrap();
    }
    transaction.commit().unwrap();
}

#[tokio::test]
async fn damaged_frames_are_detected_without_a_panic() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("wattle.redb");
    let store = RedbStore::open(&path).unwrap();
    let thread = create(&store, "t").await;
    append(&store, &thread, batch(checkpoint(1, None, &[("list", json!([1, 2]))], &[])))
        .await
        .unwrap();
    let mut next = checkpoint(2, Some(1), &[("list", json!([1, 2, 3]))], &[]);
    next.list_deltas.extend([list_delta("list", 1, 2)]);
    append(&store, &thread, Batch { base: Some(id(1)), checkpoint: Some(next), ..events(1, 1) })
        .await
        .unwrap();
    drop(store);
    let whole = fs::read(&path).unwrap();
    for at in (0..entry_bytes(&path, 2)).step_by(3) {
        damage(&path, 2, at);
        let store = RedbStore::open(&path).unwrap();
        let verified = store.verify(&thread).await;
        assert!(!matches!(verified, Ok(Some(_))), "a change at {at} is not detected");
        // Each call may succeed or fail, but must not panic.
        let root = Namespace::root();
        let _ = store.checkpoint(&thread, &root, None).await;
        let _ = store.checkpoint(&thread, &root, Some(id(2))).await;
        let _ = store.batches(&thread, None, usize::MAX).await;
        let _ = append(&store, &thread, events(2, 2)).await;
        let _ = store.prune(&thread, PruneStrategy::KeepLatest).await;
        drop(store);
        fs::write(&path, &whole).unwrap();
    }
}

#[tokio::test]
async fn events_since_a_checkpoint_are_not_decoded_if_they_exceed_the_limit() {
    const EVENT_BYTES: usize = 1 << 20;
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("wattle.redb");
    let store = RedbStore::open(&path).unwrap();
    let thread = create(&store, "t").await;
    append(&store, &thread, batch(checkpoint(1, None, &[("a", json!(1))], &[]))).await.unwrap();
    let text = "again ".repeat(EVENT_BYTES / 6);
    let max_events = PENDING_LIMIT_BYTES / EVENT_BYTES as u64;
    let next = |seq| Batch {
        base: Some(id(1)),
        events: vec![event(seq, json!(text))].into(),
        ..Batch::default()
    };
    for seq in 1..max_events {
        append(&store, &thread, next(seq)).await.unwrap();
    }
    let latest = store.thread_snapshot(&thread).await.unwrap().unwrap();
    assert_eq!(latest.tuple.unwrap().events.len() as u64, max_events - 1);
    for seq in max_events..max_events + 4 {
        append(&store, &thread, next(seq)).await.unwrap();
    }
    // The file is far smaller than the events, because they are compressed.
    assert!(fs::metadata(&path).unwrap().len() < 16 << 20);
    for refused in [
        store.thread_snapshot(&thread).await.map(drop),
        store.checkpoint(&thread, &Namespace::root(), None).await.map(drop),
    ] {
        let error = refused.unwrap_err();
        assert!(matches!(error, StoreError::TooLarge { .. }), "{error}");
        assert!(error.to_string().contains("thread `t`"), "{error}");
    }
    // The thread can still be read in pages, and deleted.
    assert_eq!(store.events(&thread, max_events, 2).await.unwrap().len(), 2);
    store.delete_thread(&thread).await.unwrap();
    assert!(store.thread_snapshot(&thread).await.unwrap().is_none());
}

#[tokio::test]
async fn events_since_a_checkpoint_are_not_decoded_beyond_their_limit_of_memory() {
    const LISTS: usize = 100_000;
    let dir = TempDir::new().unwrap();
    let store = RedbStore::open(dir.path().join("wattle.redb")).unwrap();
    let thread = create(&store, "t").await;
    append(&store, &thread, batch(checkpoint(1, None, &[("a", json!(1))], &[]))).await.unwrap();
    // Each empty list has three bytes of JSON.
    let data = json!(vec![json!([]); LISTS]);
    let max_events = PENDING_MEMORY_BYTES / weight(&data);
    assert!(max_events * 3 * LISTS as u64 * 4 < PENDING_LIMIT_BYTES);
    for seq in 1..=max_events + 1 {
        let batch = Batch {
            base: Some(id(1)),
            events: vec![event(seq, data.clone())].into(),
            ..Batch::default()
        };
        append(&store, &thread, batch).await.unwrap();
        if seq == max_events - 1 {
            let latest = store.thread_snapshot(&thread).await.unwrap().unwrap();
            assert_eq!(latest.tuple.unwrap().events.len() as u64, max_events - 1);
        }
    }
    let error = store.thread_snapshot(&thread).await.map(drop).unwrap_err();
    let StoreError::TooLarge { limit, .. } = error else { panic!("{error}") };
    assert_eq!(limit, PENDING_MEMORY_BYTES);
    assert!(!store.events(&thread, 0, 9).await.unwrap().is_empty());
}

#[test]
fn lists_do_not_wait_for_large_reads() {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().max_blocking_threads(1).build().unwrap();
    runtime.block_on(async {
        let dir = TempDir::new().unwrap();
        let store = RedbStore::open(dir.path().join("wattle.redb")).unwrap();
        let thread = create(&store, "t").await;
        // Compressed, the value has few bytes.
        let value = json!(vec![json!([]); 200_000]);
        append(&store, &thread, batch(checkpoint(1, None, &[("a", value)], &[]))).await.unwrap();
        let (no_turns, caller, root) = (ReadTurns::new(0), CallerId::default(), Namespace::root());
        let state = store.checkpoint(&thread, &root, None);
        let mut state = pin!(no_turns.scope(caller, TurnSpan::UntilEnd, state));
        assert!(poll!(state.as_mut()).is_pending());
        let batches = store.batches(&thread, None, usize::MAX);
        let mut batches = pin!(no_turns.scope(caller, TurnSpan::EachRead, batches));
        assert!(poll!(batches.as_mut()).is_pending());
        let small = async {
            assert_eq!(store.threads(&ThreadQuery::default()).await.unwrap().items.len(), 1);
            assert!(store.thread(&thread).await.unwrap().is_some());
        };
        no_turns.scope(caller, TurnSpan::UntilEnd, small).await;
        // The list has used the only blocking thread after any read that was asked for before.
        assert!(poll!(state.as_mut()).is_pending() && poll!(batches.as_mut()).is_pending());
        let read = store.checkpoint(&thread, &root, None).await.unwrap();
        assert!(read.is_some(), "a read of the engine takes no turn");
    });
}

const LOG: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("log");

fn entry_bytes(path: &Path, number: u64) -> usize {
    let database = Database::create(path).unwrap();
    let log = database.begin_read().unwrap().open_table(LOG).unwrap();
    log.get(number).unwrap().unwrap().value().len()
}

fn damage(path: &Path, number: u64, at: usize) {
    let database = Database::create(path).unwrap();
    let transaction = database.begin_write().unwrap();
    {
        let mut log = transaction.open_table(LOG).unwrap();
        let mut bytes = log.get(number).unwrap().unwrap().value().to_vec();
        bytes[at] ^= 0x55;
        log.insert(number, bytes.as_slice()).unwrap();
    }
    transaction.commit().unwrap();
}

fn incompressible_text(seed: u64) -> String {
    let digits = (0..2_000_u64).map(|n| (n + seed).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    digits.map(|digit| format!("{digit:016x}")).collect::<Vec<_>>().concat()
}

fn refusal(path: &Path) -> StoreError {
    RedbStore::open(path).unwrap_err()
}

fn set_format(path: &Path, format: u64) {
    let database = Database::create(path).unwrap();
    let transaction = database.begin_write().unwrap();
    let meta: TableDefinition<'_, &str, u64> = TableDefinition::new("wattle");
    transaction.open_table(meta).unwrap().insert("format", format).unwrap();
    transaction.commit().unwrap();
}

#[tokio::test]
async fn commit_of_a_large_state_waits_for_a_turn_of_long_work() {
    let held = hold_all_turns().await;
    let (store, _guard) = crate::redb();
    let thread = create(&*store, "t").await;
    let epoch = store.acquire_lease(&thread, &LeaseHolder("a".into())).await.unwrap();
    let head = store.thread(&thread).await.unwrap().unwrap();
    let (states, clock) = (StateCache::disabled(store.clone()), Arc::new(ManualClock::at_ms(1)));
    let log = ThreadLog::new(states, clock, &head, epoch, run_id("run"));
    let commit = |made| log.commit(Commit { checkpoint: Some(made), ..Commit::default() });
    commit(checkpoint(1, None, &[("a", json!(1))], &[])).await;
    let long = checkpoint(2, Some(1), &[("a", json!(vec![0; 10_000]))], &[]);
    let mut committing = pin!(commit(long));
    assert!(poll!(committing.as_mut()).is_pending());
    drop(held);
    committing.await;
    log.wait_durable().await.unwrap();
    assert!(read(&*store, &thread, Some(2)).await.is_some());
}
