//! Threads as clients see them, folded from the store.

mod nest;

use std::collections::BTreeMap;

use wattle_graph::event::{EventKind, RunEnded, RunStatus};
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{CheckpointId, Namespace, TaskId, ThreadId};
use wattle_graph::interrupt::Question;
use wattle_graph::lineage::Lineage;

use crate::call::runs::{OpenQuestion, ThreadView};
use crate::driver::PastTask;
use crate::gate::PastCalls;
use crate::ports::store::{CheckpointTuple, Store, StoreError, ThreadHead};
use crate::replay;

pub(crate) use self::nest::{Answers, Nest, Strand};

/// A store's failure as callers of the engine see it.
pub(crate) fn store_failure(error: StoreError) -> Failure {
    let word = match &error {
        StoreError::Leased { .. } | StoreError::Fenced { .. } => code::BUSY,
        StoreError::Broken { .. } => code::BROKEN,
        _ => code::INTERNAL,
    };
    Failure::new(word, error.to_string())
}

/// Open questions of one graph, oldest first.
pub(crate) fn open_questions(lineage: &Lineage, expires_ms: Option<i64>) -> Vec<OpenQuestion> {
    let namespace = &lineage.checkpoint.meta.namespace;
    let open = lineage.open_questions().into_iter();
    open.map(|question| open_question(namespace, question, expires_ms)).collect()
}

/// Open questions of a thread's own graph and of those nested in it, oldest first.
pub(crate) fn all_questions(
    lineage: &Lineage,
    nest: &Nest,
    expires_ms: Option<i64>,
) -> Vec<OpenQuestion> {
    let open = questions(lineage, nest);
    let shown = open.iter().map(|(graph, question)| open_question(graph, question, expires_ms));
    shown.collect()
}

/// The same as they were asked, each with the graph that asks.
pub(crate) fn questions(lineage: &Lineage, nest: &Nest) -> Vec<(Namespace, Question)> {
    let root = lineage.open_questions().into_iter();
    let root = root.map(|question| (lineage.checkpoint.meta.namespace.clone(), question.clone()));
    let mut open: Vec<_> = root.chain(nest.open_questions()).collect();
    open.sort_by_key(|(_, question)| question.asked_seq);
    open
}

fn open_question(
    namespace: &Namespace,
    question: &Question,
    expires_ms: Option<i64>,
) -> OpenQuestion {
    OpenQuestion {
        id: question.asked.interrupt.to_string(),
        namespace: namespace.clone(),
        node: question.asked.node.clone(),
        payload: question.asked.payload.clone(),
        response_schema: question.asked.response_schema.clone(),
        asked_ms: question.asked_ms,
        expires_ms: expires_ms.or(question.asked.expires_ms),
    }
}

/// The checkpoint that a thread stands at, with its pending events.
pub(crate) async fn current(
    store: &dyn Store,
    head: &ThreadHead,
) -> Result<Option<CheckpointTuple>, StoreError> {
    match head.current {
        Some(id) => root(store, &head.record.id, id).await,
        None => Ok(None),
    }
}

/// A checkpoint of the root graph, with all that happened on it.
pub(crate) async fn root(
    store: &dyn Store,
    thread: &ThreadId,
    id: CheckpointId,
) -> Result<Option<CheckpointTuple>, StoreError> {
    match store.checkpoint(thread, &Namespace::root(), Some(id)).await? {
        Some(tuple) => replay::complete(store, tuple, thread).await.map(Some),
        None => Ok(None),
    }
}

/// How the last run ended that stood at a checkpoint.
pub(crate) fn last_end(tuple: &CheckpointTuple) -> Option<&RunEnded> {
    tuple.events.iter().rev().find_map(|event| match &event.kind {
        EventKind::RunEnded(ended) => Some(ended),
        _ => None,
    })
}

/// The state of a thread at a checkpoint.
pub(crate) fn lineage(tuple: CheckpointTuple) -> Lineage {
    let mut lineage = Lineage::new(tuple.checkpoint);
    for event in &tuple.events {
        lineage.apply(event);
    }
    lineage
}

