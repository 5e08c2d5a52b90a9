//! The file as it was at one commit, to read from.

use std::cell::Cell;
use std::collections::HashSet;
use std::sync::Arc;

use redb::{Database, ReadOnlyTable, ReadTransaction, ReadableDatabase, ReadableTable};
use wattle_graph::id::{Digest, RunId, ThreadId};
use wattle_run::ports::store::{RunRecord, StoreError, ThreadHead, ThreadQuery, ThreadRecord};

use crate::codec::unpack;
use crate::disk::chain::{Log, missing};
use crate::disk::head::Head;
use crate::disk::table::{HEADS, LOG, MARKS, MENTIONS, RECORDS, RUNS, THREAD_RUNS};
use crate::error::{backend, corrupt, while_trying};
use crate::query::{Summary, page, thread_matches};

const READ: &str = "read";

const RECORD: &str = "thread record";

/// Entries of the log in a glance: few enough that nobody waits for the disk for long.
const GLANCE_ENTRIES: usize = 32;

/// Their bytes: so few are decoded sooner than another thread takes over.
const GLANCE_BYTES: usize = 64 * 1024;

/// The file as it was at one commit.
pub(crate) struct Snapshot {
    transaction: ReadTransaction,
    log: ReadOnlyTable<u64, &'static [u8]>,
    /// What may still be read of the log, if that is limited.
    glance: Option<Cell<Glance>>,
    /// Last, so that it is let go when the read is over.
    _database: Arc<Database>,
}

/// What may still be read.
#[derive(Clone, Copy)]
struct Glance {
    entries: usize,
    bytes: usize,
    is_over: bool,
}

impl Glance {
    /// Without one entry more; an error if that is too much.
    fn take(&mut self, bytes: usize) -> Result<(), StoreError> {
        let left = (self.entries.checked_sub(1), self.bytes.checked_sub(bytes));
        let (Some(entries), Some(bytes)) = left else {
            self.is_over = true;
            return Err(backend(READ, "it is too much for a glance"));
        };
        (self.entries, self.bytes) = (entries, bytes);
        Ok(())
    }
}

impl Log for Snapshot {
    fn entry<T>(
        &self,
        number: u64,
        read: impl FnOnce(&[u8]) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let entry = self.log.get(number).map_err(while_trying(READ))?;
        let entry = entry.ok_or_else(|| missing(number))?;
        if let Some(cell) = &self.glance {
            let mut glance = cell.get();
            let taken = glance.take(entry.value().len());
            cell.set(glance);
            taken?;
        }
        read(entry.value())
    }
}

impl Snapshot {
    /// The newest state.
    pub(crate) fn take(database: Arc<Database>) -> Result<Self, StoreError> {
        let transaction = database.begin_read().map_err(while_trying(READ))?;
        let log = transaction.open_table(LOG).map_err(while_trying(READ))?;
        Ok(Self { transaction, log, glance: None, _database: database })
    }

    /// The same for a read that must be short: it fails if it is not.
    pub(crate) fn for_a_glance(mut self) -> Self {
        let glance = Glance { entries: GLANCE_ENTRIES, bytes: GLANCE_BYTES, is_over: false };
        self.glance = Some(Cell::new(glance));
        self
    }

    /// Whether a read failed since it was not short.
    pub(crate) fn was_too_much(&self) -> bool {
        self.glance.as_ref().is_some_and(|glance| glance.get().is_over)
    }

    /// Where a thread stands.
    pub(crate) fn head(&self, thread: &ThreadId) -> Result<Option<Head>, StoreError> {
        let heads = self.transaction.open_table(HEADS).map_err(while_trying(READ))?;
        let head = heads.get(thread.as_str().as_bytes()).map_err(while_trying(READ))?;
        head.map(|head| unpack("thread head", head.value())).transpose()
    }

    /// A thread as the port knows it.
    pub(crate) fn thread(&self, thread: &ThreadId) -> Result<Option<ThreadHead>, StoreError> {
        let Some(head) = self.head(thread)? else { return Ok(None) };
        let (record, _) = self.record(thread)?;
        Ok(Some(ThreadHead {
            record,
            last_seq: head.last_seq,
            last_checkpoint: head.last_checkpoint,
            current: head.current,
            pruned_seq: head.pruned_seq,
            seal: head.seal,
            pruned_seal: head.seal_before,
        }))
    }

    /// Bytes that a thread takes.
    pub(crate) fn stored_bytes(&self, thread: &ThreadId) -> Result<u64, StoreError> {
        let Some(head) = self.head(thread)? else { return Ok(0) };
        let (_, record_bytes) = self.record(thread)?;
        Ok(head.bytes + record_bytes)
    }

