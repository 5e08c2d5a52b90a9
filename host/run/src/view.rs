//! Views of threads, folded from the store.

mod past_interrupts;
mod subgraphs;

use std::collections::BTreeMap;

use wattle_graph::checkpoint::CheckpointSource;
use wattle_graph::event::{Event, EventKind, InterruptRaised, RunReason, RunStatus};
use wattle_graph::id::{CallKey, CheckpointId, Namespace, TaskId, ThreadId};
use wattle_graph::interrupt::Interrupt;
use wattle_graph::lineage::Lineage;

use crate::driver::LoggedTask;
use crate::gate::LoggedCalls;
use crate::hostcall::runs::{EndedRun, InterruptView, ThreadView};
use crate::ports::store::{CheckpointTuple, Store, StoreError, ThreadHead, ThreadSnapshot};
use crate::state_cache::StateCache;
use crate::unpersisted_events;

pub(crate) use self::past_interrupts::past_interrupts;
pub(crate) use self::subgraphs::{AnswerIndex, SubgraphLog, Subgraphs};

/// Returns the pending interrupts of one graph, oldest first.
pub(crate) fn graph_interrupts(lineage: &Lineage, expires_ms: Option<i64>) -> Vec<InterruptView> {
    let namespace = &lineage.checkpoint.meta.namespace;
    let open = lineage.pending_interrupts().into_iter();
    open.map(|question| interrupt_view(namespace, question, expires_ms)).collect()
}

/// Returns the pending interrupts of the root graph and its subgraphs, oldest first.
pub(crate) fn pending_interrupts(
    lineage: &Lineage,
    subgraphs: &Subgraphs,
    expires_ms: Option<i64>,
) -> Vec<InterruptView> {
    let open = pending_with_graphs(lineage, subgraphs);
    let shown = open.iter().map(|(graph, question)| interrupt_view(graph, question, expires_ms));
    shown.collect()
}

/// Returns the pending interrupts as they were raised, each with the namespace of its graph, oldest
/// first.
pub(crate) fn pending_with_graphs(
    lineage: &Lineage,
    subgraphs: &Subgraphs,
) -> Vec<(Namespace, Interrupt)> {
    let root = lineage.pending_interrupts().into_iter();
    let root = root.map(|question| (lineage.checkpoint.meta.namespace.clone(), question.clone()));
    let nested = subgraphs.active_interrupts().filter(|(_, question)| question.answer.is_none());
    let mut open: Vec<_> = root.chain(nested).collect();
    open.sort_by_key(|(_, question)| question.raised_seq);
    open
}

/// Returns the view of an interrupt for callers of the engine.
pub(crate) fn interrupt_view(
    namespace: &Namespace,
    question: &Interrupt,
    expires_ms: Option<i64>,
) -> InterruptView {
    InterruptView {
        id: question.raised.interrupt.to_string(),
        namespace: namespace.clone(),
        node: question.raised.node.clone(),
        payload: question.raised.payload.clone(),
        response_schema: question.raised.response_schema.clone(),
        asked_ms: question.raised_ms,
        expires_ms: expires_ms.or(question.raised.expires_ms),
    }
}

/// Returns the elicitations of calls that their MCP servers hold open and that continue with the
/// thread: the last round of each held call of a task that has not ended, if the call has no result
/// and was not settled.
pub(crate) fn held_elicitations(
    past: &BTreeMap<TaskId, LoggedTask>,
    lineage: &Lineage,
    subgraphs: &Subgraphs,
) -> Vec<Interrupt> {
    let nested = subgraphs.active_interrupts().map(|(_, question)| question);
    let mut last: BTreeMap<CallKey, (u32, Interrupt)> = BTreeMap::new();
    for question in lineage.live_questions().cloned().chain(nested) {
        let InterruptRaised { task, scope, call, elicited: Some(elicited), .. } = &question.raised
        else {
            continue;
        };
        let (call, round) = (CallKey::new(task, scope, *call), elicited.round);
        if last.get(&call).is_none_or(|(known, _)| *known < round) {
            last.insert(call, (round, question));
        }
    }
    let goes_on = |CallKey { task, scope, call }: &CallKey| {
        let calls = past.get(task).and_then(|task| task.calls_by_scope.get(scope));
        calls.is_none_or(|calls| {
            !calls.results.contains_key(call) && !calls.decisions.contains_key(call)
        })
    };
    let is_held = |raised: &InterruptRaised| {
        raised.elicited.as_ref().is_some_and(|it| it.elicitation.held.is_some())
    };
    let last = last.into_iter().filter(|(call, _)| goes_on(call));
    let last = last.map(|(_, (_, question))| question);
    last.filter(|question| is_held(&question.raised)).collect()
}

/// Returns the current checkpoint of a thread with the events since then.
pub(crate) async fn current_checkpoint(
    states: &StateCache,
    head: &ThreadHead,
) -> Result<Option<CheckpointTuple>, StoreError> {
    with_all_events(states, &head.record.id, states.current(head).await?).await
}

/// Returns a checkpoint of the root graph with all events that followed it.
pub(crate) async fn root_checkpoint(
    states: &StateCache,
    thread: &ThreadId,
    id: CheckpointId,
) -> Result<Option<CheckpointTuple>, StoreError> {
    let tuple = states.checkpoint(thread, &Namespace::root(), id).await?;
    with_all_events(states, thread, tuple).await
}

