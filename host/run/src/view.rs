//! Threads as clients see them, folded from the store.

use std::collections::BTreeMap;

use wattle_graph::event::{EventKind, RunStatus};
use wattle_graph::failure::Failure;
use wattle_graph::id::{InterruptId, Namespace, TaskId};
use wattle_graph::lineage::Lineage;

use crate::call::runs::{OpenQuestion, ThreadView};
use crate::driver::PastTask;
use crate::gate::PastCalls;
use crate::ports::store::{CheckpointTuple, Store, StoreError, ThreadHead};

/// A store's failure as callers of the engine see it.
pub(crate) fn store_failure(error: StoreError) -> Failure {
    Failure::internal(error.to_string())
}

/// Open questions, oldest first.
pub(crate) fn open_questions(lineage: &Lineage, expires_ms: Option<i64>) -> Vec<OpenQuestion> {
    lineage
        .open_questions()
        .into_iter()
        .map(|question| OpenQuestion {
            id: question.asked.interrupt.to_string(),
            node: question.asked.node.clone(),
            payload: question.asked.payload.clone(),
            response_schema: question.asked.response_schema.clone(),
            asked_ms: question.asked_ms,
            expires_ms: expires_ms.or(question.asked.expires_ms),
        })
        .collect()
}

/// The checkpoint that a thread stands at, with its pending events.
pub(crate) async fn current(
    store: &dyn Store,
    head: &ThreadHead,
) -> Result<Option<CheckpointTuple>, StoreError> {
    match head.current {
        Some(id) => store.checkpoint(&head.record.id, &Namespace::root(), Some(id)).await,
        None => Ok(None),
    }
}

/// The state of a thread at a checkpoint.
pub(crate) fn lineage(tuple: CheckpointTuple) -> Lineage {
    let mut lineage = Lineage::new(tuple.checkpoint);
    for event in &tuple.events {
        lineage.apply(event);
    }
    lineage
}

/// A thread with its state.
pub(crate) async fn thread(store: &dyn Store, head: ThreadHead) -> Result<ThreadView, StoreError> {
    let lineage = current(store, &head).await?.map(lineage);
    let failure = match &head.record.run {
        Some(run) => store.run(run).await?.filter(|run| run.status == RunStatus::Failed),
        None => None,
    };
    let record = head.record;
    let (state, next, interrupts) = match &lineage {
        Some(lineage) => (
            lineage.checkpoint.state(),
            lineage.checkpoint.meta.next.iter().map(|trigger| trigger.node.clone()).collect(),
            open_questions(lineage, record.expires_ms),
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
    let mut answers: BTreeMap<InterruptId, (TaskId, u64)> = BTreeMap::new();
    for event in &tuple.events {
        match &event.kind {
            EventKind::TaskStarted(started) => {
                past.entry(started.task.clone()).or_default().begun = true;
            }
            EventKind::TaskFailed(failed) => {
                let task = past.entry(failed.task.clone()).or_default();
                task.failed_attempts = failed.retry_in_ms.map_or(0, |_| failed.attempt);
                let for_good = failed.retry_in_ms.is_none();
                task.scopes.values_mut().for_each(|calls| calls.give_up_attempt(for_good));
            }
            EventKind::CallStarted(call) => {
                let calls = calls_of(&mut past, &call.task, &call.scope);
                calls.open.entry(call.call).or_insert(event.seq);
            }
            EventKind::Called(called) => {
                let calls = calls_of(&mut past, &called.task, &called.scope);
                calls.answered.insert(called.call, (event.seq, (**called).clone()));
            }
            EventKind::Answered(answered) => {
                answers.insert(answered.interrupt.clone(), (answered.task.clone(), event.seq));
            }
            EventKind::Reopened(reopened) => {
                for (task, seq) in reopened.interrupts.iter().filter_map(|id| answers.get(id)) {
                    let task = past.entry(task.clone()).or_default();
                    task.failed_attempts = 0;
                    task.scopes.values_mut().for_each(|calls| calls.forget_since(*seq));
                }
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
