//! Reads all threads of a query, page by page.

use wattle_graph::id::ThreadId;

use crate::limit::WALK_THREADS;
use crate::ports::store::{
    ListPage, Store, StoreError, ThreadKey, ThreadOrder, ThreadQuery, ThreadSummary,
};

/// Maximum number of threads of which the keys are read at once. A key takes some hundred bytes,
/// whatever metadata the thread has.
const WALK_KEYS: usize = 10_000;

/// Reads the threads that match a query in the order of their ids. A thread that exists during the
/// whole walk is returned once, whatever changes meanwhile.
pub struct ThreadWalk<'a> {
    store: &'a dyn Store,
    query: ThreadQuery,
    is_over: bool,
}

impl<'a> ThreadWalk<'a> {
    /// Creates a reader of the threads that match a query. Limit, offset and order of the query are
    /// ignored.
    #[must_use]
    pub fn new(store: &'a dyn Store, query: ThreadQuery) -> Self {
        let order = ThreadOrder::Id;
        Self { store, query: ThreadQuery { order, offset: 0, ..query }, is_over: false }
    }

    /// Returns the next page, with at least one thread. Returns `None` after the last thread.
    ///
    /// # Errors
    ///
    /// Errors of the store.
    pub async fn next(&mut self) -> Result<Option<Vec<ThreadSummary>>, StoreError> {
        if self.is_over {
            return Ok(None);
        }
        self.query.limit = Some(WALK_THREADS);
        let page = self.store.threads(&self.query).await?;
        Ok(self.advance(page, |thread| &thread.id))
    }

    /// Returns the keys of the next threads, at least one. Returns `None` after the last thread.
    ///
    /// # Errors
    ///
    /// Errors of the store.
    pub async fn next_keys(&mut self) -> Result<Option<Vec<ThreadKey>>, StoreError> {
        if self.is_over {
            return Ok(None);
        }
        self.query.limit = Some(WALK_KEYS);
        let page = self.store.thread_keys(&self.query).await?;
        Ok(self.advance(page, |thread| &thread.id))
    }

    /// Continues the walk after a page. Returns the threads of the page, or `None` if it has none.
    fn advance<T>(&mut self, page: ListPage<T>, id: fn(&T) -> &ThreadId) -> Option<Vec<T>> {
        let last = page.items.last().map(|thread| id(thread).clone());
        self.is_over = page.is_last || last.is_none();
        self.query.after = last;
        (!page.items.is_empty()).then_some(page.items)
    }
}
