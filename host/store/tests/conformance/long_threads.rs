//! Long threads: prunes, deletions and copies proceed in parts, and leave threads intact if the
//! process is killed.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use serde_json::json;
use tempfile::TempDir;
use wattle_graph::event::Event;
use wattle_graph::id::{RunId, ThreadId};
use wattle_run::ports::Store;
use wattle_run::ports::store::{Batch, CheckpointTuple, PruneStrategy};
use wattle_store::RedbStore;

use crate::fixtures::{
    all_events, append, checkpoint, create, event, events, id, incompressible_text, list_delta,
    read, record, run, run_id, seqs, thread_id,
};
use crate::retention::all;

/// Number of checkpoints of a long thread: several times the number of frames that one commit
/// deletes.
const LONG: u64 = 2200;

const FILE: &str = "WATTLE_STORE_LONG_FILE";

/// Number of checkpoints from one version of the list to the next version.
const STRIDE: u64 = 50;

/// Creates a thread with a checkpoint and an event per step. Channel `n` changes in each step,
/// `list` grows every [`STRIDE`] steps, and `first` never changes.
async fn create_long(store: &dyn Store, name: &str, length: u64) -> ThreadId {
    let thread = create(store, name).await;
    let mut list = Vec::new();
    let mut tickets = Vec::new();
    for n in 1..=length {
        let parent = (n > 1).then(|| n - 1);
        let mut changed = vec![("n", json!(n))];
        let now = n % STRIDE == 1;
        let newest = (n - 1) / STRIDE * STRIDE + 1;
        let mut older = vec![("first", 1), ("list", newest)];
        if now {
            list.push(json!(n));
            changed.push(("list", json!(list)));
            older.pop();
        }
        if n == 1 {
            changed.push(("first", json!("first")));
            older.clear();
        }
        let mut next = checkpoint(n, parent, &changed, &older);
        if now && n > 1 {
            next.list_deltas =
                BTreeMap::from([list_delta("list", n - STRIDE, list.len() as u32 - 1)]);
        }
        let run = (n == 1).then(|| run(&thread, &format!("{name} run")));
        let batch = Batch { run, base: parent.map(id), checkpoint: Some(next), ..events(n, n) };
        tickets.push(store.append(&thread, batch).await);
    }
    for ticket in tickets {
        ticket.await.unwrap();
    }
    thread
}

fn renamed(run: &RunId) -> RunId {
    run_id(&format!("copy of {run}"))
}

/// Returns a few checkpoints, without the fields that differ between a thread and its copy.
async fn sample_checkpoints(
    store: &dyn Store,
    thread: &ThreadId,
    length: u64,
) -> Vec<CheckpointTuple> {
    let mut sample_checkpoints = Vec::new();
    for n in [1, 2, length / 2, length - 1, length] {
        let mut tuple = read(store, thread, Some(n)).await.unwrap();
        tuple.checkpoint.meta.run = run_id("any");
        tuple.events.iter_mut().for_each(|event| event.run = run_id("any"));
        sample_checkpoints.push(tuple);
    }
    sample_checkpoints
}

pub(crate) async fn long_thread_is_copied_and_pruned(store: &dyn Store) {
    let thread = create_long(store, "long", LONG).await;
    let before = sample_checkpoints(store, &thread, LONG).await;
    let copied = thread_id("copy");
    store.copy_thread(&thread, &copied, &run_id("incarnation"), &renamed).await.unwrap();
    assert_eq!(sample_checkpoints(store, &copied, LONG).await, before);
    assert_eq!(all(store, &copied).await.len() as u64, LONG);
    store.verify(&copied).await.unwrap().unwrap();
    store.prune(&copied, PruneStrategy::KeepLatest).await.unwrap();
    assert_eq!(all(store, &copied).await.len(), 1);
    let newest = read(store, &copied, None).await.unwrap();
    assert_eq!(newest.checkpoint.values, before[4].checkpoint.values);
    store.verify(&copied).await.unwrap().unwrap();
    append(store, &copied, Batch { base: Some(id(LONG)), ..events(LONG + 1, LONG + 1) })
        .await
        .unwrap();
    store.delete_thread(&copied).await.unwrap();
    assert_eq!(store.thread(&copied).await.unwrap(), None);
    assert_eq!(sample_checkpoints(store, &thread, LONG).await, before);
    store.verify(&thread).await.unwrap().unwrap();
}

