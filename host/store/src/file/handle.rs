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
use crate::file::view::{self, ReadOnlyView};

const OP_COMPACT: &str = "compact its file";

const OP_REOPEN: &str = "reopen its file";

/// Message of errors from the failure of a file until the file is reopened.
pub(crate) const NOT_REOPENED: &str =
    "an earlier operation on its file failed, and the file has not been reopened yet";

/// Maximum time for which an attempt to get exclusive access blocks new reads and batches: longer
/// than almost every read, and too short for a user to notice.
const EXCLUSIVE_WAIT: Duration = Duration::from_millis(40);

/// Interval between two checks whether earlier reads have ended.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// Maximum number of compaction passes. One pass frees space that the next pass uses. Further
/// passes free no more space.
const MAX_PASSES: usize = 4;

/// An open file.
pub(crate) enum Handle {
    /// The file can be written.
    Writable(Database),
    /// The file failed: after an I/O error, redb refuses all operations that need the file. The
    /// view reads its newest commit.
    ReadOnly(ReadOnlyView),
}

impl Handle {
    /// Begins a read transaction.
    pub(crate) fn begin_read(&self) -> Result<ReadTransaction, TransactionError> {
        match self {
            Self::Writable(database) => database.begin_read(),
            Self::ReadOnly(view) => view.begin_read(),
        }
    }

    /// Returns the database for writing.
    ///
    /// # Errors
    ///
    /// [`StoreError::Backend`] if the file failed and has not been reopened yet.
    pub(crate) fn writable(&self) -> Result<&Database, StoreError> {
        match self {
            Self::Writable(database) => Ok(database),
            Self::ReadOnly(_) => Err(backend("write", NOT_REOPENED)),
        }
    }

    /// Returns whether the file failed. After one error, redb refuses all operations that need the
    /// file.
    fn has_failed(&self) -> bool {
        let Self::Writable(database) = self else { return false };
        // redb checks for the failure first, even during a write transaction.
        matches!(
            database.try_begin_write(),
            Err(TransactionError::Storage(StorageError::PreviousIo))
        )
    }
}

/// Shared handle to a redb file. A reader holds an `Arc` for the duration of its read. A compaction
/// or a reopening starts when no reader holds an `Arc`.
pub(crate) struct SharedFile {
    path: PathBuf,
    kind: FileKind,
    handle: RwLock<Arc<Handle>>,
    /// Whether the file failed at a read and the writer has not handled the failure yet.
    has_failed: AtomicBool,
}

impl SharedFile {
    /// Wraps an open file.
    pub(crate) fn new(path: PathBuf, kind: FileKind, database: Database) -> Self {
        let handle = RwLock::new(Arc::new(Handle::Writable(database)));
        Self { path, kind, handle, has_failed: AtomicBool::new(false) }
    }

