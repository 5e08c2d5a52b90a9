//! The write set of a commit, which is complete before any part of it is written.
//!
//! A write set is sorted, since redb inserts sorted keys much faster. It has one entry for each
//! key, however many batches write the key.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use redb::{Error, WriteTransaction};
use wattle_graph::id::{Digest, RunId, ThreadId};
use wattle_run::ports::store::{StoreError, ThreadRecord};

use crate::codec::{Packer, read, with_checksum};
use crate::disk::chain::LogReader;
use crate::disk::frame::{self, Body, Header};
use crate::disk::head::Head;
use crate::disk::snapshot::{RECORD, Snapshot};
use crate::disk::table::{
    ASIDE, FRAMES_PER_MARK, HEADS, HEADS_NAME, LOG, MARKS, MENTIONS, META, META_THREADS, ORPHANS,
    PENDING, RECORDS, RECORDS_NAME, RUNS, RUNS_NAME, THREAD_RUNS,
};
use crate::error::{backend, redb_error};

const OP_COMMIT: &str = "commit";

/// The write set of one commit.
#[derive(Debug, Default)]
pub(crate) struct WriteSet {
    pub(crate) log: BTreeMap<u64, Vec<u8>>,
    pub(crate) heads: BTreeMap<ThreadId, Head>,
    /// Records of threads, see [`stored_record`].
    pub(crate) records: BTreeMap<ThreadId, Vec<u8>>,
    pub(crate) runs: BTreeMap<RunId, StagedRun>,
    pub(crate) thread_runs: BTreeMap<(u64, u64), RunId>,
    /// Positions of pending runs; `None` for runs that are no longer pending.
    pub(crate) pending: BTreeMap<RunId, Option<u64>>,
    pub(crate) marks: BTreeMap<(u64, u64), u64>,
    pub(crate) mentions: BTreeSet<(u64, Digest)>,
    /// Newest frames of orphaned thread numbers; `None` for a thread number that is fully
    /// reclaimed.
    pub(crate) orphans: BTreeMap<u64, Option<u64>>,
    /// Thread numbers and positions of runs that are deleted while their thread is kept.
    pub(crate) deleted_thread_runs: Vec<(u64, u64)>,
    /// Deleted threads and runs.
    pub(crate) deleted: (Vec<ThreadId>, Vec<RunId>),
    /// Threads that this commit sets aside, each with the reason.
    pub(crate) aside: Vec<(ThreadId, String)>,
    /// Deleted threads that were set aside, whose ids may be used again.
    pub(crate) readmitted: Vec<ThreadId>,
    /// Highest assigned thread number, if it changed.
    pub(crate) last_thread_no: Option<u64>,
    /// Whether the log may already have later entries, as during a rewrite.
    pub(crate) has_later_entries: bool,
    /// Bytes of all chunks in `log`.
    pub(crate) log_bytes: usize,
}

/// A staged run record.
#[derive(Debug)]
pub(crate) struct StagedRun {
    pub(crate) thread: ThreadId,
    /// The packed record with its checksum.
    stored: Vec<u8>,
}

impl StagedRun {
    /// Creates the staged record of a run from its packed record.
    pub(crate) fn new(thread: ThreadId, run: &RunId, packed: &[u8]) -> Self {
        Self { thread, stored: with_checksum(RUNS_NAME, run.as_str().as_bytes(), packed) }
    }
}

/// Returns the packed record of a thread with its checksum.
pub(crate) fn stored_record(thread: &ThreadId, packed: &[u8]) -> Vec<u8> {
    with_checksum(RECORDS_NAME, thread.as_str().as_bytes(), packed)
}

impl WriteSet {
    /// Stages a frame as the newest one of its thread.
    pub(crate) fn add_frame(
        &mut self,
        head: &mut Head,
        next_entry: &mut u64,
        mut header: Header,
        body: &Body,
    ) {
        header.previous = head.frame;
        head.frame = *next_entry;
        head.frames += 1;
        head.last_seq = header.last_seq;
        head.seal = header.seal;
        for chunk in frame::write(header, body, head.frame) {
            head.bytes += chunk.len() as u64;
            self.log_bytes += chunk.len();
            self.log.insert(*next_entry, chunk);
            *next_entry += 1;
        }
        if head.frames.is_multiple_of(FRAMES_PER_MARK) {
            self.marks.insert((head.number, head.last_seq), head.frame);
        }
    }

    /// Writes the set into a transaction.
    pub(crate) fn write(&self, transaction: &WriteTransaction) -> Result<(), StoreError> {
        let mut packer = Packer::default();
        let mut heads = Vec::with_capacity(self.heads.len());
        for (thread, head) in &self.heads {
            let packed = packer.pack(head).map_err(|message| backend(OP_COMMIT, message))?;
            heads.push((thread, packed));
        }
        self.write_log(transaction).map_err(redb_error(OP_COMMIT))?;
        self.write_deletions(transaction).map_err(redb_error(OP_COMMIT))?;
        self.write_records(transaction, &heads).map_err(redb_error(OP_COMMIT))?;
        self.write_indexes(transaction).map_err(redb_error(OP_COMMIT))
    }

