//! The superstep loop of one run.
//!
//! Plan, run the tasks in parallel, apply all writes at once, checkpoint, again. The loop holds
//! the thread's state in memory and runs ahead of the disk; [`crate::log`] sees to it that nothing
//! leaves the host before it is durable.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use serde_json::Value;
use wattle_graph::event::{
    Checkpointed, Event, EventKind, Reopened, RunEnded, RunStatus, TaskFailed,
};
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{ChannelName, CheckpointId, InterruptId, NodeName, TaskId};
use wattle_graph::lineage::Lineage;
use wattle_graph::plan::{Planned, Task, plan};
use wattle_graph::step::{PluginReduction, Position, advance, plugin_reductions};

use crate::app::App;
use crate::call::runs::{EndedRun, RunOutcome, RunRef};
use crate::gate::{Journal, Scopes};
use crate::limit;
use crate::log::Commit;
use crate::ports::observer::RunNote;
use crate::ports::sandbox::Ended;
use crate::ports::store::{RunRecord, ThreadRecord, ThreadStatus};
use crate::task::{History, RunContext, TaskEnd, run_task};
use crate::view::{self, open_questions};

/// One run at work.
pub(crate) struct Driver {
    pub context: RunContext,
    pub record: ThreadRecord,
    pub run: RunRecord,
    pub lineage: Lineage,
    pub next_checkpoint: CheckpointId,
    /// What the log holds of tasks of the first superstep.
    pub past: BTreeMap<TaskId, PastTask>,
    /// Whether the first superstep passes static interrupts, because it was resumed at one.
    pub pass_static: bool,
}

/// What the log holds of a task that was begun before.
#[derive(Clone, Debug, Default)]
pub(crate) struct PastTask {
    /// Its calls, and those of the tools it called, for the journal of its next execution.
    pub scopes: Scopes,
    /// Failed attempts since it was last given up.
    pub failed_attempts: u32,
    /// Whether it was begun at all.
    pub begun: bool,
}

/// How the loop ended.
enum End {
    Completed,
    Interrupted,
    Failed(Failure),
    Cancelled,
    /// Nothing more can be written about this thread.
    LogLost(Failure),
}

impl Driver {
    /// Runs to the end, an interrupt, a failure or cancellation, and writes down how it ended.
    pub(crate) async fn drive(mut self) -> EndedRun {
        let end = self.supersteps().await;
        self.close(end).await
    }

    async fn supersteps(&mut self) -> End {
        let thread = self.record.id.clone();
        let mut steps = 0;
        loop {
            if self.context.cancel.is_cancelled() {
                return End::Cancelled;
            }
            let (tasks, waits) = match plan(&self.context.pack.graph, &thread, &self.lineage, steps)
            {
                Planned::Done => return End::Completed,
                Planned::RecursionLimit { limit } => return End::Failed(recursion(limit)),
                Planned::Tasks { run, waiting, .. } => (run, !waiting.is_empty()),
            };
            if !self.pass_static && self.stops_before(&tasks) {
                return End::Interrupted;
            }
            self.pass_static = false;
            if let Some(end) = self.run_step(tasks, steps).await {
                return end;
            }
            if waits {
                return self.stand_still();
            }
            match self.apply_step().await {
                Err(end) => return end,
                Ok(true) => return self.stand_still(),
                Ok(false) => {}
            }
            self.past.clear();
            steps += 1;
        }
    }

    /// A run that was cancelled meanwhile waits for nobody.
    fn stand_still(&self) -> End {
        if self.context.cancel.is_cancelled() { End::Cancelled } else { End::Interrupted }
    }

    fn stops_before(&self, tasks: &[Task]) -> bool {
        tasks.iter().any(|task| {
            self.context.pack.graph.interrupts_before(&task.node)
                && !self.past.get(&task.id).is_some_and(|past| past.begun)
        })
    }

