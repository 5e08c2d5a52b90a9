//! Reads all runs of a thread, page by page.

use std::vec::IntoIter;

use wattle_graph::id::ThreadId;

use crate::limit::{WALK_RUN_RECORDS, WALK_RUNS};
use crate::ports::store::{ListPage, RunRecord, RunSummary, Store, StoreError};

/// Reads the runs of a thread one by one: summaries from the oldest run on, or records from the
/// newest run on. Reads a page when its first run is needed.
///
/// A run that is added or deleted during the walk moves the other runs in the list, so the walk can
/// return a run twice or omit a run.
pub struct RunWalk<'a, T> {
    store: &'a dyn Store,
    thread: &'a ThreadId,
    /// The runs of the last page that were not returned yet.
    page: IntoIter<T>,
    /// Number of the runs that were skipped, and of the runs of all pages so far.
    read: usize,
    is_over: bool,
}

impl<'a> RunWalk<'a, RunSummary> {
    /// Creates a reader of the summaries, which begins with the oldest run.
    #[must_use]
    pub fn oldest_first(store: &'a dyn Store, thread: &'a ThreadId) -> Self {
        Self::new(store, thread)
    }

    /// Returns the next run. Returns `None` after the newest run.
    ///
    /// # Errors
    ///
    /// Errors of the store.
    pub async fn next(&mut self) -> Result<Option<RunSummary>, StoreError> {
        if self.needs_page() {
            let page = self.store.runs(self.thread, self.read, WALK_RUNS).await?;
            self.begin(page);
        }
        Ok(self.page.next())
    }
}

impl<'a> RunWalk<'a, RunRecord> {
    /// Creates a reader of the records, which begins with the newest run. The cost of the newest
    /// runs does not depend on the length of the thread.
    #[must_use]
    pub fn newest_first(store: &'a dyn Store, thread: &'a ThreadId) -> Self {
        Self::new(store, thread)
    }

    /// Returns the next run. Returns `None` after the oldest run.
    ///
    /// # Errors
    ///
    /// Errors of the store.
    pub async fn next(&mut self) -> Result<Option<RunRecord>, StoreError> {
        if self.needs_page() {
            let page = self.store.newest_runs(self.thread, self.read, WALK_RUN_RECORDS).await?;
            self.begin(page);
        }
        Ok(self.page.next())
    }
}

impl<'a, T> RunWalk<'a, T> {
    fn new(store: &'a dyn Store, thread: &'a ThreadId) -> Self {
        Self { store, thread, page: Vec::new().into_iter(), read: 0, is_over: false }
    }

    /// Skips the first runs. The store does not read them.
    #[must_use]
    pub fn skip(self, runs: usize) -> Self {
        Self { read: self.read.saturating_add(runs), ..self }
    }

    fn needs_page(&self) -> bool {
        self.page.as_slice().is_empty() && !self.is_over
    }

    fn begin(&mut self, page: ListPage<T>) {
        self.read += page.items.len();
        self.is_over = page.is_last || page.items.is_empty();
        self.page = page.items.into_iter();
    }
}