/// Number of checkpoints of a thread whose rewrite reads several pages of its log.
const MIXED: u64 = 270;

/// Number of checkpoints that a run makes before the other run continues.
const TURN: u64 = 40;

/// Returns true if a checkpoint belongs to the run that is not deleted.
fn is_left(n: u64) -> bool {
    (n / TURN).is_multiple_of(2)
}

/// Creates a thread with two runs, which take turns. Channel `list` grows in each step, `turn`
/// changes once in each turn, and `first` never changes.
async fn create_mixed(store: &dyn Store) -> ThreadId {
    let thread = create(store, "mixed").await;
    let (mut list, mut tickets, mut turn) = (Vec::new(), Vec::new(), 1);
    for n in 1..=MIXED {
        list.push(json!(n));
        let mut changed = vec![("list", json!(list))];
        let mut older = vec![("first", 1), ("turn", turn)];
        if n == 1 {
            changed.extend([("first", json!("first")), ("turn", json!(n))]);
            older.clear();
        } else if n % TURN == TURN / 2 {
            changed.push(("turn", json!(n)));
            older.pop();
            turn = n;
        }
        let name = if is_left(n) { "left" } else { "gone" };
        let parent = (n > 1).then(|| n - 1);
        let mut next = checkpoint(n, parent, &changed, &older);
        next.meta.run = run_id(name);
        if let Some(parent) = parent {
            next.list_deltas = BTreeMap::from([list_delta("list", parent, list.len() as u32 - 1)]);
        }
        let batch = Batch {
            run: [1, TURN].contains(&n).then(|| run(&thread, name)),
            base: parent.map(id),
            events: vec![Event { run: run_id(name), ..event(n, json!(n)) }].into(),
            checkpoint: Some(next),
            ..Batch::default()
        };
        tickets.push(store.append(&thread, batch).await);
    }
    for ticket in tickets {
        ticket.await.unwrap();
    }
    thread
}

pub(crate) async fn run_of_a_long_thread_is_deleted(store: &dyn Store) {
    let thread = create_mixed(store).await;
    let before = all(store, &thread).await;
    store.delete_runs(&[run_id("gone")]).await.unwrap();
    let after = all(store, &thread).await;
    let left = before.iter().filter(|tuple| is_left(tuple.checkpoint.meta.id.0));
    let left: Vec<_> = left.map(|tuple| &tuple.checkpoint).collect();
    assert_eq!(after.iter().map(|tuple| &tuple.checkpoint).collect::<Vec<_>>(), left);
    // An event is deleted with the checkpoint that it follows.
    let has_event = |n: &u64| is_left(*n) && (*n == 1 || is_left(n - 1));
    let expected: Vec<u64> = (1..=MIXED).filter(has_event).collect();
    assert_eq!(seqs(&all_events(store, &thread).await), expected);
    store.verify(&thread).await.unwrap().unwrap();
}