    /// Runs the tasks of a superstep to their ends. `None` if all have finished.
    async fn run_step(&mut self, tasks: Vec<Task>, steps: u32) -> Option<End> {
        let limit = self.context.pack.graph.recursion_limit();
        self.context.remaining_steps = limit.saturating_sub(steps + 1);
        self.context.base = self.lineage.checkpoint.meta.id;
        let mut failed: Option<TaskFailed> = None;
        let (mut suspended, mut cancelled) = (false, false);
        let mut ends = self.begin_tasks(tasks);
        while let Some(end) = ends.next().await {
            match end {
                TaskEnd::Finished(finished) => {
                    self.lineage.finished.insert(finished.task.clone(), *finished);
                }
                TaskEnd::Suspended => suspended = true,
                TaskEnd::Cancelled => cancelled = true,
                TaskEnd::LogLost(failure) => return Some(End::LogLost(failure)),
                TaskEnd::Failed(task) => failed = failed.or(Some(task)),
            }
            if !ends.is_empty() {
                self.context.log.flush().await;
            }
        }
        // A superstep whose tasks have all finished is kept, even if the cancel came meanwhile.
        let is_cut = failed.is_some() || suspended;
        if cancelled || (is_cut && self.context.cancel.is_cancelled()) {
            return Some(End::Cancelled);
        }
        if let Some(failed) = failed {
            return Some(End::Failed(failed.failure));
        }
        suspended.then_some(End::Interrupted)
    }

