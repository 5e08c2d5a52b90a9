//! Everything that one commit writes, gathered before any of it is written.
//!
//! Sorted, since redb takes sorted keys much faster, and one entry per key however many batches
//! touch it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use redb::{Error, WriteTransaction};
use wattle_graph::id::{Digest, RunId, ThreadId};
use wattle_run::ports::store::StoreError;

use crate::codec::{Packer, checked};
use crate::disk::chain::Log;
use crate::disk::frame::{self, Body, Header};
use crate::disk::head::Head;
use crate::disk::snapshot::Snapshot;
use crate::disk::table::{
    ASIDE, FACT_THREADS, FACTS, HEADS, IN_HEADS, IN_RECORDS, IN_RUNS, LOG, MARK_EVERY, MARKS,
    MENTIONS, PENDING, RECORDS, REMAINS, RUNS, THREAD_RUNS,
};
use crate::error::{backend, while_trying};

const COMMIT: &str = "commit";

/// What one commit writes.
#[derive(Debug, Default)]
pub(crate) struct Stage {
    pub(crate) log: BTreeMap<u64, Vec<u8>>,
    pub(crate) heads: BTreeMap<ThreadId, Head>,
    pub(crate) records: BTreeMap<ThreadId, Vec<u8>>,
    pub(crate) runs: BTreeMap<RunId, StagedRun>,
    pub(crate) thread_runs: BTreeMap<(u64, u64), RunId>,
    /// Places of pending runs; none of those that are pending no more.
    pub(crate) pending: BTreeMap<RunId, Option<u64>>,
    pub(crate) marks: BTreeMap<(u64, u64), u64>,
    pub(crate) mentions: BTreeSet<(u64, Digest)>,
    /// Newest frames of threads that are gone or not there yet; none where nothing is left.
    pub(crate) remains: BTreeMap<u64, Option<u64>>,
    /// Thread numbers and positions of runs that go while their thread stays.
    pub(crate) gone_runs: Vec<(u64, u64)>,
    /// Threads and runs that go.
    pub(crate) gone: (Vec<ThreadId>, Vec<RunId>),
    /// Threads that are set aside from now on, each with the reason.
    pub(crate) aside: Vec<(ThreadId, String)>,
    /// Threads that were set aside and are deleted, so that their ids may be used again.
    pub(crate) readmitted: Vec<ThreadId>,
    /// The highest thread number, if it changed.
    pub(crate) threads: Option<u64>,
    /// Whether the frames stand before others that were written meanwhile.
    pub(crate) is_amid: bool,
    /// Bytes of all chunks in `log`.
    pub(crate) log_bytes: usize,
}

/// A run that is to be written.
#[derive(Debug)]
pub(crate) struct StagedRun {
    pub(crate) thread: ThreadId,
    pub(crate) packed: Vec<u8>,
}

impl Stage {
    /// Stages a frame as its thread's newest.
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
        if head.frames.is_multiple_of(MARK_EVERY) {
            self.marks.insert((head.number, head.last_seq), head.frame);
        }
    }

    /// Writes everything into a transaction.
    pub(crate) fn write(&self, transaction: &WriteTransaction) -> Result<(), StoreError> {
        let mut packer = Packer::default();
        let mut heads = Vec::with_capacity(self.heads.len());
        for (thread, head) in &self.heads {
            let packed = packer.pack(head).map_err(|message| backend(COMMIT, message))?;
            heads.push((thread, packed));
        }
        self.append(transaction).map_err(while_trying(COMMIT))?;
        self.remove(transaction).map_err(while_trying(COMMIT))?;
        self.update(transaction, &heads).map_err(while_trying(COMMIT))?;
        self.index(transaction).map_err(while_trying(COMMIT))
    }

    /// The log grows at its end only: a cursor puts all new entries there in one go.
    fn append(&self, transaction: &WriteTransaction) -> Result<(), Error> {
        if self.log.is_empty() {
            return Ok(());
        }
        let mut log = transaction.open_table(LOG)?;
        if self.is_amid {
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

    fn remove(&self, transaction: &WriteTransaction) -> Result<(), Error> {
        let (threads, runs) = &self.gone;
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
        if !self.gone_runs.is_empty() {
            let mut table = transaction.open_table(THREAD_RUNS)?;
            for key in &self.gone_runs {
                table.remove(key)?;
            }
        }
        if !self.remains.is_empty() {
            let mut table = transaction.open_table(REMAINS)?;
            for (number, frame) in &self.remains {
                match frame {
                    Some(frame) => drop(table.insert(number, frame)?),
                    None => drop(table.remove(number)?),
                }
            }
        }
        Ok(())
    }

    fn update(
        &self,
        transaction: &WriteTransaction,
        packed_heads: &[(&ThreadId, Vec<u8>)],
    ) -> Result<(), Error> {
        let mut heads = transaction.open_table(HEADS)?;
        for (thread, packed) in packed_heads {
            let key = thread.as_str().as_bytes();
            heads.insert(key, checked(IN_HEADS, key, packed).as_slice())?;
        }
        if !self.records.is_empty() {
            let mut records = transaction.open_table(RECORDS)?;
            for (thread, packed) in &self.records {
                let key = thread.as_str().as_bytes();
                records.insert(key, checked(IN_RECORDS, key, packed).as_slice())?;
            }
        }
        if !self.runs.is_empty() {
            let mut runs = transaction.open_table(RUNS)?;
            for (run, staged) in &self.runs {
                let key = run.as_str().as_bytes();
                runs.insert(key, checked(IN_RUNS, key, &staged.packed).as_slice())?;
            }
        }
        if !self.aside.is_empty() {
            let mut aside = transaction.open_table(ASIDE)?;
            for (thread, reason) in &self.aside {
                aside.insert(thread.as_str().as_bytes(), reason.as_str())?;
            }
        }
        if let Some(threads) = self.threads {
            transaction.open_table(FACTS)?.insert(FACT_THREADS, threads)?;
        }
        Ok(())
    }

    fn index(&self, transaction: &WriteTransaction) -> Result<(), Error> {
        if !self.thread_runs.is_empty() {
            let mut thread_runs = transaction.open_table(THREAD_RUNS)?;
            for (key, run) in &self.thread_runs {
                thread_runs.insert(key, run.as_str().as_bytes())?;
            }
        }
        if !self.pending.is_empty() {
            let mut pending = transaction.open_table(PENDING)?;
            for (run, place) in &self.pending {
                let key = run.as_str().as_bytes();
                match place {
                    Some(place) => drop(pending.insert(key, place)?),
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

/// The log with the entries that are about to be written.
pub(crate) struct Ahead<'a> {
    pub(crate) stage: &'a Stage,
    pub(crate) snapshot: &'a Snapshot,
}

impl Log for Ahead<'_> {
    fn entry<T>(
        &self,
        number: u64,
        read: impl FnOnce(&[u8]) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        match self.stage.log.get(&number) {
            Some(chunk) => read(chunk),
            None => self.snapshot.entry(number, read),
        }
    }
}
