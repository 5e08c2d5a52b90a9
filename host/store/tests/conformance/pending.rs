//! Pending runs keep the order of the requests for them, and each begins at most once.

use serde_json::json;
use wattle_graph::event::RunStatus;
use wattle_graph::failure::Failure;
use wattle_graph::id::{AppName, Digest, GraphName, RunId, ThreadId};
use wattle_graph::principal::Principal;
use wattle_run::caller_id::CallerId;
use wattle_run::ports::Store;
use wattle_run::ports::blob::BlobRef;
use wattle_run::ports::store::{
    Batch, LeaseHolder, PendingQuery, PruneStrategy, QueueCondition, RunRecord, StoreError,
    ThreadQuery, ThreadRecord,
};

use crate::fixtures::{
    all_runs, append, batch, checkpoint, create, events, from_json, record, run, run_id, thread_id,
};

/// Returns the record of a pending run with a due time.
pub(crate) fn pending_run(thread: &ThreadId, run: &str, due_ms: i64) -> RunRecord {
    from_json(json!({
        "id": run,
        "thread": thread,
        "status": "pending",
        "created_ms": 1,
        "started_ms": 1,
        "spec": { "kind": { "kind": "start", "input": { "a": run } }, "app": "demo", "due_ms": due_ms },
    }))
}

fn ended(run: &RunRecord) -> RunRecord {
    RunRecord { status: RunStatus::Cancelled, ended_ms: Some(2), ..run.clone() }
}

pub(crate) fn begun(run: &RunRecord, now_ms: i64) -> RunRecord {
    RunRecord { status: RunStatus::Running, started_ms: now_ms, first_seq: 1, ..run.clone() }
}

/// Returns a batch that begins a run.
pub(crate) fn begins(run: &RunRecord, turn: QueueCondition) -> Batch {
    Batch { run: Some(run.clone()), queue_condition: turn, ..Batch::default() }
}

pub(crate) async fn names(store: &dyn Store, query: PendingQuery) -> Vec<String> {
    let pending = store.pending(&PendingQuery { limit: query.limit.max(1), ..query }).await;
    pending.unwrap().into_iter().map(|pending| pending.run.to_string()).collect()
}

fn all() -> PendingQuery {
    PendingQuery { limit: 99, ..PendingQuery::default() }
}

fn of(thread: &ThreadId) -> PendingQuery {
    PendingQuery { thread: Some(thread.clone()), ..all() }
}

pub(crate) async fn pending_runs_keep_their_order(store: &dyn Store) {
    let (one, other) = (create(store, "one").await, create(store, "other").await);
    for (thread, name, due_ms) in
        [(&one, "r3", 5), (&other, "r1", 1), (&one, "r2", 9), (&one, "r4", 0)]
    {
        assert!(store.enqueue(&pending_run(thread, name, due_ms), None).await.unwrap());
    }
    assert_eq!(names(store, all()).await, ["r3", "r1", "r2", "r4"]);
    assert_eq!(names(store, of(&one)).await, ["r3", "r2", "r4"]);
    assert_eq!(names(store, of(&thread_id("none"))).await, [""; 0]);
    assert_eq!(names(store, PendingQuery { due_by_ms: Some(5), ..of(&one) }).await, ["r3", "r4"]);
    assert_eq!(names(store, PendingQuery { limit: 2, ..all() }).await, ["r3", "r1"]);
    let pending: Vec<_> = store.pending(&all()).await.unwrap();
    assert!(pending.is_sorted_by(|one, other| one.position < other.position));
    assert_eq!((&pending[1].thread, pending[1].due_ms), (&other, 1));
    let behind = PendingQuery { after: Some(pending[1].position), ..all() };
    assert_eq!(names(store, behind).await, ["r2", "r4"]);
    // Pending runs are among the runs of their thread.
    let runs = all_runs(store, &one).await;
    assert_eq!(runs[0], pending_run(&one, "r3", 5));
    assert_eq!(runs.len(), 3);
    assert_eq!(store.run(&run_id("r1")).await.unwrap(), Some(pending_run(&other, "r1", 1)));
    assert_eq!(store.thread(&one).await.unwrap().unwrap().record.run, None);
}

