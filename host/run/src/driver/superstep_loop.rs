//! The superstep loop of a graph or subgraph: plans the tasks, runs them in parallel, applies all
//! writes together and creates a checkpoint.

use std::collections::BTreeMap;
use std::future::ready;
use std::pin::pin;
use std::sync::Arc;

use futures::stream::{self, Stream, StreamExt};
use tokio::task::JoinError;
use tokio_util::task::AbortOnDropHandle;
use wattle_graph::checkpoint::{Checkpoint, CheckpointSource};
use wattle_graph::event::TaskFailed;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{CheckpointId, InterruptId, TaskId};
use wattle_graph::interrupt::Interrupt;
use wattle_graph::lineage::Lineage;
use wattle_graph::plan::{Plan, Task, plan};
use wattle_graph::step::{CheckpointStamp, advance, parent_outcome, plugin_reductions};

use super::loop_exit::LoopExit;
use super::loop_state::{LoopState, SubgraphLock, THIS_PROCESS_SEQ};
use super::reduce;
use crate::blocking::{
    are_large_values, are_many_tasks, block_in_place_if, block_in_place_in_turn, is_long_superstep,
};
use crate::gate::Journal;
use crate::ports::store::Durability;
use crate::run_memory::{MemoryCharge, state_bytes};
use crate::task::outcome_bytes::OutcomeBytes;
use crate::task::{GraphContext, StepContext, TaskEnd, TaskHistory, run_task};
use crate::unpersisted_events::UnpersistedEvents;

/// The superstep loop of one graph.
pub(crate) struct SuperstepLoop {
    /// Context of the graph.
    pub(super) context: Arc<GraphContext>,
    /// State of the loop.
    pub(super) state: LoopState,
    /// Maximum number of supersteps.
    limit: u32,
    /// True if the checkpoints are persisted.
    persists_checkpoints: bool,
    /// Lock of the subgraph. Every spawned task holds a clone until it completes, because an
    /// aborted task can still run for a moment and two executions of one task must not share its
    /// journal.
    lock: Option<SubgraphLock>,
}

impl SuperstepLoop {
    /// Creates the loop of the root graph of a run. `memory` is that of the state and of the events
    /// with which the run continues.
    pub(crate) fn new(
        context: Arc<GraphContext>,
        lineage: Lineage,
        steps: u32,
        unpersisted: UnpersistedEvents,
        memory: MemoryCharge,
    ) -> Self {
        let limit = context.recursion_limit();
        // Sequence number 0: everything in the log happened after the graph reached its checkpoint.
        let state = LoopState { steps, unpersisted, memory, ..LoopState::new(lineage, 0) };
        Self { context, state, limit, persists_checkpoints: true, lock: None }
    }

    /// Creates the loop of a subgraph.
    pub(super) fn for_subgraph(
        context: Arc<GraphContext>,
        mut state: LoopState,
        persists_checkpoints: bool,
        lock: SubgraphLock,
    ) -> Self {
        let limit = context.recursion_limit();
        // A subgraph whose state this process has kept between two attempts keeps its memory.
        if !state.memory.is_of_run() {
            state.memory = MemoryCharge::new(context.memory.clone());
        }
        Self { context, state, limit, persists_checkpoints, lock: Some(lock) }
    }

    /// Returns the current checkpoint with the events since this checkpoint.
    pub(crate) fn lineage(&self) -> &Lineage {
        &self.state.lineage
    }

    fn is_root(&self) -> bool {
        self.context.log.namespace().is_root()
    }