async fn with_all_events(
    states: &StateCache,
    thread: &ThreadId,
    tuple: Option<CheckpointTuple>,
) -> Result<Option<CheckpointTuple>, StoreError> {
    let Some(tuple) = tuple else { return Ok(None) };
    let store = states.store().as_ref();
    unpersisted_events::with_earlier_events(store, tuple, thread).await.map(Some)
}

/// Returns the sequence number of the last `run_started` that passes the breakpoints of this
/// checkpoint. A run passes the breakpoints if the previous run ended as interrupted here, or if no
/// run ended here. After a cancel, a failure or a drain, the next run stops at the breakpoint
/// first.
pub(crate) fn breakpoints_passed_seq(tuple: &CheckpointTuple) -> Option<u64> {
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

/// Folds a checkpoint and the events since then into a [`Lineage`]: the state of the thread after
/// the last of these events.
pub(crate) fn lineage(tuple: &CheckpointTuple) -> Lineage {
    let mut lineage = Lineage::new(tuple.checkpoint.clone());
    for event in &tuple.events {
        lineage.apply(event);
    }
    lineage
}

/// Folds a checkpoint and the events since then into a lineage and its subgraphs.
pub(crate) fn lineage_and_subgraphs(tuple: &CheckpointTuple) -> (Lineage, Subgraphs) {
    (lineage(tuple), Subgraphs::new(&tuple.events))
}

/// Returns the view of a thread with its state.
pub(crate) async fn thread(
    store: &dyn Store,
    latest: ThreadSnapshot,
) -> Result<ThreadView, StoreError> {
    let ThreadSnapshot { head, tuple, run } = latest;
    let opened = match tuple {
        Some(tuple) => Some(lineage_and_subgraphs(
            &unpersisted_events::with_earlier_events(store, tuple, &head.record.id).await?,
        )),
        None => None,
    };
    let failure = run.filter(|run| run.status == RunStatus::Failed);
    let record = head.record;
    let (state, next, interrupts) = match &opened {
        Some((lineage, subgraphs)) => (
            lineage.checkpoint.state(),
            lineage.checkpoint.meta.next.iter().map(|trigger| trigger.node.clone()).collect(),
            pending_interrupts(lineage, subgraphs, record.expires_ms),
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
pub(crate) fn logged_tasks<'e>(
    events: impl IntoIterator<Item = &'e Event>,
) -> BTreeMap<TaskId, LoggedTask> {
    let mut past: BTreeMap<TaskId, LoggedTask> = BTreeMap::new();
    let mut answers = AnswerIndex::default();
    // Namespace and sequence number of the first start of each task.
    let mut begun: BTreeMap<&'e TaskId, (&'e Namespace, u64)> = BTreeMap::new();
    for event in events {
        answers.apply(event);
        match &event.kind {
            EventKind::TaskStarted(started) => {
                let task = past.entry(started.task.clone()).or_default();
                task.started_seq.get_or_insert(event.seq);
                task.calls_by_scope.values_mut().for_each(LoggedCalls::begin_attempt);
                begun.entry(&started.task).or_insert((&event.namespace, event.seq));
            }
            EventKind::TaskFailed(failed) => {
                let task = past.entry(failed.task.clone()).or_default();
                task.failed_attempts = failed.retry_in_ms.map_or(0, |_| failed.attempt);
                let for_good = failed.retry_in_ms.is_none();
                task.calls_by_scope.values_mut().for_each(|calls| calls.fail_attempt(for_good));
            }
            EventKind::CallStarted(call) => {
                let calls = calls_of(&mut past, &call.task, &call.scope);
                calls.record_start(call.call, call.start_number, event.seq);
                if call.function == EndedRun::FUNCTION {
                    let waits = &mut past.entry(call.task.clone()).or_default().wait_seqs;
                    waits.entry(call.key()).or_insert(event.seq);
                }
            }
            EventKind::Called(called) => {
                let calls = calls_of(&mut past, &called.task, &called.scope);
                calls.record_result(event.seq, (**called).clone());
            }
            EventKind::InterruptRaised(raised) => {
                calls_of(&mut past, &raised.task, &raised.scope)
                    .record_interrupt(raised, event.seq);
            }
            EventKind::Settled(settled) => {
                let calls = calls_of(&mut past, &settled.task, &settled.scope);
                calls.record_decision(settled.call, event.seq, settled.decision.clone());
            }
            EventKind::RunEnded(_) => {
                let scopes = past.values_mut().flat_map(|task| task.calls_by_scope.values_mut());
                scopes.for_each(LoggedCalls::end_run);
            }
            EventKind::Reopened(reopened) => {
                let undone = answers.reopened_by(reopened);
                for (task, past) in &mut past {
                    let is_gone = begun
                        .get(task)
                        .is_some_and(|(graph, seq)| *seq >= undone.since && undone.covers(graph));
                    if is_gone {
                        begun.remove(task);
                        *past =
                            LoggedTask { reopened_seq: Some(event.seq), ..LoggedTask::default() };
                    } else if undone.interrupted_tasks.contains(task)
                        || undone.subgraph_tasks.contains(task)
                    {
                        past.failed_attempts = 0;
                        past.reopened_seq = Some(event.seq);
                        past.calls_by_scope
                            .values_mut()
                            .for_each(|calls| calls.truncate_from(undone.since));
                    }
                }
            }
            _ => {}
        }
    }
    past
}

fn calls_of<'p>(
    past: &'p mut BTreeMap<TaskId, LoggedTask>,
    task: &TaskId,
    scope: &[u32],
) -> &'p mut LoggedCalls {
    past.entry(task.clone()).or_default().calls_by_scope.entry(scope.to_vec()).or_default()
}