pub(crate) async fn pending_runs_are_listed_with_their_callers(store: &dyn Store) {
    let (one, other) = (create(store, "one").await, create(store, "other").await);
    let mut of_jane = pending_run(&one, "r1", 1);
    let jane = Principal { user: Some("jane".into()), ..Principal::default() };
    of_jane.spec.as_mut().unwrap().principal = Some(jane);
    let of_nobody = pending_run(&other, "r2", 1);
    for run in [&of_jane, &of_nobody] {
        store.enqueue(run, None).await.unwrap();
    }
    let callers: Vec<CallerId> =
        store.pending(&all()).await.unwrap().into_iter().map(|pending| pending.caller).collect();
    assert_eq!(callers, [of_jane.caller(), of_nobody.caller()]);
    assert_ne!(callers[0], callers[1]);
    let own = store.pending(&of(&one)).await.unwrap();
    assert_eq!(own[0].caller, callers[0]);
}

pub(crate) async fn run_is_enqueued_only_once_and_only_for_an_existing_thread(store: &dyn Store) {
    let thread = create(store, "t").await;
    assert!(store.enqueue(&pending_run(&thread, "r", 1), None).await.unwrap());
    assert!(!store.enqueue(&pending_run(&thread, "r", 2), None).await.unwrap());
    append(store, &thread, begins(&run(&thread, "known"), QueueCondition::Unchecked))
        .await
        .unwrap();
    assert!(!store.enqueue(&pending_run(&thread, "known", 1), None).await.unwrap());
    let missing = store.enqueue(&pending_run(&thread_id("missing"), "m", 1), None).await;
    assert!(matches!(missing, Err(StoreError::InvalidBatch { .. })), "{missing:?}");
    let running = store.enqueue(&run(&thread, "running"), None).await;
    assert!(matches!(running, Err(StoreError::InvalidBatch { .. })), "{running:?}");
    assert_eq!(names(store, all()).await, ["r"]);
    assert_eq!(store.run(&run_id("m")).await.unwrap(), None);
}

pub(crate) async fn run_is_enqueued_without_a_lease(store: &dyn Store) {
    let thread = create(store, "t").await;
    let holder = LeaseHolder("a".into());
    store.heartbeat(&holder).await.unwrap();
    let epoch = store.acquire_lease(&thread, &holder).await.unwrap();
    append(store, &thread, Batch { epoch: Some(epoch), ..events(1, 1) }).await.unwrap();
    let first = pending_run(&thread, "r1", 1);
    assert!(store.enqueue(&first, None).await.unwrap());
    assert!(store.enqueue(&pending_run(&thread, "r2", 1), None).await.unwrap());
    assert!(store.dequeue(&first.id, Some(&ended(&first))).await.unwrap());
    // The lease is still valid, and appends continue.
    append(store, &thread, Batch { epoch: Some(epoch), ..events(2, 2) }).await.unwrap();
    assert!(store.is_lease_held(&thread, epoch).await.unwrap());
    assert_eq!(names(store, of(&thread)).await, ["r2"]);
    assert_eq!(store.run(&first.id).await.unwrap(), Some(ended(&first)));
}

pub(crate) async fn pending_run_names_the_graph_of_an_unbound_thread(store: &dyn Store) {
    let requested = |graph: &str| (AppName::new("demo").unwrap(), GraphName::new(graph).unwrap());
    let unbound = ThreadRecord::unbound(thread_id("t"), 1);
    let thread = unbound.id.clone();
    let batch = Batch { record: Some(unbound.clone()), ..Batch::default() };
    append(store, &thread, batch).await.unwrap();
    // Another host uses the thread.
    let holder = LeaseHolder("a".into());
    store.heartbeat(&holder).await.unwrap();
    let epoch = store.acquire_lease(&thread, &holder).await.unwrap();
    let first = pending_run(&thread, "r1", 1);
    assert!(store.enqueue(&first, Some(&requested("main"))).await.unwrap());
    let (app, graph) = requested("main");
    let named = ThreadRecord { app, graph, ..unbound };
    assert!(!store.enqueue(&first, Some(&requested("other"))).await.unwrap());
    assert_eq!(store.thread(&thread).await.unwrap().unwrap().record, named);
    assert!(store.is_lease_held(&thread, epoch).await.unwrap());
    let of_app = ThreadQuery { app: Some(named.app), ..ThreadQuery::default() };
    assert_eq!(store.threads(&of_app).await.unwrap().items.len(), 1);
    let bound = create(store, "bound").await;
    assert!(store.enqueue(&pending_run(&bound, "r2", 1), Some(&requested("other"))).await.unwrap());
    assert_eq!(store.thread(&bound).await.unwrap().unwrap().record, record(&bound));
}

