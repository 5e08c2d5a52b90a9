//! Replays one superstep.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};
use wattle_graph::checkpoint::Checkpoint;
use wattle_graph::event::{Event, EventKind, TaskFinished};
use wattle_graph::failure::Failure;
use wattle_graph::graph::{Node, NodeKind};
use wattle_graph::id::{NodeName, RunId, TaskId};
use wattle_graph::lineage::Lineage;
use wattle_graph::plan::{Plan, Task, plan};
use wattle_graph::step::{CheckpointStamp, advance, plugin_reductions};

use super::context::graph_context;
use super::{Counts, Divergence, Replay, ReplayContext};
use crate::app::GraphVersion;
use crate::driver::{LoggedTask, reduce};
use crate::gate::Journal;
use crate::gate::divergence::ReplayDivergence;
use crate::gate::unwind::Unwind;
use crate::log::ThreadLog;
use crate::ports::sandbox::GuestError;
use crate::ports::store::{LeaseEpoch, RunRecord, ThreadHead};
use crate::state_cache::StateCache;
use crate::task::{GraphContext, StepContext, TaskHistory, execute_once};
use crate::view;

/// Why tasks of a subgraph that a call started are not compared.
const CONTEXT_TOO_LONG: &str = "the context from the call that started the graph is too long for \
                                the journal";

/// The logged tasks of a graph.
pub(super) struct LoggedTasks(BTreeMap<TaskId, TaskRecord>);

/// What the log contains about a task.
#[derive(Default)]
struct TaskRecord {
    /// The calls of the task, as its next execution finds them.
    log: LoggedTask,
    /// The run in which the task finished.
    finished_in: Option<RunId>,
    /// The run in which the task started last.
    started_in: Option<RunId>,
    /// The newest attempt.
    attempt: Option<u32>,
    /// Sequence number of the permanent failure after which the task did not start again.
    failed_seq: Option<u64>,
}

impl LoggedTasks {
    /// Sorts the events of a graph.
    pub(super) fn of(events: &[Event]) -> Self {
        let mut tasks: BTreeMap<TaskId, TaskRecord> = BTreeMap::new();
        for event in events {
            match &event.kind {
                EventKind::TaskStarted(started) => {
                    let task = tasks.entry(started.task.clone()).or_default();
                    task.started_in = Some(event.run.clone());
                    task.attempt = Some(started.attempt);
                    task.failed_seq = None;
                }
                EventKind::TaskFailed(failed) if failed.retry_in_ms.is_none() => {
                    tasks.entry(failed.task.clone()).or_default().failed_seq = Some(event.seq);
                }
                EventKind::TaskFinished(finished) => {
                    let task = tasks.entry(finished.task.clone()).or_default();
                    task.finished_in = Some(event.run.clone());
                }
                _ => {}
            }
        }
        // A permanent failure removes failed calls from the journal, so that a later run makes them
        // again. The replay ignores the permanent failure, since the task fails again only with the
        // results of these calls.
        let failures: BTreeSet<u64> = tasks.values().filter_map(|task| task.failed_seq).collect();
        let before_failures = events.iter().filter(|event| !failures.contains(&event.seq));
        for (id, log) in view::logged_tasks(before_failures) {
            tasks.entry(id).or_default().log = log;
        }
        Self(tasks)
    }

    /// Returns what the log contains about a task.
    pub(super) fn task(&self, task: &TaskId) -> Option<&LoggedTask> {
        self.0.get(task).map(|record| &record.log)
    }

    /// Returns true if a task has started.
    pub(super) fn has_started(&self, task: &TaskId) -> bool {
        self.task(task).is_some_and(|past| past.started_seq.is_some())
    }

    /// Returns the run in which a task finished or, if it did not finish, started last.
    pub(super) fn run_of(&self, task: &TaskId) -> Option<&RunId> {
        let record = self.0.get(task)?;
        record.finished_in.as_ref().or(record.started_in.as_ref())
    }

    /// Returns the newest attempt of a task; 1 if it has not started.
    fn attempt_of(&self, task: &TaskId) -> u32 {
        self.0.get(task).and_then(|record| record.attempt).unwrap_or(1)
    }

