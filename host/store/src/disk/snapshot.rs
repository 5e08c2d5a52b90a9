//! A snapshot: the file as of one commit.

use std::cell::Cell;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use redb::{AccessGuard, ReadOnlyTable, ReadTransaction, ReadableTable, TableError};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use wattle_graph::id::{Digest, RunId, ThreadId};
use wattle_graph::limit::SHORT_JSON_BYTES;
use wattle_run::ports::store::{PinnedVersions, RunRecord, StoreError, ThreadHead, ThreadRecord};

use crate::codec::{named, packed, read};
use crate::disk::chain::{LogReader, missing_entry};
use crate::disk::head::Head;
use crate::disk::table::{
    ASIDE, HEADS, HEADS_NAME, LOG, MARKS, MENTIONS, META, RECORDS, RECORDS_NAME, RUNS, RUNS_NAME,
    THREAD_RUNS,
};
use crate::error::{backend, corrupt, redb_error};
use crate::file::handle::{Handle, SharedFile};
use crate::query::add_pin;

pub(crate) const READ: &str = "read";

pub(crate) const RECORD: &str = "thread record";

pub(crate) const RUN: &str = "run record";

/// Returns the thread of a key; `None` if the key is no valid id.
pub(crate) fn thread_of(key: &[u8]) -> Option<ThreadId> {
    std::str::from_utf8(key).ok().and_then(|text| ThreadId::new(text).ok())
}

/// Returns the run of a key; `None` if the key is no valid id.
pub(crate) fn run_of(key: &[u8]) -> Option<RunId> {
    std::str::from_utf8(key).ok().and_then(|text| RunId::new(text).ok())
}

/// Maximum number of log entries of an inline read, which bounds how long an async worker waits for
/// the disk.
const MAX_INLINE_ENTRIES: usize = 32;

/// Maximum number of bytes of the log entries of an inline read. Decoding them is faster than
/// moving the read to another thread.
const MAX_INLINE_BYTES: usize = 64 * 1024;

/// A read transaction: the file as of one commit.
pub(crate) struct Snapshot {
    pub(crate) transaction: ReadTransaction,
    log: ReadOnlyTable<u64, &'static [u8]>,
    /// Remaining budget, if the read is inline.
    budget: Option<Cell<InlineBudget>>,
    /// Declared last, so that it is dropped after the transaction.
    _handle: Arc<Handle>,
}

/// A frame from which readers of old events and batches walk back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Mark {
    /// The newest event of the frame.
    pub(crate) seq: u64,
    pub(crate) frame: u64,
}

/// The remaining budget of an inline read.
#[derive(Clone, Copy)]
struct InlineBudget {
    entries: usize,
    bytes: usize,
    /// Bytes of the decoded JSON. Compressed, they may be far fewer.
    json_bytes: u64,
    is_exceeded: bool,
}

impl InlineBudget {
    /// Deducts one entry of `bytes` bytes from the budget. Fails if the budget is exceeded.
    fn consume(&mut self, bytes: usize) -> Result<(), StoreError> {
        let left = (self.entries.checked_sub(1), self.bytes.checked_sub(bytes));
        let (Some(entries), Some(bytes)) = left else { return Err(self.exceed()) };
        (self.entries, self.bytes) = (entries, bytes);
        Ok(())
    }

    fn exceed(&mut self) -> StoreError {
        self.is_exceeded = true;
        backend(READ, "the read exceeds the budget of an inline read")
    }
}

impl LogReader for Snapshot {
    fn entry<T>(
        &self,
        number: u64,
        read: impl FnOnce(&[u8]) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let entry = self.log.get(number).map_err(redb_error(READ))?;
        let entry = entry.ok_or_else(|| missing_entry(number))?;
        if let Some(cell) = &self.budget {
            let mut budget = cell.get();
            let consumed = budget.consume(entry.value().len());
            cell.set(budget);
            consumed?;
        }
        read(entry.value())
    }