    /// Writes the log entries. Most commits only append to the log, and a cursor then inserts all
    /// entries in one pass.
    fn write_log(&self, transaction: &WriteTransaction) -> Result<(), Error> {
        if self.log.is_empty() {
            return Ok(());
        }
        let mut log = transaction.open_table(LOG)?;
        if self.has_later_entries {
            for (number, chunk) in &self.log {
                log.insert(number, chunk.as_slice())?;
            }
            return Ok(());
        }
        let mut end = log.upper_bound_mut(Bound::<u64>::Unbounded)?;
        for (number, chunk) in &self.log {
            end.insert_before(number, chunk.as_slice())?;
        }
        end.close()?;
        Ok(())
    }

    fn write_deletions(&self, transaction: &WriteTransaction) -> Result<(), Error> {
        let (threads, runs) = &self.deleted;
        if !threads.is_empty() {
            let mut heads = transaction.open_table(HEADS)?;
            let mut records = transaction.open_table(RECORDS)?;
            for thread in threads {
                heads.remove(thread.as_str().as_bytes())?;
                records.remove(thread.as_str().as_bytes())?;
            }
        }
        if !self.readmitted.is_empty() {
            let mut aside = transaction.open_table(ASIDE)?;
            for thread in &self.readmitted {
                aside.remove(thread.as_str().as_bytes())?;
            }
        }
        if !runs.is_empty() {
            let mut table = transaction.open_table(RUNS)?;
            let mut pending = transaction.open_table(PENDING)?;
            for run in runs {
                table.remove(run.as_str().as_bytes())?;
                pending.remove(run.as_str().as_bytes())?;
            }
        }
        if !self.deleted_thread_runs.is_empty() {
            let mut table = transaction.open_table(THREAD_RUNS)?;
            for key in &self.deleted_thread_runs {
                table.remove(key)?;
            }
        }
        if !self.orphans.is_empty() {
            let mut table = transaction.open_table(ORPHANS)?;
            for (number, frame) in &self.orphans {
                match frame {
                    Some(frame) => drop(table.insert(number, frame)?),
                    None => drop(table.remove(number)?),
                }
            }
        }
        Ok(())
    }

    fn write_records(
        &self,
        transaction: &WriteTransaction,
        packed_heads: &[(&ThreadId, Vec<u8>)],
    ) -> Result<(), Error> {
        let mut heads = transaction.open_table(HEADS)?;
        for (thread, packed) in packed_heads {
            let key = thread.as_str().as_bytes();
            heads.insert(key, with_checksum(HEADS_NAME, key, packed).as_slice())?;
        }
        if !self.records.is_empty() {
            let mut records = transaction.open_table(RECORDS)?;
            for (thread, stored) in &self.records {
                records.insert(thread.as_str().as_bytes(), stored.as_slice())?;
            }
        }
        if !self.runs.is_empty() {
            let mut runs = transaction.open_table(RUNS)?;
            for (run, staged) in &self.runs {
                runs.insert(run.as_str().as_bytes(), staged.stored.as_slice())?;
            }
        }
        if !self.aside.is_empty() {
            let mut aside = transaction.open_table(ASIDE)?;
            for (thread, reason) in &self.aside {
                aside.insert(thread.as_str().as_bytes(), reason.as_str())?;
            }
        }
        if let Some(last_thread_no) = self.last_thread_no {
            transaction.open_table(META)?.insert(META_THREADS, last_thread_no)?;
        }
        Ok(())
    }

    fn write_indexes(&self, transaction: &WriteTransaction) -> Result<(), Error> {
        if !self.thread_runs.is_empty() {
            let mut thread_runs = transaction.open_table(THREAD_RUNS)?;
            for (key, run) in &self.thread_runs {
                thread_runs.insert(key, run.as_str().as_bytes())?;
            }
        }
        if !self.pending.is_empty() {
            let mut pending = transaction.open_table(PENDING)?;
            for (run, position) in &self.pending {
                let key = run.as_str().as_bytes();
                match position {
                    Some(position) => drop(pending.insert(key, position)?),
                    None => drop(pending.remove(key)?),
                }
            }
        }
        if !self.marks.is_empty() {
            let mut marks = transaction.open_table(MARKS)?;
            for (key, frame) in &self.marks {
                marks.insert(key, frame)?;
            }
        }
        if !self.mentions.is_empty() {
            let mut mentions = transaction.open_table(MENTIONS)?;
            for (thread, digest) in &self.mentions {
                mentions.insert((*thread, *digest.as_bytes()), ())?;
            }
        }
        Ok(())
    }
}

/// Reads frames from a write set that is not yet written, and all other frames from a snapshot.
pub(crate) struct Overlay<'a> {
    pub(crate) write_set: &'a WriteSet,
    pub(crate) snapshot: &'a Snapshot,
}

impl Overlay<'_> {
    /// Returns the record of a thread.
    pub(crate) fn record(&self, thread: &ThreadId) -> Result<ThreadRecord, StoreError> {
        match self.write_set.records.get(thread) {
            Some(stored) => read(RECORD, (RECORDS_NAME, thread.as_str().as_bytes()), stored),
            None => self.snapshot.record(thread).map(|(record, _)| record),
        }
    }
}

impl LogReader for Overlay<'_> {
    fn entry<T>(
        &self,
        number: u64,
        read: impl FnOnce(&[u8]) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        match self.write_set.log.get(&number) {
            Some(chunk) => read(chunk),
            None => self.snapshot.entry(number, read),
        }
    }
}
