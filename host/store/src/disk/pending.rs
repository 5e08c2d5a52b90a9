//! Staging of pending runs by the writer. The order of the pending runs is kept in memory. It is
//! read from the file when the file is opened.

use wattle_graph::id::{AppName, GraphName, RunId, ThreadId};
use wattle_run::ports::store::{Batch, QueueCondition, RunRecord, StoreError};

use crate::codec::Packer;
use crate::disk::commit_group::{CachedThread, CommitGroup};
use crate::disk::seal::is_new_run;
use crate::disk::write_set::{StagedRun, stored_record};
use crate::disk::writer::Writer;
use crate::error::invalid;
use crate::lock::lock;
use crate::pending::check_pending;
use crate::validate;

impl Writer {
    /// Stages a pending run, and the app and the graph that it requests. Returns the newest
    /// sequence number of its thread.
    pub(super) fn enqueue(
        &mut self,
        group: &mut CommitGroup,
        run: &RunRecord,
        requested: Option<&(AppName, GraphName)>,
    ) -> Result<u64, StoreError> {
        check_pending(run)?;
        let thread = &run.thread;
        let cached =
            self.stager.thread(group, thread)?.ok_or_else(|| validate::no_thread_error(run))?;
        if !is_new_run(group, thread, run)? {
            return Err(validate::out_of_turn_error(thread, &run.id));
        }
        let record = match requested {
            Some(requested) => requested_record(group, thread, requested)?,
            None => None,
        };
        let packed = pack(group, &cached, run)?;
        if let Some(record) = record {
            group.write_set.records.insert(thread.clone(), record);
        }
        let mut head = cached.head.clone();
        group.write_set.thread_runs.insert((head.number, head.runs), run.id.clone());
        head.runs += 1;
        let last_seq = head.last_seq;
        group.write_set.heads.insert(thread.clone(), head.clone());
        self.stager.cache(thread, CachedThread { head, ..cached });
        group.write_set.runs.insert(run.id.clone(), packed);
        let position = lock(&self.pending).push(run);
        group.write_set.pending.insert(run.id.clone(), Some(position));
        Ok(last_seq)
    }

    /// Stages that a run is no longer pending: replaces its record by `ended`, or deletes the
    /// record if `ended` is `None`. Returns the newest sequence number of its thread.
    pub(super) fn dequeue(
        &mut self,
        group: &mut CommitGroup,
        thread: &ThreadId,
        run: &RunId,
        ended: Option<&RunRecord>,
    ) -> Result<u64, StoreError> {
        let cached = self.stager.thread(group, thread)?;
        let cached = cached.filter(|_| lock(&self.pending).contains(run));
        let cached = cached.ok_or_else(|| validate::out_of_turn_error(thread, run))?;
        match ended {
            Some(ended) => {
                let packed = pack(group, &cached, ended)?;
                group.write_set.runs.insert(run.clone(), packed);
            }
            None => {
                group.delete_run(cached.head.number, run)?;
                let mut head = cached.head.clone();
                head.runs_taken += 1;
                group.write_set.heads.insert(thread.clone(), head.clone());
                self.stager.cache(thread, CachedThread { head, ..cached.clone() });
            }
        }
        lock(&self.pending).remove(run);
        group.write_set.pending.insert(run.clone(), None);
        Ok(cached.head.last_seq)
    }

    /// Checks a batch against the pending runs of its thread.
    pub(super) fn check_queue_condition(
        &self,
        group: &mut CommitGroup,
        thread: &ThreadId,
        batch: &Batch,
    ) -> Result<(), StoreError> {
        let is_known = match (&batch.run, batch.queue_condition) {
            (Some(run), QueueCondition::Free) => !is_new_run(group, thread, run)?,
            _ => false,
        };
        lock(&self.pending).check_batch(thread, batch, is_known)
    }

    /// Removes the run of a staged batch from the pending runs.
    pub(super) fn remove_started(&self, group: &mut CommitGroup, batch: &Batch) {
        if let Some(run) = &batch.run
            && lock(&self.pending).remove(&run.id)
        {
            group.write_set.pending.insert(run.id.clone(), None);
        }
    }
}

/// Returns the stored record of a thread with the app and the graph that a run requests; `None` if
/// the record does not change.
fn requested_record(
    group: &mut CommitGroup,
    thread: &ThreadId,
    requested: &(AppName, GraphName),
) -> Result<Option<Vec<u8>>, StoreError> {
    let record = group.overlay()?.record(thread)?;
    let Some(record) = record.with_requested_graph(requested) else { return Ok(None) };
    let packed = Packer::default().pack(&record).map_err(|message| invalid(thread, message))?;
    Ok(Some(stored_record(thread, &packed)))
}

fn pack(
    group: &mut CommitGroup,
    cached: &CachedThread,
    run: &RunRecord,
) -> Result<StagedRun, StoreError> {
    let mut packer = Packer::default();
    let packed = packer.pack(run).map_err(|message| invalid(&run.thread, message))?;
    let number = cached.head.number;
    group.write_set.mentions.extend(packer.mentions.into_iter().map(|digest| (number, digest)));
    Ok(StagedRun::new(run.thread.clone(), &run.id, &packed))
}
