//! Executes one run: the superstep loop of its graph, and the end of the run.
//!
//! The loop holds the thread's state in memory and does not wait for the disk. [`crate::log`]
//! ensures that no effect leaves the host before the events that led to it are durable.

mod loop_exit;
mod loop_state;
mod reduce;
mod reopen;
mod root_superstep;
mod run_end;
mod subgraph;
mod subgraph_io;
mod superstep_loop;

use std::sync::Arc;

use wattle_graph::event::{RunEnded, RunStatus};
use wattle_graph::failure::Failure;
use wattle_graph::id::NodeName;
use wattle_graph::lineage::Lineage;

use crate::hostcall::runs::{InterruptView, RunOutcome, RunRef};
use crate::log::{Commit, ThreadLog};
use crate::ports::observer::RunSummary;
use crate::ports::store::{Durability, RunRecord, ThreadFailure, ThreadRecord, ThreadStatus};
use crate::run_memory::MemoryCharge;
use crate::task::context::GraphContext;
use crate::unpersisted_events::UnpersistedEvents;
use crate::view::{self, pending_interrupts};

pub(crate) use self::loop_exit::LoopExit;
pub(crate) use self::reduce::reduce;
pub(crate) use self::root_superstep::{LoggedTask, RootSuperstep};
pub(crate) use self::run_end::RunEnd;
pub(crate) use self::subgraph::SubgraphDriver;
pub(crate) use self::subgraph_io::{subgraph_input, subgraph_writes};
pub(crate) use self::superstep_loop::SuperstepLoop;

/// Result of driving a run.
pub(crate) enum DriveOutcome {
    /// The run has ended.
    Ended {
        /// For callers that wait for the run.
        end: Arc<RunEnd>,
        /// For observers.
        summary: RunSummary,
        /// True if the batch that ended the run has released the lease of the thread.
        has_released_lease: bool,
    },
    /// The run was drained: the host shuts down, or another host takes the run.
    HandOver,
    /// The store refused a write.
    LogLost(Failure),
}

/// A run that this host executes.
pub(crate) struct Driver {
    superstep_loop: SuperstepLoop,
    record: ThreadRecord,
    run: RunRecord,
}

impl Driver {
    /// Creates a run that continues from the state in `lineage`. `unpersisted` holds the events of
    /// supersteps whose checkpoints were not persisted. `memory` is that of all of these events and
    /// of the state.
    pub(crate) fn new(
        context: GraphContext,
        record: ThreadRecord,
        run: RunRecord,
        lineage: Lineage,
        unpersisted: UnpersistedEvents,
        memory: MemoryCharge,
    ) -> Self {
        let context = Arc::new(context);
        let step = lineage.checkpoint.meta.step;
        let steps = step.saturating_sub(run.first_step.unwrap_or(step));
        Self {
            superstep_loop: SuperstepLoop::new(context, lineage, steps, unpersisted, memory),
            record,
            run,
        }
    }

    /// Returns the record of the run's thread.
    pub(crate) fn record(&self) -> &ThreadRecord {
        &self.record
    }

    /// Returns the log of the run's thread.
    pub(crate) fn log(&self) -> &Arc<ThreadLog> {
        &self.context().log
    }

    /// Returns the durability of the run.
    pub(crate) fn durability(&self) -> Durability {
        self.run.options.durability
    }

    /// Executes the run until it ends, is interrupted, fails or is cancelled, and persists the
    /// result.
    pub(crate) async fn drive(mut self) -> DriveOutcome {
        let end = self.superstep_loop.run().await;
        if matches!(end, LoopExit::Drained) && self.context().handover.is_set() {
            self.context().log.persist_checkpoint().await;
            // Recovery works with or without these events, so an error is ignored.
            let _ = self.context().log.wait_durable().await;
            return DriveOutcome::HandOver;
        }
        // Boxed, because the future of a running run would otherwise include the future of its end.
        Box::pin(self.finish_run(end)).await
    }

    fn context(&self) -> &GraphContext {
        &self.superstep_loop.context
    }