/// The state of a thread at a checkpoint, with the graphs nested in its own.
pub(crate) fn open(tuple: CheckpointTuple) -> (Lineage, Nest) {
    let nest = Nest::new(&tuple.events);
    (lineage(tuple), nest)
}

/// A thread with its state.
pub(crate) async fn thread(store: &dyn Store, head: ThreadHead) -> Result<ThreadView, StoreError> {
    let opened = current(store, &head).await?.map(open);
    let failure = match &head.record.run {
        Some(run) => store.run(run).await?.filter(|run| run.status == RunStatus::Failed),
        None => None,
    };
    let record = head.record;
    let (state, next, interrupts) = match &opened {
        Some((lineage, nest)) => (
            lineage.checkpoint.state(),
            lineage.checkpoint.meta.next.iter().map(|trigger| trigger.node.clone()).collect(),
            all_questions(lineage, nest, record.expires_ms),
        ),
        None => (serde_json::json!({}), Vec::new(), Vec::new()),
    };
    Ok(ThreadView {
        thread: record.id,
        app: record.app,
        graph: record.graph,
        version: record.version.to_hex(),
        status: record.status,
        run: record.run,
        state,
        next,
        interrupts,
        created_ms: record.created_ms,
        updated_ms: record.updated_ms,
        expires_ms: record.expires_ms,
        metadata: record.metadata,
        failure: failure.and_then(|run| run.failure),
    })
}

/// What the log holds of the tasks that start from a checkpoint, for their next execution.
pub(crate) fn past_tasks(tuple: &CheckpointTuple) -> BTreeMap<TaskId, PastTask> {
    let mut past: BTreeMap<TaskId, PastTask> = BTreeMap::new();
    let mut answers = Answers::default();
    // When each task was begun, and where.
    let mut begun: BTreeMap<&TaskId, (&Namespace, u64)> = BTreeMap::new();
    for event in &tuple.events {
        answers.see(event);
        match &event.kind {
            EventKind::TaskStarted(started) => {
                let task = past.entry(started.task.clone()).or_default();
                task.begun = true;
                task.scopes.values_mut().for_each(PastCalls::begin_attempt);
                begun.entry(&started.task).or_insert((&event.namespace, event.seq));
            }
            EventKind::TaskFailed(failed) => {
                let task = past.entry(failed.task.clone()).or_default();
                task.failed_attempts = failed.retry_in_ms.map_or(0, |_| failed.attempt);
                let for_good = failed.retry_in_ms.is_none();
                task.scopes.values_mut().for_each(|calls| calls.give_up_attempt(for_good));
            }
            EventKind::CallStarted(call) => {
                let calls = calls_of(&mut past, &call.task, &call.scope);
                calls.begin(call.call, event.seq);
            }
            EventKind::Called(called) => {
                let calls = calls_of(&mut past, &called.task, &called.scope);
                calls.answered.insert(called.call, (event.seq, (**called).clone()));
            }
            EventKind::Settled(settled) => {
                let calls = calls_of(&mut past, &settled.task, &settled.scope);
                calls.settle(settled.call, event.seq, settled.decision.clone());
            }
            EventKind::RunEnded(_) => {
                let scopes = past.values_mut().flat_map(|task| task.scopes.values_mut());
                scopes.for_each(PastCalls::end_run);
            }
            EventKind::Reopened(reopened) => {
                let undone = answers.undone_by(reopened);
                past.retain(|task, past| {
                    if undone.asking.contains(task) || undone.running.contains(task) {
                        past.failed_attempts = 0;
                        past.scopes.values_mut().for_each(|calls| calls.forget_since(undone.since));
                    }
                    !begun
                        .get(task)
                        .is_some_and(|(graph, seq)| *seq >= undone.since && undone.covers(graph))
                });
            }
            _ => {}
        }
    }
    past
}

fn calls_of<'p>(
    past: &'p mut BTreeMap<TaskId, PastTask>,
    task: &TaskId,
    scope: &[u32],
) -> &'p mut PastCalls {
    past.entry(task.clone()).or_default().scopes.entry(scope.to_vec()).or_default()
}
