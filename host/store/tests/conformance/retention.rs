//! Retention: deleted runs and prunes.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wattle_graph::checkpoint::{Checkpoint, Trigger};
use wattle_graph::event::{Checkpointed, Event, EventKind, RunStatus};
use wattle_graph::failure::Failure;
use wattle_graph::id::{Digest, Namespace, NodeName, RunId, ThreadId};
use wattle_run::ports::Store;
use wattle_run::ports::blob::BlobRef;
use wattle_run::ports::store::{
    Batch, CheckpointQuery, CheckpointTuple, PruneStrategy, RunRecord, ThreadRecord, ThreadStatus,
};

use crate::fixtures::{
    all_runs, append, batch, checkpoint, create, event, events, id, list_delta, read, record, run,
    run_id, seqs, thread_id,
};

fn of(run: &str, mut checkpoint: Checkpoint) -> Checkpoint {
    checkpoint.meta.run = run_id(run);
    checkpoint
}

fn event_of(run: &str, seq: u64) -> Event {
    Event { run: run_id(run), ..event(seq, json!(seq)) }
}

/// Creates a thread with three runs. Each run creates a checkpoint, which changes a channel of this
/// run only and a list of all runs. Then it appends a pending event, whose base is this checkpoint.
pub(crate) async fn three_runs(store: &dyn Store, name: &str) -> ThreadId {
    let thread = create(store, name).await;
    let mut list: Vec<Value> = Vec::new();
    for (number, word) in (1..).zip(["one", "two", "three"]) {
        let name = format!("{name} {word}");
        list.push(json!(word));
        let versions: Vec<(&str, u64)> =
            [("one", 1), ("two", 2)].into_iter().filter(|(_, n)| *n < number).collect();
        let parent = (number > 1).then(|| number - 1);
        let values = [(word, json!(word)), ("list", json!(list))];
        let mut next = of(&name, checkpoint(number, parent, &values, &versions));
        if let Some(parent) = parent {
            next.list_deltas = BTreeMap::from([list_delta("list", parent, list.len() as u32 - 1)]);
        }
        let seq = number * 2 - 1;
        let made = Batch {
            run: Some(run(&thread, &name)),
            record: Some(ThreadRecord {
                run: Some(run_id(&name)),
                status: ThreadStatus::Interrupted,
                ..record(&thread)
            }),
            base: parent.map(id),
            events: vec![event_of(&name, seq)].into(),
            ..batch(next)
        };
        append(store, &thread, made).await.unwrap();
        let pending = vec![event_of(&name, seq + 1)].into();
        let pending = Batch { base: Some(id(number)), events: pending, ..Batch::default() };
        append(store, &thread, pending).await.unwrap();
    }
    thread
}

pub(crate) async fn all(store: &dyn Store, thread: &ThreadId) -> Vec<CheckpointTuple> {
    store.checkpoints(thread, &CheckpointQuery::default()).await.unwrap().items
}

fn numbers(tuples: &[CheckpointTuple]) -> Vec<u64> {
    tuples.iter().map(|tuple| tuple.checkpoint.meta.id.0).collect()
}

async fn run_ids(store: &dyn Store, thread: &ThreadId) -> Vec<RunId> {
    all_runs(store, thread).await.into_iter().map(|run| run.id).collect()
}

