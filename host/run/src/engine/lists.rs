//! Lists, searches and counts of threads and runs. They leave out threads that have expired and are
//! not deleted yet.

use super::Engine;
use crate::ports::store::{
    ListPage, RunCounts, RunSearch, RunSearchPage, StoreError, ThreadCounts, ThreadQuery,
    ThreadSearch, ThreadSearchPage, ThreadSummary,
};
use crate::thread_walk::ThreadWalk;

impl Engine {
    /// Returns a page of the threads that match a query and have not expired.
    ///
    /// # Errors
    ///
    /// Errors of the store.
    pub async fn list_threads(
        &self,
        query: ThreadQuery,
    ) -> Result<ListPage<ThreadSummary>, StoreError> {
        self.0.ports.store.threads(&self.unexpired(query)).await
    }

    /// Returns a reader of all threads that match a query and have not expired when this method
    /// is called.
    #[must_use]
    pub fn walk_threads(&self, query: ThreadQuery) -> ThreadWalk<'_> {
        ThreadWalk::new(self.0.ports.store.as_ref(), self.unexpired(query))
    }

    /// Returns a page of the threads that match a search and have not expired.
    ///
    /// # Errors
    ///
    /// Errors of the store.
    pub async fn search_threads(
        &self,
        search: ThreadSearch,
    ) -> Result<ThreadSearchPage, StoreError> {
        let search = ThreadSearch { unexpired_at_ms: Some(self.now_ms()), ..search };
        self.0.ports.store.search_threads(&search).await
    }

    /// Counts the threads that match a search and have not expired.
    ///
    /// # Errors
    ///
    /// Errors of the store.
    pub async fn count_threads(&self, search: ThreadSearch) -> Result<ThreadCounts, StoreError> {
        let search = ThreadSearch { unexpired_at_ms: Some(self.now_ms()), ..search };
        self.0.ports.store.count_threads(&search).await
    }

    /// Returns a page of the runs that match a search and whose threads have not expired.
    ///
    /// # Errors
    ///
    /// Errors of the store.
    pub async fn search_runs(&self, search: RunSearch) -> Result<RunSearchPage, StoreError> {
        let search = RunSearch { unexpired_at_ms: Some(self.now_ms()), ..search };
        self.0.ports.store.search_runs(&search).await
    }

    /// Counts the runs that match a search and whose threads have not expired.
    ///
    /// # Errors
    ///
    /// Errors of the store.
    pub async fn count_runs(&self, search: RunSearch) -> Result<RunCounts, StoreError> {
        let search = RunSearch { unexpired_at_ms: Some(self.now_ms()), ..search };
        self.0.ports.store.count_runs(&search).await
    }

    fn unexpired(&self, query: ThreadQuery) -> ThreadQuery {
        ThreadQuery { unexpired_at_ms: Some(self.now_ms()), ..query }
    }
}
