//! Staging: validates batches against their threads and adds them to the open commit group. A batch
//! is staged completely or not at all.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use wattle_graph::id::{ChannelName, CheckpointId, Digest, Namespace, RunId, ThreadId};
use wattle_run::ports::store::{Batch, StoreError};

use crate::disk::delta::ChainStats;
use crate::disk::encode::EncodedBatch;
use crate::disk::frame::{Body, FrameIndex, Header};
use crate::disk::head::Head;
use crate::disk::prepare::{Prepared, prepare};
use crate::disk::snapshot::Snapshot;
use crate::disk::stage::{Ahead, Stage, StagedRun};
use crate::file::handle::Handle;
use crate::validate;

/// Maximum number of cached threads, of a few hundred bytes each. At the limit, all threads without
/// staged batches leave the cache.
pub(crate) const HEAD_LIMIT: usize = 16 * 1024;

/// Log entries reserved for one rewrite of a thread. No thread needs this many, and the 64-bit key
/// space holds 2^32 reservations.
const RESERVED: u64 = 1 << 32;

/// The state that the writer keeps between commits.
#[derive(Debug)]
pub(crate) struct Intake {
    /// Cached threads, staged batches included.
    known: HashMap<ThreadId, Known>,
    /// The next free entry of the log.
    next_entry: u64,
    /// Highest assigned thread number.
    threads: u64,
}

/// A cached thread, staged batches included.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    pub(crate) head: Head,
    /// Frames of the values of the newest checkpoint, by version, if it was written recently.
    pub(crate) frame_index: FrameIndex,
    /// How the lists of the newest checkpoint are stored.
    pub(crate) lists: BTreeMap<ChannelName, List>,
}

/// How a version of a list is stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    pub(crate) version: CheckpointId,
    pub(crate) frame_no: u64,
    pub(crate) chain: ChainStats,
}

/// An open commit group.
pub(crate) struct Group {
    handle: Arc<Handle>,
    /// Opened when it is first needed: cached threads need none.
    snapshot: Option<Snapshot>,
    pub(crate) stage: Stage,
}

impl Group {
    /// Creates an empty group.
    pub(crate) fn new(handle: Arc<Handle>) -> Self {
        Self { handle, snapshot: None, stage: Stage::default() }
    }

    /// Stages the deletion of a run from the thread with a number.
    pub(crate) fn forget_run(&mut self, number: u64, run: &RunId) -> Result<(), StoreError> {
        let staged = self.stage.thread_runs.iter().find(|(key, id)| key.0 == number && *id == run);
        let key = match staged.map(|(key, _)| *key) {
            Some(key) => Some(key),
            None => self.ahead()?.snapshot.run_key(number, run)?,
        };
        if let Some(key) = key {
            self.stage.thread_runs.remove(&key);
            self.stage.gone_runs.push(key);
        }
        self.stage.runs.remove(run);
        self.stage.gone.1.push(run.clone());
        Ok(())
    }

    /// Returns the log, staged entries included.
    pub(crate) fn ahead(&mut self) -> Result<Ahead<'_>, StoreError> {
        let snapshot = match self.snapshot.take() {
            Some(snapshot) => snapshot,
            None => Snapshot::open(self.handle.clone())?,
        };
        Ok(Ahead { stage: &self.stage, snapshot: self.snapshot.insert(snapshot) })
    }
}

impl Intake {
    /// Creates the state from the next free log entry and the highest thread number of the file.
    pub(crate) fn new(next_entry: u64, threads: u64) -> Self {
        Self { known: HashMap::new(), next_entry, threads }
    }

    /// Caches a thread, staged batches included.
    pub(crate) fn remember(&mut self, thread: &ThreadId, known: Known) {
        self.known.insert(thread.clone(), known);
    }

    /// Removes a thread from the cache.
    pub(crate) fn forget(&mut self, thread: &ThreadId) {
        self.known.remove(thread);
    }

    /// Reserves log entries and a thread number for a rewrite. Returns the first entry and the
    /// number.
    pub(crate) fn reserve(&mut self) -> (u64, u64) {
        let first = self.next_entry;
        self.next_entry += RESERVED;
        self.threads += 1;
        (first, self.threads)
    }

    /// Returns the highest assigned thread number.
    pub(crate) fn threads(&self) -> u64 {
        self.threads
    }

