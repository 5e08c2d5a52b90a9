//! Replays one superstep.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};
use wattle_graph::checkpoint::Checkpoint;
use wattle_graph::event::{Event, EventKind, TaskFinished};
use wattle_graph::failure::Failure;
use wattle_graph::graph::{Node, NodeKind};
use wattle_graph::id::{RunId, TaskId};
use wattle_graph::lineage::Lineage;
use wattle_graph::plan::{Plan, Task, plan};
use wattle_graph::step::{CheckpointStamp, advance, plugin_reductions};

use super::context::graph_context;
use super::{Counts, Divergence, Replay, ReplayContext};
use crate::app::GraphVersion;
use crate::driver::{LoggedTask, reduce};
use crate::gate::Journal;
use crate::gate::unwind::Unwind;
use crate::log::ThreadLog;
use crate::ports::sandbox::GuestError;
use crate::ports::store::{LeaseEpoch, RunRecord, ThreadHead};
use crate::state_cache::StateCache;
use crate::task::outcome_bytes::OutcomeBytes;
use crate::task::{GraphContext, StepContext, TaskHistory, execute_once};
use crate::view;

/// Why calls of tools are not compared.
const TOOLS_NOT_EXECUTED: &str = "tools are not executed, and their results are in the journal";

/// The logged tasks of a graph.
pub(super) struct LoggedTasks {
    tasks: BTreeMap<TaskId, LoggedTask>,
    /// The run in which each task finished.
    runs: BTreeMap<TaskId, RunId>,
    /// The newest attempt of each task.
    attempts: BTreeMap<TaskId, u32>,
}

impl LoggedTasks {
    /// Sorts the events of a graph.
    pub(super) fn of(events: &[Event]) -> Self {
        let (mut runs, mut attempts) = (BTreeMap::new(), BTreeMap::new());
        for event in events {
            match &event.kind {
                EventKind::TaskStarted(started) => {
                    attempts.insert(started.task.clone(), started.attempt);
                }
                EventKind::TaskFinished(finished) => {
                    runs.insert(finished.task.clone(), event.run.clone());
                }
                _ => {}
            }
        }
        Self { tasks: view::logged_tasks(events), runs, attempts }
    }

