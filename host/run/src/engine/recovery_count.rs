//! Counts recoveries without progress.
//!
//! A run can end the process of its host, for example by memory that no limit counts or by a fault
//! in native code. Such a run would end each process that recovers it. So the record of a run has
//! the number of its recoveries since its last progress, and the recovery with the number
//! [`RECOVERIES_WITHOUT_PROGRESS`] sets the thread aside instead. The other runs of the process
//! count as well, because the host does not know which run ended the process.
//!
//! # What counts
//!
//! * A recovery counts if the host that executed the run has ended or has lost the lease of the
//!   thread: a crash of this host, or of a host that shares the store.
//! * A recovery does not count if that host has handed the run over, because it was shutting down
//!   or had too many runs. The host then marks the record of the run before it releases the lease.
//!   The mark is one write for each run that is handed over.
//! * A recovery does not count if the run stopped because this process could not write its log.
//!   Hosts that share a store recover each other's runs and do not know the reason, so there such a
//!   recovery counts.
//! * A recovery that a client requests sets the number to zero.
//!
//! Progress is a result of a host call, a finished task or a checkpoint in the log since the last
//! start of the run. A read of a stream is no progress, because a recovered run starts the stream
//! again and logs its reads again. Every recovery logs a start, so the record has no position in
//! the log.
//!
//! # When the number is durable
//!
//! The first batch of a recovered run contains its record, and the run waits until this batch is
//! durable. So the number needs no write of its own, and supersteps do not write it. A recovery
//! that sets the thread aside writes nothing: the next recovery reads the same record and the same
//! log, on any host, and sets the thread aside again.
//!
//! # What is not counted
//!
//! A crash before this batch is durable leaves no trace, for example if the process has too little
//! memory for the state of the thread. The next recovery reads the same record and the same number,
//! so nothing ends a loop of such crashes. To count them, each recovery would write its record
//! before it reads the thread: one more wait for the disk for each orphaned run, after every start.
//! Limits bound what a recovery reads instead: the state of each graph, the events in which tokens
//! are counted, the results that are reused, and the number of large threads that are read at once.

use serde_json::json;
use wattle_graph::event::{Event, EventKind, RunStatus};
use wattle_graph::failure::{Failure, code};

use super::{Engine, ThreadClaim};
use crate::hostcall::stream::STREAM_READ;
use crate::log::{Commit, ThreadLog};
use crate::ports::store::{RecoveryCount, RunRecord, StoreError};

/// Number of the recovery without progress that sets a thread aside. A crash can interrupt a run
/// that did not cause it, and a second crash soon after the first can do so again. After a third
/// crash without progress, the run is a likely cause, and each further recovery would interrupt all
/// other runs of the host.
const RECOVERIES_WITHOUT_PROGRESS: u32 = 3;

/// Why a run is recovered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecoveryCause {
    /// The host has found the run.
    Orphaned,
    /// A client has requested the recovery.
    Requested,
}

impl Engine {
    /// Returns the number of recoveries that the recovery of a run writes. `events` are the events
    /// since the current checkpoint.
    ///
    /// # Errors
    ///
    /// `limit` if this is the recovery with the number [`RECOVERIES_WITHOUT_PROGRESS`].
    pub(super) fn count_recovery(
        &self,
        run: &RunRecord,
        events: &[Event],
        cause: RecoveryCause,
    ) -> Result<RecoveryCount, Failure> {
        if cause == RecoveryCause::Requested {
            return Ok(RecoveryCount::default());
        }
        let has_ended = !self.0.recovery.lost_logs().contains(&run.thread);
        let count = next_count(&run.recovery_count, has_ended, events);
        if count.without_progress < RECOVERIES_WITHOUT_PROGRESS {
            return Ok(count);
        }
        Err(too_many_recoveries(run))
    }
}

impl ThreadClaim {
    /// Marks the run of the claim as handed over. The run is not executed any more, and `log` is
    /// its log. Without the mark, the next recovery counts, so an error is logged and ignored.
    pub(super) async fn mark_handed_over(&self, log: &ThreadLog) {
        if let Err(error) = self.try_mark_handed_over(log).await {
            tracing::warn!(
                thread = %self.thread, run = %self.run, %error,
                "cannot record the handover of a run; its next recovery counts"
            );
        }
    }

    async fn try_mark_handed_over(&self, log: &ThreadLog) -> Result<(), StoreError> {
        // The batches of the run, of which the last one may end it, come before the read.
        log.wait_durable().await?;
        let run = self.engine.0.ports.store.run(&self.run).await?;
        let Some(mut run) = run.filter(|run| run.status == RunStatus::Running) else {
            return Ok(());
        };
        run.recovery_count.is_handed_over = true;
        let commit = Commit { run: Some(run), ..Commit::default() };
        log.commit_with_ticket(commit).await.await
    }
}

/// Returns the number of recoveries after the next one. `has_ended` is false if the process that
/// executed the run is this one.
fn next_count(before: &RecoveryCount, has_ended: bool, events: &[Event]) -> RecoveryCount {
    let earlier = if has_progress(events) { 0 } else { before.without_progress };
    let counts = has_ended && !before.is_handed_over;
    RecoveryCount {
        without_progress: earlier.saturating_add(u32::from(counts)),
        is_handed_over: false,
    }
}