pub(crate) async fn deleting_a_run_deletes_its_events_and_checkpoints(store: &dyn Store) {
    let thread = three_runs(store, "t").await;
    let other = three_runs(store, "other").await;
    let before = all(store, &thread).await;
    let others = all(store, &other).await;
    store.delete_runs(&[run_id("t two")]).await.unwrap();
    let left = all(store, &thread).await;
    assert_eq!(numbers(&left), [3, 1]);
    // The remaining checkpoints keep their values, even those that the deleted run wrote.
    assert_eq!(left[0].checkpoint, before[0].checkpoint);
    assert_eq!(left[0].events, before[0].events);
    assert_eq!(left[1].checkpoint, before[2].checkpoint);
    assert_eq!(seqs(&left[1].events), [2], "without the event of the deleted run");
    assert_eq!(run_ids(store, &thread).await, [run_id("t one"), run_id("t three")]);
    let newest = store.newest_runs(&thread, 1, 2).await.unwrap().items;
    assert_eq!(newest.into_iter().map(|run| run.id).collect::<Vec<_>>(), [run_id("t one")]);
    assert_eq!(store.run(&run_id("t two")).await.unwrap(), None);
    assert_eq!(seqs(&store.events(&thread, 0, 99).await.unwrap()), [1, 2, 6]);
    let head = store.thread(&thread).await.unwrap().unwrap();
    assert_eq!((head.current, head.last_seq, head.pruned_seq), (Some(id(3)), 6, 0));
    assert_eq!(head.record.run, Some(run_id("t three")));
    assert_eq!(all(store, &other).await, others);
    // Appends continue, and sequence numbers are not reused.
    append(store, &thread, Batch { base: Some(id(3)), ..events(7, 7) }).await.unwrap();
    let older = [("one", 1), ("two", 2), ("three", 3), ("list", 3)];
    append(store, &thread, batch(checkpoint(4, Some(3), &[], &older))).await.unwrap();
    let newest = read(store, &thread, None).await.unwrap();
    assert_eq!(newest.checkpoint.state(), before[0].checkpoint.state());
    store.verify(&thread).await.unwrap().unwrap();
}

pub(crate) async fn deleting_the_current_checkpoint_makes_an_earlier_one_current(
    store: &dyn Store,
) {
    let thread = three_runs(store, "t").await;
    store.delete_runs(&[run_id("t three"), run_id("t two")]).await.unwrap();
    let head = store.thread(&thread).await.unwrap().unwrap();
    assert_eq!((head.current, head.last_checkpoint), (Some(id(1)), Some(id(3))));
    assert_eq!(head.record.run, Some(run_id("t one")));
    assert_eq!(head.last_seq, 6);
    assert_eq!(numbers(&all(store, &thread).await), [1]);
    assert!(append(store, &thread, events(3, 3)).await.is_err(), "sequence numbers were reused");
    append(store, &thread, events(7, 7)).await.unwrap();
    assert_eq!(seqs(&store.events(&thread, 0, 99).await.unwrap()), [1, 2, 7]);
}

pub(crate) async fn thread_that_moves_back_to_a_cancelled_run_is_stopped(store: &dyn Store) {
    for (name, status, has_next, stopped) in [
        ("cancelled", RunStatus::Cancelled, true, true),
        ("at-its-end", RunStatus::Cancelled, false, false),
        ("completed", RunStatus::Completed, true, false),
    ] {
        let thread = thread_id(name);
        for (number, word) in (1..).zip(["one", "two"]) {
            let own = format!("{name} {word}");
            let mut made = of(&own, checkpoint(number, None, &[], &[]));
            if has_next {
                made.meta.next = vec![Trigger::without_input(NodeName::new("a").unwrap(), None)];
            }
            let ended = RunRecord { status, ..run(&thread, &own) };
            let record = ThreadRecord { run: Some(ended.id.clone()), ..record(&thread) };
            let batch = Batch { run: Some(ended), record: Some(record), ..batch(made) };
            append(store, &thread, batch).await.unwrap();
        }
        store.delete_runs(&[run_id(&format!("{name} two"))]).await.unwrap();
        let record = store.thread(&thread).await.unwrap().unwrap().record;
        assert_eq!((record.status, record.stopped), (ThreadStatus::Idle, stopped), "{name}");
    }
}

pub(crate) async fn thread_that_moves_back_to_a_failed_run_has_its_failure(store: &dyn Store) {
    let thread = thread_id("t");
    for (number, name) in (1..).zip(["one", "two"]) {
        let failure = (number == 1).then(|| Failure::new("rude", "it says no"));
        let ended = RunRecord { failure, status: RunStatus::Failed, ..run(&thread, name) };
        let record = ThreadRecord { run: Some(ended.id.clone()), ..record(&thread) };
        let made = of(name, checkpoint(number, None, &[], &[]));
        let batch = Batch { run: Some(ended), record: Some(record), ..batch(made) };
        append(store, &thread, batch).await.unwrap();
    }
    store.delete_runs(&[run_id("two")]).await.unwrap();
    let record = store.thread(&thread).await.unwrap().unwrap().record;
    let failure = record.failure.map(|failure| (failure.code, failure.message));
    assert_eq!(record.status, ThreadStatus::Error);
    assert_eq!(failure, Some(("rude".to_owned(), "it says no".to_owned())));
}