    /// A single task runs right here; several run on all cores.
    fn begin_tasks(
        &mut self,
        tasks: Vec<Task>,
    ) -> FuturesUnordered<futures::future::BoxFuture<'static, TaskEnd>> {
        let alone = tasks.len() == 1;
        let slots = Arc::new(tokio::sync::Semaphore::new(limit::STEP_CONCURRENCY));
        tasks
            .into_iter()
            .map(|task| -> futures::future::BoxFuture<'static, TaskEnd> {
                let history = self.history(&task);
                let work = run_task(self.context.clone(), task, history);
                if alone {
                    return Box::pin(work);
                }
                let slots = slots.clone();
                let spawned = AbortOnDrop(tokio::spawn(async move {
                    let _slot = slots.acquire().await;
                    work.await
                }));
                Box::pin(spawned.end())
            })
            .collect()
    }

    fn history(&mut self, task: &Task) -> History {
        let past = self.past.remove(&task.id).unwrap_or_default();
        let journal = Arc::new(Journal::new(past.scopes, past.begun));
        let questions: BTreeMap<_, _> = self
            .lineage
            .questions
            .iter()
            .filter(|(_, question)| question.asked.task == task.id)
            .map(|(id, question)| (id.clone(), question.clone()))
            .collect();
        History { journal, questions: Arc::new(questions), failed_attempts: past.failed_attempts }
    }

    /// Applies all writes of the superstep. Answers whether a static interrupt stops the run.
    async fn apply_step(&mut self) -> Result<bool, End> {
        let graph = &self.context.pack.graph;
        let reductions = reduce(&self.context.app, plugin_reductions(graph, &self.lineage));
        let reduced = tokio::select! {
            biased;
            reduced = reductions => reduced.map_err(End::Failed)?,
            () = self.context.cancel.cancelled() => return Err(End::Cancelled),
        };
        let at = Position {
            id: self.next_checkpoint,
            run: self.run.id.clone(),
            at_ms: self.context.ports.clock.now_ms(),
        };
        let checkpoint = advance(graph, &self.lineage, &reduced, at)
            .map_err(|error| End::Failed(error.to_failure()))?;
        self.next_checkpoint = CheckpointId(self.next_checkpoint.0 + 1);
        let stops = !checkpoint.meta.next.is_empty()
            && self.lineage.finished.values().any(|task| graph.interrupts_after(&task.node));
        self.context.log.push(EventKind::Checkpointed(Checkpointed::from(&checkpoint.meta)));
        let commit = Commit { checkpoint: Some(checkpoint.clone()), ..Commit::default() };
        self.context.log.commit(commit).await;
        self.lineage.advance_to(checkpoint);
        Ok(stops)
    }

    /// Writes down how the run ended, waits until that is durable, and says it.
    async fn close(mut self, end: End) -> EndedRun {
        let now = self.context.ports.clock.now_ms();
        let mut commit = Commit::default();
        let (status, thread_status, failure) = match end {
            End::Completed => (RunStatus::Completed, ThreadStatus::Idle, None),
            End::Cancelled => (RunStatus::Cancelled, ThreadStatus::Idle, None),
            End::Interrupted => (RunStatus::Interrupted, ThreadStatus::Interrupted, None),
            End::Failed(failure) => {
                let status = self.reopen(&mut commit, &failure).await;
                (RunStatus::Failed, status, Some(failure))
            }
            End::LogLost(failure) => return self.lost(failure),
        };
        if thread_status == ThreadStatus::Interrupted {
            let ttl = self.context.pack.graph.interrupt_ttl_ms();
            self.record.expires_ms = ttl.map(|ttl| now.saturating_add_unsigned(ttl));
        }
        self.record.status = thread_status;
        self.record.updated_ms = now;
        self.run.status = status;
        self.run.failure.clone_from(&failure);
        self.run.ended_ms = Some(now);
        self.context.log.push(EventKind::RunEnded(RunEnded { status, failure: failure.clone() }));
        commit.record = Some(self.record.clone());
        commit.run = Some(self.run.clone());
        self.context.log.commit(commit).await;
        match self.context.log.barrier().await {
            Ok(()) => {
                self.context.ports.observer.run_ended(self.note(status, failure.clone()));
                self.ended(status, failure).await
            }
            Err(error) => self.lost(Failure::internal(error.to_string())),
        }
    }

    fn note(&self, status: RunStatus, failure: Option<Failure>) -> RunNote {
        RunNote {
            app: self.record.app.clone(),
            graph: self.record.graph.clone(),
            thread: self.record.id.clone(),
            run: self.run.id.clone(),
            tenant: self.record.tenant.clone(),
            first_seq: self.run.first_seq,
            last_seq: self.context.log.last_seq(),
            status,
            failure,
        }
    }

    /// If the run was to be undone on failure: back to the questions it had answered.
    async fn reopen(&mut self, commit: &mut Commit, failure: &Failure) -> ThreadStatus {
        let Some(to) = self.run.reopen else { return ThreadStatus::Error };
        let (store, thread) = (&self.context.ports.store, &self.record.id);
        let namespace = &self.lineage.checkpoint.meta.namespace;
        if self.context.log.barrier().await.is_err() {
            return ThreadStatus::Error;
        }
        let Ok(Some(tuple)) = store.checkpoint(thread, namespace, Some(to)).await else {
            return ThreadStatus::Error;
        };
        let interrupts = self.answered_in_this_run(&tuple.events);
        let mut lineage = view::lineage(tuple);
        let reopened = Reopened { to, interrupts, failure: Some(failure.clone()) };
        // The event belongs to the checkpoint it leads to, so the base changes first.
        self.context
            .log
            .commit(Commit {
                current: Some(to),
                record: Some(self.record.clone()),
                ..Commit::default()
            })
            .await;
        let event = self.context.log.push(EventKind::Reopened(reopened));
        lineage.apply(&event);
        self.lineage = lineage;
        commit.current = Some(to);
        ThreadStatus::Interrupted
    }

    fn answered_in_this_run(&self, events: &[Event]) -> Vec<InterruptId> {
        events
            .iter()
            .filter(|event| event.run == self.run.id)
            .filter_map(|event| match &event.kind {
                EventKind::Answered(answered) => Some(answered.interrupt.clone()),
                _ => None,
            })
            .collect()
    }

    fn outcome(&self, status: RunStatus, failure: Option<Failure>) -> RunOutcome {
        match status {
            RunStatus::Completed | RunStatus::Running => RunOutcome::Completed,
            RunStatus::Cancelled => RunOutcome::Cancelled,
            RunStatus::Failed => RunOutcome::Failed {
                failure: failure.unwrap_or_else(|| Failure::internal("the run failed")),
            },
            RunStatus::Interrupted => RunOutcome::Interrupted {
                interrupts: open_questions(&self.lineage, self.record.expires_ms),
                next: self.next_nodes(),
            },
        }
    }

    fn next_nodes(&self) -> Vec<NodeName> {
        self.lineage.checkpoint.meta.next.iter().map(|trigger| trigger.node.clone()).collect()
    }

    async fn ended(mut self, status: RunStatus, failure: Option<Failure>) -> EndedRun {
        if status == RunStatus::Interrupted {
            self.read_questions().await;
        }
        let outcome = self.outcome(status, failure);
        EndedRun { run: self.run_ref(), outcome, state: self.lineage.checkpoint.state() }
    }

    /// Questions asked in this run stand in the log, which is durable by now.
    async fn read_questions(&mut self) {
        let namespace = self.lineage.checkpoint.meta.namespace.clone();
        let id = self.lineage.checkpoint.meta.id;
        let store = &self.context.ports.store;
        if let Ok(Some(tuple)) = store.checkpoint(&self.record.id, &namespace, Some(id)).await {
            self.lineage = view::lineage(tuple);
        }
    }

    fn run_ref(&self) -> RunRef {
        RunRef { thread: self.record.id.clone(), run: self.run.id.clone() }
    }

    /// The store is gone: the run ends here, and is recovered when the store is back.
    fn lost(self, failure: Failure) -> EndedRun {
        tracing::error!(thread = %self.record.id, run = %self.run.id, %failure, "run lost its log");
        EndedRun {
            run: self.run_ref(),
            outcome: RunOutcome::Failed { failure },
            state: self.lineage.checkpoint.state(),
        }
    }
}

