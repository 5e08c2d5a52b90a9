//! Executes one run: the superstep loop of its graph, and the end of the run.
//!
//! The loop holds the thread's state in memory and runs ahead of the disk. [`crate::log`] ensures
//! that nothing leaves the host before it is durable.

mod end;
mod exchange;
mod nested;
mod past;
mod reduce;
mod reopen;
mod stand;
mod walk;

use wattle_graph::event::{EventKind, RunEnded, RunStatus};
use wattle_graph::failure::Failure;
use wattle_graph::id::NodeName;
use wattle_graph::lineage::Lineage;

use crate::hostcall::runs::{EndedRun, OpenQuestion, RunOutcome, RunRef};
use crate::log::Commit;
use crate::ports::observer::RunNote;
use crate::ports::store::{RunRecord, ThreadRecord, ThreadStatus};
use crate::replay::Unstored;
use crate::task::context::RunContext;
use crate::view::{self, all_questions};

pub(crate) use self::end::End;
pub(crate) use self::exchange::{input as nested_input, writes as nested_writes};
pub(crate) use self::nested::NestedLoop;
pub(crate) use self::past::{Past, PastTask};
pub(crate) use self::reduce::reduce;
pub(crate) use self::walk::Walk;

/// Result of driving a run.
pub(crate) enum Left {
    /// The run has ended.
    Ended(EndedRun),
    /// The run was drained: the host shuts down, or another host takes the run.
    Still,
    /// The store refused a write.
    Lost(Failure),
}

/// A run that this host executes.
pub(crate) struct Driver {
    walk: Walk,
    record: ThreadRecord,
    run: RunRecord,
}

impl Driver {
    /// Creates a run that continues from a lineage. `unstored` holds the events of its unpersisted
    /// supersteps.
    pub(crate) fn new(
        context: RunContext,
        record: ThreadRecord,
        run: RunRecord,
        lineage: Lineage,
        unstored: Unstored,
    ) -> Self {
        let step = lineage.checkpoint.meta.step;
        let steps = step.saturating_sub(run.first_step.unwrap_or(step));
        Self { walk: Walk::new(context, lineage, steps, unstored), record, run }
    }

    /// Returns the record of the run's thread.
    pub(crate) fn record(&self) -> &ThreadRecord {
        &self.record
    }

    /// Executes the run until it ends, is interrupted, fails or is cancelled, and persists the
    /// result.
    pub(crate) async fn drive(mut self) -> Left {
        let end = self.walk.go().await;
        if matches!(end, End::Drained) && self.context().halt.is_cancelled() {
            self.context().log.store_held().await;
            // Recovery works with or without these events, so an error is ignored.
            let _ = self.context().log.barrier().await;
            return Left::Still;
        }
        // Boxed, because the future of a waiting run would otherwise include the one of its end.
        Box::pin(self.close(end)).await
    }

    fn context(&self) -> &RunContext {
        &self.walk.context
    }

    /// Logs the end of the run and waits until it is durable.
    async fn close(mut self, end: End) -> Left {
        let now = self.context().ports.clock.now_ms();
        let mut commit = Commit::default();
        let drained = matches!(end, End::Drained);
        let is_cancelled = matches!(end, End::Cancelled);
        // A run that is reopened persists its checkpoint too, so that no later checkpoint has the
        // same number.
        self.context().log.store_held().await;
        let (status, thread_status, failure) = match end {
            End::Completed => (RunStatus::Completed, ThreadStatus::Idle, None),
            End::Cancelled => (RunStatus::Cancelled, ThreadStatus::Idle, None),
            End::Interrupted | End::Drained => {
                (RunStatus::Interrupted, ThreadStatus::Interrupted, None)
            }
            End::Failed(failure) => {
                let status = Box::pin(self.reopen(&mut commit, &failure)).await;
                (RunStatus::Failed, status, Some(failure))
            }
            End::ToParent(_) => (RunStatus::Failed, ThreadStatus::Error, Some(no_parent())),
            End::LogLost(failure) => return self.lost(failure),
        };
        // Only interrupts expire. A drained run waits without a time limit.
        if thread_status == ThreadStatus::Interrupted && !drained {
            let ttl = self.context().pack.graph.interrupt_ttl_ms();
            self.record.expires_ms = ttl.map(|ttl| now.saturating_add_unsigned(ttl));
        }
        self.record.status = thread_status;
        self.record.updated_ms = now;
        self.run.status = status;
        self.run.failure.clone_from(&failure);
        self.run.ended_ms = Some(now);
        let principal = is_cancelled.then(|| self.context().cancel.principal()).flatten();
        let ended = RunEnded { status, failure: failure.clone(), drained, principal };
        let log = self.context().log.clone();
        log.push(EventKind::RunEnded(ended));
        commit.record = Some(self.record.clone());
        commit.run = Some(self.run.clone());
        log.commit(commit).await;
        match log.barrier().await {
            Ok(()) => {
                let note = self.note(status, failure.clone());
                self.context().ports.observer.run_ended(note);
                Left::Ended(self.ended(status, failure).await)
            }
            Err(error) => self.lost(error.into()),
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
            last_seq: self.context().log.last_seq(),
            status,
            failure,
        }
    }

    async fn ended(self, status: RunStatus, failure: Option<Failure>) -> EndedRun {
        let outcome = match status {
            RunStatus::Completed | RunStatus::Pending | RunStatus::Running => RunOutcome::Completed,
            RunStatus::Cancelled => RunOutcome::Cancelled,
            RunStatus::Failed => RunOutcome::Failed {
                failure: failure.unwrap_or_else(|| Failure::internal("the run failed")),
            },
            RunStatus::Interrupted => RunOutcome::Interrupted {
                interrupts: self.read_questions().await,
                next: self.next_nodes(),
            },
        };
        EndedRun { run: self.run_ref(), outcome, state: self.walk.lineage().checkpoint.state() }
    }

    /// Reads the pending interrupts from the log, which is durable at this point.
    async fn read_questions(&self) -> Vec<OpenQuestion> {
        let store = self.context().ports.store.as_ref();
        let Ok(Some(head)) = store.thread(&self.record.id).await else { return Vec::new() };
        let Ok(Some(tuple)) = view::current(store, &head).await else { return Vec::new() };
        let (lineage, nest) = view::open(tuple);
        all_questions(&lineage, &nest, self.record.expires_ms)
    }

    fn next_nodes(&self) -> Vec<NodeName> {
        let next = &self.walk.lineage().checkpoint.meta.next;
        next.iter().map(|trigger| trigger.node.clone()).collect()
    }

    fn run_ref(&self) -> RunRef {
        RunRef { thread: self.record.id.clone(), run: self.run.id.clone() }
    }

    /// Ends the run locally after the store refused a write. Recovery continues the run once the
    /// store is reachable. With a shared store another host may already have continued it.
    fn lost(&self, failure: Failure) -> Left {
        tracing::error!(
            thread = %self.record.id, run = %self.run.id, %failure,
            "cannot write the event log; the run stops until recovery"
        );
        Left::Lost(failure)
    }
}

/// Returns the failure for an outcome for a parent graph in the root graph. It only occurs if a
/// thread continues with a graph that was a subgraph when the task finished.
fn no_parent() -> Failure {
    Failure::internal("a task of the root graph returned an outcome for a parent graph")
}
