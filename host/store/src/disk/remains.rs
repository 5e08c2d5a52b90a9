//! Orphaned thread numbers: reclaims the frames of deleted and replaced threads and of abandoned
//! rewrites, a bounded number at a time between the commits of batches.
//!
//! The table `remains` lists them. Only the table counts: after a failed commit, the content of the
//! file is unknown.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use redb::{
    Durability, Error, Key, ReadOnlyTable, ReadTransaction, ReadableTable, Table, TableError,
    Value, WriteTransaction,
};
use tokio::sync::oneshot;
use wattle_run::ports::store::{CompactionReport, StoreError};

use crate::disk::chain::walk_frames;
use crate::disk::snapshot::Snapshot;
use crate::disk::table::{LOG, MARKS, MENTIONS, ORPHANS, THREAD_RUNS};
use crate::disk::writer::Writer;
use crate::error::redb_error;
use crate::file::guarded;
use crate::file::handle::SharedFile;

/// Number of entries of a table that one commit deletes. Such a commit takes some milliseconds, for
/// which batches wait.
const PART: usize = 512;

/// Delay after a failed attempt to reclaim. Further attempts may fail too, and batches wait for
/// each of them.
const PAUSE: Duration = Duration::from_secs(30);

const DELETE: &str = "reclaim the space of a deleted thread";

/// Resolves when an orphaned thread number is reclaimed.
pub(crate) type Cleared = oneshot::Receiver<Result<(), StoreError>>;

/// The sender of a [`Cleared`]; `None` if no caller waits.
type Waiting = Option<oneshot::Sender<Result<(), StoreError>>>;

/// The orphaned thread numbers.
#[derive(Debug, Default)]
pub(crate) struct Remains {
    /// Thread numbers, each with the caller that waits until it is reclaimed.
    left: BTreeMap<u64, Waiting>,
    /// Time of the next attempt, after one that failed.
    next_attempt: Option<Instant>,
}

impl Remains {
    /// Reads the thread numbers that an earlier process left.
    pub(crate) fn read(file: &SharedFile) -> Result<Self, StoreError> {
        let transaction = file.handle().begin_read().map_err(redb_error(DELETE))?;
        let Some(table) = notes(&transaction)? else { return Ok(Self::default()) };
        let mut left = BTreeMap::new();
        for entry in table.iter().map_err(redb_error(DELETE))? {
            let (number, _) = entry.map_err(redb_error(DELETE))?;
            left.insert(number.value(), None);
        }
        Ok(Self { left, next_attempt: None })
    }

    /// Adds a thread number that is already in the table.
    pub(crate) fn add(&mut self, number: u64) -> Cleared {
        let (waiting, cleared) = oneshot::channel();
        self.left.insert(number, Some(waiting));
        // The file has accepted a commit.
        self.next_attempt = None;
        cleared
    }

    /// Returns whether no thread number is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    /// Returns whether a thread number is left and an attempt is due.
    pub(crate) fn is_due(&self) -> bool {
        let has_rested = || self.next_attempt.is_none_or(|at| Instant::now() >= at);
        !self.left.is_empty() && has_rested()
    }

    /// Reclaims a part of a thread number, if there is any. A failure completes all waiting
    /// callers. Another attempt follows later, except for a thread with damaged frames, which is
    /// left until the next start.
    fn clear_some(&mut self, file: &SharedFile) -> Result<(), StoreError> {
        let Some(&number) = self.left.keys().next() else { return Ok(()) };
        let error = match guarded(DELETE, || clear(file, number)) {
            Ok(true) => return Ok(()),
            Ok(false) => {
                answer(self.left.remove(&number).flatten(), Ok(()));
                return Ok(());
            }
            Err(error) => error,
        };
        tracing::error!(%error, "space of deleted threads is not reclaimed");
        if let StoreError::Corrupt { .. } = error {
            answer(self.left.remove(&number).flatten(), Err(error.clone()));
        } else {
            self.next_attempt = Some(Instant::now() + PAUSE);
            self.tell(&error);
        }
        Err(error)
    }

    /// Completes all waiting callers with an error.
    pub(crate) fn tell(&mut self, error: &StoreError) {
        for waiting in self.left.values_mut() {
            answer(waiting.take(), Err(error.clone()));
        }
    }
}

fn answer(waiting: Waiting, answer: Result<(), StoreError>) {
    if let Some(waiting) = waiting {
        // The caller may have been dropped.
        let _ = waiting.send(answer);
    }
}

impl Writer {
    /// Returns whether an orphaned thread number can be reclaimed now.
    pub(crate) fn has_remains(&self) -> bool {
        self.trouble.is_none() && self.remains.is_due()
    }

    /// Reclaims a part of an orphaned thread number.
    pub(crate) fn clear_some(&mut self) -> Result<(), StoreError> {
        let cleared = self.remains.clear_some(&self.file);
        cleared.inspect_err(|error| self.start_over(error))
    }