    /// Clears the cache after a failed commit and continues after the entries of the file.
    /// Reservations stay valid.
    pub(crate) fn start_over(&mut self, next_entry: u64, threads: u64) {
        self.known.clear();
        self.next_entry = self.next_entry.max(next_entry);
        self.threads = self.threads.max(threads);
    }

    /// Clears the cache.
    pub(crate) fn forget_all(&mut self) {
        self.known.clear();
    }

    /// Stages an encoded batch. Returns the newest sequence number of the thread. After an error,
    /// nothing of the batch is staged.
    pub(crate) fn take(
        &mut self,
        group: &mut Group,
        thread: &ThreadId,
        batch: &Batch,
        encoded: Result<EncodedBatch, String>,
    ) -> Result<u64, StoreError> {
        let known = self.known(group, thread)?;
        validate::batch(thread, known.as_ref().map(|known| known.head.log_position()), batch)?;
        let is_new = known.is_none();
        let mut known = known.unwrap_or_default();
        let prepared = prepare(group, thread, &known, batch, encoded, self.next_entry)?;
        // From here on nothing fails.
        if is_new {
            self.threads += 1;
            known.head.number = self.threads;
            group.stage.threads = Some(self.threads);
        }
        self.stage(&mut group.stage, thread, &mut known, batch, prepared);
        let last_seq = known.head.last_seq;
        self.known.insert(thread.clone(), known);
        Ok(last_seq)
    }

    fn stage(
        &mut self,
        stage: &mut Stage,
        thread: &ThreadId,
        known: &mut Known,
        batch: &Batch,
        prepared: Prepared,
    ) {
        let number = known.head.number;
        stage.mentions.extend(prepared.mentions.into_iter().map(|digest| (number, digest)));
        if let Some(record) = prepared.record {
            stage.records.insert(thread.clone(), record);
        }
        if let (Some(run), Some(packed)) = (&batch.run, prepared.run) {
            if prepared.is_new_run {
                stage.thread_runs.insert((number, known.head.runs), run.id.clone());
                known.head.runs += 1;
            }
            stage.runs.insert(run.id.clone(), StagedRun { thread: thread.clone(), packed });
        }
        self.add_frame(stage, known, batch, (prepared.body, prepared.seal));
        if batch.checkpoint.is_some() {
            known.lists = prepared.lists;
        }
        known.head.current = batch.current.or(known.head.current);
        stage.heads.insert(thread.clone(), known.head.clone());
    }

    /// Returns a thread, staged batches included.
    pub(crate) fn known(
        &mut self,
        group: &mut Group,
        thread: &ThreadId,
    ) -> Result<Option<Known>, StoreError> {
        if let Some(known) = self.known.get(thread) {
            return Ok(Some(known.clone()));
        }
        if self.known.len() >= HEAD_LIMIT {
            let staged = &group.stage.heads;
            self.known.retain(|thread, _| staged.contains_key(thread));
        }
        let head = group.ahead()?.snapshot.head(thread)?;
        Ok(head.map(|head| Known { head, ..Known::default() }))
    }

    /// Stages the frame of a batch. A batch with neither events nor a checkpoint changes records
    /// only and needs no frame.
    fn add_frame(
        &mut self,
        stage: &mut Stage,
        known: &mut Known,
        batch: &Batch,
        (body, seal): (Body, Digest),
    ) {
        let head = &mut known.head;
        let meta = batch.checkpoint.as_ref().map(|checkpoint| &checkpoint.meta);
        if batch.events.is_empty() && meta.is_none() {
            return;
        }
        let header = Header {
            base: batch.base,
            checkpoint: meta.map(|meta| meta.id),
            after_seq: head.last_seq,
            last_seq: batch.events.last().map_or(head.last_seq, |event| event.seq),
            namespace: meta.map(|meta| meta.namespace.as_str().to_owned()).unwrap_or_default(),
            seal: Some(seal),
            ..Header::default()
        };
        stage.add_frame(head, &mut self.next_entry, header, &body);
        if let Some(meta) = meta {
            head.last_checkpoint = Some(meta.id);
            if meta.namespace == Namespace::root() {
                head.current = Some(meta.id);
            }
            known.frame_index = body.frame_index;
            known.frame_index.insert(meta.id, head.frame);
        }
    }
}