    /// Runs until the graph ends, is interrupted, fails or is cancelled.
    pub(crate) async fn run(&mut self) -> LoopExit {
        // The start of the run has counted the state of the root graph.
        if let Err(full) = self.state.memory.raise_to(state_bytes(&self.lineage().checkpoint)) {
            return LoopExit::Failed(full);
        }
        loop {
            self.apply_unpersisted();
            if self.at_breakpoint_after() {
                return self.interrupted_or_cancelled();
            }
            let (tasks, waits) = match self.plan() {
                Plan::Tasks { runnable, waiting, .. } => {
                    let all = runnable.len();
                    let suspended = &self.state.suspended;
                    let tasks = runnable.into_iter();
                    let tasks: Vec<Task> =
                        tasks.filter(|task| !suspended.contains(&task.id)).collect();
                    let waits = !waiting.is_empty() || tasks.len() < all;
                    (tasks, waits)
                }
                _ if self.is_cancelled() => return LoopExit::Cancelled,
                Plan::Done => return LoopExit::Completed,
                Plan::ParentOutcome => {
                    let outcome = parent_outcome(&self.state.lineage);
                    return LoopExit::ParentOutcome(outcome.unwrap_or_default());
                }
                Plan::RecursionLimitReached => {
                    return LoopExit::Failed(recursion_limit_reached(self.limit));
                }
            };
            if tasks.is_empty() {
                if waits {
                    return self.interrupted_or_cancelled();
                }
                // A superstep whose tasks have all finished is applied, even after a cancel. A busy
                // host may delay this, but the load of a host must not decide about the state.
                match self.apply_superstep().await {
                    Err(end) => return end,
                    Ok(()) => continue,
                }
            }
            if self.is_cancelled() {
                return LoopExit::Cancelled;
            }
            if !self.state.has_executed_tasks && self.context.must_stop() {
                return LoopExit::Drained;
            }
            if self.at_breakpoint_before(&tasks) {
                return LoopExit::Interrupted;
            }
            match self.context.log.check_size().await {
                Ok(Ok(())) => {}
                Ok(Err(full)) => return LoopExit::Failed(full),
                Err(error) => return LoopExit::LogLost(error.into()),
            }
            let have_finished = match self.run_tasks(tasks).await {
                Ok(have_finished) => have_finished,
                Err(end) => return end,
            };
            // Another plan would contain no task, so the superstep is applied without one.
            if have_finished
                && !waits
                && !self.has_parent_outcome()
                && let Err(end) = self.apply_superstep().await
            {
                return end;
            }
        }
    }

    /// Returns true if a task of the superstep has an outcome for the parent graph.
    fn has_parent_outcome(&self) -> bool {
        self.state.lineage.finished.values().any(|finished| finished.for_parent)
    }

    /// Applies the logged events of the superstep's tasks and of their error handlers.
    fn apply_unpersisted(&mut self) {
        while !self.state.unpersisted.is_empty() {
            let Plan::Tasks { all, .. } = self.plan_with_steps(1) else { return };
            let LoopState { unpersisted, lineage, .. } = &mut self.state;
            if !unpersisted.apply_to(&all, lineage) {
                return;
            }
        }
    }

    fn plan(&self) -> Plan {
        self.plan_with_steps(self.limit.saturating_sub(self.state.steps))
    }

    fn plan_with_steps(&self, left: u32) -> Plan {
        let origin = self.context.record.origin();
        let lineage = &self.state.lineage;
        block_in_place_if(are_many_tasks(lineage.checkpoint.meta.next.len()), || {
            plan(&self.context.graph_version.graph, origin, lineage, left)
        })
    }

    fn is_cancelled(&self) -> bool {
        self.context.cancel.is_set()
    }

    /// Returns the result of a loop that cannot continue: cancelled if the run was cancelled, and
    /// otherwise interrupted.
    fn interrupted_or_cancelled(&self) -> LoopExit {
        if self.is_cancelled() { LoopExit::Cancelled } else { LoopExit::Interrupted }
    }

    /// Returns true if one of the tasks has an `interrupt_before` breakpoint that stops the loop.
    fn at_breakpoint_before(&self, tasks: &[Task]) -> bool {
        tasks.iter().any(|task| self.context.has_breakpoint_before(&task.node))
            && self.is_between_supersteps()
    }