    fn ensure_budget(&self, entries: u64, bytes: u64) -> Result<(), StoreError> {
        let Some(cell) = &self.budget else { return Ok(()) };
        let mut budget = cell.get();
        if entries <= budget.entries as u64 && bytes <= budget.bytes as u64 {
            return Ok(());
        }
        let exceeded = budget.exceed();
        cell.set(budget);
        Err(exceeded)
    }

    fn consume_json(&self, bytes: u64) -> Result<(), StoreError> {
        let Some(cell) = &self.budget else { return Ok(()) };
        let mut budget = cell.get();
        let consumed = match budget.json_bytes.checked_sub(bytes) {
            Some(left) => {
                budget.json_bytes = left;
                Ok(())
            }
            None => Err(budget.exceed()),
        };
        cell.set(budget);
        consumed
    }
}

impl Snapshot {
    /// Opens a snapshot of the newest commit.
    pub(crate) fn open(handle: Arc<Handle>) -> Result<Self, StoreError> {
        let transaction = handle.begin_read().map_err(redb_error(READ))?;
        let log = transaction.open_table(LOG).map_err(redb_error(READ))?;
        Ok(Self { transaction, log, budget: None, _handle: handle })
    }

    /// Opens a snapshot of the newest commit of a file. Blocks while the file is compacted.
    pub(crate) fn newest(file: &SharedFile) -> Result<Self, StoreError> {
        Self::open(file.handle())
    }

    /// Opens a snapshot of the newest commit of a file, or returns `None` while the file is
    /// compacted.
    pub(crate) fn try_newest(file: &SharedFile) -> Option<Result<Self, StoreError>> {
        file.try_handle().map(Self::open)
    }

    /// Gives the snapshot the budget of an inline read. Reads beyond the budget fail.
    pub(crate) fn with_inline_budget(mut self) -> Self {
        let budget = InlineBudget {
            entries: MAX_INLINE_ENTRIES,
            bytes: MAX_INLINE_BYTES,
            json_bytes: SHORT_JSON_BYTES,
            is_exceeded: false,
        };
        self.budget = Some(Cell::new(budget));
        self
    }

    /// Gives the snapshot a budget that no read exceeds, and that counts the log entries.
    #[cfg(test)]
    pub(crate) fn counting(mut self) -> Self {
        let budget = InlineBudget {
            entries: usize::MAX,
            bytes: usize::MAX,
            json_bytes: u64::MAX,
            is_exceeded: false,
        };
        self.budget = Some(Cell::new(budget));
        self
    }

    /// Returns the rest of the budget, in log entries.
    #[cfg(test)]
    pub(crate) fn entries_left(&self) -> usize {
        self.budget.as_ref().map_or(usize::MAX, |budget| budget.get().entries)
    }

    /// Returns whether a read exceeded the budget.
    pub(crate) fn budget_exceeded(&self) -> bool {
        self.budget.as_ref().is_some_and(|budget| budget.get().is_exceeded)
    }

    /// Returns the head of a thread.
    pub(crate) fn head(&self, thread: &ThreadId) -> Result<Option<Head>, StoreError> {
        let heads = self.transaction.open_table(HEADS).map_err(redb_error(READ))?;
        let key = thread.as_str().as_bytes();
        match heads.get(key).map_err(redb_error(READ))? {
            Some(head) => read("thread head", (HEADS_NAME, key), head.value()).map(Some),
            None => self.ensure_not_aside(thread).map(|()| None),
        }
    }

    /// Returns an error for a thread that is set aside, so that callers can distinguish it from a
    /// thread that never existed.
    fn ensure_not_aside(&self, thread: &ThreadId) -> Result<(), StoreError> {
        match self.aside(thread)? {
            None => Ok(()),
            Some(reason) => Err(corrupt(
                format!("thread `{thread}`"),
                format!(
                    "it was set aside: {reason}. Restore it from a backup, or delete it to \
                     use its id again"
                ),
            )),
        }
    }

