//! Searches of threads in the file.

use std::cmp::Reverse;

use redb::{ReadOnlyTable, ReadableTable as _};
use wattle_graph::id::ThreadId;
use wattle_run::ports::store::{
    StoreError, ThreadCounts, ThreadCursor, ThreadSearch, ThreadSearchPage, ThreadSummary,
};

use crate::codec::{named, packed, unpack, unpacked_bytes};
use crate::disk::field_cache::FieldCache;
use crate::disk::field_set::{FieldSet, listed_fields};
use crate::disk::snapshot::{READ, RECORD, Snapshot};
use crate::disk::table::{RECORDS, RECORDS_NAME};
use crate::error::{corrupt, redb_error};
use crate::file::handle::SharedFile;
use crate::query::ThreadFields;
use crate::search::{Examiner as _, FirstPositions, SearchCounts, SearchPage};

type Records = ReadOnlyTable<&'static [u8], &'static [u8]>;

/// See [`Store::search_threads`](wattle_run::ports::Store::search_threads). Scans the file if the
/// fields of the threads are not cached. Such a search and a cached one keep the positions of only
/// as many threads as they may examine.
pub(crate) fn search_threads(
    file: &SharedFile,
    cache: &FieldCache,
    search: &ThreadSearch,
) -> Result<ThreadSearchPage, StoreError> {
    let page = SearchPage::new(search);
    let select = |threads: &FieldSet<ThreadFields>| first_threads(threads, search, &page);
    let (snapshot, selected) = cache.select_threads(|| Snapshot::newest(file), select)?;
    if let Some(positions) = selected {
        match snapshot.page_at(page, positions) {
            // A record was damaged after its fields were cached. The scan leaves it out.
            Err(StoreError::Corrupt { .. }) => cache.clear(),
            page => return page,
        }
    }
    snapshot.search(search)
}

/// See [`Store::count_threads`](wattle_run::ports::Store::count_threads). Scans the file if the
/// fields of the threads are not cached.
pub(crate) fn count_threads(
    file: &SharedFile,
    cache: &FieldCache,
    search: &ThreadSearch,
) -> Result<ThreadCounts, StoreError> {
    let mut counts = SearchCounts::new(search);
    let count = |threads: &FieldSet<ThreadFields>| count_fields(threads, search, &mut counts);
    let (snapshot, selected) = cache.select_threads(|| Snapshot::newest(file), count)?;
    if let Some(threads) = selected {
        match snapshot.count_contents(counts, &threads) {
            // A record was damaged after its fields were cached. The scan leaves it out.
            Err(StoreError::Corrupt { .. }) => cache.clear(),
            counts => return counts,
        }
    }
    snapshot.count(search)
}

impl Snapshot {
    /// Searches threads by a scan of all records.
    fn search(&self, search: &ThreadSearch) -> Result<ThreadSearchPage, StoreError> {
        let records = self.transaction.open_table(RECORDS).map_err(redb_error(READ))?;
        let page = SearchPage::new(search);
        let positions = selected(&records, search, &page)?;
        self.page_at(page, positions)
    }

    /// Examines the threads at some positions for a page.
    fn page_at(
        &self,
        mut page: SearchPage,
        positions: Vec<ThreadCursor>,
    ) -> Result<ThreadSearchPage, StoreError> {
        let records = self.transaction.open_table(RECORDS).map_err(redb_error(READ))?;
        for position in positions {
            let (thread, bytes) = read_summary(&records, &position.thread)?;
            if !page.examine(thread, bytes) {
                break;
            }
        }
        Ok(page.finish())
    }

    /// Counts threads by a scan of all records.
    fn count(&self, search: &ThreadSearch) -> Result<ThreadCounts, StoreError> {
        let records = self.transaction.open_table(RECORDS).map_err(redb_error(READ))?;
        let mut counts = SearchCounts::new(search);
        for entry in records.iter().map_err(redb_error(READ))? {
            let (key, stored) = entry.map_err(redb_error(READ))?;
            let Some(fields) = fields(key.value(), stored.value()) else { continue };
            if !counts.count(&fields, || summary(key.value(), stored.value()))? {
                break;
            }
        }
        Ok(counts.finish())
    }