/// Returns true if a run has made progress since its last start. `events` are the events since the
/// current checkpoint. If none of them starts a run, the checkpoint is newer than the last start.
fn has_progress(events: &[Event]) -> bool {
    events.iter().fold(true, |has_progress, event| match &event.kind {
        EventKind::RunStarted(_) => false,
        EventKind::Called(called) if called.function == STREAM_READ => has_progress,
        EventKind::Called(_) | EventKind::TaskFinished(_) | EventKind::Checkpointed(_) => true,
        _ => has_progress,
    })
}

fn too_many_recoveries(run: &RunRecord) -> Failure {
    let RunRecord { id, thread, .. } = run;
    let text = format!(
        "run `{id}` of thread `{thread}` was active when its host ended, \
         {RECOVERIES_WITHOUT_PROGRESS} times without progress between them, and may be the cause: \
         find out why the hosts ended, and then execute the run again with \
         `wattle thread retry {thread}`"
    );
    let details = json!({
        "limit": "recoveries_without_progress", "allowed": RECOVERIES_WITHOUT_PROGRESS,
        "thread_id": thread, "run_id": id,
    });
    Failure::new(code::LIMIT, text).with_details(details)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn event(mut kind: Value) -> Event {
        let fields = json!({ "seq": 1, "at_ms": 0, "run": "r" });
        let kind = kind.as_object_mut().unwrap();
        kind.extend(fields.as_object().unwrap().clone());
        serde_json::from_value(json!(kind)).unwrap()
    }

    fn started(reason: &str) -> Event {
        let digest = "0".repeat(64);
        event(json!({ "type": "run_started", "graph": "g", "digest": digest, "reason": reason }))
    }

    fn task_started() -> Event {
        event(json!({ "type": "task_started", "task": "t", "node": "n", "step": 0, "attempt": 1 }))
    }

    fn called(function: &str) -> Event {
        event(json!({
            "type": "called", "task": "t", "node": "n", "call": 0, "batch": 0,
            "function": function, "digest": "0".repeat(64), "request": {},
            "result": { "Ok": {} }, "started_ms": 0, "duration_us": 1,
        }))
    }

    fn finished() -> Event {
        event(json!({
            "type": "task_finished", "task": "t", "node": "n", "base": 1, "writes": [],
            "duration_us": 1,
        }))
    }

    fn checkpointed() -> Event {
        event(json!({
            "type": "checkpointed", "checkpoint": 2, "step": 1, "source": "loop", "changed": [],
            "next": [],
        }))
    }

    fn count(without_progress: u32, is_handed_over: bool) -> RecoveryCount {
        RecoveryCount { without_progress, is_handed_over }
    }

    #[test]
    fn recoveries_without_progress_are_counted() {
        let mut events = vec![started("input"), task_started()];
        let mut stored = RecoveryCount::default();
        for number in 1..=RECOVERIES_WITHOUT_PROGRESS {
            stored = next_count(&stored, true, &events);
            assert_eq!(stored, count(number, false));
            events.extend([started("recovery"), task_started()]);
        }
    }

    #[test]
    fn progress_since_the_last_start_begins_the_count_again() {
        for progress in [called("llm.complete"), finished(), checkpointed()] {
            let with = [started("recovery"), progress.clone(), task_started()];
            assert_eq!(next_count(&count(2, false), true, &with), count(1, false), "{progress:?}");
            let before = [progress.clone(), started("recovery"), task_started()];
            let counted = next_count(&count(2, false), true, &before);
            assert_eq!(counted, count(3, false), "{progress:?}");
        }
        // The current checkpoint is newer than the last start.
        assert_eq!(next_count(&count(2, false), true, &[task_started()]), count(1, false));
    }

    /// After each recovery, the stream starts again.
    #[test]
    fn reads_of_a_stream_are_no_progress() {
        let events = [started("recovery"), task_started(), called(STREAM_READ)];
        assert_eq!(next_count(&count(2, false), true, &events), count(3, false));
    }

    #[test]
    fn recoveries_after_a_handover_or_a_lost_log_do_not_count() {
        let events = [started("recovery"), task_started()];
        assert_eq!(next_count(&count(2, true), true, &events), count(2, false));
        assert_eq!(next_count(&count(2, false), false, &events), count(2, false));
    }

    #[test]
    fn the_record_of_an_older_host_has_no_recoveries() {
        let old = json!({
            "id": "r", "thread": "t", "status": "running", "failure": null, "started_ms": 1,
            "ended_ms": null,
        });
        let mut run: RunRecord = serde_json::from_value(old).unwrap();
        assert_eq!(run.recovery_count, RecoveryCount::default());
        let written = serde_json::to_value(&run).unwrap();
        assert_eq!(written.get("recovery_count"), None);
        run.recovery_count = count(2, true);
        let written = serde_json::to_value(&run).unwrap();
        assert_eq!(serde_json::from_value::<RunRecord>(written).unwrap(), run);
    }
}
