//! A redb file that readers and one writer share. The writer compacts it, and reopens it after a
//! failure.

use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard, TryLockError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use redb::{Database, ReadTransaction, ReadableDatabase as _, StorageError, TransactionError};
use wattle_run::ports::store::{CompactionReport, StoreError};

use crate::error::{backend, redb_error};
use crate::file::guarded;
use crate::file::kind::FileKind;
use crate::file::look::{self, Reading};

const COMPACT: &str = "compact its file";

const REOPEN: &str = "open its file again";

/// How long an attempt to get exclusive access blocks new reads and batches: longer than almost
/// every read takes, and hardly noticeable.
const HOLD: Duration = Duration::from_millis(40);

/// Interval of the checks whether earlier reads have ended.
const PAUSE: Duration = Duration::from_millis(2);

/// Maximum number of compaction passes. One pass makes room that the next one uses; more passes
/// gain nothing.
const PASSES: usize = 4;

/// An open file.
pub(crate) enum Handle {
    /// The file can be written.
    Writing(Database),
    /// The file failed. Its newest commit can be read.
    Reading(Reading),
}

impl Handle {
    /// Begins a read transaction.
    pub(crate) fn begin_read(&self) -> Result<ReadTransaction, TransactionError> {
        match self {
            Self::Writing(database) => database.begin_read(),
            Self::Reading(reading) => reading.begin_read(),
        }
    }

    /// Returns the database for writing.
    ///
    /// # Errors
    ///
    /// [`StoreError::Backend`] if the file failed and has not been reopened yet.
    pub(crate) fn writing(&self) -> Result<&Database, StoreError> {
        match self {
            Self::Writing(database) => Ok(database),
            Self::Reading(_) => {
                Err(backend("write", "its file failed and has not been reopened yet"))
            }
        }
    }

    /// Returns whether the file failed. After one error, redb refuses all operations that need the
    /// file.
    fn has_failed(&self) -> bool {
        let Self::Writing(database) = self else { return false };
        // redb checks for the failure first, even during a write transaction.
        matches!(
            database.try_begin_write(),
            Err(TransactionError::Storage(StorageError::PreviousIo))
        )
    }
}

/// Shared handle to a redb file. A reader holds an `Arc` for the duration of its read. A compaction
/// or a reopening starts when no reader holds one.
pub(crate) struct Source {
    path: PathBuf,
    kind: &'static FileKind,
    handle: RwLock<Arc<Handle>>,
    /// Whether the file failed at a read, which the writer has not noticed yet.
    has_failed: AtomicBool,
}

impl Source {
    /// Wraps an open file.
    pub(crate) fn new(path: PathBuf, kind: &'static FileKind, database: Database) -> Self {
        let handle = RwLock::new(Arc::new(Handle::Writing(database)));
        Self { path, kind, handle, has_failed: AtomicBool::new(false) }
    }

    /// Returns the path of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the file. Blocks while it is compacted or reopened.
    pub(crate) fn handle(&self) -> Arc<Handle> {
        self.handle.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the file, or `None` while it is compacted or reopened.
    pub(crate) fn handle_now(&self) -> Option<Arc<Handle>> {
        match self.handle.try_read() {
            Ok(handle) => Some(handle.clone()),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner().clone()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Checks whether the file failed at a read that returned an error. Returns `true` if the
    /// failure is new.
    pub(crate) fn note_failure(&self, error: &impl Display) -> bool {
        let has_failed = self.handle_now().is_some_and(|handle| handle.has_failed());
        let is_new = has_failed && !self.has_failed.swap(true, Ordering::AcqRel);
        if is_new {
            let file = self.path.display();
            tracing::error!(%file, %error, "read failed, the file is opened again");
        }
        is_new
    }

    /// Returns whether the file failed at a read.
    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Acquire)
    }

    /// Returns whether the file failed at a read since the last call. The caller opens it again.
    pub(crate) fn take_failure(&self) -> bool {
        self.has_failed.swap(false, Ordering::AcqRel)
    }

    /// Acquires exclusive access. Returns `None` if readers are still active after `HOLD`. The lock
    /// is released before the caller retries, so that the writer, or any other work that a long
    /// read waits for, can proceed.
    fn alone(&self) -> Option<RwLockWriteGuard<'_, Arc<Handle>>> {
        let mut handle = self.handle.write().unwrap_or_else(PoisonError::into_inner);
        let started = Instant::now();
        while Arc::get_mut(&mut handle).is_none() {
            if started.elapsed() > HOLD {
                return None;
            }
            sleep(PAUSE);
        }
        Some(handle)
    }

