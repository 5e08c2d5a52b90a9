//! Orphaned thread numbers: reclaims the frames of deleted and replaced threads and of abandoned
//! rewrites, a bounded number at a time between the commits of batches.
//!
//! The table `remains` lists the orphaned thread numbers. Before each part is deleted, the number
//! is looked up in the table, because the content of the file is unknown after a failed commit.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use redb::{
    Durability, Error, Key, ReadOnlyTable, ReadTransaction, ReadableTable, Table, TableError,
    Value, WriteTransaction,
};
use tokio::sync::oneshot;
use wattle_run::ports::store::StoreError;

use crate::disk::chain::walk_frames;
use crate::disk::snapshot::Snapshot;
use crate::disk::table::{LOG, MARKS, MENTIONS, ORPHANS, THREAD_RUNS};
use crate::error::redb_error;
use crate::file::guarded;
use crate::file::handle::SharedFile;

/// Maximum number of entries of a table that one commit deletes. The commit takes some
/// milliseconds, during which batches wait.
const MAX_ENTRIES: usize = 512;

/// Delay after a failed attempt to reclaim. Further attempts may fail too, and batches wait for
/// each of them.
const RETRY_DELAY: Duration = Duration::from_secs(30);

const OP_RECLAIM: &str = "reclaim the space of a deleted thread";

/// Resolves when an orphaned thread number is reclaimed.
pub(crate) type Reclaimed = oneshot::Receiver<Result<(), StoreError>>;

/// The sender of a [`Reclaimed`]; `None` if no caller waits.
type Waiter = Option<oneshot::Sender<Result<(), StoreError>>>;

/// The orphaned thread numbers.
#[derive(Debug, Default)]
pub(crate) struct Orphans {
    /// Thread numbers, each with the caller that waits until it is reclaimed.
    waiters: BTreeMap<u64, Waiter>,
    /// Time of the next attempt, after an attempt that failed.
    next_attempt: Option<Instant>,
}

impl Orphans {
    /// Reads the thread numbers that an earlier process left in the table.
    pub(crate) fn read(file: &SharedFile) -> Result<Self, StoreError> {
        let transaction = file.handle().begin_read().map_err(redb_error(OP_RECLAIM))?;
        let Some(table) = open_table(&transaction)? else { return Ok(Self::default()) };
        let mut waiters = BTreeMap::new();
        for entry in table.iter().map_err(redb_error(OP_RECLAIM))? {
            let (number, _) = entry.map_err(redb_error(OP_RECLAIM))?;
            waiters.insert(number.value(), None);
        }
        Ok(Self { waiters, next_attempt: None })
    }

    /// Adds a thread number that is already in the table.
    pub(crate) fn add(&mut self, number: u64) -> Reclaimed {
        let (waiter, reclaimed) = oneshot::channel();
        self.waiters.insert(number, Some(waiter));
        // A commit has succeeded, so the next attempt is due immediately.
        self.next_attempt = None;
        reclaimed
    }

    /// Returns whether no thread number is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiters.is_empty()
    }

    /// Returns whether a thread number is left and an attempt is due.
    pub(crate) fn is_due(&self) -> bool {
        let is_attempt_due = || self.next_attempt.is_none_or(|at| Instant::now() >= at);
        !self.waiters.is_empty() && is_attempt_due()
    }

    /// Reclaims a part of a thread number, if there is any. After a failure, all waiting callers
    /// get the error, and another attempt follows later. A thread number with damaged frames is not
    /// tried again before the next start.
    pub(crate) fn reclaim_some(&mut self, file: &SharedFile) -> Result<(), StoreError> {
        let Some(&number) = self.waiters.keys().next() else { return Ok(()) };
        let error = match guarded(OP_RECLAIM, || reclaim(file, number)) {
            Ok(true) => return Ok(()),
            Ok(false) => {
                complete(self.waiters.remove(&number).flatten(), Ok(()));
                return Ok(());
            }
            Err(error) => error,
        };
        tracing::error!(%error, "space of deleted threads is not reclaimed");
        if let StoreError::Corrupt { .. } = error {
            complete(self.waiters.remove(&number).flatten(), Err(error.clone()));
        } else {
            self.next_attempt = Some(Instant::now() + RETRY_DELAY);
            self.fail_waiters(&error);
        }
        Err(error)
    }

    /// Sends an error to all waiting callers.
    pub(crate) fn fail_waiters(&mut self, error: &StoreError) {
        for waiter in self.waiters.values_mut() {
            complete(waiter.take(), Err(error.clone()));
        }
    }
}

fn complete(waiter: Waiter, result: Result<(), StoreError>) {
    if let Some(waiter) = waiter {
        // The caller may have been dropped.
        let _ = waiter.send(result);
    }
}