    /// Returns what the log contains about a task.
    pub(super) fn task(&self, task: &TaskId) -> Option<&LoggedTask> {
        self.tasks.get(task)
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
            let finished = self.lineage.finished.get(&task.id);
            let Some(node) = self.graph_version.graph.node(&task.node) else {
                if let Some(finished) = finished {
                    let (message, node) = ("the graph has no such node", json!(task.node));
                    let missing = self.task_divergence(finished, message, node, Value::Null);
                    replay.add_divergence(missing);
                }
                continue;
            };
            if let NodeKind::Graph { .. } = node.body {
                // The supersteps of the subgraph are replayed one by one.
                self.replay_subgraph(task, finished, replay).await;
                continue;
            }
            self.replay_started_subgraphs(task, replay).await;
            match finished {
                Some(finished) => self.replay_task(task, node, finished, replay).await,
                None => self.skip_unfinished(task, replay),
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

    /// Skips a task that was started and did not finish.
    fn skip_unfinished(&self, task: &Task, replay: &mut Replay) {
        let Some(past) = self.logged.task(&task.id).filter(|past| past.started_seq.is_some())
        else {
            return;
        };
        let calls = past.calls_by_scope.values().map(|calls| calls.results.len()).sum();
        let has_failed = self.lineage.failed.contains_key(&task.id);
        let reason = if has_failed { "the task failed" } else { "the task has not ended" };
        self.skip(task, reason, Counts::task(calls), replay);
    }

    async fn replay_task(
        &self,
        task: &Task,
        node: &Node,
        recorded: &TaskFinished,
        replay: &mut Replay,
    ) {
        if recorded.cached {
            let reason = "the result was copied from the cache or by a fork";
            return self.skip(task, reason, Counts::task(0), replay);
        }
        let past = self.logged.task(&task.id).cloned().unwrap_or_default();
        let all: usize = past.calls_by_scope.values().map(|calls| calls.results.len()).sum();
        let own = past.calls_by_scope.get([].as_slice()).map_or(0, |calls| calls.results.len());
        let context = Arc::new(self.step_context(&recorded.task));
        let questions = self.lineage.interrupts.iter();
        let asked = questions.filter(|(_, question)| question.asked.task == task.id);
        let history = TaskHistory {
            journal: Arc::new(Journal::for_replay(past.calls_by_scope)),
            interrupts: Arc::new(asked.map(|(id, it)| (id.clone(), it.clone())).collect()),
            failed_attempts: 0,
        };
        let number = self.logged.attempts.get(&task.id).copied().unwrap_or(1);
        if all > own {
            self.skip(
                task,
                TOOLS_NOT_EXECUTED,
                Counts { calls: all - own, ..Counts::default() },
                replay,
            );
        }
        match execute_once(&context, task, node, &history, number, Instant::now()).await {
            Ok(now) if outcome_json(recorded) == outcome_json(&now) => {
                replay.tasks += 1;
                replay.calls += own;
            }
            Ok(now) => {
                let message = "the node returns a different outcome for the same call results";
                let (then, now) = (outcome_json(recorded), outcome_json(&now));
                replay.add_divergence(self.task_divergence(recorded, message, then, now));
            }
            Err(ended) => replay.add_divergence(self.error_divergence(recorded, ended)),
        }
    }

    /// Returns what the task can read about its run.
    fn step_context(&self, task: &TaskId) -> StepContext {
        let (header, record) = (&self.replay_context.export.header, self.replay_context.recording);
        let meta = &self.lineage.checkpoint.meta;
        let run = self.logged.runs.get(task).unwrap_or(&meta.run).clone();
        let known: Option<&RunRecord> = header.runs.iter().find(|it| it.id == run);
        let options = known.map(|run| run.options.clone()).unwrap_or_default();
        let own = options.recursion_limit.filter(|_| meta.namespace.is_root());
        let limit = own.unwrap_or(self.graph_version.graph.recursion_limit());
        let first_step = known.and_then(|run| run.first_step);
        let steps = self.steps.unwrap_or_else(|| record.steps_before(meta, first_step));
        let run_context = record.context_of(&run, &meta.namespace);
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
            outcomes: OutcomeBytes::default(),
            base: meta.id,
            values: Arc::new(self.lineage.checkpoint.values.clone()),
            children: meta.subgraph_checkpoints.clone(),
        }
    }

    /// Creates a log that reaches no store. Only messages of guests to operators are written to it.
    fn log(&self, run: &RunId) -> ThreadLog {
        let head = ThreadHead::new(self.replay_context.export.header.thread.clone());
        let ports = &self.replay_context.ports;
        let (states, clock) = (StateCache::new(ports.store.clone()), ports.clock.clone());
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

    fn skip(&self, task: &Task, reason: &str, left_out: Counts, replay: &mut Replay) {
        let meta = &self.lineage.checkpoint.meta;
        replay.skip((&meta.namespace, meta.id), Some(&task.node), reason, left_out);
    }

    /// Returns the difference of a task.
    pub(super) fn task_divergence(
        &self,
        task: &TaskFinished,
        message: &str,
        recorded: Value,
        now: Value,
    ) -> Divergence {
        Divergence {
            node: Some(task.node.clone()),
            task: Some(task.task.clone()),
            ..Divergence::of(&self.lineage.checkpoint.meta, message, recorded, now)
        }
    }

    /// Returns the difference of a task that finished when it was recorded and does not finish now.
    /// If a host call differs, the difference contains both requests.
    fn error_divergence(&self, recorded: &TaskFinished, ended: GuestError) -> Divergence {
        let failure = match ended {
            GuestError::Unwound(Unwind::Divergence(failure)) => {
                let details = failure.details.unwrap_or_default();
                let (journal, now) = (details["journal"].clone(), details["now"].clone());
                let divergence = self.task_divergence(recorded, &failure.message, journal, now);
                return Divergence { call: details["call"].as_u64(), ..divergence };
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
        let message = "the node succeeded when it was recorded, and fails now";
        self.task_divergence(recorded, message, outcome_json(recorded), json!(failure))
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
