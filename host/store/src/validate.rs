//! Validates batches before they are written. All stores share these checks.

use wattle_graph::checkpoint::Checkpoint;
use wattle_graph::id::{CheckpointId, RunId, ThreadId};
use wattle_run::ports::store::{
    Batch, QueueCondition, RunRecord, StoreError, ThreadRecord, ThreadStatus,
};

use crate::error::invalid;

/// Maximum length of a namespace in bytes. The file store keeps the namespace in the first page of
/// a frame.
const MAX_NAMESPACE_BYTES: usize = 2048;

/// The position of a thread in its log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogPosition {
    /// Sequence number of the newest event of the thread.
    pub(crate) last_seq: u64,
    /// Newest checkpoint of the thread, in any namespace.
    pub(crate) last_checkpoint: Option<CheckpointId>,
}

/// Makes all checks of a batch that do not need the history of the thread. `position` is `None` for
/// a thread that does not exist yet.
pub(crate) fn batch(
    thread: &ThreadId,
    position: Option<LogPosition>,
    batch: &Batch,
) -> Result<(), StoreError> {
    let last_seq = position.map_or(0, |position| position.last_seq);
    let last_checkpoint = position.and_then(|position| position.last_checkpoint);
    check_sequence(thread, last_seq, batch)?;
    if position.is_none() && batch.record.is_none() {
        return Err(invalid(thread, "the first batch of a thread must contain the thread record"));
    }
    if batch.record.as_ref().is_some_and(|record| record.id != *thread) {
        return Err(invalid(thread, "its thread record has the id of another thread"));
    }
    if batch.run.as_ref().is_some_and(|run| run.thread != *thread) {
        return Err(invalid(thread, "its run belongs to another thread"));
    }
    if batch.releases_lease && (batch.epoch.is_none() || batch.events.is_empty()) {
        return Err(invalid(thread, "it releases a lease but has no lease epoch or no events"));
    }
    let made = batch.checkpoint.as_ref().map(|checkpoint| checkpoint.meta.id);
    // Events may belong to the checkpoint of their own batch, as in a fork.
    check_checkpoint_exists(thread, "base", batch.base, made.or(last_checkpoint))?;
    check_checkpoint_exists(thread, "current", batch.current, last_checkpoint)?;
    match &batch.checkpoint {
        Some(_) if batch.current.is_some() => {
            Err(invalid(thread, "it has a new checkpoint and makes an earlier checkpoint current"))
        }
        Some(checkpoint) => check_checkpoint(thread, last_checkpoint, checkpoint),
        None => Ok(()),
    }
}

/// Returns the error for a run id that belongs to another thread.
pub(crate) fn foreign_run_error(thread: &ThreadId, run: &str, owner: &ThreadId) -> StoreError {
    invalid(thread, format!("run `{run}` belongs to thread `{owner}`"))
}

/// Returns the error for a batch that starts a run although its queue condition does not hold.
pub(crate) fn out_of_turn_error(thread: &ThreadId, run: &RunId) -> StoreError {
    StoreError::OutOfTurn { thread: thread.clone(), run: run.clone() }
}

/// Returns the error for a run record that is not pending or has no run specification.
pub(crate) fn not_pending_error(run: &RunRecord) -> StoreError {
    invalid(&run.thread, format!("run `{}` is not pending, or has no specification", run.id))
}

/// Returns the error for a pending run of a thread that does not exist.
pub(crate) fn no_thread_error(run: &RunRecord) -> StoreError {
    invalid(&run.thread, format!("run `{}` belongs to a thread that does not exist", run.id))
}

/// Checks the queue condition of a batch without a run record: such a batch cannot start a run.
pub(crate) fn check_without_run(
    thread: &ThreadId,
    condition: QueueCondition,
) -> Result<(), StoreError> {
    match condition {
        QueueCondition::Unchecked => Ok(()),
        QueueCondition::Pending | QueueCondition::Free => {
            Err(invalid(thread, "it starts a run but has no run record"))
        }
    }
}