    /// Returns true if the newest attempt of a task failed permanently.
    pub(super) fn has_failed(&self, task: &TaskId) -> bool {
        self.0.get(task).is_some_and(|record| record.failed_seq.is_some())
    }
}

/// One superstep and what its execution needs.
pub(super) struct Superstep<'r> {
    pub(super) replay_context: &'r ReplayContext<'r>,
    pub(super) graph_version: Arc<GraphVersion>,
    pub(super) parent_graph: Option<Arc<GraphVersion>>,
    pub(super) logged: &'r LoggedTasks,
    /// The base checkpoint with the events since then.
    pub(super) lineage: &'r Lineage,
    /// Number of supersteps before this one; `None` if the checkpoints show it.
    pub(super) steps: Option<u32>,
}

impl Superstep<'_> {
    /// Executes the tasks, and reports differences.
    pub(super) async fn replay_tasks(&self, replay: &mut Replay) {
        let tasks = self.planned();
        for task in tasks.values() {
            let finished = self.lineage.finished.get(&task.id).map(Arc::as_ref);
            let Some(node) = self.graph_version.graph.node(&task.node) else {
                if finished.is_some() || self.logged.has_started(&task.id) {
                    let (place, node) = ((&task.id, &task.node), json!(task.node));
                    let message = "the graph has no such node";
                    replay.add_divergence(self.divergence_of(place, message, node, Value::Null));
                }
                continue;
            };
            if let NodeKind::Graph { .. } = node.body {
                // The supersteps of the subgraph are replayed one by one.
                self.replay_subgraph(task, finished, replay).await;
                continue;
            }
            self.replay_started_subgraphs(task, replay).await;
            match (self.run_context(task), finished) {
                (None, _) => self.skip_without_context(task, finished.is_some(), replay),
                (Some(run_context), Some(finished)) => {
                    self.replay_task(task, node, run_context, finished, replay).await;
                }
                (Some(run_context), None) => {
                    self.replay_unfinished(task, node, run_context, replay).await;
                }
            }
        }
        let strangers = self.lineage.finished.iter().filter(|(id, _)| !tasks.contains_key(*id));
        for (_, finished) in strangers {
            let message = "the graph does not run this task here";
            let node = json!(finished.node);
            replay.add_divergence(self.task_divergence(finished, message, node, Value::Null));
        }
    }

    /// Returns every task of the superstep, including error handlers.
    fn planned(&self) -> BTreeMap<TaskId, Task> {
        let origin = self.replay_context.export.header.thread.origin();
        let mut fresh = Lineage::new(self.lineage.checkpoint.clone());
        let mut tasks = BTreeMap::new();
        // An error handler may have a handler of its own, so failures are added until no new task
        // is planned.
        loop {
            let known = tasks.len();
            if let Plan::Tasks { runnable, .. } = plan(&self.graph_version.graph, origin, &fresh, 1)
            {
                tasks.extend(runnable.into_iter().map(|task| (task.id.clone(), task)));
            }
            if tasks.len() == known {
                return tasks;
            }
            let handled = self.lineage.failed.iter();
            let handled = handled.filter(|(_, failed)| failed.handler.is_some());
            fresh.failed = handled.map(|(id, failed)| (id.clone(), failed.clone())).collect();
        }
    }

    /// Skips a task whose run context is unknown, unless the log has nothing of the task.
    fn skip_without_context(&self, task: &Task, is_finished: bool, replay: &mut Replay) {
        if is_finished || self.logged.has_started(&task.id) {
            let calls = self.logged.task(&task.id).map_or(0, LoggedTask::call_count);
            self.skip(task, CONTEXT_TOO_LONG, Counts::task(calls), replay);
        }
    }

    async fn replay_task(
        &self,
        task: &Task,
        node: &Node,
        run_context: Value,
        recorded: &TaskFinished,
        replay: &mut Replay,
    ) {
        if recorded.cached {
            let reason = "the result was copied from the cache or by a fork";
            return self.skip(task, reason, Counts::task(0), replay);
        }
        let own = self.own_calls(task, replay);
        match self.execute(task, node, run_context).await {
            Ok(now) if outcome_json(recorded) == outcome_json(&now) => {
                replay.tasks += 1;
                replay.calls += own;
            }
            Ok(now) => {
                let message = "the node returns a different outcome for the same call results";
                let (then, now) = (outcome_json(recorded), outcome_json(&now));
                replay.add_divergence(self.task_divergence(recorded, message, then, now));
            }
            Err(ended) => {
                let message = "the node succeeded when it was recorded, and fails now";
                let then = outcome_json(recorded);
                replay.add_divergence(self.error_divergence(task, message, then, ended));
            }
        }
    }

    /// Returns the number of calls that a task repeats. Calls of its tools are skipped, those of
    /// each tool together.
    pub(super) fn own_calls(&self, task: &Task, replay: &mut Replay) -> usize {
        let Some(past) = self.logged.task(&task.id) else { return 0 };
        let own = past.calls_by_scope.get([].as_slice());
        let mut calls_by_tool: BTreeMap<Option<&str>, usize> = BTreeMap::new();
        for (scope, calls) in &past.calls_by_scope {
            let Some(tool_call) = scope.first() else { continue };
            let called = own.and_then(|own| own.results.get(tool_call));
            let tool = called.and_then(|(_, called)| called.request["tool"].as_str());
            *calls_by_tool.entry(tool).or_default() += calls.results.len();
        }
        for (tool, calls) in calls_by_tool.into_iter().filter(|(_, calls)| *calls > 0) {
            let tool = tool.map_or_else(|| "a tool".to_owned(), |tool| format!("tool `{tool}`"));
            let reason = format!("{tool} is not executed, and its result is in the journal");
            self.skip(task, &reason, Counts { calls, ..Counts::default() }, replay);
        }
        own.map_or(0, |calls| calls.results.len())
    }

    /// Executes a task with the results of its journal.
    pub(super) async fn execute(
        &self,
        task: &Task,
        node: &Node,
        run_context: Value,
    ) -> Result<TaskFinished, GuestError> {
        let past = self.logged.task(&task.id).cloned().unwrap_or_default();
        let context = Arc::new(self.step_context(&task.id, run_context));
        let questions = self.lineage.interrupts.iter();
        let raised = questions.filter(|(_, question)| question.raised.task == task.id);
        let history = TaskHistory {
            journal: Arc::new(Journal::for_replay(past.calls_by_scope)),
            interrupts: Arc::new(raised.map(|(id, it)| (id.clone(), it.clone())).collect()),
            failed_attempts: 0,
        };
        let number = self.logged.attempt_of(&task.id);
        execute_once(&context, task, node, &history, number, Instant::now()).await
    }

    /// Returns the run in which a task was executed last.
    fn run_of(&self, task: &TaskId) -> &RunId {
        self.logged.run_of(task).unwrap_or(&self.lineage.checkpoint.meta.run)
    }

    /// Returns the run context of a task; `None` if it is too long for the journal.
    fn run_context(&self, task: &Task) -> Option<Value> {
        let namespace = &self.lineage.checkpoint.meta.namespace;
        self.replay_context.recording.context_of(self.run_of(&task.id), namespace)
    }

    /// Returns what the task can read about its run.
    fn step_context(&self, task: &TaskId, run_context: Value) -> StepContext {
        let (header, record) = (&self.replay_context.export.header, self.replay_context.recording);
        let meta = &self.lineage.checkpoint.meta;
        let run = self.run_of(task).clone();
        let known: Option<&RunRecord> = header.runs.iter().find(|it| it.id == run);
        let options = known.map(|run| run.options.clone()).unwrap_or_default();
        let own = options.recursion_limit.filter(|_| meta.namespace.is_root());
        let limit = own.unwrap_or(self.graph_version.graph.recursion_limit());
        let first_step = known.and_then(|run| run.first_step);
        let steps = self.steps.unwrap_or_else(|| record.steps_before(meta, first_step));
        let context = graph_context(
            self.replay_context.app.clone(),
            self.graph_version.clone(),
            Arc::new(self.log(&run).for_namespace(meta.namespace.clone())),
            header.thread.clone(),
            run_context,
            self.replay_context.ports.clone(),
            &self.lineage.checkpoint,
        );
        let graph = GraphContext {
            parent_graph: self.parent_graph.clone(),
            run,
            options: Arc::new(options),
            error: record.handled_failure(meta).map(Arc::new),
            ..context
        };
        StepContext {
            graph: Arc::new(graph),
            remaining_steps: limit.saturating_sub(steps + 1),
            outcomes: Arc::default(),
            base: meta.id,
            values: self.lineage.checkpoint.values.clone(),
            children: meta.subgraph_checkpoints.clone(),
        }
    }

    /// Creates a log that reaches no store. Only messages of guests to operators are written to it.
    fn log(&self, run: &RunId) -> ThreadLog {
        let head = ThreadHead::new(self.replay_context.export.header.thread.clone());
        let ports = &self.replay_context.ports;
        let (states, clock) = (StateCache::disabled(ports.store.clone()), ports.clock.clone());
        ThreadLog::new(states, clock, &head, LeaseEpoch(0), run.clone())
    }

    /// Makes the next checkpoint. Returns `None` if the writes can no longer be applied.
    pub(super) async fn make_checkpoint(
        &self,
        at: CheckpointStamp,
        replay: &mut Replay,
    ) -> Option<Checkpoint> {
        let (graph, lineage) = (&self.graph_version.graph, self.lineage);
        let (message, failure) =
            match reduce(&self.replay_context.app, plugin_reductions(graph, lineage)).await {
                Err(failure) => ("the writes can no longer be combined", failure),
                Ok(reduced) => match advance(graph, lineage, &reduced, at) {
                    Ok(checkpoint) => return Some(checkpoint),
                    Err(error) => ("the writes can no longer be applied", error.to_failure()),
                },
            };
        let meta = &lineage.checkpoint.meta;
        replay.add_divergence(Divergence::of(meta, message, Value::Null, json!(failure)));
        None
    }

    pub(super) fn skip(&self, task: &Task, reason: &str, left_out: Counts, replay: &mut Replay) {
        let meta = &self.lineage.checkpoint.meta;
        replay.skip((&meta.namespace, meta.id), Some(&task.node), reason, left_out);
    }

    /// Returns the difference of a task that finished when it was recorded.
    pub(super) fn task_divergence(
        &self,
        recorded: &TaskFinished,
        message: &str,
        then: Value,
        now: Value,
    ) -> Divergence {
        self.divergence_of((&recorded.task, &recorded.node), message, then, now)
    }

    /// Returns the difference of a task.
    pub(super) fn divergence_of(
        &self,
        (task, node): (&TaskId, &NodeName),
        message: &str,
        then: Value,
        now: Value,
    ) -> Divergence {
        Divergence {
            node: Some(node.clone()),
            task: Some(task.clone()),
            ..Divergence::of(&self.lineage.checkpoint.meta, message, then, now)
        }
    }

    /// Returns the difference of a task that ends now in another way than `then`. If a host call
    /// differs, the difference contains both requests.
    pub(super) fn error_divergence(
        &self,
        task: &Task,
        message: &str,
        then: Value,
        ended: GuestError,
    ) -> Divergence {
        let place = (&task.id, &task.node);
        let failure = match ended {
            GuestError::Unwound(Unwind::Divergence(failure)) => {
                let ReplayDivergence { call, message, journaled, now } =
                    ReplayDivergence::of(failure);
                let divergence = self.divergence_of(place, &message, journaled, now);
                return Divergence { call, ..divergence };
            }
            GuestError::Unwound(Unwind::Suspended(_) | Unwind::Cancelled | Unwind::Drained) => {
                Failure::internal("the node waits for an answer that is not recorded")
            }
            GuestError::Unwound(Unwind::Limit(failure) | Unwind::LogLost(failure))
            | GuestError::Failure(failure)
            | GuestError::Trap(failure)
            | GuestError::Limit(failure)
            | GuestError::Host(failure) => failure,
        };
        self.divergence_of(place, message, then, json!(failure))
    }
}

/// Returns the outcome of a task as JSON.
pub(super) fn outcome_json(task: &TaskFinished) -> Value {
    json!({
        "writes": task.writes,
        "goto": task.goto,
        "sends": task.sends,
        "for_parent": task.for_parent,
    })
}
