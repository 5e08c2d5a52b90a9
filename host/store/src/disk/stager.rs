//! Staging: validates batches against their threads and adds them to the open commit group. A batch
//! is staged completely or not at all.

use std::collections::HashMap;

use wattle_graph::id::{Digest, Namespace, ThreadId};
use wattle_run::ports::store::{Batch, StoreError};

use crate::disk::commit_group::{CachedThread, CommitGroup};
use crate::disk::encode::EncodedBatch;
use crate::disk::frame::{Body, Header};
use crate::disk::seal::{SealedBatch, seal_batch};
use crate::disk::write_set::WriteSet;
use crate::validate;

/// Maximum number of cached threads, of a few hundred bytes each. At the limit, all threads without
/// staged batches leave the cache.
pub(crate) const MAX_CACHED_THREADS: usize = 16 * 1024;

/// Number of log entries that each rewrite of a thread (for a prune or a copy) reserves for the
/// frames that it writes. No thread has this many frames, and the 64-bit keys of the log suffice
/// for 2^32 reservations.
const RESERVED_ENTRIES: u64 = 1 << 32;

/// The state that the writer keeps between commits.
#[derive(Debug)]
pub(crate) struct Stager {
    /// Cached threads, staged batches included.
    cached: HashMap<ThreadId, CachedThread>,
    /// The next free entry of the log.
    next_entry: u64,
    /// Highest assigned thread number.
    last_thread_no: u64,
}

impl Stager {
    /// Creates the state from the next free log entry and the highest thread number of the file.
    pub(crate) fn new(next_entry: u64, last_thread_no: u64) -> Self {
        Self { cached: HashMap::new(), next_entry, last_thread_no }
    }

    /// Caches a thread, staged batches included.
    pub(crate) fn cache(&mut self, thread: &ThreadId, cached: CachedThread) {
        self.cached.insert(thread.clone(), cached);
    }

    /// Removes a thread from the cache.
    pub(crate) fn evict(&mut self, thread: &ThreadId) {
        self.cached.remove(thread);
    }

    /// Reserves log entries and a thread number for a rewrite. Returns the first entry and the
    /// number.
    pub(crate) fn reserve_entries(&mut self) -> (u64, u64) {
        let first = self.next_entry;
        self.next_entry += RESERVED_ENTRIES;
        self.last_thread_no += 1;
        (first, self.last_thread_no)
    }

    /// Returns the highest assigned thread number.
    pub(crate) fn last_thread_no(&self) -> u64 {
        self.last_thread_no
    }

    /// Clears the cache after a failed commit and continues after the entries of the file.
    /// Reservations stay valid.
    pub(crate) fn reset(&mut self, next_entry: u64, last_thread_no: u64) {
        self.cached.clear();
        self.next_entry = self.next_entry.max(next_entry);
        self.last_thread_no = self.last_thread_no.max(last_thread_no);
    }

    /// Clears the cache.
    pub(crate) fn clear_cache(&mut self) {
        self.cached.clear();
    }

    /// Stages an encoded batch. Returns the newest sequence number of the thread. After an error,
    /// nothing of the batch is staged.
    pub(crate) fn stage_batch(
        &mut self,
        group: &mut CommitGroup,
        thread: &ThreadId,
        batch: &Batch,
        encoded: Result<EncodedBatch, String>,
    ) -> Result<u64, StoreError> {
        self.load(group, thread)?;
        let (cached, none) = (self.cached.get(thread), CachedThread::default());
        validate::batch(thread, cached.map(|cached| cached.head.log_position()), batch)?;
        let is_new = cached.is_none();
        let cached = cached.unwrap_or(&none);
        let sealed = seal_batch(group, thread, cached, batch, encoded, self.next_entry)?;
        // No statement after this point fails.
        let cached = self.cached.entry(thread.clone()).or_default();
        if is_new {
            self.last_thread_no += 1;
            cached.head.number = self.last_thread_no;
            group.write_set.last_thread_no = Some(self.last_thread_no);
        }
        let (write_set, next_entry) = (&mut group.write_set, &mut self.next_entry);
        Self::add_to_write_set(write_set, next_entry, thread, cached, batch, sealed);
        Ok(cached.head.last_seq)
    }

    fn add_to_write_set(
        write_set: &mut WriteSet,
        next_entry: &mut u64,
        thread: &ThreadId,
        cached: &mut CachedThread,
        batch: &Batch,
        sealed: SealedBatch,
    ) {
        let number = cached.head.number;
        write_set.mentions.extend(sealed.mentions.into_iter().map(|digest| (number, digest)));
        if let Some(record) = sealed.record {
            write_set.records.insert(thread.clone(), record);
        }
        if let (Some(run), Some(staged)) = (&batch.run, sealed.run) {
            if sealed.is_new_run {
                write_set.thread_runs.insert((number, cached.head.runs), run.id.clone());
                cached.head.runs += 1;
            }
            write_set.runs.insert(run.id.clone(), staged);
        }
        Self::add_frame(write_set, next_entry, cached, batch, (sealed.body, sealed.seal));
        if batch.checkpoint.is_some() {
            cached.lists = sealed.lists;
        }
        cached.head.current = batch.current.or(cached.head.current);
        write_set.heads.insert(thread.clone(), cached.head.clone());
    }

    /// Returns a thread, staged batches included.
    pub(crate) fn thread(
        &mut self,
        group: &mut CommitGroup,
        thread: &ThreadId,
    ) -> Result<Option<CachedThread>, StoreError> {
        self.load(group, thread)?;
        Ok(self.cached.get(thread).cloned())
    }

    /// Caches a thread that exists.
    fn load(&mut self, group: &mut CommitGroup, thread: &ThreadId) -> Result<(), StoreError> {
        if self.cached.contains_key(thread) {
            return Ok(());
        }
        if self.cached.len() >= MAX_CACHED_THREADS {
            let staged = &group.write_set.heads;
            self.cached.retain(|thread, _| staged.contains_key(thread));
        }
        if let Some(head) = group.overlay()?.snapshot.head(thread)? {
            self.cache(thread, CachedThread { head, ..CachedThread::default() });
        }
        Ok(())
    }

    /// Stages the frame of a batch. A batch with neither events nor a checkpoint changes records
    /// only and needs no frame.
    fn add_frame(
        write_set: &mut WriteSet,
        next_entry: &mut u64,
        cached: &mut CachedThread,
        batch: &Batch,
        (body, seal): (Body, Digest),
    ) {
        let head = &mut cached.head;
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
        write_set.add_frame(head, next_entry, header, &body);
        if let Some(meta) = meta {
            head.last_checkpoint = Some(meta.id);
            if meta.namespace == Namespace::root() {
                head.current = Some(meta.id);
            }
            cached.frame_index = body.frame_index;
            cached.frame_index.insert(meta.id, head.frame);
        }
    }
}
