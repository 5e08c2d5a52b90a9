//! Ends runs that were to answer interrupts, but have no answer to a pending interrupt.
//!
//! Clients send an answer twice, or answer an interrupt that another client has answered. If stale
//! answers are ignored, such a run has nothing to do. One batch starts and ends the run, so that
//! clients that wait for the run or read its stream see its end. The run executes nothing, and the
//! state of the thread stays the same.
//!
//! A thread that was cancelled after an answer has work left, and so has a thread at a breakpoint.
//! On such a thread, the run continues like a run without an answer.

use std::sync::Arc;

use wattle_graph::checkpoint::Checkpoint;
use wattle_graph::event::{Event, EventKind, RunEnded, RunReason, RunStarted, RunStatus};
use wattle_graph::failure::Failure;

use super::request::RunRequest;
use super::{Engine, ThreadClaim};
use crate::driver::RunEnd;
use crate::hostcall::runs::{InterruptView, RunOutcome, RunRef};
use crate::log::Commit;
use crate::ports::observer::RunSummary;
use crate::ports::store::{
    RunOptions, RunRecord, ThreadFailure, ThreadHead, ThreadRecord, ThreadStatus,
};

/// Where a thread stopped.
pub(super) struct ThreadPosition {
    /// The current checkpoint.
    pub(super) checkpoint: Checkpoint,
    /// The pending interrupts.
    pub(super) interrupts: Vec<InterruptView>,
    /// True if the last run was drained at this checkpoint.
    pub(super) was_drained: bool,
}

/// Returns true if the last run that ended since a checkpoint was drained. `events` are the events
/// since the checkpoint.
pub(super) fn was_drained(events: &[Event]) -> bool {
    let ended = events.iter().rev().find_map(|event| match &event.kind {
        EventKind::RunEnded(ended) => Some(ended.drained),
        _ => None,
    });
    ended.unwrap_or_default()
}

/// Returns true if a run without an answer continues a thread without pending interrupts. A client
/// may cancel the run that has taken its answer and send the answer again, and then expects the
/// effect of the answer. At a breakpoint, a run continues unless its answers name interrupts,
/// because these interrupts were pending earlier.
pub(super) fn continues_unanswered(request: &RunRequest, thread: &ThreadRecord) -> bool {
    let has_paused = thread.status == ThreadStatus::Interrupted;
    thread.stopped || (has_paused && request.passes_breakpoint)
}

impl Engine {
    /// Starts and ends a run without answers. The run ends as the last run of the thread did: with
    /// the same interrupts, with the same failure or as cancelled. The next run therefore continues
    /// as if the run without answers did not exist.
    pub(super) async fn end_unanswered(
        &self,
        mut slot: ThreadClaim,
        head: ThreadHead,
        at: ThreadPosition,
        options: RunOptions,
    ) -> Result<RunRef, Failure> {
        self.reject_orphaned_run(&head).await?;
        let (status, outcome) = self.repeated_end(&head, &at).await?;
        let failure = match &outcome {
            RunOutcome::Failed { failure } => Some(failure.clone()),
            _ => None,
        };
        let new = self.new_run(&mut slot, &head, None);
        let run = RunRecord {
            status,
            failure: failure.clone(),
            ended_ms: Some(new.started_ms),
            last_checkpoint: None,
            options,
            first_step: Some(at.checkpoint.meta.step),
            ..new
        };
        // The status stays the same, and so does the time at which pending interrupts expire.
        let record = ThreadRecord {
            failure: failure.as_ref().map(ThreadFailure::from),
            run: Some(run.id.clone()),
            updated_ms: run.started_ms,
            ..head.record.clone()
        };
        let log = self.thread_log(&head, &slot, slot.request.principal.as_ref());
        log.push(EventKind::RunStarted(RunStarted {
            graph: record.graph.clone(),
            digest: record.version,
            reason: RunReason::Resume,
            context: record.context.clone(),
            principal: slot.request.principal.clone(),
        }));
        let drained = at.was_drained && status == RunStatus::Interrupted;
        let ended =
            RunEnded { status, failure: failure.clone(), drained, principal: None, store_us: 0 };
        log.push(EventKind::RunEnded(ended));
        log.commit(Commit {
            record: Some(record.clone()),
            run: Some(run.clone()),
            queue_condition: slot.request.take_queue_condition(),
            releases_lease: true,
            ..Commit::default()
        })
        .await;
        log.wait_durable().await.map_err(|error| self.write_failure(error))?;
        let observer = &self.0.ports.observer;
        observer.run_started(&record.app, &record.graph);
        observer.run_ended(RunSummary {
            app: record.app,
            graph: record.graph,
            thread: record.id,
            run: run.id.clone(),
            tenant: record.tenant,
            first_seq: run.first_seq,
            last_seq: log.last_seq(),
            status,
            failure,
        });
        let run = RunRef { thread: run.thread, run: run.id };
        let done = slot.done.clone();
        slot.lease_ended();
        drop(slot);
        self.0.dispatch.run_ended(&run.thread, self.now_ms());
        let end = RunEnd { run: run.clone(), outcome, checkpoint: at.checkpoint };
        done.send_replace(Some(Arc::new(end)));
        Ok(run)
    }

    /// Returns the status and the outcome of a run that leaves a thread unchanged. After a
    /// cancelled run, the run also ends as cancelled: a completed run would end the reuse of the
    /// results of the cancelled run, and a rollback of a later run would find a thread that has
    /// reached its end.
    async fn repeated_end(
        &self,
        head: &ThreadHead,
        at: &ThreadPosition,
    ) -> Result<(RunStatus, RunOutcome), Failure> {
        let last = match &head.record.run {
            Some(run) => self.0.ports.store.run(run).await?,
            None => None,
        };
        let was_cancelled = last.as_ref().is_some_and(|run| run.status == RunStatus::Cancelled);
        Ok(match head.record.status {
            ThreadStatus::Idle if was_cancelled => (RunStatus::Cancelled, RunOutcome::Cancelled),
            ThreadStatus::Idle | ThreadStatus::Running => {
                (RunStatus::Completed, RunOutcome::Completed)
            }
            ThreadStatus::Interrupted => {
                let next = &at.checkpoint.meta.next;
                let outcome = RunOutcome::Interrupted {
                    interrupts: at.interrupts.clone(),
                    next: next.iter().map(|trigger| trigger.node.clone()).collect(),
                };
                (RunStatus::Interrupted, outcome)
            }
            ThreadStatus::Error => {
                let failure = last.and_then(|run| run.failure);
                let failure = failure.unwrap_or_else(|| Failure::internal("the run failed"));
                (RunStatus::Failed, RunOutcome::Failed { failure })
            }
        })
    }
}