    /// Returns the path of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the open file. Blocks while the file is compacted or reopened.
    pub(crate) fn handle(&self) -> Arc<Handle> {
        self.handle.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the open file, or `None` while the file is compacted or reopened.
    pub(crate) fn try_handle(&self) -> Option<Arc<Handle>> {
        match self.handle.try_read() {
            Ok(handle) => Some(handle.clone()),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner().clone()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Checks whether the file failed at a read that returned an error. Returns `true` if the
    /// failure is new.
    pub(crate) fn note_failure(&self, error: &impl Display) -> bool {
        let has_failed = self.try_handle().is_some_and(|handle| handle.has_failed());
        let is_new = has_failed && !self.has_failed.swap(true, Ordering::AcqRel);
        if is_new {
            let file = self.path.display();
            tracing::error!(%file, %error, "read failed, reopening the file");
        }
        is_new
    }

    /// Returns whether the file failed at a read.
    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Acquire)
    }

    /// Returns whether the file failed at a read since the last call. The caller must reopen the
    /// file.
    pub(crate) fn take_failure(&self) -> bool {
        self.has_failed.swap(false, Ordering::AcqRel)
    }

    /// Acquires exclusive access. Returns `None` if readers are still active after
    /// `EXCLUSIVE_WAIT`. The lock is released before the caller retries, so that the writer, or any
    /// other work that a long read waits for, can proceed.
    fn lock_exclusive(&self) -> Option<RwLockWriteGuard<'_, Arc<Handle>>> {
        let mut handle = self.handle.write().unwrap_or_else(PoisonError::into_inner);
        let started = Instant::now();
        while Arc::get_mut(&mut handle).is_none() {
            if started.elapsed() > EXCLUSIVE_WAIT {
                return None;
            }
            sleep(POLL_INTERVAL);
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
        if matches!(*self.handle(), Handle::ReadOnly(_)) {
            return Ok(());
        }
        let mut handle =
            self.lock_exclusive().ok_or_else(|| backend(OP_REOPEN, "a read did not end"))?;
        *handle = Arc::new(Handle::ReadOnly(view::open_view(&self.path)?));
        Ok(())
    }

    /// Reopens the database file after a failure. Until the file is open again, reads use a
    /// read-only view of the file. Reads that still use the view after the reopening are aborted
    /// after [`EXCLUSIVE_WAIT`].
    ///
    /// # Errors
    ///
    /// Errors of opening, and [`StoreError::Backend`] if a read of the failed file does not end.
    pub(crate) fn reopen(&self) -> Result<(), StoreError> {
        // The failed database holds the lock of the file until it is dropped.
        self.read_only()?;
        let database = guarded(OP_REOPEN, || self.kind.reopen(&self.path))?;
        // A read of the old state must not see reused pages.
        let mut handle = self.lock_exclusive().unwrap_or_else(|| self.end_reads());
        *handle = Arc::new(Handle::Writable(database));
        Ok(())
    }

    /// Acquires exclusive access to the handle. Reads that are still active on the read-only view
    /// are aborted: each of them fails when it next accesses the file.
    fn end_reads(&self) -> RwLockWriteGuard<'_, Arc<Handle>> {
        let handle = self.handle.write().unwrap_or_else(PoisonError::into_inner);
        if let Handle::ReadOnly(view) = &**handle {
            view.close();
        }
        handle
    }

    /// Compacts the file. Returns `None` if readers are still active after `EXCLUSIVE_WAIT`.
    pub(crate) fn compact(&self) -> Result<Option<CompactionReport>, StoreError> {
        let before_bytes = self.bytes()?;
        let Some(mut handle) = self.lock_exclusive() else {
            return Ok(None);
        };
        let Some(Handle::Writable(database)) = Arc::get_mut(&mut handle) else {
            return Err(backend(OP_COMPACT, NOT_REOPENED));
        };
        for _ in 0..MAX_PASSES {
            if !guarded(OP_COMPACT, || database.compact().map_err(redb_error(OP_COMPACT)))? {
                break;
            }
        }
        Ok(Some(CompactionReport { before_bytes, after_bytes: self.bytes()? }))
    }

    /// Builds the error for a compaction that did not get exclusive access.
    pub(crate) fn busy_error() -> StoreError {
        backend(OP_COMPACT, "reads did not end in time; retry when fewer reads are active")
    }

    fn bytes(&self) -> Result<u64, StoreError> {
        let size = fs::metadata(&self.path).map(|metadata| metadata.len());
        size.map_err(|error| backend(OP_COMPACT, format!("`{}`: {error}", self.path.display())))
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
        meta_table: TableDefinition::new("facts"),
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
        let file = SharedFile::new(path, FILE, database);
        file.read_only().unwrap();
        let handle = file.handle();
        let long = handle.begin_read().unwrap();
        file.reopen().unwrap();
        assert!(has_entry(&long).is_err(), "it would see reused pages");
        assert!(has_entry(&file.handle().begin_read().unwrap()).unwrap());
        file.handle().writable().unwrap();
    }
}
