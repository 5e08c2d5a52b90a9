//! Random histories: the file store behaves like the in-memory store, whether it is reopened or
//! not.

use std::collections::BTreeMap;
use std::path::Path;

use proptest::collection::vec;
use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop_oneof, proptest};
use proptest::test_runner::TestCaseError;
use proptest::{prop_assert, prop_assert_eq};
use serde_json::{Value, json};
use tempfile::TempDir;
use wattle_graph::checkpoint::SharedList;
use wattle_graph::event::Event;
use wattle_graph::id::{Namespace, RunId, ThreadId};
use wattle_run::ports::Store;
use wattle_run::ports::store::{
    Batch, CheckpointQuery, ListPage, PruneStrategy, RunSearch, RunSummary, StoreError, ThreadHead,
    ThreadQuery, ThreadSearch,
};
use wattle_store::{InMemoryStore, RedbStore};

use crate::fixtures::{
    all_runs, checkpoint, event, id, list_delta, record, run, run_id, thread_id,
};

const THREADS: [&str; 3] = ["a", "b", "\0"];
const NAMESPACES: [&str; 2] = ["", "child"];
const RUNS: [&str; 3] = ["r", "s", "t"];

/// A step of a history.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Append { thread: usize, plan: Plan },
    Delete { thread: usize },
    Prune { thread: usize },
    DeleteRun { run: usize },
    Copy { from: usize, to: usize },
    Reopen,
}

/// A batch relative to the position of its thread. Most of these batches are valid.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    record: bool,
    run: Option<usize>,
    events: u64,
    shift: u64,
    base: Option<u64>,
    checkpoint: Option<NewCheckpoint>,
    back: Option<u64>,
}

#[derive(Clone, Debug)]
struct NewCheckpoint {
    gap: u64,
    from: u64,
    namespace: usize,
    changed: [bool; 3],
    keep: usize,
}

fn plan() -> impl Strategy<Value = Plan> {
    let new_checkpoint = (1..3_u64, 0..4_u64, 0..NAMESPACES.len(), any::<[bool; 3]>(), 0..9_usize)
        .prop_map(|(gap, from, namespace, changed, keep)| NewCheckpoint {
            gap,
            from,
            namespace,
            changed,
            keep,
        });
    (
        any::<bool>(),
        proptest::option::weighted(0.2, 0..RUNS.len()),
        0..4_u64,
        prop_oneof![9 => Just(1), 1 => 0..3_u64],
        proptest::option::of(0..3_u64),
        proptest::option::of(new_checkpoint),
        proptest::option::weighted(0.1, 0..4_u64),
    )
        .prop_map(|(record, run, events, shift, base, checkpoint, back)| Plan {
            record,
            run,
            events,
            shift,
            base,
            checkpoint,
            back,
        })
}

pub(crate) fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        20 => (0..THREADS.len(), plan()).prop_map(|(thread, plan)| Step::Append { thread, plan }),
        1 => (0..THREADS.len()).prop_map(|thread| Step::Delete { thread }),
        1 => (0..THREADS.len()).prop_map(|thread| Step::Prune { thread }),
        2 => (0..RUNS.len()).prop_map(|run| Step::DeleteRun { run }),
        1 => (0..THREADS.len(), 0..THREADS.len()).prop_map(|(from, to)| Step::Copy { from, to }),
        1 => Just(Step::Reopen),
    ]
}

impl Plan {
    async fn batch(&self, thread: &ThreadId, count: i64, store: &InMemoryStore) -> Batch {
        let head = store.thread(thread).await.unwrap();
        let last_seq = head.as_ref().map_or(0, |head| head.last_seq);
        let newest = head.as_ref().and_then(|head| head.last_checkpoint);
        let older = |back: u64| newest.map(|newest| id(newest.0.saturating_sub(back)));
        let first = last_seq + self.shift;
        let event = |seq| Event { run: run_of_step(count), ..event(seq, json!(seq)) };
        let events = (first..first + self.events).map(event).collect();
        let mut batch = Batch { events, ..Batch::default() };
        if self.record || head.is_none() {
            let mut record = record(thread);
            record.updated_ms = count;
            batch.record = Some(record);
        }
        batch.run = self.run.map(|name| run(thread, RUNS[name]));
        batch.base = self.base.and_then(older);
        batch.current = self.back.and_then(older);
        if let Some(new) = &self.checkpoint {
            batch.checkpoint = Some(new.build(thread, head.as_ref(), count, store).await);
        }
        batch
    }
}