    /// Logs the end of the run and waits until it is durable.
    async fn finish_run(mut self, end: LoopExit) -> DriveOutcome {
        let now = self.context().ports.clock.now_ms();
        let mut reopened = None;
        let drained = matches!(end, LoopExit::Drained);
        let is_cancelled = matches!(end, LoopExit::Cancelled);
        // A run that is reopened persists its checkpoint too, so that no later checkpoint has the
        // same number.
        self.context().log.persist_checkpoint().await;
        let (status, thread_status, failure) = match end {
            LoopExit::Completed => (RunStatus::Completed, ThreadStatus::Idle, None),
            LoopExit::Cancelled => (RunStatus::Cancelled, ThreadStatus::Idle, None),
            LoopExit::Interrupted | LoopExit::Drained => {
                (RunStatus::Interrupted, ThreadStatus::Interrupted, None)
            }
            LoopExit::Failed(failure) => {
                reopened = Box::pin(self.reopen(&failure)).await;
                let status = match reopened {
                    Some(_) => ThreadStatus::Interrupted,
                    None => ThreadStatus::Error,
                };
                (RunStatus::Failed, status, Some(failure))
            }
            LoopExit::ParentOutcome(_) => {
                (RunStatus::Failed, ThreadStatus::Error, Some(no_parent_graph()))
            }
            LoopExit::LogLost(failure) => return self.log_lost(failure),
        };
        // Only interrupts expire. A drained run waits without a time limit.
        if thread_status == ThreadStatus::Interrupted && !drained {
            let ttl = self.context().graph_version.graph.interrupt_ttl_ms();
            self.record.expires_ms = ttl.map(|ttl| now.saturating_add_unsigned(ttl));
        }
        self.record.status = thread_status;
        self.record.stopped = is_cancelled && !self.next_nodes().is_empty();
        self.record.failure = failure.as_ref().map(ThreadFailure::from);
        self.record.updated_ms = now;
        self.run.status = status;
        self.run.failure.clone_from(&failure);
        self.run.ended_ms = Some(now);
        self.run.last_checkpoint = Some(self.superstep_loop.lineage().checkpoint.meta.id);
        self.run.usage = self.context().log.usage();
        let principal = is_cancelled.then(|| self.context().cancel.principal()).flatten();
        let store_us = self.context().log.store_us();
        let ended = RunEnded { status, failure: failure.clone(), drained, principal, store_us };
        // The interrupts of the run are read after its end, before another host can change them.
        let has_released_lease = status != RunStatus::Interrupted;
        let commit = Commit {
            record: Some(self.record.clone()),
            run: Some(self.run.clone()),
            // In the batch of `reopened`: a recovery from the checkpoint without this event would
            // execute the later supersteps again.
            current: self.run.reopen.filter(|_| reopened.is_some()),
            releases_lease: has_released_lease,
            ..Commit::default()
        };
        let written = self.context().log.commit_last(reopened, ended, commit).await;
        match written.await {
            Ok(()) => {
                let summary = self.run_summary(status, failure.clone());
                let end = Arc::new(self.run_end(status, failure).await);
                DriveOutcome::Ended { end, summary, has_released_lease }
            }
            Err(error) => self.log_lost(error.into()),
        }
    }

    fn run_summary(&self, status: RunStatus, failure: Option<Failure>) -> RunSummary {
        RunSummary {
            app: self.record.app.clone(),
            graph: self.record.graph.clone(),
            thread: self.record.id.clone(),
            run: self.run.id.clone(),
            tenant: self.record.tenant.clone(),
            first_seq: self.run.first_seq,
            last_seq: self.context().log.last_seq(),
            status,
            failure,
        }
    }

    async fn run_end(self, status: RunStatus, failure: Option<Failure>) -> RunEnd {
        let outcome = match status {
            RunStatus::Completed | RunStatus::Pending | RunStatus::Running => RunOutcome::Completed,
            RunStatus::Cancelled => RunOutcome::Cancelled,
            RunStatus::Failed => RunOutcome::Failed {
                failure: failure.unwrap_or_else(|| Failure::internal("the run failed")),
            },
            RunStatus::Interrupted => RunOutcome::Interrupted {
                interrupts: self.read_interrupts().await,
                next: self.next_nodes(),
            },
        };
        let run = self.run_ref();
        RunEnd { run, outcome, checkpoint: self.superstep_loop.state.lineage.checkpoint }
    }

    /// Reads the pending interrupts from the log, which is durable at this point.
    async fn read_interrupts(&self) -> Vec<InterruptView> {
        let GraphContext { ports, log, .. } = self.context();
        let Ok(Some(head)) = ports.store.thread(&self.record.id).await else { return Vec::new() };
        let Ok(Some(tuple)) = view::current_checkpoint(log.states(), &head).await else {
            return Vec::new();
        };
        let (lineage, subgraphs) = view::lineage_and_subgraphs(&tuple);
        pending_interrupts(&lineage, &subgraphs, self.record.expires_ms)
    }

    fn next_nodes(&self) -> Vec<NodeName> {
        let next = &self.superstep_loop.lineage().checkpoint.meta.next;
        next.iter().map(|trigger| trigger.node.clone()).collect()
    }

    fn run_ref(&self) -> RunRef {
        RunRef { thread: self.record.id.clone(), run: self.run.id.clone() }
    }

    /// Ends the run locally after the store refused a write. Recovery continues the run once the
    /// store is reachable. With a shared store another host may already have continued it.
    fn log_lost(&self, failure: Failure) -> DriveOutcome {
        tracing::error!(
            thread = %self.record.id, run = %self.run.id, %failure,
            "cannot write the event log; the run stops until recovery"
        );
        DriveOutcome::LogLost(failure)
    }
}

/// Returns the failure of a run whose root graph has a task with an outcome for a parent graph.
/// This occurs only if a thread continues with a graph that was a subgraph when the task finished.
fn no_parent_graph() -> Failure {
    Failure::internal("a task of the root graph returned an outcome for a parent graph")
}
