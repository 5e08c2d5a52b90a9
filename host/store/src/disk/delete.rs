//! Commits that delete or replace a thread. Each updates only the head and the records, and orphans
//! the old thread number, whose frames are reclaimed later.

use redb::Durability;
use wattle_graph::id::ThreadId;
use wattle_run::ports::store::{RunRecord, StoreError, ThreadRecord};

use crate::disk::head::Head;
use crate::disk::remains::Cleared;
use crate::disk::snapshot::Snapshot;
use crate::disk::stage::Stage;
use crate::disk::writer::Writer;
use crate::error::redb_error;
use crate::file::guarded;
use crate::lock::lock;
use crate::validate;

const REWRITE: &str = "rewrite a thread";

/// The beginning of a rewrite.
pub(crate) struct Begun {
    pub(crate) snapshot: Snapshot,
    pub(crate) head: Head,
    /// First log entry that is reserved for the rewrite.
    pub(crate) entry: u64,
    /// Thread number of the rewritten thread.
    pub(crate) number: u64,
}

/// The expected state of a thread that is rewritten. Every batch changes its head, its record or
/// its runs.
pub(crate) struct Before {
    pub(crate) head: Head,
    pub(crate) record: ThreadRecord,
    pub(crate) runs: Vec<RunRecord>,
}

impl Before {
    /// Returns whether the thread is still in this state.
    fn stands(&self, thread: &ThreadId, snapshot: &Snapshot) -> Result<bool, StoreError> {
        Ok(snapshot.head(thread)?.as_ref() == Some(&self.head)
            && snapshot.record(thread)?.0 == self.record
            && snapshot.runs(thread)? == self.runs)
    }
}

/// The end of a rewrite: what replaces a thread.
pub(crate) struct Anew {
    pub(crate) thread: ThreadId,
    /// Expected state of the thread; `None` if it must not exist.
    pub(crate) before: Option<Before>,
    /// The rest of the write set. Without a head, the thread is deleted.
    pub(crate) stage: Stage,
    /// The thread that the rewrite reads, which must not be leased.
    pub(crate) read_thread: ThreadId,
    /// Thread number that is reserved for the rewritten thread.
    pub(crate) number: u64,
    /// Whether a part of the rewritten thread is already in the file.
    pub(crate) is_written: bool,
}

/// The outcome of a replacement.
pub(crate) enum Replaced {
    /// The thread was replaced. The receiver resolves when the old frames are reclaimed.
    Done(Option<Cleared>),
    /// A batch was appended to the old thread in the meantime.
    Changed,
}

impl Writer {
    /// See [`Store::delete_thread`](wattle_run::ports::Store::delete_thread). Returns a receiver
    /// that resolves when the frames are reclaimed. A missing thread is not an error.
    pub(crate) fn delete(&mut self, thread: &ThreadId) -> Result<Option<Cleared>, StoreError> {
        let result = self.delete_now(thread);
        self.intake.forget(thread);
        self.watches.remove(thread);
        result
    }

    fn delete_now(&mut self, thread: &ThreadId) -> Result<Option<Cleared>, StoreError> {
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
        let readmitted = readmitted(&snapshot, thread)?;
        drop(snapshot);
        let gone = (vec![thread.clone()], runs);
        let mut stage = Stage { gone, readmitted, ..Stage::default() };
        stage.remains.insert(head.number, Some(head.frame));
        self.commit(&stage)?;
        Ok(Some(self.remains.add(head.number)))
    }

    /// Deletes a thread whose head cannot be read, or that was set aside. Its frames cannot be
    /// found, so they are kept until the file is rebuilt.
    fn delete_damaged(
        &mut self,
        thread: &ThreadId,
        snapshot: &Snapshot,
    ) -> Result<Option<Cleared>, StoreError> {
        let gone = (vec![thread.clone()], snapshot.runs_that_name(thread)?);
        let readmitted = readmitted(snapshot, thread)?;
        self.commit(&Stage { gone, readmitted, ..Stage::default() })?;
        Ok(None)
    }