    /// Returns true if a node of the previous superstep has an `interrupt_after` breakpoint. Only
    /// the run that executed the superstep stops there; a later run passes the breakpoint.
    fn at_breakpoint_after(&self) -> bool {
        let meta = &self.state.lineage.checkpoint.meta;
        meta.source == CheckpointSource::Loop
            && meta.run == self.context.run
            && !meta.next.is_empty()
            && meta.writers.iter().any(|node| self.context.has_breakpoint_after(node))
            && self.is_between_supersteps()
    }

    /// Returns true if no task of the superstep has started and no run has passed the breakpoints
    /// of its checkpoint. The result follows from the log, so a crash does not change it.
    fn is_between_supersteps(&self) -> bool {
        if !self.state.has_no_progress()
            || self.context.root_superstep.has_passed_breakpoints(self.state.checkpoint_seq)
        {
            return false;
        }
        let Plan::Tasks { all, .. } = self.plan_with_steps(1) else { return false };
        all.iter().all(|task| self.context.root_superstep.started_seq(task).is_none())
    }

    /// Runs tasks of a superstep until they end. Returns true if all of them have finished.
    ///
    /// # Errors
    ///
    /// [`LoopExit`] if the loop does not continue.
    async fn run_tasks(&mut self, tasks: Vec<Task>) -> Result<bool, LoopExit> {
        let graph = &self.context.graph_version.graph.name;
        let reserved = self.context.tasks.reserve(tasks.len(), graph);
        let mut running = reserved.map_err(|exceeded| LoopExit::Failed(exceeded.to_failure()))?;
        self.count_outcomes()?;
        let Checkpoint { meta, values, .. } = &self.state.lineage.checkpoint;
        let context = StepContext {
            graph: self.context.clone(),
            remaining_steps: self.limit.saturating_sub(self.state.steps + 1),
            outcomes: self.state.outcomes.clone(),
            base: meta.id,
            values: values.clone(),
            children: meta.subgraph_checkpoints.clone(),
        };
        self.state.has_executed_tasks = true;
        let mut failed: Option<TaskFailed> = None;
        let mut full: Option<Failure> = None;
        let (mut suspended, mut cancelled, mut drained) = (false, false, false);
        let mut is_handled = false;
        let mut left = tasks.len();
        let mut ends = pin!(self.start_tasks(Arc::new(context), tasks));
        while let Some((task, end)) = ends.next().await {
            match end {
                TaskEnd::Finished(finished) => {
                    running.finish_one();
                    self.state.lineage.failed.remove(&task);
                    self.state.lineage.finished.insert(task, finished);
                }
                TaskEnd::OutcomesFull(failure) => full = Some(failure),
                TaskEnd::Suspended => suspended |= self.state.suspended.insert(task),
                TaskEnd::Cancelled => cancelled = true,
                TaskEnd::Drained => drained = true,
                TaskEnd::LogLost(failure) => return Err(LoopExit::LogLost(failure)),
                TaskEnd::Failed(why) => {
                    self.state.lineage.failed.insert(task, why.clone());
                    match why.handler {
                        Some(_) => is_handled = true,
                        None => failed = failed.or(Some(why)),
                    }
                }
            }
            left -= 1;
            // After a cancel the results need not reach the store task by task.
            if left > 0 && !self.is_cancelled() {
                self.context.log.flush().await;
            }
        }
        let is_cut = failed.is_some() || full.is_some() || suspended;
        if cancelled || (is_cut && self.is_cancelled()) {
            return Err(LoopExit::Cancelled);
        }
        if let Some(failure) = full {
            return Err(LoopExit::Failed(failure));
        }
        match failed {
            Some(failed) => Err(LoopExit::Failed(failed.failure)),
            // An interrupt takes precedence: its answer continues the run as well.
            None if drained && !suspended => Err(LoopExit::Drained),
            None if drained => Err(LoopExit::Interrupted),
            None => Ok(!suspended && !is_handled),
        }
    }

