//! The settings of a store in a file.

use std::time::Duration;

use wattle_run::memory_budget::DEFAULT_BUDGET;

use crate::commit_delay::DEFAULT_COMMIT_DELAY;
use crate::disk::create::FILE;
use crate::file::kind::FileKind;

/// Settings of a store in a file. Every setting has a default.
#[derive(Clone, Copy, Debug)]
pub struct RedbConfig {
    /// Maximum time for which a batch that no caller awaits waits for other batches to share its
    /// commit, at most [`MAX_COMMIT_DELAY`](crate::commit_delay::MAX_COMMIT_DELAY). Default:
    /// [`DEFAULT_COMMIT_DELAY`].
    pub commit_delay: Duration,
    /// Maximum size of the cached pages of the file, in bytes. Default: that of
    /// [`DEFAULT_BUDGET`].
    pub file_pages_bytes: u64,
    /// Maximum size of the cached fields by which lists of threads select, in bytes. Those of runs
    /// have a cache of the same size. Lists of more records scan the file. Default: that of
    /// [`DEFAULT_BUDGET`].
    pub fields_bytes: u64,
    /// Maximum time for which the opening waits for another process that has the file open.
    /// Default: zero.
    pub lock_wait: Duration,
}

impl Default for RedbConfig {
    fn default() -> Self {
        let caches = DEFAULT_BUDGET.caches;
        Self {
            commit_delay: DEFAULT_COMMIT_DELAY,
            file_pages_bytes: caches.file_pages_bytes,
            fields_bytes: caches.fields_bytes,
            lock_wait: Duration::ZERO,
        }
    }
}

impl RedbConfig {
    /// Returns the kind of the file, with its page cache.
    pub(crate) fn file_kind(&self) -> FileKind {
        FileKind { cache_bytes: self.file_pages_bytes as usize, ..FILE }
    }
}
