//! Searches of threads in memory.

use wattle_run::ports::store::{
    StoreError, ThreadCounts, ThreadCursor, ThreadRecord, ThreadSearch, ThreadSearchPage,
    ThreadSummary,
};

use crate::in_memory::state::State;
use crate::search::{Examiner as _, SearchCounts, SearchPage};

impl State {
    /// See [`Store::search_threads`](wattle_run::ports::Store::search_threads).
    pub(super) fn search(&self, search: &ThreadSearch) -> ThreadSearchPage {
        let mut page = SearchPage::new(search);
        let selected = self.records().filter(|record| page.selects(*record));
        let mut selected: Vec<(ThreadCursor, &ThreadRecord)> = selected.map(positioned).collect();
        selected.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        for (_, record) in selected {
            let (thread, bytes) = summary(record);
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

fn positioned(record: &ThreadRecord) -> (ThreadCursor, &ThreadRecord) {
    (ThreadCursor { updated_ms: record.updated_ms, thread: record.id.clone() }, record)
}
