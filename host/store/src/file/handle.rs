//! A file of redb shared by its readers and by the one writer, which shrinks it and opens it
//! again after it failed.

use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard, TryLockError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use redb::{Database, ReadTransaction, ReadableDatabase as _, StorageError, TransactionError};
use wattle_run::ports::store::{Compacted, StoreError};

use crate::error::{backend, while_trying};
use crate::file::guarded;
use crate::file::look::{self, Reading};

const COMPACT: &str = "give space back to the file system";

const REOPEN: &str = "open its file again";

/// How long an attempt to have the file alone keeps new reads and batches waiting: longer than
/// almost every read takes, and hardly felt.
const HOLD: Duration = Duration::from_millis(40);

/// How often to look whether the reads that began before have ended.
const PAUSE: Duration = Duration::from_millis(2);

/// One pass makes room that the next one finds; more gain nothing.
const PASSES: usize = 4;

/// An open file.
pub(crate) enum Handle {
    /// It can be written.
    Writing(Database),
    /// It failed. The newest commit that is in it can be read.
    Reading(Reading),
}

impl Handle {
    /// Begins to read.
    pub(crate) fn begin_read(&self) -> Result<ReadTransaction, TransactionError> {
        match self {
            Self::Writing(database) => database.begin_read(),
            Self::Reading(reading) => reading.begin_read(),
        }
    }

    /// The database to write to.
    ///
    /// # Errors
    ///
    /// [`StoreError::Backend`] if it failed and is not open again.
    pub(crate) fn writing(&self) -> Result<&Database, StoreError> {
        match self {
            Self::Writing(database) => Ok(database),
            Self::Reading(_) => Err(backend("write", "its file failed and is not open again")),
        }
    }

    /// Whether the file failed: after one error redb answers nothing more that it would have to
    /// read.
    fn has_failed(&self) -> bool {
        let Self::Writing(database) = self else { return false };
        // redb refuses this before anything else, also while something is being written.
        matches!(
            database.try_begin_write(),
            Err(TransactionError::Storage(StorageError::PreviousIo))
        )
    }
}

/// Opens the file of a path for writing.
pub(crate) type Opener = fn(&Path) -> Result<Database, StoreError>;

/// The file. A reader holds it until the end of the read, so that the file shrinks, or is
/// opened again, only while nobody reads.
pub(crate) struct Source {
    path: PathBuf,
    opener: Opener,
    handle: RwLock<Arc<Handle>>,
    /// Whether it failed at a read, which the writer has not noticed yet.
    has_failed: AtomicBool,
}

impl Source {
    /// A file that was opened, and how to open it again.
    pub(crate) fn new(path: PathBuf, opener: Opener, database: Database) -> Self {
        let handle = RwLock::new(Arc::new(Handle::Writing(database)));
        Self { path, opener, handle, has_failed: AtomicBool::new(false) }
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The file; waits while it shrinks.
    pub(crate) fn handle(&self) -> Arc<Handle> {
        self.handle.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The file; `None` while it shrinks.
    pub(crate) fn handle_now(&self) -> Option<Arc<Handle>> {
        match self.handle.try_read() {
            Ok(handle) => Some(handle.clone()),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner().clone()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Looks whether the file failed at a read that ended with an error; answers with whether that
    /// is new.
    pub(crate) fn note_failure(&self, error: &impl Display) -> bool {
        let has_failed = self.handle_now().is_some_and(|handle| handle.has_failed());
        let is_new = has_failed && !self.has_failed.swap(true, Ordering::AcqRel);
        if is_new {
            let file = self.path.display();
            tracing::error!(%file, %error, "a file failed at a read and is opened again");
        }
        is_new
    }

    /// Whether it failed at a read.
    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Acquire)
    }

    /// Whether it failed at a read since the last call; the caller opens it again.
    pub(crate) fn take_failure(&self) -> bool {
        self.has_failed.swap(false, Ordering::AcqRel)
    }

    /// Has the file alone; `None` if a read does not end. What a long read still needs, such as
    /// the writer, it gets before the next attempt.
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

    /// Goes on reading a file that cannot be written: redb answers nothing any more from a file
    /// that failed.
    ///
    /// # Errors
    ///
    /// [`StoreError::Backend`] if a read does not end, and those of the file.
    pub(crate) fn read_only(&self) -> Result<(), StoreError> {
        if matches!(*self.handle(), Handle::Reading(_)) {
            return Ok(());
        }
        let mut handle = self.alone().ok_or_else(|| backend(REOPEN, "a read does not end"))?;
        *handle = Arc::new(Handle::Reading(look::read(&self.path)?));
        Ok(())
    }

    /// Opens a file again that failed. Reads go on meanwhile; a long one ends with an error then.
    ///
    /// # Errors
    ///
    /// Those of opening, and [`StoreError::Backend`] if a read of the file that failed does not end.
    pub(crate) fn reopen(&self) -> Result<(), StoreError> {
        // The lock of the file goes with the database that failed.
        self.read_only()?;
        let database = guarded(REOPEN, || (self.opener)(&self.path))?;
        // A read of the old state must not see pages that are used again.
        let mut handle = self.alone().unwrap_or_else(|| self.end_reads());
        *handle = Arc::new(Handle::Writing(database));
        Ok(())
    }

    /// Ends all reads of a file that is not written yet.
    fn end_reads(&self) -> RwLockWriteGuard<'_, Arc<Handle>> {
        let handle = self.handle.write().unwrap_or_else(PoisonError::into_inner);
        if let Handle::Reading(reading) = &**handle {
            reading.end();
        }
        handle
    }

    /// Shrinks the file as far as it can be; `None` if a read does not end.
    pub(crate) fn compact(&self) -> Result<Option<Compacted>, StoreError> {
        let before_bytes = self.bytes()?;
        let Some(mut handle) = self.alone() else {
            return Ok(None);
        };
        let Some(Handle::Writing(database)) = Arc::get_mut(&mut handle) else {
            return Err(backend(COMPACT, "its file failed and is not open again"));
        };
        for _ in 0..PASSES {
            if !guarded(COMPACT, || database.compact().map_err(while_trying(COMPACT)))? {
                break;
            }
        }
        Ok(Some(Compacted { before_bytes, after_bytes: self.bytes()? }))
    }

    /// Says that no attempt to shrink it succeeded.
    pub(crate) fn is_being_read() -> StoreError {
        backend(COMPACT, "it is being read all the time; try again")
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

    fn open(path: &Path) -> Result<Database, StoreError> {
        Database::create(path).map_err(while_trying(REOPEN))
    }

    fn has_entry(transaction: &ReadTransaction) -> Result<bool, redb::Error> {
        Ok(transaction.open_table(TABLE)?.get(1)?.is_some())
    }

    #[test]
    fn a_long_read_does_not_keep_a_file_from_being_opened_again() {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("file.redb");
        let database = open(&path).unwrap();
        let transaction = database.begin_write().unwrap();
        transaction.open_table(TABLE).unwrap().insert(1, &[7_u8; 10][..]).unwrap();
        transaction.commit().unwrap();
        let source = Source::new(path, open, database);
        source.read_only().unwrap();
        let handle = source.handle();
        let long = handle.begin_read().unwrap();
        source.reopen().unwrap();
        assert!(has_entry(&long).is_err(), "it would see pages that are used again");
        assert!(has_entry(&source.handle().begin_read().unwrap()).unwrap());
        source.handle().writing().unwrap();
    }
}