/// Opens the table; `None` for an older file in which no thread was deleted.
fn open_table(
    transaction: &ReadTransaction,
) -> Result<Option<ReadOnlyTable<u64, u64>>, StoreError> {
    match transaction.open_table(ORPHANS) {
        Ok(table) => Ok(Some(table)),
        Err(TableError::TableDoesNotExist(_)) => Ok(None),
        Err(error) => Err(redb_error(OP_RECLAIM)(error)),
    }
}

/// Returns the newest frame of an orphaned thread number, 0 if only rows of other tables are left;
/// `None` if nothing is left.
fn newest_frame(snapshot: &Snapshot, number: u64) -> Result<Option<u64>, StoreError> {
    let Some(table) = open_table(&snapshot.transaction)? else { return Ok(None) };
    let frame = table.get(number).map_err(redb_error(OP_RECLAIM))?;
    Ok(frame.map(|frame| frame.value()))
}

/// Reclaims a part of a thread number. Returns whether more is left.
fn reclaim(file: &SharedFile, number: u64) -> Result<bool, StoreError> {
    let snapshot = Snapshot::newest(file)?;
    let Some(frame) = newest_frame(&snapshot, number)? else { return Ok(false) };
    let (mut entries, mut left) = (Vec::new(), 0);
    for step in walk_frames(&snapshot, frame) {
        let (number, header) = step?;
        entries.extend(number..number + u64::from(header.chunks));
        left = header.previous;
        if entries.len() >= MAX_ENTRIES {
            break;
        }
    }
    drop(snapshot);
    let handle = file.handle();
    let mut transaction = handle.writable()?.begin_write().map_err(redb_error(OP_RECLAIM))?;
    transaction.set_durability(Durability::Immediate).map_err(redb_error(OP_RECLAIM))?;
    let is_left =
        delete_part(&transaction, number, &entries, left).map_err(redb_error(OP_RECLAIM))?;
    transaction.commit().map_err(redb_error(OP_RECLAIM))?;
    Ok(is_left)
}

/// Deletes entries of the log, and after the last entry of the thread number, rows of other tables.
/// Returns whether more is left.
fn delete_part(
    transaction: &WriteTransaction,
    number: u64,
    entries: &[u64],
    left: u64,
) -> Result<bool, Error> {
    let mut log = transaction.open_table(LOG)?;
    for entry in entries.iter().rev() {
        log.remove(entry)?;
    }
    let mut orphans = transaction.open_table(ORPHANS)?;
    let is_reclaimed =
        left == 0 && entries.len() < MAX_ENTRIES && delete_index_rows(transaction, number)?;
    if is_reclaimed {
        orphans.remove(number)?;
        return Ok(false);
    }
    orphans.insert(number, left)?;
    Ok(true)
}

/// Deletes some of the rows that have a thread number in their keys. Returns whether these were
/// all.
fn delete_index_rows(transaction: &WriteTransaction, number: u64) -> Result<bool, Error> {
    let pairs = (number, 0)..=(number, u64::MAX);
    let digests = (number, [0; 32])..=(number, [u8::MAX; 32]);
    Ok(delete_rows(&mut transaction.open_table(THREAD_RUNS)?, pairs.clone())?
        && delete_rows(&mut transaction.open_table(MARKS)?, pairs)?
        && delete_rows(&mut transaction.open_table(MENTIONS)?, digests)?)
}

/// Deletes some rows of a range. Returns whether these were all.
fn delete_rows<K: Key + 'static, V: Value + 'static>(
    table: &mut Table<'_, K, V>,
    range: RangeInclusive<K::SelfType<'_>>,
) -> Result<bool, Error> {
    let mut deleted = 0;
    for entry in table.extract_from_if(range, |_, _| true)?.take(MAX_ENTRIES) {
        entry?;
        deleted += 1;
    }
    Ok(deleted < MAX_ENTRIES)
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use crate::disk::create::FILE;
    use crate::disk::open::{self, OpenedFile};

    #[test]
    fn failed_reclaiming_is_repeated_after_the_file_is_reopened() {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("wattle.redb");
        let OpenedFile { database, .. } = open::open(&path, &FILE, Duration::ZERO).unwrap();
        let transaction = database.begin_write().unwrap();
        transaction.open_table(ORPHANS).unwrap().insert(7, 0).unwrap();
        transaction.commit().unwrap();
        let file = SharedFile::new(path, FILE, database);
        let mut orphans = Orphans::read(&file).unwrap();
        let mut reclaimed = orphans.add(7);
        file.read_only().unwrap();
        assert!(matches!(orphans.reclaim_some(&file), Err(StoreError::Backend { .. })));
        assert!(
            reclaimed.try_recv().unwrap().is_err(),
            "the caller gets the error of the full disk"
        );
        assert!(!orphans.is_empty() && !orphans.is_due());
        file.reopen().unwrap();
        orphans.reclaim_some(&file).unwrap();
        assert!(orphans.is_empty());
        assert!(Orphans::read(&file).unwrap().is_empty());
    }
}
