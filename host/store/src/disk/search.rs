//! Searches of threads in the file.

use redb::{ReadOnlyTable, ReadableTable as _};
use wattle_run::ports::store::{
    StoreError, ThreadCounts, ThreadCursor, ThreadSearch, ThreadSearchPage, ThreadSummary,
};

use crate::codec::{named, packed, unpack, unpacked_bytes};
use crate::disk::list::listed_fields;
use crate::disk::snapshot::{READ, RECORD, Snapshot};
use crate::disk::table::{RECORDS, RECORDS_NAME};
use crate::error::{corrupt, redb_error};
use crate::query::ThreadFields;
use crate::search::{Examiner as _, FirstPositions, SearchCounts, SearchPage};

impl Snapshot {
    /// See [`Store::search_threads`](wattle_run::ports::Store::search_threads). The file has no
    /// index by update, so a search reads the selecting fields of all records. It keeps the
    /// positions of only as many threads as it may examine.
    pub(crate) fn search(&self, search: &ThreadSearch) -> Result<ThreadSearchPage, StoreError> {
        let records = self.transaction.open_table(RECORDS).map_err(redb_error(READ))?;
        let mut page = SearchPage::new(search);
        for position in selected(&records, search, &page)? {
            let key = position.thread.as_str().as_bytes();
            let stored = records.get(key).map_err(redb_error(READ))?;
            let stored = stored.ok_or_else(|| corrupt(named(RECORD, key), "it is missing"))?;
            let (thread, bytes) = summary(key, stored.value())?;
            if !page.examine(thread, bytes) {
                break;
            }
        }
        Ok(page.finish())
    }

    /// See [`Store::count_threads`](wattle_run::ports::Store::count_threads).
    pub(crate) fn count(&self, search: &ThreadSearch) -> Result<ThreadCounts, StoreError> {
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
}

/// Returns the first positions of threads whose fields match a page, in the order of the search.
fn selected(
    records: &ReadOnlyTable<&'static [u8], &'static [u8]>,
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

/// Decodes a stored record without its run context. Returns it with its number of bytes of JSON.
fn summary(key: &[u8], stored: &[u8]) -> Result<(ThreadSummary, u64), StoreError> {
    let record = packed(RECORD, (RECORDS_NAME, key), stored)?;
    Ok((unpack(RECORD, record)?, unpacked_bytes(record)))
}

/// Decodes the selecting fields of a stored record. Logs a damaged record.
fn fields(key: &[u8], stored: &[u8]) -> Option<ThreadFields> {
    listed_fields(RECORD, (RECORDS_NAME, key), stored)
}