impl NewCheckpoint {
    /// Builds a checkpoint whose parent is an earlier checkpoint, with the channels of its parent.
    async fn build(
        &self,
        thread: &ThreadId,
        head: Option<&ThreadHead>,
        count: i64,
        store: &InMemoryStore,
    ) -> wattle_graph::checkpoint::Checkpoint {
        let newest = head.and_then(|head| head.last_checkpoint).map_or(0, |id| id.0);
        let query = CheckpointQuery::default();
        let earlier = store.checkpoints(thread, &query).await.unwrap().items;
        let from = earlier.get(self.from as usize).map(|tuple| &tuple.checkpoint);
        let parent = from.map(|checkpoint| &checkpoint.meta);
        let mut changed = Vec::new();
        let mut older = Vec::new();
        let mut deltas = BTreeMap::new();
        for (name, is_changed) in ["x", "y", "list"].into_iter().zip(self.changed) {
            if is_changed && name == "list" {
                let base = from.and_then(|from| from.values.get(name)?.list());
                let mut list: Vec<Value> =
                    base.into_iter().flat_map(SharedList::iter).cloned().collect();
                list.truncate(self.keep);
                if let Some(version) = parent.and_then(|parent| parent.versions.get(name)) {
                    deltas.extend([list_delta(name, version.0, list.len() as u32)]);
                }
                list.push(json!(count));
                changed.push((name, json!(list)));
            } else if is_changed {
                changed.push((name, json!({ "count": count, "of": name })));
            } else if let Some(version) = parent.and_then(|parent| parent.versions.get(name)) {
                older.push((name, version.0));
            }
        }
        let parent = parent.map(|parent| parent.id.0);
        let mut new = checkpoint(newest + self.gap, parent, &changed, &older);
        new.meta.namespace = Namespace::new(NAMESPACES[self.namespace]);
        new.meta.run = run_of_step(count);
        new.list_deltas = deltas;
        new
    }
}

/// Returns the run of step number `count`.
fn run_of_step(count: i64) -> RunId {
    run_id(RUNS[(count / 4).unsigned_abs() as usize % RUNS.len()])
}

/// Converts a result to text, to compare the results of two stores. The text of an error contains
/// its kind and its fields.
fn text(result: Result<(), StoreError>) -> String {
    result.map_or_else(|error| error.to_string(), |()| "done".into())
}

async fn replay(steps: Vec<Step>, path: &Path) -> Result<(), TestCaseError> {
    let memory = InMemoryStore::new();
    let mut file = RedbStore::open(path).unwrap();
    for (step, count) in steps.into_iter().zip(1..) {
        if matches!(step, Step::Reopen) {
            drop(file);
            file = RedbStore::open(path).unwrap();
        }
        step.apply(count, &memory, &file).await?;
        same_search(&memory, &file).await?;
    }
    assert_equal(&memory, &file).await?;
    same_bytes(&memory, &file).await
}

/// Applies a random history on a store that is not reopened.
pub(crate) async fn replay_on(steps: Vec<Step>, store: &dyn Store) -> Result<(), TestCaseError> {
    let memory = InMemoryStore::new();
    for (step, count) in steps.into_iter().zip(1..) {
        step.apply(count, &memory, store).await?;
    }
    assert_equal(&memory, store).await
}

impl Step {
    /// Applies a step to two stores, whose results must agree.
    async fn apply(
        self,
        count: i64,
        memory: &InMemoryStore,
        other: &dyn Store,
    ) -> Result<(), TestCaseError> {
        match self {
            Step::Append { thread, plan } => {
                let thread = thread_id(THREADS[thread]);
                let batch = plan.batch(&thread, count, memory).await;
                let tickets = (
                    memory.append(&thread, batch.clone()).await,
                    other.append(&thread, batch).await,
                );
                prop_assert_eq!(text(tickets.0.await), text(tickets.1.await));
            }
            Step::Delete { thread } => {
                memory.delete_thread(&thread_id(THREADS[thread])).await.unwrap();
                other.delete_thread(&thread_id(THREADS[thread])).await.unwrap();
            }
            Step::Prune { thread } => {
                let (thread, latest) = (thread_id(THREADS[thread]), PruneStrategy::KeepLatest);
                let pruned = memory.prune(&thread, latest).await;
                prop_assert_eq!(text(pruned), text(other.prune(&thread, latest).await));
            }
            Step::DeleteRun { run } => {
                let runs = [run_id(RUNS[run])];
                let deleted = memory.delete_runs(&runs).await;
                prop_assert_eq!(text(deleted), text(other.delete_runs(&runs).await));
            }
            Step::Copy { from, to } => {
                let (from, to) = (thread_id(THREADS[from]), thread_id(THREADS[to]));
                let name = |run: &RunId| run_id(&format!("{run} of {count}"));
                let incarnation = run_id(&format!("incarnation {count}"));
                let copied = memory.copy_thread(&from, &to, &incarnation, &name).await;
                let other = other.copy_thread(&from, &to, &incarnation, &name).await;
                prop_assert_eq!(text(copied), text(other));
            }
            Step::Reopen => {}
        }
        Ok(())
    }
}

