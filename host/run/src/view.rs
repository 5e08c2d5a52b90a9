//! Views of threads, folded from the store.

mod asked;
mod nest;

use std::collections::BTreeMap;

use wattle_graph::checkpoint::CheckpointSource;
use wattle_graph::event::{Asked, Event, EventKind, RunReason, RunStatus};
use wattle_graph::failure::Failure;
use wattle_graph::id::{CheckpointId, Namespace, TaskId, ThreadId};
use wattle_graph::interrupt::Interrupt;
use wattle_graph::lineage::Lineage;

use crate::driver::PastTask;
use crate::gate::PastCalls;
use crate::hostcall::runs::{EndedRun, OpenQuestion, ThreadView};
use crate::ports::store::{CheckpointTuple, Latest, Store, StoreError, ThreadHead};
use crate::replay;

pub(crate) use self::asked::asked;
pub(crate) use self::nest::{Answers, Nest, Strand};

/// Returns the failure that callers of the engine get for an error of the store.
pub(crate) fn store_failure(error: StoreError) -> Failure {
    error.into()
}

/// Returns the pending interrupts of one graph, oldest first.
pub(crate) fn open_questions(lineage: &Lineage, expires_ms: Option<i64>) -> Vec<OpenQuestion> {
    let namespace = &lineage.checkpoint.meta.namespace;
    let open = lineage.pending_interrupts().into_iter();
    open.map(|question| open_question(namespace, question, expires_ms)).collect()
}

/// Returns the pending interrupts of the root graph and its subgraphs, oldest first.
pub(crate) fn all_questions(
    lineage: &Lineage,
    nest: &Nest,
    expires_ms: Option<i64>,
) -> Vec<OpenQuestion> {
    let open = questions(lineage, nest);
    let shown = open.iter().map(|(graph, question)| open_question(graph, question, expires_ms));
    shown.collect()
}

/// Returns the pending interrupts as they were raised, each with the namespace of its graph, oldest first.
pub(crate) fn questions(lineage: &Lineage, nest: &Nest) -> Vec<(Namespace, Interrupt)> {
    let root = lineage.pending_interrupts().into_iter();
    let root = root.map(|question| (lineage.checkpoint.meta.namespace.clone(), question.clone()));
    let nested = nest.live_questions().filter(|(_, question)| question.answer.is_none());
    let mut open: Vec<_> = root.chain(nested).collect();
    open.sort_by_key(|(_, question)| question.asked_seq);
    open
}