    /// Begins to rewrite or copy a thread; `None` if it does not exist.
    pub(crate) fn begin(&mut self, thread: &ThreadId) -> Result<Option<Begun>, StoreError> {
        self.leases.with(|leases| leases.ensure_unleased(thread))?;
        let snapshot = Snapshot::newest(&self.file)?;
        let Some(head) = snapshot.head(thread)? else {
            return Ok(None);
        };
        let (entry, number) = self.intake.reserve();
        Ok(Some(Begun { snapshot, head, entry, number }))
    }

    /// Commits a part of a rewrite.
    pub(crate) fn write_part(&mut self, mut stage: Stage) -> Result<(), StoreError> {
        stage.threads = Some(self.intake.threads());
        self.commit(&stage)
    }

    /// Replaces the old thread by the rewritten one, if the old thread is still in the expected
    /// state. Otherwise abandons the rewrite.
    pub(crate) fn replace(&mut self, anew: Anew) -> Result<Replaced, StoreError> {
        let (number, is_written) = (anew.number, anew.is_written);
        let replaced = self.replace_now(anew);
        if !matches!(replaced, Ok(Replaced::Done(_))) {
            self.give_up(number, is_written);
        }
        replaced
    }

    /// Orphans the thread number of an abandoned rewrite.
    pub(crate) fn give_up(&mut self, number: u64, is_written: bool) {
        if is_written {
            drop(self.remains.add(number));
        }
    }

    fn replace_now(&mut self, anew: Anew) -> Result<Replaced, StoreError> {
        let Anew { thread, before, mut stage, read_thread, number, is_written } = anew;
        self.leases.with(|leases| leases.ensure_unleased(&read_thread))?;
        let snapshot = Snapshot::newest(&self.file)?;
        match &before {
            None if snapshot.head(&thread)?.is_some() => {
                return Err(validate::thread_exists_error(&thread));
            }
            None => refuse_known(&snapshot, &thread, &stage)?,
            Some(before) if !before.stands(&thread, &snapshot)? => return Ok(Replaced::Changed),
            Some(_) => {}
        }
        drop(snapshot);
        let before = before.map(|before| before.head);
        stage.threads = Some(self.intake.threads());
        if is_written {
            stage.remains.insert(number, None);
        }
        if let Some(before) = &before {
            stage.remains.insert(before.number, Some(before.frame));
        }
        if stage.heads.is_empty() {
            stage.gone.0.push(thread.clone());
        }
        self.commit(&stage)?;
        self.intake.forget(&thread);
        match stage.heads.get(&thread) {
            Some(head) => self.watches.publish(&thread, head.last_seq),
            None => self.watches.remove(&thread),
        }
        Ok(Replaced::Done(before.map(|before| self.remains.add(before.number))))
    }

    /// Commits a write set. After an error, the content of the file is unknown.
    pub(super) fn commit(&mut self, stage: &Stage) -> Result<(), StoreError> {
        self.heal()?;
        let written = guarded(REWRITE, || self.write_durably(stage));
        written.inspect_err(|error| self.start_over(error))?;
        let mut pending = lock(&self.pending);
        for run in &stage.gone.1 {
            pending.remove(run);
        }
        Ok(())
    }

    fn write_durably(&self, stage: &Stage) -> Result<(), StoreError> {
        let handle = self.file.handle();
        let mut transaction = handle.writable()?.begin_write().map_err(redb_error(REWRITE))?;
        transaction.set_durability(Durability::Immediate).map_err(redb_error(REWRITE))?;
        stage.write(&transaction)?;
        transaction.commit().map_err(redb_error(REWRITE))
    }
}

/// Returns the thread if it was set aside: its deletion makes its id usable again.
fn readmitted(snapshot: &Snapshot, thread: &ThreadId) -> Result<Vec<ThreadId>, StoreError> {
    let is_aside = snapshot.aside(thread)?.is_some();
    Ok(if is_aside { vec![thread.clone()] } else { Vec::new() })
}

/// Checks that no other thread has one of the runs.
fn refuse_known(snapshot: &Snapshot, to: &ThreadId, stage: &Stage) -> Result<(), StoreError> {
    for run in stage.runs.keys() {
        if snapshot.run(run)?.is_some() {
            return Err(validate::run_exists_error(to, run));
        }
    }
    Ok(())
}
