//! Commits that delete or replace a thread. Each of these commits updates only the head and the
//! records, and orphans the old thread number, whose frames are reclaimed later.

use redb::Durability;
use wattle_graph::id::ThreadId;
use wattle_run::ports::store::{RunRecord, StoreError, ThreadRecord};

use crate::disk::head::Head;
use crate::disk::orphans::Reclaimed;
use crate::disk::snapshot::Snapshot;
use crate::disk::write_set::WriteSet;
use crate::disk::writer::Writer;
use crate::error::redb_error;
use crate::file::guarded;
use crate::lock::lock;
use crate::validate;

const OP_REWRITE: &str = "rewrite a thread";

/// The state at the beginning of a rewrite.
pub(crate) struct RewriteStart {
    pub(crate) snapshot: Snapshot,
    pub(crate) head: Head,
    /// First log entry that is reserved for the rewrite.
    pub(crate) entry: u64,
    /// Thread number of the rewritten thread.
    pub(crate) number: u64,
}

/// The expected state of a thread that is rewritten. Every batch changes the head, the record or
/// the runs of its thread.
pub(crate) struct ExpectedState {
    pub(crate) head: Head,
    pub(crate) record: ThreadRecord,
    pub(crate) runs: Vec<RunRecord>,
}

impl ExpectedState {
    /// Returns whether the thread is still in this state.
    fn still_holds(&self, thread: &ThreadId, snapshot: &Snapshot) -> Result<bool, StoreError> {
        Ok(snapshot.head(thread)?.as_ref() == Some(&self.head)
            && snapshot.record(thread)?.0 == self.record
            && snapshot.runs(thread)? == self.runs)
    }
}

/// The result of a rewrite: the thread that replaces the old thread.
pub(crate) struct Replacement {
    pub(crate) thread: ThreadId,
    /// Expected state of the thread; `None` if it must not exist.
    pub(crate) expected: Option<ExpectedState>,
    /// The last write set of the rewrite. A write set without a head deletes the thread.
    pub(crate) write_set: WriteSet,
    /// The thread that the rewrite reads, which must not be leased.
    pub(crate) read_thread: ThreadId,
    /// Thread number that is reserved for the rewritten thread.
    pub(crate) number: u64,
    /// Whether some frames of the rewritten thread are already in the file.
    pub(crate) is_written: bool,
}

/// The outcome of a replacement.
pub(crate) enum SwapOutcome {
    /// The thread was replaced. The receiver resolves when the old frames are reclaimed.
    Swapped(Option<Reclaimed>),
    /// A batch was appended to the old thread during the rewrite.
    Conflict,
}

impl Writer {
    /// See [`Store::delete_thread`](wattle_run::ports::Store::delete_thread). Returns a receiver
    /// that resolves when the frames are reclaimed. A missing thread is not an error.
    pub(crate) fn delete(&mut self, thread: &ThreadId) -> Result<Option<Reclaimed>, StoreError> {
        let result = self.delete_now(thread);
        self.stager.evict(thread);
        self.watches.remove(thread);
        result
    }

    fn delete_now(&mut self, thread: &ThreadId) -> Result<Option<Reclaimed>, StoreError> {
        let snapshot = Snapshot::newest(&self.file)?;
        let head = match snapshot.head(thread) {
            Ok(Some(head)) => head,
            Ok(None) => return Ok(None),
            Err(StoreError::Corrupt { .. }) => return self.delete_damaged(thread, &snapshot),
            Err(error) => return Err(error),
        };
        let runs = match snapshot.runs(thread) {
            Ok(runs) => runs.into_iter().map(|run| run.id).collect(),
            Err(StoreError::Corrupt { .. }) => snapshot.runs_that_name(thread)?,
            Err(error) => return Err(error),
        };
        let readmitted = if_set_aside(&snapshot, thread)?;
        drop(snapshot);
        let deleted = (vec![thread.clone()], runs);
        let mut write_set = WriteSet { deleted, readmitted, ..WriteSet::default() };
        write_set.orphans.insert(head.number, Some(head.frame));
        self.commit(&write_set)?;
        Ok(Some(self.orphans.add(head.number)))
    }

    /// Deletes a thread whose head is damaged, or that was set aside. The frames of the thread
    /// cannot be found, so they stay in the file until the file is rebuilt.
    fn delete_damaged(
        &mut self,
        thread: &ThreadId,
        snapshot: &Snapshot,
    ) -> Result<Option<Reclaimed>, StoreError> {
        let deleted = (vec![thread.clone()], snapshot.runs_that_name(thread)?);
        let readmitted = if_set_aside(snapshot, thread)?;
        self.commit(&WriteSet { deleted, readmitted, ..WriteSet::default() })?;
        Ok(None)
    }