    /// Adds the threads whose texts and metadata match to counts.
    fn count_contents(
        &self,
        mut counts: SearchCounts,
        threads: &[ThreadId],
    ) -> Result<ThreadCounts, StoreError> {
        let records = self.transaction.open_table(RECORDS).map_err(redb_error(READ))?;
        for thread in threads {
            let (thread, bytes) = read_summary(&records, thread)?;
            if !counts.examine(thread, bytes) {
                break;
            }
        }
        Ok(counts.finish())
    }
}

/// Returns the first positions of threads whose cached fields match a page, in the order of the
/// search.
fn first_threads(
    threads: &FieldSet<ThreadFields>,
    search: &ThreadSearch,
    page: &SearchPage,
) -> Vec<ThreadCursor> {
    let limit = (!search.reads_contents()).then_some(search.limit);
    let mut first = FirstPositions::new(search.budget, limit);
    for fields in threads.iter().filter(|fields| page.selects(*fields)) {
        let position = ThreadCursor::sort_key(fields.updated_ms, &fields.id);
        if !first.excludes(&position) {
            first.push(position);
        }
    }
    let positions = first.finish().into_iter();
    let positions = positions
        .map(|(Reverse(updated_ms), thread)| ThreadCursor { updated_ms, thread: thread.clone() });
    positions.collect()
}

/// Counts threads whose cached fields match. If the search compares texts or metadata, counts none
/// and returns the first threads in the order of their ids, which a scan would examine.
fn count_fields(
    threads: &FieldSet<ThreadFields>,
    search: &ThreadSearch,
    counts: &mut SearchCounts,
) -> Vec<ThreadId> {
    let mut first = FirstPositions::new(search.budget, None);
    for fields in threads.iter() {
        if !counts.selects(fields) {
            continue;
        }
        if search.reads_contents() {
            first.push(&fields.id);
        } else {
            counts.add(fields.status, 1);
        }
    }
    first.finish().into_iter().cloned().collect()
}

/// Returns the first positions of threads whose stored fields match a page, in the order of the
/// search.
fn selected(
    records: &Records,
    search: &ThreadSearch,
    page: &SearchPage,
) -> Result<Vec<ThreadCursor>, StoreError> {
    let limit = (!search.reads_contents()).then_some(search.limit);
    let mut first = FirstPositions::new(search.budget, limit);
    for entry in records.iter().map_err(redb_error(READ))? {
        let (key, stored) = entry.map_err(redb_error(READ))?;
        let Some(fields) = fields(key.value(), stored.value()) else { continue };
        if page.selects(&fields) {
            first.push(ThreadCursor { updated_ms: fields.updated_ms, thread: fields.id });
        }
    }
    Ok(first.finish())
}

/// Reads the record of a thread without its run context. Returns it with its number of bytes of
/// JSON.
fn read_summary(records: &Records, thread: &ThreadId) -> Result<(ThreadSummary, u64), StoreError> {
    let key = thread.as_str().as_bytes();
    let stored = records.get(key).map_err(redb_error(READ))?;
    let stored = stored.ok_or_else(|| corrupt(named(RECORD, key), "it is missing"))?;
    summary(key, stored.value())
}

/// Decodes a stored record without its run context. Returns it with its number of bytes of JSON.
fn summary(key: &[u8], stored: &[u8]) -> Result<(ThreadSummary, u64), StoreError> {
    let record = packed(RECORD, (RECORDS_NAME, key), stored)?;
    Ok((unpack(RECORD, record)?, unpacked_bytes(record)))
}

/// Decodes the selecting fields of a stored record. Logs a damaged record.
fn fields(key: &[u8], stored: &[u8]) -> Option<ThreadFields> {
    listed_fields(RECORD, (RECORDS_NAME, key), stored)
}