pub(crate) async fn thread_without_checkpoints_is_deleted_with_its_runs(store: &dyn Store) {
    let thread = three_runs(store, "t").await;
    let runs = [run_id("t one"), run_id("t two"), run_id("t three")];
    store.delete_runs(&runs).await.unwrap();
    assert_eq!(store.thread(&thread).await.unwrap(), None);
    assert_eq!(store.run(&runs[0]).await.unwrap(), None);
    assert!(store.events(&thread, 0, 9).await.unwrap().is_empty());
    create(store, "t").await;
    assert!(all(store, &thread).await.is_empty());
}

pub(crate) async fn deleting_no_or_unknown_runs_changes_nothing(store: &dyn Store) {
    let thread = three_runs(store, "t").await;
    let before = (store.thread(&thread).await.unwrap(), all(store, &thread).await);
    store.delete_runs(&[]).await.unwrap();
    store.delete_runs(&[run_id("unknown"), run_id("\0")]).await.unwrap();
    assert_eq!((store.thread(&thread).await.unwrap(), all(store, &thread).await), before);
}

pub(crate) async fn deleting_runs_covers_all_namespaces_and_threads(store: &dyn Store) {
    let first = three_runs(store, "first").await;
    let mut child = of("first three", checkpoint(4, None, &[("x", json!(1))], &[]));
    child.meta.namespace = Namespace::new("child");
    append(store, &first, batch(child)).await.unwrap();
    let second = three_runs(store, "second").await;
    store.delete_runs(&[run_id("first three"), run_id("second one")]).await.unwrap();
    assert_eq!(numbers(&all(store, &first).await), [2, 1]);
    assert_eq!(numbers(&all(store, &second).await), [3, 2]);
    let head = store.thread(&second).await.unwrap().unwrap();
    assert_eq!((head.current, head.pruned_seq), (Some(id(3)), 3));
}

pub(crate) async fn pruning_keeps_the_newest_checkpoint_of_each_namespace(store: &dyn Store) {
    let thread = three_runs(store, "t").await;
    let other = three_runs(store, "other").await;
    for number in [4, 5] {
        let mut child = checkpoint(number, None, &[("x", json!(number))], &[]);
        child.meta.namespace = Namespace::new("child");
        append(store, &thread, batch(child)).await.unwrap();
    }
    let before = all(store, &thread).await;
    let others = all(store, &other).await;
    store.prune(&thread, PruneStrategy::KeepLatest).await.unwrap();
    let left = all(store, &thread).await;
    assert_eq!(numbers(&left), [5, 3]);
    assert_eq!(left[0].checkpoint, before[0].checkpoint);
    assert_eq!(left[1], before[2], "with its pending events");
    let head = store.thread(&thread).await.unwrap().unwrap();
    assert_eq!((head.current, head.last_checkpoint), (Some(id(3)), Some(id(5))));
    assert_eq!((head.last_seq, head.pruned_seq), (6, 5));
    for after in [0, 3, 5] {
        assert_eq!(seqs(&store.events(&thread, after, 9).await.unwrap()), [6], "after {after}");
    }
    assert_eq!(*store.watch(&thread).borrow(), 6);
    assert_eq!(run_ids(store, &thread).await.len(), 3);
    assert_eq!(all(store, &other).await, others);
}