/// Returns the error for a checkpoint that a batch refers to and that does not exist.
pub(crate) fn no_checkpoint_error(thread: &ThreadId, id: CheckpointId) -> StoreError {
    invalid(thread, format!("checkpoint {id} does not exist"))
}

/// Returns the error for a current checkpoint that belongs to a subgraph.
pub(crate) fn not_root_error(thread: &ThreadId, id: CheckpointId) -> StoreError {
    invalid(
        thread,
        format!("checkpoint {id} belongs to a subgraph and cannot be the current checkpoint"),
    )
}

/// Returns the error for a copy whose thread id is in use.
pub(crate) fn thread_exists_error(thread: &ThreadId) -> StoreError {
    invalid(thread, "a thread with this id exists already; copy to another id")
}

/// Fails if a thread that is to be copied has an active run. The run of the copy would never end.
pub(crate) fn ensure_not_running(record: &ThreadRecord) -> Result<(), StoreError> {
    match record.status {
        ThreadStatus::Running => {
            Err(invalid(&record.id, "the thread has an active run; copy the thread after that run"))
        }
        _ => Ok(()),
    }
}

/// Returns the error for a run of a copy whose id another run has.
pub(crate) fn run_exists_error(thread: &ThreadId, run: &RunId) -> StoreError {
    invalid(thread, format!("a run `{run}` exists already; runs of a copy need new ids"))
}

fn check_sequence(thread: &ThreadId, newest: u64, batch: &Batch) -> Result<(), StoreError> {
    let first = batch.events.first().map(|event| event.seq);
    let wrong_first = first.filter(|first| newest.checked_add(1) != Some(*first));
    let wrong_after = batch.after_seq.filter(|after| *after != newest);
    let found = wrong_first.or_else(|| wrong_after.map(|after| after.saturating_add(1)));
    if let Some(found) = found {
        return Err(StoreError::Conflict { thread: thread.clone(), newest, found });
    }
    for (before, after) in batch.events.iter().zip(batch.events.iter().skip(1)) {
        if before.seq.checked_add(1) != Some(after.seq) {
            let message = format!("event {} follows event {} in the batch", after.seq, before.seq);
            return Err(invalid(thread, message));
        }
    }
    Ok(())
}

fn check_checkpoint_exists(
    thread: &ThreadId,
    what: &str,
    id: Option<CheckpointId>,
    last: Option<CheckpointId>,
) -> Result<(), StoreError> {
    match id {
        Some(id) if last.is_none_or(|last| id > last) => {
            Err(invalid(thread, format!("its {what} is checkpoint {id}, which does not exist yet")))
        }
        _ => Ok(()),
    }
}

fn check_checkpoint(
    thread: &ThreadId,
    last: Option<CheckpointId>,
    checkpoint: &Checkpoint,
) -> Result<(), StoreError> {
    let meta = &checkpoint.meta;
    if last.is_some_and(|last| meta.id <= last) {
        let message = format!("checkpoint id {} is already assigned", meta.id);
        return Err(invalid(thread, message));
    }
    if meta.namespace.as_str().len() > MAX_NAMESPACE_BYTES {
        let message = format!("its namespace has more than {MAX_NAMESPACE_BYTES} bytes");
        return Err(invalid(thread, message));
    }
    check_checkpoint_exists(thread, "parent", meta.parent, last)?;
    if let Some((name, version)) = meta.versions.iter().find(|(_, version)| **version > meta.id) {
        let message = format!("version {version} of channel `{name}` is newer than the checkpoint");
        return Err(invalid(thread, message));
    }
    match checkpoint.values.keys().find(|name| !meta.versions.contains_key(*name)) {
        Some(name) => Err(invalid(thread, format!("channel `{name}` has a value, but no version"))),
        None => Ok(()),
    }
}