    /// Facts about a thread, and the bytes that they take.
    pub(crate) fn record(&self, thread: &ThreadId) -> Result<(ThreadRecord, u64), StoreError> {
        let records = self.transaction.open_table(RECORDS).map_err(while_trying(READ))?;
        let packed = records.get(thread.as_str().as_bytes()).map_err(while_trying(READ))?;
        let packed = packed.ok_or_else(|| corrupt(RECORD, "it is missing"))?;
        Ok((unpack(RECORD, packed.value())?, packed.value().len() as u64))
    }

    /// Threads that match. Where all of these are wanted, each is read once.
    pub(crate) fn threads(&self, query: &ThreadQuery) -> Result<Vec<ThreadRecord>, StoreError> {
        let records = self.transaction.open_table(RECORDS).map_err(while_trying(READ))?;
        let mut matching: Vec<(Summary, Option<ThreadRecord>)> = Vec::new();
        for entry in records.iter().map_err(while_trying(READ))? {
            let (_, packed) = entry.map_err(while_trying(READ))?;
            let summary: Summary = unpack(RECORD, packed.value())?;
            if thread_matches(query, &summary) {
                let is_wanted = query.limit.is_none();
                let record = is_wanted.then(|| unpack(RECORD, packed.value())).transpose()?;
                matching.push((summary, record));
            }
        }
        let page = page(query, matching);
        let read = |(id, known): (ThreadId, Option<ThreadRecord>)| match known {
            Some(record) => Ok(record),
            None => self.record(&id).map(|(record, _)| record),
        };
        page.map(read).collect()
    }

    /// A run.
    pub(crate) fn run(&self, run: &RunId) -> Result<Option<RunRecord>, StoreError> {
        let runs = self.transaction.open_table(RUNS).map_err(while_trying(READ))?;
        let packed = runs.get(run.as_str().as_bytes()).map_err(while_trying(READ))?;
        packed.map(|packed| unpack("run record", packed.value())).transpose()
    }

    /// Runs of a thread, oldest first.
    pub(crate) fn runs(&self, thread: &ThreadId) -> Result<Vec<RunRecord>, StoreError> {
        let mut runs = self.newest_runs(thread, 0, usize::MAX)?;
        runs.reverse();
        Ok(runs)
    }

    /// Runs of a thread, newest first, without the first so many.
    pub(crate) fn newest_runs(
        &self,
        thread: &ThreadId,
        skip: usize,
        limit: usize,
    ) -> Result<Vec<RunRecord>, StoreError> {
        let Some(head) = self.head(thread)? else { return Ok(Vec::new()) };
        let runs = self.transaction.open_table(RUNS).map_err(while_trying(READ))?;
        let thread_runs = self.transaction.open_table(THREAD_RUNS).map_err(while_trying(READ))?;
        let mut records = Vec::new();
        let all = (head.number, 0)..=(head.number, u64::MAX);
        let all = thread_runs.range(all).map_err(while_trying(READ))?;
        for entry in all.rev().skip(skip).take(limit) {
            let (_, id) = entry.map_err(while_trying(READ))?;
            let packed = runs.get(id.value()).map_err(while_trying(READ))?;
            let packed = packed.ok_or_else(|| corrupt("run record", "it is missing"))?;
            records.push(unpack("run record", packed.value())?);
        }
        Ok(records)
    }

    /// A frame near event `seq` that is not before it; `None` if it lies after the last mark.
    pub(crate) fn mark(&self, thread_number: u64, seq: u64) -> Result<Option<u64>, StoreError> {
        let marks = self.transaction.open_table(MARKS).map_err(while_trying(READ))?;
        let later = (thread_number, seq)..=(thread_number, u64::MAX);
        let mut later = marks.range(later).map_err(while_trying(READ))?;
        let first = later.next().transpose().map_err(while_trying(READ))?;
        Ok(first.map(|(_, frame)| frame.value()))
    }

    /// Whether a thread mentions a blob.
    pub(crate) fn mentions(&self, thread: &ThreadId, blob: Digest) -> Result<bool, StoreError> {
        let Some(head) = self.head(thread)? else { return Ok(false) };
        let mentions = self.transaction.open_table(MENTIONS).map_err(while_trying(READ))?;
        let found = mentions.get((head.number, *blob.as_bytes())).map_err(while_trying(READ))?;
        Ok(found.is_some())
    }

    /// Takes the blobs that any thread mentions out of a set.
    pub(crate) fn remove_mentioned(&self, blobs: &mut HashSet<Digest>) -> Result<(), StoreError> {
        let mentions = self.transaction.open_table(MENTIONS).map_err(while_trying(READ))?;
        let mut raw: HashSet<[u8; 32]> = blobs.iter().map(|digest| *digest.as_bytes()).collect();
        for entry in mentions.iter().map_err(while_trying(READ))? {
            let (key, ()) = entry.map(|(key, _)| (key, ())).map_err(while_trying(READ))?;
            raw.remove(&key.value().1);
        }
        blobs.retain(|digest| raw.contains(digest.as_bytes()));
        Ok(())
    }
}