    /// Begins to rewrite or copy a thread; `None` if it does not exist.
    pub(crate) fn begin_rewrite(
        &mut self,
        thread: &ThreadId,
    ) -> Result<Option<RewriteStart>, StoreError> {
        self.leases.with(|leases| leases.ensure_unleased(thread))?;
        let snapshot = Snapshot::newest(&self.file)?;
        let Some(head) = snapshot.head(thread)? else {
            return Ok(None);
        };
        let (entry, number) = self.stager.reserve_entries();
        Ok(Some(RewriteStart { snapshot, head, entry, number }))
    }

    /// Commits a part of the frames that a rewrite writes.
    pub(crate) fn write_part(&mut self, mut write_set: WriteSet) -> Result<(), StoreError> {
        write_set.last_thread_no = Some(self.stager.last_thread_no());
        self.commit(&write_set)
    }

    /// Replaces the old thread by the rewritten thread, if the old thread is still in the expected
    /// state. Otherwise abandons the rewrite.
    pub(crate) fn swap(&mut self, replacement: Replacement) -> Result<SwapOutcome, StoreError> {
        let (number, is_written) = (replacement.number, replacement.is_written);
        let outcome = self.swap_now(replacement);
        if !matches!(outcome, Ok(SwapOutcome::Swapped(_))) {
            self.abandon_rewrite(number, is_written);
        }
        outcome
    }

    /// Orphans the thread number of an abandoned rewrite.
    pub(crate) fn abandon_rewrite(&mut self, number: u64, is_written: bool) {
        if is_written {
            drop(self.orphans.add(number));
        }
    }

    fn swap_now(&mut self, replacement: Replacement) -> Result<SwapOutcome, StoreError> {
        let Replacement { thread, expected, mut write_set, read_thread, number, is_written } =
            replacement;
        self.leases.with(|leases| leases.ensure_unleased(&read_thread))?;
        let snapshot = Snapshot::newest(&self.file)?;
        match &expected {
            None if snapshot.head(&thread)?.is_some() => {
                return Err(validate::thread_exists_error(&thread));
            }
            None => ensure_runs_new(&snapshot, &thread, &write_set)?,
            Some(expected) if !expected.still_holds(&thread, &snapshot)? => {
                return Ok(SwapOutcome::Conflict);
            }
            Some(_) => {}
        }
        drop(snapshot);
        let old_head = expected.map(|expected| expected.head);
        write_set.last_thread_no = Some(self.stager.last_thread_no());
        if is_written {
            write_set.orphans.insert(number, None);
        }
        if let Some(head) = &old_head {
            write_set.orphans.insert(head.number, Some(head.frame));
        }
        if write_set.heads.is_empty() {
            write_set.deleted.0.push(thread.clone());
        }
        self.commit(&write_set)?;
        self.stager.evict(&thread);
        match write_set.heads.get(&thread) {
            Some(head) => self.watches.publish(&thread, head.last_seq),
            None => self.watches.remove(&thread),
        }
        Ok(SwapOutcome::Swapped(old_head.map(|head| self.orphans.add(head.number))))
    }

    /// Commits a write set. After an error, the content of the file is unknown.
    pub(super) fn commit(&mut self, write_set: &WriteSet) -> Result<(), StoreError> {
        self.reopen_if_failed()?;
        let open = self.changed_keys.begin(write_set);
        let written = guarded(OP_REWRITE, || self.write_durably(write_set));
        drop(open);
        written.inspect_err(|error| self.reset_after_failure(error))?;
        let mut pending = lock(&self.pending);
        for run in &write_set.deleted.1 {
            pending.remove(run);
        }
        Ok(())
    }

    fn write_durably(&self, write_set: &WriteSet) -> Result<(), StoreError> {
        let handle = self.file.handle();
        let mut transaction = handle.writable()?.begin_write().map_err(redb_error(OP_REWRITE))?;
        transaction.set_durability(Durability::Immediate).map_err(redb_error(OP_REWRITE))?;
        write_set.write(&transaction)?;
        transaction.commit().map_err(redb_error(OP_REWRITE))
    }
}

/// Returns the thread if it was set aside. The deletion of such a thread makes its id usable again.
fn if_set_aside(snapshot: &Snapshot, thread: &ThreadId) -> Result<Vec<ThreadId>, StoreError> {
    let is_aside = snapshot.aside(thread)?.is_some();
    Ok(if is_aside { vec![thread.clone()] } else { Vec::new() })
}

/// Checks that no other thread has one of the runs.
fn ensure_runs_new(
    snapshot: &Snapshot,
    to: &ThreadId,
    write_set: &WriteSet,
) -> Result<(), StoreError> {
    for run in write_set.runs.keys() {
        if snapshot.run(run)?.is_some() {
            return Err(validate::run_exists_error(to, run));
        }
    }
    Ok(())
}
