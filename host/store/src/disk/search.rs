//! Searches of threads in the file.

use std::collections::BinaryHeap;

use redb::ReadableTable;
use wattle_run::ports::store::{
    StoreError, ThreadCounts, ThreadCursor, ThreadSearch, ThreadSearchPage, ThreadSummary,
};

use crate::codec::{named, packed, read, unpack, unpacked_bytes};
use crate::disk::snapshot::{READ, RECORD, Snapshot};
use crate::disk::table::{RECORDS, RECORDS_NAME};
use crate::error::{corrupt, redb_error};
use crate::search::{Examiner as _, SearchCounts, SearchFields, SearchPage, ThreadMatcher};

impl Snapshot {
    /// See [`Store::search_threads`](wattle_run::ports::Store::search_threads). The file has no
    /// index by update, so a search reads the selecting fields of all records. It keeps the
    /// positions of only as many threads as it may examine.
    pub(crate) fn search(&self, search: &ThreadSearch) -> Result<ThreadSearchPage, StoreError> {
        let records = self.transaction.open_table(RECORDS).map_err(redb_error(READ))?;
        let mut page = SearchPage::new(search);
        for position in self.selected(search)? {
            let key = position.thread.as_str().as_bytes();
            let stored = records.get(key).map_err(redb_error(READ))?;
            let stored = stored.ok_or_else(|| corrupt(named(RECORD, key), "it is missing"))?;
            let record = packed(RECORD, (RECORDS_NAME, key), stored.value())?;
            let thread: ThreadSummary = unpack(RECORD, record)?;
            if !page.examine(thread, unpacked_bytes(record)) {
                break;
            }
        }
        Ok(page.finish())
    }

    /// Returns the first positions of threads whose fields match, in the order of the search: as
    /// many as the search may examine, and one more, which shows that the search continues.
    fn selected(&self, search: &ThreadSearch) -> Result<Vec<ThreadCursor>, StoreError> {
        let records = self.transaction.open_table(RECORDS).map_err(redb_error(READ))?;
        let matcher = ThreadMatcher::of_page(search);
        let examined = search.budget.threads.max(1);
        let most = if search.reads_contents() { examined } else { examined.min(search.limit) };
        let mut first: BinaryHeap<ThreadCursor> = BinaryHeap::new();
        for entry in records.iter().map_err(redb_error(READ))? {
            let (key, stored) = entry.map_err(redb_error(READ))?;
            let Some(fields) = fields(key.value(), stored.value()) else { continue };
            if !matcher.selects(&fields) {
                continue;
            }
            first.push(fields.into_cursor());
            if first.len() > most.saturating_add(1) {
                first.pop();
            }
        }
        Ok(first.into_sorted_vec())
    }

    /// See [`Store::count_threads`](wattle_run::ports::Store::count_threads).
    pub(crate) fn count(&self, search: &ThreadSearch) -> Result<ThreadCounts, StoreError> {
        let records = self.transaction.open_table(RECORDS).map_err(redb_error(READ))?;
        let mut counts = SearchCounts::new(search);
        for entry in records.iter().map_err(redb_error(READ))? {
            let (key, stored) = entry.map_err(redb_error(READ))?;
            let Some(fields) = fields(key.value(), stored.value()) else { continue };
            if !counts.matcher().selects(&fields) {
                continue;
            }
            if !search.reads_contents() {
                counts.add(fields.status, 1);
                continue;
            }
            let record = packed(RECORD, (RECORDS_NAME, key.value()), stored.value())?;
            let thread: ThreadSummary = unpack(RECORD, record)?;
            if !counts.examine(thread, unpacked_bytes(record)) {
                break;
            }
        }
        Ok(counts.finish())
    }
}

/// Decodes the selecting fields of a stored record. Logs a damaged record, so that it does not hide
/// the others.
fn fields(key: &[u8], stored: &[u8]) -> Option<SearchFields> {
    let fields = read(RECORD, (RECORDS_NAME, key), stored);
    fields.inspect_err(|error| tracing::error!(%error, "damaged thread is not listed")).ok()
}