/// Appends to a thread until a task is done, and returns the number of batches.
async fn append_until(
    store: &RedbStore,
    thread: &ThreadId,
    mut done: tokio::task::JoinHandle<()>,
) -> usize {
    let mut written = 0;
    let mut seq = store.thread(thread).await.unwrap().unwrap().last_seq;
    loop {
        seq += 1;
        let batch = events(seq, seq);
        let batch = append(store, thread, batch);
        tokio::select! {
            ended = &mut done => {
                ended.unwrap();
                return written;
            }
            appended = batch => appended.unwrap(),
        }
        written += 1;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn appends_proceed_during_a_rewrite() {
    let dir = TempDir::new().unwrap();
    let store = RedbStore::open(dir.path().join("wattle.redb")).unwrap();
    let thread = create_long(&store, "long", LONG).await;
    let copied = thread_id("copy");
    let changing = store.clone();
    let (from, to) = (thread.clone(), copied.clone());
    let copying = tokio::spawn(async move {
        changing.copy_thread(&from, &to, &run_id("incarnation"), &renamed).await.unwrap();
    });
    let other = create(&store, "while it is copied").await;
    // The rewrite has four parts, and at least one batch is committed for each part.
    let written = append_until(&store, &other, copying).await;
    assert!(written >= 4, "{written} batches while a thread was copied");
    let changing = store.clone();
    let pruning = tokio::spawn(async move {
        changing.prune(&copied, PruneStrategy::KeepLatest).await.unwrap();
    });
    let other = create(&store, "while it is pruned").await;
    let written = append_until(&store, &other, pruning).await;
    assert!(written >= 4, "{written} batches while a thread was pruned");
    assert_eq!(all(&store, &thread).await.len() as u64, LONG);
}

#[tokio::test]
async fn concurrent_appends_survive_a_prune() {
    let dir = TempDir::new().unwrap();
    let store = Arc::new(RedbStore::open(dir.path().join("wattle.redb")).unwrap());
    let thread = create_long(&*store, "long", LONG).await;
    let (pruning, pruned) = (store.clone(), thread.clone());
    let pruning =
        tokio::spawn(async move { pruning.prune(&pruned, PruneStrategy::KeepLatest).await });
    let mut seq = LONG;
    while !pruning.is_finished() {
        seq += 1;
        append(&*store, &thread, Batch { base: Some(id(LONG)), ..events(seq, seq) }).await.unwrap();
    }
    // Whether the prune succeeded or gave up, no batch is lost.
    let pruned = pruning.await.unwrap().is_ok();
    let newest = read(&*store, &thread, None).await.unwrap();
    assert_eq!(newest.events.last().unwrap().seq, seq);
    assert_eq!(all(&*store, &thread).await.len() == 1, pruned);
    store.verify(&thread).await.unwrap().unwrap();
}

/// A prune must not undo updates of records either.
#[tokio::test]
async fn concurrent_record_updates_survive_a_prune() {
    let dir = TempDir::new().unwrap();
    let store = Arc::new(RedbStore::open(dir.path().join("wattle.redb")).unwrap());
    let thread = create_long(&*store, "long", LONG).await;
    let (pruning, pruned) = (store.clone(), thread.clone());
    let pruning =
        tokio::spawn(async move { pruning.prune(&pruned, PruneStrategy::KeepLatest).await });
    let mut updated = record(&thread);
    while !pruning.is_finished() {
        updated.updated_ms += 1;
        let batch = Batch { record: Some(updated.clone()), ..Batch::default() };
        append(&*store, &thread, batch).await.unwrap();
    }
    let pruned = pruning.await.unwrap().is_ok();
    assert_eq!(store.thread(&thread).await.unwrap().unwrap().record.updated_ms, updated.updated_ms);
    assert_eq!(all(&*store, &thread).await.len() == 1, pruned);
    store.verify(&thread).await.unwrap().unwrap();
}

/// The process that [`sigkill_during_a_rewrite_keeps_threads_intact`] starts. It is not an
/// independent test.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "started by another test, which kills it"]
async fn changing_process() {
    let store = RedbStore::open(crate::path_from_env(FILE)).unwrap();
    let changing = store.clone();
    let changes = tokio::spawn(async move {
        let thread = thread_id("long");
        changing
            .copy_thread(&thread, &thread_id("copy"), &run_id("incarnation"), &renamed)
            .await
            .unwrap();
        changing.prune(&thread, PruneStrategy::KeepLatest).await.unwrap();
        changing.delete_thread(&thread).await.unwrap();
    });
    let other = thread_id("other");
    let mut seq = store.thread(&other).await.unwrap().unwrap().last_seq;
    while !changes.is_finished() {
        seq += 1;
        append(&store, &other, events(seq, seq)).await.unwrap();
        println!("durable {seq}");
    }
    println!("done");
}

#[tokio::test]
async fn sigkill_during_a_rewrite_keeps_threads_intact() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("wattle.redb");
    let (thread, copied) = (thread_id("long"), thread_id("copy"));
    let original = dir.path().join("whole.redb");
    let store = RedbStore::open(&original).unwrap();
    create_long(&store, "long", LONG).await;
    create(&store, "other").await;
    drop(store);
    let (mut batches, mut step) = (1, 1);
    loop {
        std::fs::copy(&original, &path).unwrap();
        let durable = change_and_kill(&path, batches);
        let store = RedbStore::open(&path).unwrap();
        let counts = [count(&store, &thread).await, count(&store, &copied).await];
        assert!([0, 1, LONG].contains(&counts[0]), "{counts:?} after {batches}");
        assert!([0, LONG].contains(&counts[1]), "{counts:?} after {batches}");
        // Compaction reclaims the leftover frames and nothing else.
        store.compact().await.unwrap();
        assert_eq!([count(&store, &thread).await, count(&store, &copied).await], counts);
        let Some(durable) = durable else {
            assert_eq!(counts, [0, LONG]);
            return;
        };
        let other = store.thread(&thread_id("other")).await.unwrap().unwrap();
        assert!(other.last_seq >= durable);
        batches += step;
        step += 2;
    }
}

/// Returns the number of checkpoints of a thread, which must be intact.
async fn count(store: &RedbStore, thread: &ThreadId) -> u64 {
    let all = all(store, thread).await.len() as u64;
    if all > 0 {
        let state = read(store, thread, None).await.unwrap().checkpoint.state();
        assert_eq!((&state["n"], &state["first"]), (&json!(LONG), &json!("first")));
        store.verify(thread).await.unwrap().unwrap();
    }
    all
}

/// Runs a process that changes threads, and kills it after it has written this number of batches of
/// another thread. Returns the newest event that the process reported, or `None` if the process had
/// finished all changes.
fn change_and_kill(path: &Path, batches: usize) -> Option<u64> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["long_threads::changing_process", "--exact", "--ignored", "--nocapture"])
        .env(FILE, path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut durable = None;
    let mut reported = 0;
    for line in BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok) {
        if let Some((_, seq)) = line.split_once("durable ") {
            durable = Some(seq.parse().unwrap());
            reported += 1;
        }
        if line.contains("done") {
            child.wait().unwrap();
            return None;
        }
        if reported == batches {
            break;
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    durable
}

/// Compaction returns the space of pruned data to the file system.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn compaction_shrinks_a_pruned_store() {
    const THREADS: u32 = 4;
    const CHECKPOINTS: u64 = 200;
    let dir = TempDir::new().unwrap();
    let store = RedbStore::open(dir.path().join("wattle.redb")).unwrap();
    let mut threads = Vec::new();
    for number in 0..THREADS {
        let thread = create(&store, &format!("t{number}")).await;
        for n in 1..=CHECKPOINTS {
            // Each text is different, because equal texts would be compressed.
            let text = incompressible_text(128 + number)[..1024].replace('0', &n.to_string());
            let parent = (n > 1).then(|| n - 1);
            let next = checkpoint(n, parent, &[("text", json!(text))], &[]);
            let batch = Batch { base: parent.map(id), checkpoint: Some(next), ..events(n, n) };
            store.append(&thread, batch).await.await.unwrap();
        }
        threads.push(thread);
    }
    let full = store.compact().await.unwrap().after_bytes;
    for thread in &threads {
        store.prune(thread, PruneStrategy::KeepLatest).await.unwrap();
    }
    let pruned = store.compact().await.unwrap().after_bytes;
    assert!(pruned * 4 < full, "{full} bytes before, {pruned} after");
    for thread in &threads {
        let head = store.thread(thread).await.unwrap().unwrap();
        assert_eq!(head.current, Some(id(CHECKPOINTS)));
    }
}
