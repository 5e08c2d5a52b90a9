//! The settings of a store in a file.

use std::time::Duration;

use wattle_run::memory_budget::CacheBudget;

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
    /// Limits of the caches of the pages of the file, and of the fields by which lists select.
    /// Lists of more records scan the file. Default: those of the default budget.
    pub caches: CacheBudget,
}

impl Default for RedbConfig {
    fn default() -> Self {
        Self { commit_delay: DEFAULT_COMMIT_DELAY, caches: CacheBudget::default() }
    }
}

impl RedbConfig {
    /// Returns the kind of the file, with its page cache.
    pub(crate) fn file_kind(&self) -> FileKind {
        FileKind { cache_bytes: self.caches.file_pages_bytes as usize, ..FILE }
    }
}