    /// Returns the reason why a thread is set aside; `None` if it is not.
    pub(crate) fn aside(&self, thread: &ThreadId) -> Result<Option<String>, StoreError> {
        let aside = match self.transaction.open_table(ASIDE) {
            Ok(aside) => aside,
            Err(TableError::TableDoesNotExist(_)) => return Ok(None),
            Err(error) => return Err(redb_error(READ)(error)),
        };
        let reason = aside.get(thread.as_str().as_bytes()).map_err(redb_error(READ))?;
        Ok(reason.map(|reason| reason.value().to_owned()))
    }

    /// Returns all threads that were set aside, each with the reason.
    pub(crate) fn all_aside(&self) -> Result<Vec<(ThreadId, String)>, StoreError> {
        let aside = match self.transaction.open_table(ASIDE) {
            Ok(aside) => aside,
            Err(TableError::TableDoesNotExist(_)) => return Ok(Vec::new()),
            Err(error) => return Err(redb_error(READ)(error)),
        };
        let mut all = Vec::new();
        for entry in aside.iter().map_err(redb_error(READ))? {
            let (key, reason) = entry.map_err(redb_error(READ))?;
            if let Some(thread) = thread_of(key.value()) {
                all.push((thread, reason.value().to_owned()));
            }
        }
        Ok(all)
    }

    /// Returns the head of a thread; `None` if the thread does not exist.
    pub(crate) fn thread(&self, thread: &ThreadId) -> Result<Option<ThreadHead>, StoreError> {
        let Some(head) = self.head(thread)? else {
            return Ok(None);
        };
        let (record, _) = self.record(thread)?;
        Ok(Some(ThreadHead {
            record,
            last_seq: head.last_seq,
            last_checkpoint: head.last_checkpoint,
            current: head.current,
            pruned_seq: head.pruned_seq,
            seal: head.seal,
            pruned_seal: head.seal_before,
            log_bytes: head.bytes,
        }))
    }

    /// Returns the bytes that the log and the record of a thread take.
    pub(crate) fn stored_bytes(&self, thread: &ThreadId) -> Result<u64, StoreError> {
        let Some(head) = self.head(thread)? else {
            return Ok(0);
        };
        let (_, record_bytes) = self.record(thread)?;
        Ok(head.bytes + record_bytes)
    }

    /// Returns the record of a thread and its stored size in bytes.
    pub(crate) fn record(&self, thread: &ThreadId) -> Result<(ThreadRecord, u64), StoreError> {
        let records = self.transaction.open_table(RECORDS).map_err(redb_error(READ))?;
        let key = thread.as_str().as_bytes();
        let packed = records.get(key).map_err(redb_error(READ))?;
        let packed = packed.ok_or_else(|| corrupt(named(RECORD, key), "it is missing"))?;
        let record = read(RECORD, (RECORDS_NAME, key), packed.value())?;
        Ok((record, packed.value().len() as u64))
    }

    /// Returns the packed record of a thread.
    pub(crate) fn packed_record(&self, thread: &ThreadId) -> Result<Vec<u8>, StoreError> {
        let records = self.transaction.open_table(RECORDS).map_err(redb_error(READ))?;
        let key = thread.as_str().as_bytes();
        let stored = records.get(key).map_err(redb_error(READ))?;
        let stored = stored.ok_or_else(|| corrupt(named(RECORD, key), "it is missing"))?;
        packed(RECORD, (RECORDS_NAME, key), stored.value()).map(<[u8]>::to_vec)
    }

    /// Returns the packed record of a run.
    pub(crate) fn packed_run(&self, run: &RunId) -> Result<Vec<u8>, StoreError> {
        let runs = self.transaction.open_table(RUNS).map_err(redb_error(READ))?;
        let key = run.as_str().as_bytes();
        packed(RUN, (RUNS_NAME, key), stored_run(&runs, key)?.value()).map(<[u8]>::to_vec)
    }

    /// Returns a value of the table [`META`].
    pub(crate) fn meta_value(&self, name: &str) -> Result<Option<u64>, StoreError> {
        let meta = self.transaction.open_table(META).map_err(redb_error(READ))?;
        let value = meta.get(name).map_err(redb_error(READ))?;
        Ok(value.map(|value| value.value()))
    }

