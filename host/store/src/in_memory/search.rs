//! Searches of threads in memory.

use wattle_run::ports::store::{
    ThreadCounts, ThreadCursor, ThreadRecord, ThreadSearch, ThreadSearchPage, ThreadSummary,
};

use crate::in_memory::state::State;
use crate::search::{Examiner as _, SearchCounts, SearchPage, ThreadMatcher};

impl State {
    /// See [`Store::search_threads`](wattle_run::ports::Store::search_threads).
    pub(super) fn search(&self, search: &ThreadSearch) -> ThreadSearchPage {
        let matcher = ThreadMatcher::of_page(search);
        let selected = self.records().filter(|record| matcher.selects(*record));
        let mut selected: Vec<(ThreadCursor, &ThreadRecord)> = selected.map(positioned).collect();
        selected.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        let mut page = SearchPage::new(search);
        for (_, record) in selected {
            let thread = ThreadSummary::from(record);
            let bytes = thread.memory_bytes();
            if !page.examine(thread, bytes) {
                break;
            }
        }
        page.finish()
    }

    /// See [`Store::count_threads`](wattle_run::ports::Store::count_threads).
    pub(super) fn count(&self, search: &ThreadSearch) -> ThreadCounts {
        let mut counts = SearchCounts::new(search);
        for record in self.records() {
            if !counts.matcher().selects(record) {
                continue;
            }
            if !search.reads_contents() {
                counts.add(record.status, 1);
                continue;
            }
            let thread = ThreadSummary::from(record);
            let bytes = thread.memory_bytes();
            if !counts.examine(thread, bytes) {
                break;
            }
        }
        counts.finish()
    }

    fn records(&self) -> impl Iterator<Item = &ThreadRecord> {
        self.threads.values().map(|thread| &thread.head.record)
    }
}

fn positioned(record: &ThreadRecord) -> (ThreadCursor, &ThreadRecord) {
    (ThreadCursor { updated_ms: record.updated_ms, thread: record.id.clone() }, record)
}
