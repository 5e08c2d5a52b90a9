//! Searches of threads in memory.

use wattle_run::ports::store::{
    StoreError, ThreadCounts, ThreadCursor, ThreadRecord, ThreadSearch, ThreadSearchPage,
    ThreadSummary,
};

use crate::in_memory::state::State;
use crate::search::{Examiner as _, FirstPositions, SearchCounts, SearchPage};

impl State {
    /// See [`Store::search_threads`](wattle_run::ports::Store::search_threads). The search keeps
    /// the positions of only as many threads as it may examine.
    pub(super) fn search(&self, search: &ThreadSearch) -> ThreadSearchPage {
        let mut page = SearchPage::new(search);
        let limit = (!search.reads_contents()).then_some(search.limit);
        let mut first = FirstPositions::new(search.budget, limit);
        for record in self.records().filter(|record| page.selects(*record)) {
            first.push(ThreadCursor::sort_key(record.updated_ms, &record.id));
        }
        let found = first.finish().into_iter().filter_map(|(_, thread)| self.threads.get(thread));
        for thread in found {
            let (thread, bytes) = summary(&thread.head.record);
            if !page.examine(thread, bytes) {
                break;
            }
        }
        page.finish()
    }

    /// See [`Store::count_threads`](wattle_run::ports::Store::count_threads).
    pub(super) fn count(&self, search: &ThreadSearch) -> Result<ThreadCounts, StoreError> {
        let mut counts = SearchCounts::new(search);
        for record in self.records() {
            if !counts.count(record, || Ok(summary(record)))? {
                break;
            }
        }
        Ok(counts.finish())
    }

    fn records(&self) -> impl Iterator<Item = &ThreadRecord> {
        self.threads.values().map(|thread| &thread.head.record)
    }
}

/// Returns the summary of a thread with the number of bytes that the budget of a search counts.
fn summary(record: &ThreadRecord) -> (ThreadSummary, u64) {
    let thread = ThreadSummary::from(record);
    let bytes = thread.memory_bytes();
    (thread, bytes)
}