/// Compares what lists and counts select after each step, since the file store keeps the selecting
/// fields in memory.
async fn same_search(memory: &InMemoryStore, file: &RedbStore) -> Result<(), TestCaseError> {
    let threads = ThreadSearch::default();
    let expected = memory.search_threads(&threads).await.unwrap();
    prop_assert_eq!(file.search_threads(&threads).await.unwrap(), expected);
    let newest = ThreadQuery { offset: 1, limit: Some(1), ..ThreadQuery::default() };
    let expected = memory.threads(&newest).await.unwrap();
    prop_assert_eq!(file.threads(&newest).await.unwrap(), expected);
    let expected = memory.count_threads(&threads).await.unwrap();
    prop_assert_eq!(file.count_threads(&threads).await.unwrap(), expected);
    let keys = memory.thread_keys(&newest).await.unwrap();
    prop_assert_eq!(file.thread_keys(&newest).await.unwrap(), keys);
    let runs = RunSearch::default();
    let expected = memory.search_runs(&runs).await.unwrap();
    prop_assert_eq!(file.search_runs(&runs).await.unwrap(), expected);
    let expected = memory.count_runs(&runs).await.unwrap();
    prop_assert_eq!(file.count_runs(&runs).await.unwrap(), expected);
    Ok(())
}

/// Removes seals and sizes. They may differ, because stores may rewrite threads differently.
fn unsealed(head: Option<ThreadHead>) -> Option<ThreadHead> {
    head.map(|head| ThreadHead { seal: None, pruned_seal: None, log_bytes: 0, ..head })
}

/// Compares seals, which are equal only if both stores wrote the same batches.
async fn same_bytes(memory: &InMemoryStore, file: &RedbStore) -> Result<(), TestCaseError> {
    for name in THREADS {
        let thread = thread_id(name);
        let verified = file.verify(&thread).await.unwrap();
        prop_assert_eq!(verified, memory.verify(&thread).await.unwrap());
        let batches = memory.batches(&thread, None, usize::MAX).await.unwrap();
        prop_assert_eq!(file.batches(&thread, None, usize::MAX).await.unwrap(), batches);
        let seals = (memory.thread(&thread).await.unwrap(), file.thread(&thread).await.unwrap());
        prop_assert_eq!(seals.0.map(|head| head.seal), seals.1.map(|head| head.seal));
    }
    Ok(())
}

async fn assert_equal(memory: &InMemoryStore, file: &dyn Store) -> Result<(), TestCaseError> {
    let all = ThreadQuery::default();
    prop_assert_eq!(memory.threads(&all).await.unwrap(), file.threads(&all).await.unwrap());
    for name in RUNS {
        let run = run_id(name);
        prop_assert_eq!(memory.run(&run).await.unwrap(), file.run(&run).await.unwrap());
    }
    for name in THREADS {
        let thread = thread_id(name);
        let heads = (memory.thread(&thread).await.unwrap(), file.thread(&thread).await.unwrap());
        let heads = (unsealed(heads.0), unsealed(heads.1));
        prop_assert_eq!(&heads.0, &heads.1);
        let runs = all_runs(file, &thread).await;
        prop_assert_eq!(all_runs(memory, &thread).await, runs.clone());
        for skip in 0..=runs.len() {
            let items: Vec<_> = runs.iter().rev().skip(skip).take(2).cloned().collect();
            let newest = ListPage { items, is_last: skip + 2 >= runs.len() };
            prop_assert_eq!(&memory.newest_runs(&thread, skip, 2).await.unwrap(), &newest);
            prop_assert_eq!(&file.newest_runs(&thread, skip, 2).await.unwrap(), &newest);
            let items: Vec<_> = runs.iter().skip(skip).take(2).map(RunSummary::from).collect();
            let oldest = ListPage { items, is_last: skip + 2 >= runs.len() };
            prop_assert_eq!(&memory.runs(&thread, skip, 2).await.unwrap(), &oldest);
            prop_assert_eq!(&file.runs(&thread, skip, 2).await.unwrap(), &oldest);
        }
        for after in 0..heads.0.as_ref().map_or(1, |head| head.last_seq + 1) {
            for limit in [1, 3, 1000] {
                let expected = memory.events(&thread, after, limit).await.unwrap();
                prop_assert_eq!(file.events(&thread, after, limit).await.unwrap(), expected);
            }
        }
        prop_assert!(file.verify(&thread).await.is_ok());
        let query = CheckpointQuery::default();
        let expected = memory.checkpoints(&thread, &query).await.unwrap();
        prop_assert_eq!(&file.checkpoints(&thread, &query).await.unwrap(), &expected);
        let newest = heads.0.and_then(|head| head.last_checkpoint).map_or(0, |id| id.0);
        for namespace in NAMESPACES {
            let namespace = Namespace::new(namespace);
            for id in std::iter::once(None).chain((0..=newest).map(|n| Some(id(n)))) {
                let expected = memory.checkpoint(&thread, &namespace, id).await.unwrap();
                let found = file.checkpoint(&thread, &namespace, id).await.unwrap();
                prop_assert!(found == expected, "{:?}: {:?} not {:?}", id, found, expected);
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn file_store_behaves_like_the_in_memory_store(steps in vec(step(), 1..60)) {
        let dir = TempDir::new().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(replay(steps, &dir.path().join("wattle.redb")))?;
    }
}
