//! The superstep loop of a graph or subgraph: plans the tasks, runs them in parallel, applies all
//! writes together and creates a checkpoint.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::BoxFuture;
use futures::stream::{self, BoxStream};
use futures::{FutureExt, StreamExt};
use tokio::task::JoinError;
use tokio_util::task::AbortOnDropHandle;
use wattle_graph::checkpoint::CheckpointSource;
use wattle_graph::event::TaskFailed;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{CheckpointId, InterruptId, TaskId};
use wattle_graph::interrupt::Interrupt;
use wattle_graph::lineage::Lineage;
use wattle_graph::plan::{Plan, Task, plan};
use wattle_graph::step::{CheckpointStamp, advance, parent_outcome, plugin_reductions};

use super::end::End;
use super::reduce;
use super::stand::{HERE, Stand, Turn};
use crate::bulk::{are_large, are_many, in_bulk};
use crate::gate::Journal;
use crate::ports::store::Durability;
use crate::replay::Unstored;
use crate::task::{History, RunContext, TaskEnd, run_task};

/// The superstep loop of one graph.
pub(crate) struct Walk {
    /// Context of the tasks.
    pub(super) context: RunContext,
    /// State of the loop.
    pub(super) stand: Stand,
    /// Maximum number of supersteps.
    limit: u32,
    /// True if the checkpoints are persisted.
    is_kept: bool,
    /// Lock of the subgraph. Every spawned task holds a clone until it completes, because an
    /// aborted task can still run for a moment and two executions of one task must not share its
    /// journal.
    turn: Option<Turn>,
}

impl Walk {
    /// Creates the loop of the root graph of a run.
    pub(crate) fn new(
        context: RunContext,
        lineage: Lineage,
        steps: u32,
        unstored: Unstored,
    ) -> Self {
        let limit = context.recursion_limit();
        // Sequence number 0: everything in the log happened after the graph reached its checkpoint.
        let stand = Stand { steps, unstored, ..Stand::new(lineage, 0) };
        Self { context, stand, limit, is_kept: true, turn: None }
    }

    /// Creates the loop of a subgraph.
    pub(super) fn nested(context: RunContext, stand: Stand, is_kept: bool, turn: Turn) -> Self {
        let limit = context.recursion_limit();
        Self { context, stand, limit, is_kept, turn: Some(turn) }
    }

    /// Returns the current checkpoint with the events since.
    pub(crate) fn lineage(&self) -> &Lineage {
        &self.stand.lineage
    }

    fn is_root(&self) -> bool {
        self.context.log.namespace().is_root()
    }

    /// Runs until the graph ends, is interrupted, fails or is cancelled.
    pub(crate) async fn go(&mut self) -> End {
        loop {
            self.catch_up();
            if self.stops_after() {
                return self.stand_still();
            }
            let (tasks, waits) = match self.plan() {
                Plan::Tasks { runnable: run, waiting, .. } => {
                    let all = run.len();
                    let suspended = &self.stand.suspended;
                    let run: Vec<Task> =
                        run.into_iter().filter(|task| !suspended.contains(&task.id)).collect();
                    let waits = !waiting.is_empty() || run.len() < all;
                    (run, waits)
                }
                _ if self.is_cancelled() => return End::Cancelled,
                Plan::Done => return End::Completed,
                Plan::ParentOutcome => {
                    let outcome = parent_outcome(&self.stand.lineage);
                    return End::ToParent(outcome.unwrap_or_default());
                }
                Plan::RecursionLimitReached => return End::Failed(recursion(self.limit)),
            };
            if tasks.is_empty() {
                if waits {
                    return self.stand_still();
                }
                // A superstep whose tasks have all finished is applied, even after a cancel.
                match self.apply().await {
                    Err(end) => return end,
                    Ok(()) => continue,
                }
            }
            if self.is_cancelled() {
                return End::Cancelled;
            }
            if !self.stand.has_run && self.context.is_to_stand_still() {
                return End::Drained;
            }
            if self.stops_before(&tasks) {
                return End::Interrupted;
            }
            match self.context.log.check_room().await {
                Ok(Ok(())) => {}
                Ok(Err(full)) => return End::Failed(full),
                Err(error) => return End::LogLost(error.into()),
            }
            if let Some(end) = self.run_tasks(tasks).await {
                return end;
            }
        }
    }

    /// Applies the logged events of the superstep's tasks and of their error handlers.
    fn catch_up(&mut self) {
        while !self.stand.unstored.is_empty() {
            let Plan::Tasks { all, .. } = self.plan_within(1) else { return };
            let Stand { unstored, lineage, .. } = &mut self.stand;
            if !unstored.take_over(&all, lineage) {
                return;
            }
        }
    }