pub(crate) async fn pruned_thread_accepts_further_batches(store: &dyn Store) {
    let thread = three_runs(store, "t").await;
    let bytes = store.stored_bytes(&thread).await.unwrap();
    let whole = store.thread(&thread).await.unwrap().unwrap();
    let (seal, log_bytes) = (whole.seal, whole.log_bytes);
    assert!((1..bytes).contains(&log_bytes), "{log_bytes} of {bytes}");
    store.prune(&thread, PruneStrategy::KeepLatest).await.unwrap();
    assert!(store.stored_bytes(&thread).await.unwrap() < bytes);
    let left = store.thread(&thread).await.unwrap().unwrap().log_bytes;
    assert!((1..log_bytes).contains(&left), "{left} of {log_bytes}");
    assert_eq!(store.thread_snapshot(&thread).await.unwrap().unwrap().head.log_bytes, left);
    // The new seals continue the old seals.
    let verified = store.verify(&thread).await.unwrap().unwrap();
    assert_eq!((verified.sealed_after, verified.last_seq), (5, 6));
    assert!(verified.seal.is_some() && verified.seal != seal);
    let longer = json!(["one", "two", "three", "four"]);
    let older = [("one", 1), ("two", 2), ("three", 3)];
    let mut next = checkpoint(4, Some(3), &[("list", longer.clone())], &older);
    next.list_deltas = BTreeMap::from([list_delta("list", 3, 3)]);
    append(store, &thread, Batch { base: Some(id(3)), ..batch(next) }).await.unwrap();
    append(store, &thread, Batch { base: Some(id(4)), ..events(7, 8) }).await.unwrap();
    let tuple = read(store, &thread, None).await.unwrap();
    let state = json!({ "one": "one", "two": "two", "three": "three", "list": longer });
    assert_eq!(tuple.checkpoint.state(), state);
    assert_eq!(seqs(&tuple.events), [7, 8]);
    store.prune(&thread, PruneStrategy::KeepLatest).await.unwrap();
    assert_eq!(read(store, &thread, None).await.unwrap(), tuple);
    let again = store.thread(&thread).await.unwrap();
    store.prune(&thread, PruneStrategy::KeepLatest).await.unwrap();
    assert_eq!(store.thread(&thread).await.unwrap(), again, "nothing is left to prune");
    store.verify(&thread).await.unwrap().unwrap();
}

pub(crate) async fn pruning_keeps_current_and_reopenable_checkpoints(store: &dyn Store) {
    let thread = create(store, "t").await;
    for number in 1..=6 {
        let parent = (number > 1).then(|| number - 1);
        let next = checkpoint(number, parent, &[("a", json!(number))], &[]);
        append(store, &thread, batch(next)).await.unwrap();
    }
    let mut unfinished = run(&thread, "run");
    unfinished.reopen = Some(id(2));
    let back = Batch { run: Some(unfinished), current: Some(id(4)), ..Batch::default() };
    append(store, &thread, back).await.unwrap();
    store.prune(&thread, PruneStrategy::KeepLatest).await.unwrap();
    assert_eq!(numbers(&all(store, &thread).await), [6, 4, 2]);
    assert_eq!(store.thread(&thread).await.unwrap().unwrap().current, Some(id(4)));
    append(store, &thread, Batch { current: Some(id(2)), ..Batch::default() }).await.unwrap();
}

pub(crate) async fn prune_with_the_strategy_delete_deletes_the_thread(store: &dyn Store) {
    let thread = three_runs(store, "t").await;
    store.prune(&thread, PruneStrategy::Delete).await.unwrap();
    assert_eq!(store.thread(&thread).await.unwrap(), None);
    for strategy in [PruneStrategy::Delete, PruneStrategy::KeepLatest] {
        store.prune(&thread, strategy).await.unwrap();
    }
}

pub(crate) async fn blobs_of_deleted_data_are_not_mentioned(store: &dyn Store) {
    let thread = create(store, "t").await;
    let blob = |name: &str| BlobRef(Digest::of(name.as_bytes()));
    let value = |name: &str| json!(format!("see {}", blob(name)));
    let values = [("stays", value("stays")), ("goes", value("goes"))];
    append(store, &thread, batch(checkpoint(1, None, &values, &[]))).await.unwrap();
    let next = checkpoint(2, Some(1), &[("goes", json!(null))], &[("stays", 1)]);
    append(store, &thread, batch(next)).await.unwrap();
    assert!(store.mentions(&thread, blob("goes")).await.unwrap());
    store.prune(&thread, PruneStrategy::KeepLatest).await.unwrap();
    assert!(store.mentions(&thread, blob("stays")).await.unwrap());
    assert!(!store.mentions(&thread, blob("goes")).await.unwrap());
}