    /// Returns all marks of a thread. A mark maps the newest event of a frame to the frame.
    pub(crate) fn marks(&self, thread_number: u64) -> Result<BTreeMap<u64, u64>, StoreError> {
        let marks = self.transaction.open_table(MARKS).map_err(redb_error(READ))?;
        let all = (thread_number, 0)..=(thread_number, u64::MAX);
        let mut found = BTreeMap::new();
        for entry in marks.range(all).map_err(redb_error(READ))? {
            let (key, frame) = entry.map_err(redb_error(READ))?;
            found.insert(key.value().1, frame.value());
        }
        Ok(found)
    }

    /// Returns the versions to which threads are pinned.
    pub(crate) fn pinned(&self) -> Result<PinnedVersions, StoreError> {
        let records = self.transaction.open_table(RECORDS).map_err(redb_error(READ))?;
        let mut pinned = PinnedVersions { is_complete: true, ..PinnedVersions::default() };
        for entry in records.iter().map_err(redb_error(READ))? {
            let (key, packed) = entry.map_err(redb_error(READ))?;
            add_pin(&mut pinned, read(RECORD, (RECORDS_NAME, key.value()), packed.value()));
        }
        Ok(pinned)
    }

    /// Returns the record of a run.
    pub(crate) fn run(&self, run: &RunId) -> Result<Option<RunRecord>, StoreError> {
        let runs = self.transaction.open_table(RUNS).map_err(redb_error(READ))?;
        let key = run.as_str().as_bytes();
        let packed = runs.get(key).map_err(redb_error(READ))?;
        packed.map(|packed| read(RUN, (RUNS_NAME, key), packed.value())).transpose()
    }

    /// Returns the thread of a run, without decoding the rest of the record.
    pub(crate) fn thread_of_run(&self, run: &RunId) -> Result<Option<ThreadId>, StoreError> {
        let runs = self.transaction.open_table(RUNS).map_err(redb_error(READ))?;
        let key = run.as_str().as_bytes();
        let Some(stored) = runs.get(key).map_err(redb_error(READ))? else { return Ok(None) };
        let owner: RunOwner = read(RUN, (RUNS_NAME, key), stored.value())?;
        Ok(Some(owner.thread))
    }

    /// Returns the key of a run in the list of the runs of its thread.
    pub(crate) fn run_key(
        &self,
        number: u64,
        run: &RunId,
    ) -> Result<Option<(u64, u64)>, StoreError> {
        let thread_runs = self.transaction.open_table(THREAD_RUNS).map_err(redb_error(READ))?;
        let all = thread_runs.range((number, 0)..=(number, u64::MAX)).map_err(redb_error(READ))?;
        // The scan starts at the newest run, since a pending run is one of the newest.
        for entry in all.rev() {
            let (key, id) = entry.map_err(redb_error(READ))?;
            if id.value() == run.as_str().as_bytes() {
                return Ok(Some(key.value()));
            }
        }
        Ok(None)
    }

    /// Returns the runs whose records name a thread. Used if the list of the runs of the thread
    /// cannot be read.
    pub(crate) fn runs_that_name(&self, thread: &ThreadId) -> Result<Vec<RunId>, StoreError> {
        let runs = self.transaction.open_table(RUNS).map_err(redb_error(READ))?;
        let mut found = Vec::new();
        for entry in runs.iter().map_err(redb_error(READ))? {
            let (key, packed) = entry.map_err(redb_error(READ))?;
            let location = (RUNS_NAME, key.value());
            if let Ok(record) = read::<RunRecord>(RUN, location, packed.value())
                && record.thread == *thread
            {
                found.push(record.id);
            }
        }
        Ok(found)
    }

    /// Returns the runs of a thread, oldest first.
    pub(crate) fn runs(&self, thread: &ThreadId) -> Result<Vec<RunRecord>, StoreError> {
        let mut records = Vec::new();
        self.for_each_run(thread, |run| {
            records.push(run);
            Ok(())
        })?;
        Ok(records)
    }