    /// Creates the counter of the superstep's outcomes, which includes the outcomes of the tasks
    /// that have finished.
    ///
    /// # Errors
    ///
    /// [`LoopExit::Failed`] if their outcomes do not fit.
    fn count_outcomes(&mut self) -> Result<(), LoopExit> {
        // The former counter has counted the same outcomes.
        self.state.outcomes = Arc::default();
        let finished = &self.state.lineage.finished;
        let written = finished.values().flat_map(|task| &task.writes).map(|write| &write.value);
        let is_much = are_many_tasks(finished.len()) || are_large_values(written);
        let outcomes = block_in_place_if(is_much, || {
            let memory = MemoryCharge::new(self.context.memory.clone());
            let finished = finished.values().map(Arc::as_ref);
            OutcomeBytes::new(&self.context.graph_version.graph, finished, memory)
        });
        self.state.outcomes = Arc::new(outcomes.map_err(LoopExit::Failed)?);
        Ok(())
    }

    /// Runs tasks, at most [`GraphContext::max_concurrency`] at once. A single task runs in place;
    /// several tasks are spawned. A task takes memory only while it runs, and no task starts after
    /// a cancel or once the outcomes have reached their limit.
    fn start_tasks(
        &mut self,
        context: Arc<StepContext>,
        tasks: Vec<Task>,
    ) -> impl Stream<Item = (TaskId, TaskEnd)> + Send + use<> {
        let mut questions = self.interrupts_by_task();
        let begun = tasks.into_iter().map(|task| {
            let history = self.task_history(&task, questions.remove(&task.id).unwrap_or_default());
            (task, history)
        });
        let mut begun: Vec<(Task, TaskHistory)> = begun.collect();
        if begun.len() == 1
            && let Some((task, history)) = begun.pop()
        {
            return stream::once(run_in_place(context, task, history)).left_stream();
        }
        let (counted, lock) = (context.clone(), self.lock.clone());
        let run = move |(task, history)| spawn_task(context.clone(), task, history, lock.clone());
        let begun = stream::iter(begun).take_while(move |_| ready(!counted.outcomes.is_full()));
        begun.map(run).buffer_unordered(self.context.max_concurrency()).right_stream()
    }

    /// Returns the interrupts of the superstep by task.
    fn interrupts_by_task(&self) -> BTreeMap<TaskId, BTreeMap<InterruptId, Interrupt>> {
        let mut by_task: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
        for (id, question) in &self.state.lineage.interrupts {
            let of_task = by_task.entry(question.raised.task.clone()).or_default();
            of_task.insert(id.clone(), question.clone());
        }
        by_task
    }

    fn task_history(
        &mut self,
        task: &Task,
        questions: BTreeMap<InterruptId, Interrupt>,
    ) -> TaskHistory {
        let past = self.context.root_superstep.take_task(&task.id);
        let journal = if let Some(known) = self.state.journals.get(&task.id) {
            known.begin_attempt();
            known.clone()
        } else {
            let (calls, was_started) = (past.calls_by_scope, past.started_seq.is_some());
            let memory = MemoryCharge::new(self.context.memory.clone());
            let journal = Journal::new(calls, was_started, memory);
            Arc::new(journal.with_reopened_seq(past.reopened_seq))
        };
        if !self.is_root() {
            self.state.journals.insert(task.id.clone(), journal.clone());
        }
        TaskHistory {
            journal,
            interrupts: Arc::new(questions),
            failed_attempts: past.failed_attempts,
        }
    }