pub(crate) async fn deleting_a_run_keeps_checkpoints_that_subgraphs_need(store: &dyn Store) {
    let thread = three_runs(store, "t").await;
    let child = Namespace::new("child");
    let mut inside = of("t two", checkpoint(4, None, &[("x", json!("inside"))], &[]));
    inside.meta.namespace = child.clone();
    append(store, &thread, batch(inside)).await.unwrap();
    let mut root = of("t three", checkpoint(5, Some(3), &[], &[("list", 3)]));
    root.meta.subgraph_checkpoints = BTreeMap::from([(child.clone(), id(4))]);
    append(store, &thread, batch(root)).await.unwrap();
    store.delete_runs(&[run_id("t two")]).await.unwrap();
    assert_eq!(numbers(&all(store, &thread).await), [5, 4, 3, 1]);
    let inside = store.checkpoint(&thread, &child, Some(id(4))).await.unwrap().unwrap();
    assert_eq!(inside.checkpoint.state(), json!({ "x": "inside" }));
    store.verify(&thread).await.unwrap().unwrap();
}

/// The run persists only its last checkpoint. The log then has the event `checkpointed` of this
/// checkpoint, and events after it, with the checkpoint at which the run began as their base. A
/// prune keeps these events.
pub(crate) async fn pruning_keeps_events_of_a_checkpoint_persisted_later(store: &dyn Store) {
    let thread = create(store, "t").await;
    append(store, &thread, batch(checkpoint(1, None, &[], &[]))).await.unwrap();
    let last = checkpoint(3, Some(1), &[("a", json!("kept"))], &[]);
    let mut checkpointed = event(2, json!(null));
    checkpointed.kind = EventKind::Checkpointed(Checkpointed::from(&last.meta));
    let pending = vec![event(1, json!("goes")), checkpointed, event(3, json!("asked"))].into();
    let below = Batch { base: Some(id(1)), events: pending, ..Batch::default() };
    append(store, &thread, below).await.unwrap();
    append(store, &thread, Batch { base: Some(id(1)), ..batch(last) }).await.unwrap();
    append(store, &thread, Batch { base: Some(id(3)), ..events(4, 4) }).await.unwrap();
    store.prune(&thread, PruneStrategy::KeepLatest).await.unwrap();
    assert_eq!(numbers(&all(store, &thread).await), [3]);
    assert_eq!(seqs(&store.events(&thread, 0, 9).await.unwrap()), [2, 3, 4]);
    store.verify(&thread).await.unwrap().unwrap();
}

pub(crate) async fn pruning_a_thread_without_checkpoints_keeps_everything(store: &dyn Store) {
    let thread = create(store, "t").await;
    append(store, &thread, events(1, 3)).await.unwrap();
    store.prune(&thread, PruneStrategy::KeepLatest).await.unwrap();
    assert_eq!(seqs(&store.events(&thread, 0, 9).await.unwrap()), [1, 2, 3]);
}

pub(crate) async fn event_pages_skip_deleted_events(store: &dyn Store) {
    let thread = create(store, "t").await;
    for number in 1..=300_u64 {
        // Every hundredth event belongs to the run that is kept.
        let run_name = if number % 100 == 0 { "stays" } else { "goes" };
        let next = Batch {
            run: Some(run(&thread, run_name)),
            events: vec![event_of(run_name, number)].into(),
            checkpoint: (number % 100 == 0)
                .then(|| of("stays", checkpoint(number, None, &[], &[]))),
            ..Batch::default()
        };
        append(store, &thread, next).await.unwrap();
    }
    store.delete_runs(&[run_id("goes")]).await.unwrap();
    for (after, limit, page) in
        [(0, 1, &[100][..]), (0, 2, &[100, 200]), (100, 9, &[200, 300]), (250, 1, &[300])]
    {
        let events = store.events(&thread, after, limit).await.unwrap();
        assert_eq!(seqs(&events), page, "{limit} after {after}");
    }
    assert_eq!(store.thread(&thread).await.unwrap().unwrap().pruned_seq, 99);
}
