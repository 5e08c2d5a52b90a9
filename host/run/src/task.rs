//! One task of a superstep: attempts of its node, with retries, until it has ended.

pub(crate) mod attempt;
pub(crate) mod cache;
pub(crate) mod context;
pub(crate) mod conversation;
pub(crate) mod node_result;
pub(crate) mod options;
pub(crate) mod outcome;
pub(crate) mod outcome_bytes;
mod started_subgraphs;
pub(crate) mod task_count;
pub(crate) mod task_heartbeat;

use std::sync::Arc;
use std::time::{Duration, Instant};

use wattle_graph::event::{EventKind, TaskFailed, TaskFault, TaskFinished, TaskStarted};
use wattle_graph::failure::Failure;
use wattle_graph::graph::Node;
use wattle_graph::plan::Task;

use crate::gate::Journal;
use crate::gate::unwind::{GuestError, Unwind};
use crate::task::cache::CacheEntry;
pub(crate) use crate::task::context::{GraphContext, StepContext, TaskHistory};
use crate::task::outcome::{AttemptFailure, classify, validate, with_node_context};

/// Result of a task.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum TaskEnd {
    /// The task finished; the event is logged.
    Finished(Arc<TaskFinished>),
    /// The task raised an interrupt; the event is logged.
    Suspended,
    /// The task failed permanently; the event is logged. The event names the error handler that
    /// runs in place of the task, if there is one.
    Failed(TaskFailed),
    /// The outcome of the task and the other outcomes of its superstep exceed their limit, or the
    /// memory of the run. Nothing is logged, and the run fails.
    OutcomesFull(Failure),
    /// The run was cancelled.
    Cancelled,
    /// The task is a subgraph, which stopped because a drain was requested.
    Drained,
    /// The log cannot be written.
    LogLost(Failure),
}

/// Runs a task until it ends.
pub(crate) async fn run_task(
    context: Arc<StepContext>,
    task: Task,
    history: TaskHistory,
) -> TaskEnd {
    let Some(node) = context.graph_version.graph.node(&task.node) else {
        return TaskEnd::LogLost(Failure::internal(format!(
            "node `{}` is not in the graph",
            task.node
        )));
    };
    let entry = CacheEntry::of(&context, &task, node);
    // A task that started before does not use the cache: its effects must lead to its own outcome.
    if let Some(entry) = entry.as_ref().filter(|_| !history.journal.is_reexecution())
        && let Some(finished) = entry.find(&context, &task).await
    {
        log_started(&context, &task, 1);
        return log_finished(&context, &history.journal, finished);
    }
    let end = attempts(&context, &task, node, &history).await;
    if let (Some(entry), TaskEnd::Finished(finished)) = (entry, &end) {
        entry.store(&context, &task, finished).await;
    }
    end
}

/// Runs attempts of a task, until one finishes or no retry is left.
async fn attempts(
    context: &Arc<StepContext>,
    task: &Task,
    node: &Node,
    history: &TaskHistory,
) -> TaskEnd {
    let mut attempt = history.failed_attempts + 1;
    loop {
        log_started(context, task, attempt);
        let started = Instant::now();
        let ended = match attempt::attempt(context, task, node, history, attempt).await {
            Ok(done) => validate(context, task, done, started).await,
            Err(ended) => Err(ended),
        };
        let fault = match ended {
            Ok(finished) => return log_finished(context, &history.journal, finished),
            Err(GuestError::Unwound(Unwind::Suspended(_))) => return TaskEnd::Suspended,
            Err(GuestError::Unwound(Unwind::Cancelled)) => return TaskEnd::Cancelled,
            Err(GuestError::Unwound(Unwind::Drained)) => return TaskEnd::Drained,
            Err(GuestError::Unwound(Unwind::LogLost(failure))) => return TaskEnd::LogLost(failure),
            Err(ended) => classify(ended),
        };
        let failed = failed_event(task, node, attempt, fault);
        context.log.push(EventKind::TaskFailed(failed.clone()));
        let Some(delay_ms) = failed.retry_in_ms else { return TaskEnd::Failed(failed) };
        context.log.flush().await;
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(delay_ms)) => {}
            () = context.cancel.wait() => return TaskEnd::Cancelled,
        }
        history.journal.fail_attempt();
        history.journal.begin_attempt();
        attempt += 1;
    }
}

/// Logs the start of an attempt.
fn log_started(context: &StepContext, task: &Task, attempt: u32) {
    context.log.push(EventKind::TaskStarted(TaskStarted {
        task: task.id.clone(),
        node: task.node.clone(),
        step: task.step,
        attempt,
    }));
}

/// Counts an outcome among the outcomes of the superstep and logs `task_finished`. For a task of a
/// subgraph, also records the outcome in the task's journal, because the parent task can be aborted
/// and retried at any time. Logs nothing if the outcomes of the superstep do not fit.
fn log_finished(context: &StepContext, journal: &Journal, finished: TaskFinished) -> TaskEnd {
    if let Err(full) = context.outcomes.add(&context.graph_version.graph, &finished) {
        return TaskEnd::OutcomesFull(full);
    }
    let finished = Arc::new(finished);
    context.log.push(EventKind::TaskFinished(finished.clone()));
    if !context.log.namespace().is_root() {
        journal.finish(finished.clone());
    }
    TaskEnd::Finished(finished)
}

/// Runs one attempt of a task without retries. Its outcome is not logged.
pub(crate) async fn execute_once(
    context: &Arc<StepContext>,
    task: &Task,
    node: &Node,
    history: &TaskHistory,
    number: u32,
    started: Instant,
) -> Result<TaskFinished, GuestError> {
    let done = attempt::attempt(context, task, node, history, number).await?;
    validate(context, task, done, started).await
}

/// Returns the fault and the failure that the log records for an attempt that did not finish.
pub(crate) fn logged_failure(node: &Node, ended: GuestError) -> (TaskFault, Failure) {
    let AttemptFailure { kind, failure } = classify(ended);
    (kind, with_node_context(failure, node))
}

/// Returns the event of a failed attempt, with the delay of the retry or with the error handler.
fn failed_event(task: &Task, node: &Node, attempt: u32, fault: AttemptFailure) -> TaskFailed {
    let AttemptFailure { kind, failure } = fault;
    let retry_in_ms = node.retry_in_ms(&failure, attempt, jitter());
    TaskFailed {
        task: task.id.clone(),
        node: task.node.clone(),
        attempt,
        fault: kind,
        failure: with_node_context(failure, node),
        retry_in_ms,
        handler: task.handler.clone().filter(|_| retry_in_ms.is_none()),
    }
}

/// Returns a random number from 0 to 1 that spreads the retries of many runs. The number is not
/// journaled, because no guest sees it.
fn jitter() -> f64 {
    f64::from(uuid::Uuid::new_v4().as_fields().0) / f64::from(u32::MAX)
}