    /// Visits the runs of a thread, oldest first.
    pub(crate) fn for_each_run(
        &self,
        thread: &ThreadId,
        mut visit: impl FnMut(RunRecord) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let Some(head) = self.head(thread)? else {
            return Ok(());
        };
        let runs = self.transaction.open_table(RUNS).map_err(redb_error(READ))?;
        let thread_runs = self.transaction.open_table(THREAD_RUNS).map_err(redb_error(READ))?;
        let all = (head.number, 0)..=(head.number, u64::MAX);
        for entry in thread_runs.range(all).map_err(redb_error(READ))? {
            let (_, id) = entry.map_err(redb_error(READ))?;
            let stored = stored_run(&runs, id.value())?;
            let run = (id.value(), stored.value());
            visit(run_of_thread(run, thread, |run: &RunRecord| &run.thread)?)?;
        }
        Ok(())
    }

    /// Returns the first mark at or after the event `seq`; `None` after the last mark.
    pub(crate) fn find_mark(
        &self,
        thread_number: u64,
        seq: u64,
    ) -> Result<Option<Mark>, StoreError> {
        let marks = self.transaction.open_table(MARKS).map_err(redb_error(READ))?;
        let later = (thread_number, seq)..=(thread_number, u64::MAX);
        let mut later = marks.range(later).map_err(redb_error(READ))?;
        let first = later.next().transpose().map_err(redb_error(READ))?;
        Ok(first.map(|(key, frame)| Mark { seq: key.value().1, frame: frame.value() }))
    }

    /// Returns whether a thread mentions a blob.
    pub(crate) fn mentions(&self, thread: &ThreadId, blob: Digest) -> Result<bool, StoreError> {
        let Some(head) = self.head(thread)? else {
            return Ok(false);
        };
        let mentions = self.transaction.open_table(MENTIONS).map_err(redb_error(READ))?;
        let found = mentions.get((head.number, *blob.as_bytes())).map_err(redb_error(READ))?;
        Ok(found.is_some())
    }

    /// Removes the blobs that any thread mentions from a set.
    pub(crate) fn remove_mentioned(&self, blobs: &mut HashSet<Digest>) -> Result<(), StoreError> {
        let mentions = self.transaction.open_table(MENTIONS).map_err(redb_error(READ))?;
        let mut raw: HashSet<[u8; 32]> = blobs.iter().map(|digest| *digest.as_bytes()).collect();
        for entry in mentions.iter().map_err(redb_error(READ))? {
            let (key, ()) = entry.map(|(key, _)| (key, ())).map_err(redb_error(READ))?;
            raw.remove(&key.value().1);
        }
        blobs.retain(|digest| raw.contains(digest.as_bytes()));
        Ok(())
    }
}

/// The thread in a run record.
#[derive(Deserialize)]
struct RunOwner {
    thread: ThreadId,
}

/// Returns the stored record of a run from the list of the runs of a thread.
pub(crate) fn stored_run(
    runs: &ReadOnlyTable<&'static [u8], &'static [u8]>,
    id: &[u8],
) -> Result<AccessGuard<'static, &'static [u8]>, StoreError> {
    let stored = runs.get(id).map_err(redb_error(READ))?;
    stored.ok_or_else(|| corrupt(named(RUN, id), "it is missing"))
}

/// Decodes the stored record of a run from the list of the runs of a thread, or a part of the
/// record. `owner` returns the thread that the decoded record names.
pub(crate) fn run_of_thread<T: DeserializeOwned>(
    (id, stored): (&[u8], &[u8]),
    thread: &ThreadId,
    owner: impl Fn(&T) -> &ThreadId,
) -> Result<T, StoreError> {
    let record: T = read(RUN, (RUNS_NAME, id), stored)?;
    if owner(&record) != thread {
        let message = format!("it belongs to thread `{}`, not `{thread}`", owner(&record));
        return Err(corrupt(named(RUN, id), message));
    }
    Ok(record)
}