/// Lets plugins combine what only they can.
pub(crate) async fn reduce(
    app: &App,
    reductions: Vec<PluginReduction>,
) -> Result<BTreeMap<ChannelName, Value>, Failure> {
    let mut reduced = BTreeMap::new();
    for PluginReduction { channel, plugin, reducer, current, updates } in reductions {
        let Some(code) = app.plugins.get(&plugin) else {
            return Err(Failure::internal(format!("plugin `{plugin}` is not loaded")));
        };
        let limits = &app.grants_of(&plugin).limits;
        let value = code.reduce(&reducer, current, updates, limits).await.map_err(|ended| {
            let failure = match ended {
                Ended::Failure(f) | Ended::Trap(f) | Ended::Limit(f) | Ended::Host(f) => f,
                Ended::Unwound(_) => Failure::internal("a reducer may not use any import"),
            };
            Failure {
                message: format!("reducer `{reducer}` of channel `{channel}`: {}", failure.message),
                ..failure
            }
        })?;
        reduced.insert(channel, value);
    }
    Ok(reduced)
}

fn recursion(limit: u32) -> Failure {
    Failure::new(
        code::LIMIT,
        format!(
            "the run took {limit} supersteps without reaching an end; raise `recursion_limit` of \
             the graph if that is right"
        ),
    )
    .with_details(serde_json::json!({ "limit": "recursion", "allowed": limit }))
}

/// A spawned task that ends with its owner.
struct AbortOnDrop(tokio::task::JoinHandle<TaskEnd>);

impl AbortOnDrop {
    async fn end(mut self) -> TaskEnd {
        (&mut self.0).await.unwrap_or_else(|error| {
            TaskEnd::LogLost(Failure::internal(format!("a task of the host ended: {error}")))
        })
    }
}

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