    fn plan(&self) -> Plan {
        self.plan_within(self.limit.saturating_sub(self.stand.steps))
    }

    fn plan_within(&self, left: u32) -> Plan {
        let origin = self.context.record.origin();
        let lineage = &self.stand.lineage;
        in_bulk(are_many(lineage.checkpoint.meta.next.len()), || {
            plan(&self.context.pack.graph, origin, lineage, left)
        })
    }

    fn is_cancelled(&self) -> bool {
        self.context.cancel.is_cancelled()
    }

    /// Returns the result of a loop that cannot continue: cancelled if the run was cancelled, and
    /// otherwise interrupted.
    fn stand_still(&self) -> End {
        if self.is_cancelled() { End::Cancelled } else { End::Interrupted }
    }

    /// Returns true if one of the tasks has an `interrupt_before` breakpoint that stops the loop.
    fn stops_before(&self, tasks: &[Task]) -> bool {
        tasks.iter().any(|task| self.context.stops_before(&task.node)) && self.stands_between()
    }

    /// Returns true if a node of the previous superstep has an `interrupt_after` breakpoint. Only
    /// the run that executed the superstep stops there; a later run passes the breakpoint.
    fn stops_after(&self) -> bool {
        let meta = &self.stand.lineage.checkpoint.meta;
        meta.source == CheckpointSource::Loop
            && meta.run == self.context.run
            && !meta.next.is_empty()
            && meta.writers.iter().any(|node| self.context.stops_after(node))
            && self.stands_between()
    }

    /// Returns true if no task of the superstep has started and no run has passed the breakpoints
    /// of its checkpoint. The result follows from the log, so a crash does not change it.
    fn stands_between(&self) -> bool {
        if !self.stand.is_untouched() || self.context.past.passes_static(self.stand.arrived) {
            return false;
        }
        let Plan::Tasks { all, .. } = self.plan_within(1) else { return false };
        all.iter().all(|task| self.context.past.begun(task).is_none())
    }

    /// Runs tasks of a superstep until they end. Returns `None` if the loop continues.
    async fn run_tasks(&mut self, tasks: Vec<Task>) -> Option<End> {
        let graph = &self.context.pack.graph.name;
        let mut running = match self.context.tasks.take(tasks.len(), graph) {
            Ok(running) => running,
            Err(exceeded) => return Some(End::Failed(exceeded.to_failure())),
        };
        let meta = &self.stand.lineage.checkpoint.meta;
        self.context.remaining_steps = self.limit.saturating_sub(self.stand.steps + 1);
        self.context.base = meta.id;
        if *self.context.children != meta.subgraph_checkpoints {
            self.context.children = Arc::new(meta.subgraph_checkpoints.clone());
        }
        self.stand.has_run = true;
        let mut failed: Option<TaskFailed> = None;
        let (mut suspended, mut cancelled, mut drained) = (false, false, false);
        let mut left = tasks.len();
        let mut ends = self.begin_tasks(tasks);
        while let Some((task, end)) = ends.next().await {
            match end {
                TaskEnd::Finished(finished) => {
                    running.finished();
                    self.stand.lineage.failed.remove(&task);
                    self.stand.lineage.finished.insert(task, *finished);
                }
                TaskEnd::Suspended => suspended |= self.stand.suspended.insert(task),
                TaskEnd::Cancelled => cancelled = true,
                TaskEnd::Drained => drained = true,
                TaskEnd::LogLost(failure) => return Some(End::LogLost(failure)),
                TaskEnd::Failed(why) => {
                    self.stand.lineage.failed.insert(task, why.clone());
                    if why.handler.is_none() {
                        failed = failed.or(Some(why));
                    }
                }
            }
            left -= 1;
            // After a cancel the results need not reach the store task by task.
            if left > 0 && !self.is_cancelled() {
                self.context.log.flush().await;
            }
        }
        let is_cut = failed.is_some() || suspended;
        if cancelled || (is_cut && self.is_cancelled()) {
            return Some(End::Cancelled);
        }
        match failed {
            Some(failed) => Some(End::Failed(failed.failure)),
            // An interrupt takes precedence: its answer continues the run as well.
            None if drained && !suspended => Some(End::Drained),
            None if drained => Some(End::Interrupted),
            None => None,
        }
    }