/// Returns an interrupt in the form for callers of the engine.
pub(crate) fn open_question(
    namespace: &Namespace,
    question: &Interrupt,
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

/// Returns the elicitations of calls that their MCP servers hold open and that continue with the thread: the last round
/// of each held call of a task that has not ended, if the call has no result and was not settled.
pub(crate) fn held(
    past: &BTreeMap<TaskId, PastTask>,
    lineage: &Lineage,
    nest: &Nest,
) -> Vec<Interrupt> {
    let nested = nest.live_questions().map(|(_, question)| question);
    let mut last: BTreeMap<(TaskId, Vec<u32>, u32), (u32, Interrupt)> = BTreeMap::new();
    for question in lineage.live_questions().cloned().chain(nested) {
        let Asked { task, scope, call, elicited: Some(elicited), .. } = &question.asked else {
            continue;
        };
        let (call, round) = ((task.clone(), scope.clone(), *call), elicited.round);
        if last.get(&call).is_none_or(|(known, _)| *known < round) {
            last.insert(call, (round, question));
        }
    }
    let goes_on = |(task, scope, call): &(TaskId, Vec<u32>, u32)| {
        let calls = past.get(task).and_then(|task| task.scopes.get(scope));
        calls.is_none_or(|calls| {
            !calls.answered.contains_key(call) && !calls.settled.contains_key(call)
        })
    };
    let is_held = |asked: &Asked| asked.elicited.as_ref().is_some_and(|it| it.asked.held.is_some());
    let last = last.into_iter().filter(|(call, _)| goes_on(call));
    let last = last.map(|(_, (_, question))| question);
    last.filter(|question| is_held(&question.asked)).collect()
}

/// Returns the current checkpoint of a thread with the events since then.
pub(crate) async fn current(
    store: &dyn Store,
    head: &ThreadHead,
) -> Result<Option<CheckpointTuple>, StoreError> {
    match head.current {
        Some(id) => root(store, &head.record.id, id).await,
        None => Ok(None),
    }
}

/// Returns a checkpoint of the root graph with all events that followed it.
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

/// Returns the sequence number of the last `run_started` that passes the breakpoints of this checkpoint. A run passes
/// them if the previous run ended as interrupted here, or if no run ended here. After a cancel, a failure or a drain
/// the next run stops at the breakpoint first.
pub(crate) fn passed(tuple: &CheckpointTuple) -> Option<u64> {
    let is_copy = tuple.checkpoint.meta.source == CheckpointSource::Fork;
    let goes_on = |reason: RunReason| match reason {
        RunReason::Resume | RunReason::Retry => true,
        RunReason::Fork => is_copy,
        RunReason::Input | RunReason::Recovery => false,
    };
    let (mut passed, mut has_stopped) = (None, true);
    for event in &tuple.events {
        match &event.kind {
            EventKind::RunStarted(started) if goes_on(started.reason) && has_stopped => {
                passed = Some(event.seq);
            }
            EventKind::RunEnded(ended) => {
                has_stopped = ended.status == RunStatus::Interrupted && !ended.drained;
            }
            _ => {}
        }
    }
    passed
}

/// Folds a checkpoint and the events since then into a lineage.
pub(crate) fn lineage(tuple: CheckpointTuple) -> Lineage {
    let mut lineage = Lineage::new(tuple.checkpoint);
    for event in &tuple.events {
        lineage.apply(event);
    }
    lineage
}

/// Folds a checkpoint and the events since then into a lineage and its subgraphs.
pub(crate) fn open(tuple: CheckpointTuple) -> (Lineage, Nest) {
    let nest = Nest::new(&tuple.events);
    (lineage(tuple), nest)
}

/// Returns the view of a thread with its state.
pub(crate) async fn thread(store: &dyn Store, latest: Latest) -> Result<ThreadView, StoreError> {
    let Latest { head, tuple, run } = latest;
    let opened = match tuple {
        Some(tuple) => Some(open(replay::complete(store, tuple, &head.record.id).await?)),
        None => None,
    };
    let failure = run.filter(|run| run.status == RunStatus::Failed);
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

/// Returns the logged tasks of a checkpoint, for their next execution.
pub(crate) fn past_tasks(events: &[Event]) -> BTreeMap<TaskId, PastTask> {
    let mut past: BTreeMap<TaskId, PastTask> = BTreeMap::new();
    let mut answers = Answers::default();
    // Namespace and sequence number of the first start of each task.
    let mut begun: BTreeMap<&TaskId, (&Namespace, u64)> = BTreeMap::new();
    for event in events {
        answers.see(event);
        match &event.kind {
            EventKind::TaskStarted(started) => {
                let task = past.entry(started.task.clone()).or_default();
                task.begun.get_or_insert(event.seq);
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
                calls.begin(call.call, call.start_number, event.seq);
                if call.function == EndedRun::FUNCTION {
                    let waits = &mut past.entry(call.task.clone()).or_default().waits;
                    waits.entry((call.scope.clone(), call.call)).or_insert(event.seq);
                }
            }
            EventKind::Called(called) => {
                let calls = calls_of(&mut past, &called.task, &called.scope);
                calls.answer(event.seq, (**called).clone());
            }
            EventKind::Asked(asked) => {
                calls_of(&mut past, &asked.task, &asked.scope).ask(asked, event.seq);
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
                for (task, past) in &mut past {
                    let is_gone = begun
                        .get(task)
                        .is_some_and(|(graph, seq)| *seq >= undone.since && undone.covers(graph));
                    if is_gone {
                        begun.remove(task);
                        *past = PastTask { undone: Some(event.seq), ..PastTask::default() };
                    } else if undone.asking.contains(task) || undone.running.contains(task) {
                        past.failed_attempts = 0;
                        past.undone = Some(event.seq);
                        past.scopes.values_mut().for_each(|calls| calls.forget_since(undone.since));
                    }
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