pub(crate) async fn pending_run_begins_once(store: &dyn Store) {
    let thread = create(store, "t").await;
    let (first, second) = (pending_run(&thread, "r1", 5), pending_run(&thread, "r2", 1));
    store.enqueue(&first, None).await.unwrap();
    store.enqueue(&second, None).await.unwrap();
    append(store, &thread, begins(&begun(&second, 7), QueueCondition::Pending)).await.unwrap();
    assert_eq!(names(store, all()).await, ["r1"]);
    assert_eq!(store.run(&second.id).await.unwrap(), Some(begun(&second, 7)));
    // The run is not pending any more.
    let again = append(store, &thread, begins(&begun(&second, 8), QueueCondition::Pending)).await;
    assert!(matches!(&again, Err(StoreError::OutOfTurn { run, .. }) if *run == second.id));
    assert!(!store.dequeue(&second.id, None).await.unwrap());
    let facts = Batch { run: Some(ended(&second)), ..Batch::default() };
    append(store, &thread, facts).await.unwrap();
    // Runs keep their positions in the list of all runs of the thread.
    let runs = all_runs(store, &thread).await;
    assert_eq!(runs, [first, ended(&second)]);
}

pub(crate) async fn dequeued_run_never_begins(store: &dyn Store) {
    let thread = create(store, "t").await;
    let (first, second) = (pending_run(&thread, "r1", 1), pending_run(&thread, "r2", 1));
    store.enqueue(&first, None).await.unwrap();
    store.enqueue(&second, None).await.unwrap();
    assert!(store.dequeue(&first.id, Some(&ended(&first))).await.unwrap());
    assert!(store.dequeue(&second.id, None).await.unwrap());
    assert!(!store.dequeue(&first.id, None).await.unwrap());
    assert!(!store.dequeue(&run_id("unknown"), None).await.unwrap());
    for run in [&first, &second] {
        let begin = append(store, &thread, begins(&begun(run, 7), QueueCondition::Pending)).await;
        assert!(matches!(begin, Err(StoreError::OutOfTurn { .. })), "{begin:?}");
    }
    assert_eq!(all_runs(store, &thread).await, [ended(&first)]);
    assert_eq!(store.run(&second.id).await.unwrap(), None);
    assert_eq!(names(store, all()).await, [""; 0]);
    // The id of the run can be used again.
    assert!(store.enqueue(&second, None).await.unwrap());
    let begins_now = || append(store, &thread, begins(&begun(&second, 7), QueueCondition::Free));
    let known = begins_now().await;
    assert!(matches!(known, Err(StoreError::OutOfTurn { .. })), "{known:?}");
    assert!(store.dequeue(&second.id, None).await.unwrap());
    begins_now().await.unwrap();
}

pub(crate) async fn due_run_begins_before_new_runs(store: &dyn Store) {
    let thread = create(store, "t").await;
    let direct = |name: &str, now_ms| {
        begins(&begun(&pending_run(&thread, name, 1), now_ms), QueueCondition::Free)
    };
    append(store, &thread, direct("first", 5)).await.unwrap();
    let known = append(store, &thread, direct("first", 5)).await;
    assert!(matches!(known, Err(StoreError::OutOfTurn { .. })), "{known:?}");
    let later = pending_run(&thread, "later", 10);
    store.enqueue(&later, None).await.unwrap();
    append(store, &thread, direct("before", 9)).await.unwrap();
    let after = append(store, &thread, direct("after", 10)).await;
    assert!(matches!(&after, Err(StoreError::OutOfTurn { run, .. }) if *run == run_id("after")));
    assert_eq!(store.run(&run_id("after")).await.unwrap(), None);
    append(store, &thread, begins(&begun(&later, 10), QueueCondition::Pending)).await.unwrap();
    append(store, &thread, direct("after", 11)).await.unwrap();
    let runs = all_runs(store, &thread).await;
    let names: Vec<&str> = runs.iter().map(|run| run.id.as_str()).collect();
    assert_eq!(names, ["first", "later", "before", "after"]);
    let none = Batch { queue_condition: QueueCondition::Free, ..events(1, 1) };
    assert!(matches!(append(store, &thread, none).await, Err(StoreError::InvalidBatch { .. })));
}