    /// Runs tasks, up to the concurrency limit at once. A single task runs in place; several are
    /// spawned. A task takes memory only while it runs, and no task starts after a cancel.
    fn begin_tasks(&mut self, tasks: Vec<Task>) -> BoxStream<'static, (TaskId, TaskEnd)> {
        let alone = tasks.len() == 1;
        let mut questions = self.questions();
        let begun = tasks.into_iter().map(|task| {
            let history = self.history(&task, questions.remove(&task.id).unwrap_or_default());
            (task, history)
        });
        let begun: Vec<(Task, History)> = begun.collect();
        let (context, turn) = (self.context.clone(), self.turn.clone());
        let run = move |(task, history): (Task, History)| -> BoxFuture<'static, _> {
            let id = task.id.clone();
            if context.cancel.is_cancelled() {
                return std::future::ready((id, TaskEnd::Cancelled)).boxed();
            }
            let work = Box::pin(run_task(context.clone(), task, history));
            if alone {
                return async move { (id, work.await) }.boxed();
            }
            let turn = turn.clone();
            let spawned = AbortOnDropHandle::new(tokio::spawn(async move {
                let _turn = turn;
                work.await
            }));
            async move { (id, spawned.await.unwrap_or_else(crashed)) }.boxed()
        };
        stream::iter(begun).map(run).buffer_unordered(self.context.concurrency()).boxed()
    }

    /// Returns the interrupts of the superstep by task.
    fn questions(&self) -> BTreeMap<TaskId, BTreeMap<InterruptId, Interrupt>> {
        let mut by_task: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
        for (id, question) in &self.stand.lineage.interrupts {
            let of_task = by_task.entry(question.asked.task.clone()).or_default();
            of_task.insert(id.clone(), question.clone());
        }
        by_task
    }

    fn history(&mut self, task: &Task, questions: BTreeMap<InterruptId, Interrupt>) -> History {
        let past = self.context.past.take_task(&task.id);
        let journal = if let Some(known) = self.stand.journals.get(&task.id) {
            known.begin_attempt();
            known.clone()
        } else {
            Arc::new(Journal::new(past.scopes, past.begun.is_some()).undone_at(past.undone))
        };
        if !self.is_root() {
            self.stand.journals.insert(task.id.clone(), journal.clone());
        }
        History { journal, questions: Arc::new(questions), failed_attempts: past.failed_attempts }
    }

    /// Applies all writes of the superstep and advances to the next checkpoint.
    async fn apply(&mut self) -> Result<(), End> {
        let known = self.stand.unstored.made_after(self.stand.lineage.checkpoint.meta.id);
        let context = &self.context;
        let (graph, lineage) = (&context.pack.graph, &self.stand.lineage);
        let reductions = reduce(&context.app, plugin_reductions(graph, lineage));
        let reduced = tokio::select! {
            biased;
            reduced = reductions => reduced.map_err(End::Failed)?,
            () = context.cancel.cancelled() => return Err(End::Cancelled),
        };
        // Writes are validated, and conditions read the whole state, so the work is proportional to
        // their size.
        let written = lineage.finished.values().flat_map(|task| &task.writes);
        let values = lineage.checkpoint.values.values().map(AsRef::as_ref);
        let is_much = are_many(lineage.finished.len())
            || are_large(values.chain(written.map(|write| &write.value)));
        let make =
            |id| in_bulk(is_much, || advance(graph, lineage, &reduced, position(context, id)));
        let at = &lineage.checkpoint.meta;
        let made = if !self.is_kept {
            make(CheckpointId(u64::from(at.step) + 1))
        } else if self.is_root() && context.options.durability == Durability::Exit {
            context.log.hold(known, make).await
        } else {
            context.log.checkpoint(make).await
        };
        let checkpoint = made.map_err(|error| End::Failed(error.to_failure()))?;
        if self.is_root() {
            context.log.set_open_questions(0);
        }
        if known.is_none() {
            context.past.leave(context.log.namespace());
        }
        if context.options.durability == Durability::Sync {
            let durable = context.log.barrier().await;
            durable.map_err(|error| End::LogLost(error.into()))?;
        }
        let arrived = match known {
            Some(made) => made.seq,
            None if self.is_kept || self.stand.has_run => HERE,
            None => self.stand.unstored.newest(),
        };
        self.stand.advance_to(checkpoint, arrived);
        Ok(())
    }
}

/// Returns the [`CheckpointStamp`] of a graph's next checkpoint.
pub(super) fn position(context: &RunContext, id: CheckpointId) -> CheckpointStamp {
    CheckpointStamp {
        id,
        run: context.run.clone(),
        at_ms: context.ports.clock.now_ms(),
        version: context.pack.version,
        parents: context.parents.as_ref().clone(),
        // Between two supersteps of the root graph no other task is running.
        tasks: context.log.namespace().is_root().then(|| context.tasks.taken()),
    }
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

fn crashed(error: JoinError) -> TaskEnd {
    TaskEnd::LogLost(Failure::internal(format!("task of the host failed: {error}")))
}
