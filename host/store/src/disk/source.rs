//! The database for everybody who reads it, and for the one who may shrink its file.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock, TryLockError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use redb::Database;
use wattle_run::ports::store::{Compacted, StoreError};

use crate::disk::snapshot::Snapshot;
use crate::error::{backend, while_trying};

const COMPACT: &str = "give space back to the file system";

/// How long an attempt to have the file alone keeps new reads and batches waiting: longer than
/// almost every read takes, and hardly felt.
const HOLD: Duration = Duration::from_millis(40);

/// How often to look whether the reads that began before have ended.
const PAUSE: Duration = Duration::from_millis(2);

/// One pass makes room that the next one finds; more gain nothing.
const PASSES: usize = 4;

/// The database. Whoever reads holds it until the end of the read, so that the file shrinks only
/// while nobody reads.
pub(crate) struct Source {
    path: PathBuf,
    database: RwLock<Arc<Database>>,
}

impl Source {
    /// The database of a file.
    pub(crate) fn new(path: PathBuf, database: Arc<Database>) -> Self {
        Self { path, database: RwLock::new(database) }
    }

    /// The database; waits while its file shrinks.
    pub(crate) fn database(&self) -> Arc<Database> {
        self.database.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The newest state; waits while the file shrinks.
    pub(crate) fn snapshot(&self) -> Result<Snapshot, StoreError> {
        Snapshot::take(self.database())
    }

    /// The newest state; `None` while the file shrinks.
    pub(crate) fn snapshot_now(&self) -> Option<Result<Snapshot, StoreError>> {
        let database = match self.database.try_read() {
            Ok(database) => database.clone(),
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner().clone(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(Snapshot::take(database))
    }

    /// Shrinks the file as far as it can be; `None` if a read does not end. What a long read still
    /// needs, such as the writer, it gets before the next attempt.
    pub(crate) fn compact(&self) -> Result<Option<Compacted>, StoreError> {
        let before_bytes = self.bytes()?;
        let mut database = self.database.write().unwrap_or_else(PoisonError::into_inner);
        let started = Instant::now();
        let database = loop {
            // Asked twice, since a loan that may leave the loop lasts beyond it.
            if Arc::get_mut(&mut database).is_some()
                && let Some(database) = Arc::get_mut(&mut database)
            {
                break database;
            }
            if started.elapsed() > HOLD {
                return Ok(None);
            }
            sleep(PAUSE);
        };
        for _ in 0..PASSES {
            if !database.compact().map_err(while_trying(COMPACT))? {
                break;
            }
        }
        Ok(Some(Compacted { before_bytes, after_bytes: self.bytes()? }))
    }

    /// Says that no attempt succeeded.
    pub(crate) fn is_being_read() -> StoreError {
        backend(COMPACT, "it is being read all the time; try again")
    }

    fn bytes(&self) -> Result<u64, StoreError> {
        let size = fs::metadata(&self.path).map(|facts| facts.len());
        size.map_err(|error| backend(COMPACT, format!("`{}`: {error}", self.path.display())))
    }
}