    /// Replaces a file that failed by a read-only view of its newest commit, since redb serves no
    /// more reads from a file that failed.
    ///
    /// # Errors
    ///
    /// [`StoreError::Backend`] if a read does not end, and errors of the file.
    pub(crate) fn read_only(&self) -> Result<(), StoreError> {
        if matches!(*self.handle(), Handle::Reading(_)) {
            return Ok(());
        }
        let mut handle = self.alone().ok_or_else(|| backend(REOPEN, "a read did not end"))?;
        *handle = Arc::new(Handle::Reading(look::read(&self.path)?));
        Ok(())
    }

    /// Reopens a file that failed. Reads continue in the meantime; a read that is still active at
    /// the end fails.
    ///
    /// # Errors
    ///
    /// Errors of opening, and [`StoreError::Backend`] if a read of the failed file does not end.
    pub(crate) fn reopen(&self) -> Result<(), StoreError> {
        // The failed database holds the lock of the file until it is dropped.
        self.read_only()?;
        let database = guarded(REOPEN, || self.kind.open_again(&self.path))?;
        // A read of the old state must not see reused pages.
        let mut handle = self.alone().unwrap_or_else(|| self.end_reads());
        *handle = Arc::new(Handle::Writing(database));
        Ok(())
    }

    /// Acquires exclusive access by ending all reads of the read-only view.
    fn end_reads(&self) -> RwLockWriteGuard<'_, Arc<Handle>> {
        let handle = self.handle.write().unwrap_or_else(PoisonError::into_inner);
        if let Handle::Reading(reading) = &**handle {
            reading.end();
        }
        handle
    }

    /// Compacts the file. Returns `None` if readers are still active after `HOLD`.
    pub(crate) fn compact(&self) -> Result<Option<CompactionReport>, StoreError> {
        let before_bytes = self.bytes()?;
        let Some(mut handle) = self.alone() else {
            return Ok(None);
        };
        let Some(Handle::Writing(database)) = Arc::get_mut(&mut handle) else {
            return Err(backend(COMPACT, "its file failed and has not been reopened yet"));
        };
        for _ in 0..PASSES {
            if !guarded(COMPACT, || database.compact().map_err(redb_error(COMPACT)))? {
                break;
            }
        }
        Ok(Some(CompactionReport { before_bytes, after_bytes: self.bytes()? }))
    }

    /// Builds the error for a compaction that did not get exclusive access.
    pub(crate) fn is_being_read() -> StoreError {
        backend(COMPACT, "reads did not end in time; retry when fewer reads are active")
    }

    fn bytes(&self) -> Result<u64, StoreError> {
        let size = fs::metadata(&self.path).map(|facts| facts.len());
        size.map_err(|error| backend(COMPACT, format!("`{}`: {error}", self.path.display())))
    }
}

#[cfg(test)]
mod tests {
    use redb::TableDefinition;
    use tempfile::TempDir;

    use super::*;

    const TABLE: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("table");

    static FILE: FileKind = FileKind {
        name: "file",
        without_file: "create a new one",
        cache_bytes: 1024 * 1024,
        facts: TableDefinition::new("facts"),
    };

    fn has_entry(transaction: &ReadTransaction) -> Result<bool, redb::Error> {
        Ok(transaction.open_table(TABLE)?.get(1)?.is_some())
    }

    #[test]
    fn reopening_ends_long_reads() {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("file.redb");
        let database = FILE.open(&path).unwrap();
        let transaction = database.begin_write().unwrap();
        transaction.open_table(TABLE).unwrap().insert(1, &[7_u8; 10][..]).unwrap();
        transaction.commit().unwrap();
        let source = Source::new(path, &FILE, database);
        source.read_only().unwrap();
        let handle = source.handle();
        let long = handle.begin_read().unwrap();
        source.reopen().unwrap();
        assert!(has_entry(&long).is_err(), "it would see reused pages");
        assert!(has_entry(&source.handle().begin_read().unwrap()).unwrap());
        source.handle().writing().unwrap();
    }
}