    /// Applies all writes of the superstep and advances to the next checkpoint.
    async fn apply_superstep(&mut self) -> Result<(), LoopExit> {
        // Tasks that were executed here counted their outcomes when they finished.
        if !self.state.has_executed_tasks {
            self.count_outcomes()?;
        }
        let known = self.state.unpersisted.next_checkpoint(self.state.lineage.checkpoint.meta.id);
        let context = &self.context;
        let (graph, lineage) = (&context.graph_version.graph, &self.state.lineage);
        let reduced = reduce(&context.app, plugin_reductions(graph, lineage));
        let reduced = reduced.await.map_err(LoopExit::Failed)?;
        let (is_long, reduced) = (is_long_superstep(graph, lineage), &reduced);
        let make = |id| {
            block_in_place_in_turn(context.caller, is_long, move || {
                advance(graph, lineage, reduced, checkpoint_stamp(context, id))
            })
        };
        let at = &lineage.checkpoint.meta;
        let made = if !self.persists_checkpoints {
            make(CheckpointId(u64::from(at.step) + 1)).await
        } else if self.is_root() && context.options.durability == Durability::Exit {
            context.log.checkpoint_unpersisted(known, make).await
        } else {
            context.log.checkpoint(make).await
        };
        let checkpoint = made.map_err(|error| LoopExit::Failed(error.to_failure()))?;
        if self.is_root() {
            context.log.set_pending_interrupts(&[]);
        }
        if known.is_none() {
            context.root_superstep.end_superstep(context.log.namespace());
        }
        if context.options.durability == Durability::Sync {
            let durable = context.log.wait_superstep_durable().await;
            durable.map_err(|error| LoopExit::LogLost(error.into()))?;
        }
        let checkpoint_seq = match known {
            Some(made) => made.seq,
            None if self.persists_checkpoints || self.state.has_executed_tasks => THIS_PROCESS_SEQ,
            None => self.state.unpersisted.newest_seq(),
        };
        self.state.advance_to(checkpoint, checkpoint_seq);
        let checkpoint = &self.state.lineage.checkpoint;
        match self.state.memory.set(state_bytes(checkpoint)) {
            // A graph that has reached its end does not keep its state.
            Err(full) if !checkpoint.meta.next.is_empty() => Err(LoopExit::Failed(full)),
            _ => Ok(()),
        }
    }
}

/// Runs a task in place, unless the run is cancelled.
async fn run_in_place(
    context: Arc<StepContext>,
    task: Task,
    history: TaskHistory,
) -> (TaskId, TaskEnd) {
    let id = task.id.clone();
    if context.cancel.is_set() {
        return (id, TaskEnd::Cancelled);
    }
    // Boxed, because the future of a superstep loop would otherwise include the future of a task.
    (id, Box::pin(run_task(context, task, history)).await)
}

/// Spawns a task, unless the run is cancelled. The task holds the lock of the subgraph until the
/// task completes. The returned future waits for the end of the task; dropping the future aborts
/// the task.
fn spawn_task(
    context: Arc<StepContext>,
    task: Task,
    history: TaskHistory,
    lock: Option<SubgraphLock>,
) -> impl Future<Output = (TaskId, TaskEnd)> + Send {
    let id = task.id.clone();
    let spawned = (!context.cancel.is_set()).then(|| {
        let work = Box::pin(run_task(context, task, history));
        AbortOnDropHandle::new(tokio::spawn(async move {
            let _lock = lock;
            work.await
        }))
    });
    async move {
        let end = match spawned {
            Some(spawned) => spawned.await.unwrap_or_else(crashed),
            None => TaskEnd::Cancelled,
        };
        (id, end)
    }
}

/// Returns the [`CheckpointStamp`] of a graph's next checkpoint.
pub(super) fn checkpoint_stamp(context: &GraphContext, id: CheckpointId) -> CheckpointStamp {
    CheckpointStamp {
        id,
        run: context.run.clone(),
        at_ms: context.ports.clock.now_ms(),
        version: context.graph_version.version,
        parents: context.parents.as_ref().clone(),
        // Between two supersteps of the root graph no other task is running.
        tasks: context.log.namespace().is_root().then(|| context.tasks.counted()),
    }
}

fn recursion_limit_reached(limit: u32) -> Failure {
    Failure::new(
        code::LIMIT,
        format!(
            "the run took {limit} supersteps without reaching an end; raise `recursion_limit` of \
             the graph if it needs more supersteps"
        ),
    )
    .with_details(serde_json::json!({ "limit": "recursion", "allowed": limit }))
}

fn crashed(error: JoinError) -> TaskEnd {
    TaskEnd::LogLost(Failure::internal(format!("task of the host failed: {error}")))
}