pub(crate) async fn pending_runs_survive_pruning_and_are_not_copied(store: &dyn Store) {
    let thread = create(store, "t").await;
    for (number, name) in [(1, "a"), (2, "b")] {
        let made =
            batch(checkpoint(number, (number > 1).then(|| number - 1), &[("a", json!(name))], &[]));
        let record = RunRecord { status: RunStatus::Completed, ..run(&thread, name) };
        let mut made = Batch { run: Some(record), ..made };
        if let Some(checkpoint) = &mut made.checkpoint {
            checkpoint.meta.run = run_id(name);
        }
        append(store, &thread, made).await.unwrap();
        store.enqueue(&pending_run(&thread, &format!("{name}-next"), 1), None).await.unwrap();
    }
    store.delete_runs(&[run_id("a")]).await.unwrap();
    store.prune(&thread, PruneStrategy::KeepLatest).await.unwrap();
    assert_eq!(names(store, of(&thread)).await, ["a-next", "b-next"]);
    let pending = store.pending(&of(&thread)).await.unwrap();
    assert!(pending.iter().all(|run| !run.caller.is_unknown()), "{pending:?}");
    store.delete_runs(&[run_id("a-next")]).await.unwrap();
    assert_eq!(names(store, all()).await, ["b-next"]);
    append(
        store,
        &thread,
        begins(&begun(&pending_run(&thread, "b-next", 1), 7), QueueCondition::Pending),
    )
    .await
    .unwrap();
    store.enqueue(&pending_run(&thread, "last", 1), None).await.unwrap();
    let (copy, incarnation) = (thread_id("copy"), run_id("incarnation"));
    let rename = |run: &RunId| run_id(&format!("{run}-copy"));
    store.copy_thread(&thread, &copy, &incarnation, &rename).await.unwrap();
    assert_eq!(names(store, of(&thread_id("copy"))).await, [""; 0]);
    assert_eq!(all_runs(store, &thread_id("copy")).await.len(), 2);
    store.delete_thread(&thread).await.unwrap();
    assert_eq!(names(store, all()).await, [""; 0]);
    assert_eq!(store.run(&run_id("last")).await.unwrap(), None);
}

pub(crate) async fn pending_runs_keep_their_order_when_a_thread_is_rewritten(store: &dyn Store) {
    let (one, other) = (create(store, "one").await, create(store, "other").await);
    for (number, name) in [(1, "a"), (2, "b")] {
        let parent = (number > 1).then(|| number - 1);
        let mut made = checkpoint(number, parent, &[("a", json!(name))], &[]);
        made.meta.run = run_id(name);
        let made = Batch { run: Some(run(&one, name)), ..batch(made) };
        append(store, &one, made).await.unwrap();
    }
    for (thread, name) in [(&one, "r1"), (&other, "r2"), (&one, "r3")] {
        assert!(store.enqueue(&pending_run(thread, name, 1), None).await.unwrap());
    }
    let before = store.pending(&all()).await.unwrap();
    store.prune(&one, PruneStrategy::KeepLatest).await.unwrap();
    assert_eq!(store.pending(&all()).await.unwrap(), before);
    store.delete_runs(&[run_id("a")]).await.unwrap();
    assert_eq!(store.pending(&all()).await.unwrap(), before);
    let runs = all_runs(store, &one).await;
    let names: Vec<&str> = runs.iter().map(|run| run.id.as_str()).collect();
    assert_eq!(names, ["b", "r1", "r3"]);
}

pub(crate) async fn blobs_of_pending_runs_are_mentioned(store: &dyn Store) {
    let thread = create(store, "t").await;
    let picture = BlobRef(Digest::of(b"picture"));
    let mut run = pending_run(&thread, "r", 1);
    run.spec.as_mut().unwrap().client = json!({ "picture": picture.to_string() });
    assert!(!store.mentions(&thread, picture).await.unwrap());
    store.enqueue(&run, None).await.unwrap();
    assert!(store.mentions(&thread, picture).await.unwrap());
    // The record that replaces a pending run can mention further blobs.
    let report = BlobRef(Digest::of(b"report"));
    let failure = Some(Failure::new("rude", format!("see {report}")));
    let failed = RunRecord { failure, status: RunStatus::Failed, ..ended(&run) };
    assert!(!store.mentions(&thread, report).await.unwrap());
    assert!(store.dequeue(&run.id, Some(&failed)).await.unwrap());
    assert!(store.mentions(&thread, report).await.unwrap());
}