    /// Reclaims all orphaned thread numbers that are not damaged, and compacts the file. Returns
    /// `None` if a read does not end.
    pub(crate) fn compact(&mut self) -> Result<Option<CompactionReport>, StoreError> {
        self.heal()?;
        while !self.remains.is_empty() {
            match self.clear_some() {
                Ok(()) | Err(StoreError::Corrupt { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        self.file.compact().inspect_err(|error| self.start_over(error))
    }
}

/// Opens the table; `None` for an older file in which no thread was deleted.
fn notes(transaction: &ReadTransaction) -> Result<Option<ReadOnlyTable<u64, u64>>, StoreError> {
    match transaction.open_table(ORPHANS) {
        Ok(table) => Ok(Some(table)),
        Err(TableError::TableDoesNotExist(_)) => Ok(None),
        Err(error) => Err(redb_error(DELETE)(error)),
    }
}

/// Returns the newest frame of an orphaned thread number, 0 if only rows of other tables are left;
/// `None` if nothing is left.
fn left_of(snapshot: &Snapshot, number: u64) -> Result<Option<u64>, StoreError> {
    let Some(notes) = notes(&snapshot.transaction)? else { return Ok(None) };
    let frame = notes.get(number).map_err(redb_error(DELETE))?;
    Ok(frame.map(|frame| frame.value()))
}

/// Reclaims a part of a thread number. Returns whether more is left.
fn clear(file: &SharedFile, number: u64) -> Result<bool, StoreError> {
    let snapshot = Snapshot::newest(file)?;
    let Some(frame) = left_of(&snapshot, number)? else { return Ok(false) };
    let (mut entries, mut left) = (Vec::new(), 0);
    for step in walk_frames(&snapshot, frame) {
        let (number, header) = step?;
        entries.extend(number..number + u64::from(header.chunks));
        left = header.previous;
        if entries.len() >= PART {
            break;
        }
    }
    drop(snapshot);
    let handle = file.handle();
    let mut transaction = handle.writable()?.begin_write().map_err(redb_error(DELETE))?;
    transaction.set_durability(Durability::Immediate).map_err(redb_error(DELETE))?;
    let is_left = remove(&transaction, number, &entries, left).map_err(redb_error(DELETE))?;
    transaction.commit().map_err(redb_error(DELETE))?;
    Ok(is_left)
}

/// Deletes entries of the log, and if these were the last ones, rows of other tables. Returns
/// whether more is left.
fn remove(
    transaction: &WriteTransaction,
    number: u64,
    entries: &[u64],
    left: u64,
) -> Result<bool, Error> {
    let mut log = transaction.open_table(LOG)?;
    for entry in entries.iter().rev() {
        log.remove(entry)?;
    }
    let mut remains = transaction.open_table(ORPHANS)?;
    let is_cleared = left == 0 && entries.len() < PART && index_is_cleared(transaction, number)?;
    if is_cleared {
        remains.remove(number)?;
        return Ok(false);
    }
    remains.insert(number, left)?;
    Ok(true)
}

/// Deletes some of the rows that have a thread number in their keys. Returns whether these were
/// all.
fn index_is_cleared(transaction: &WriteTransaction, number: u64) -> Result<bool, Error> {
    let pairs = (number, 0)..=(number, u64::MAX);
    let digests = (number, [0; 32])..=(number, [u8::MAX; 32]);
    Ok(take(&mut transaction.open_table(THREAD_RUNS)?, pairs.clone())?
        && take(&mut transaction.open_table(MARKS)?, pairs)?
        && take(&mut transaction.open_table(MENTIONS)?, digests)?)
}

/// Deletes some rows of a range. Returns whether these were all.
fn take<K: Key + 'static, V: Value + 'static>(
    table: &mut Table<'_, K, V>,
    range: RangeInclusive<K::SelfType<'_>>,
) -> Result<bool, Error> {
    let mut taken = 0;
    for entry in table.extract_from_if(range, |_, _| true)?.take(PART) {
        entry?;
        taken += 1;
    }
    Ok(taken < PART)
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use crate::disk::open::{self, OpenedFile};

    #[test]
    fn failed_reclaiming_is_repeated_after_the_file_is_reopened() {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("wattle.redb");
        let OpenedFile { database, .. } = open::open(&path).unwrap();
        let transaction = database.begin_write().unwrap();
        transaction.open_table(ORPHANS).unwrap().insert(7, 0).unwrap();
        transaction.commit().unwrap();
        let file = SharedFile::new(path, &open::FILE, database);
        let mut remains = Remains::read(&file).unwrap();
        let mut cleared = remains.add(7);
        file.read_only().unwrap();
        assert!(matches!(remains.clear_some(&file), Err(StoreError::Backend { .. })));
        assert!(cleared.try_recv().unwrap().is_err(), "the caller gets the error of the full disk");
        assert!(!remains.is_empty() && !remains.is_due());
        file.reopen().unwrap();
        remains.clear_some(&file).unwrap();
        assert!(remains.is_empty());
        assert!(Remains::read(&file).unwrap().is_empty());
    }
}
