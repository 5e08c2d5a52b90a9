//! A thread in memory.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;

use wattle_graph::checkpoint::{ChannelValue, Checkpoint, ListDelta, SharedList};
use wattle_graph::event::Event;
use wattle_graph::id::{ChannelName, CheckpointId, Digest, Namespace, RunId, ThreadId};
use wattle_run::json::approx_bytes;
use wattle_run::limit::{HISTORY_BYTES, PAGE_EVENT_BYTES};
use wattle_run::log::event_memory_bytes;
use wattle_run::ports::store::{
    Batch, BatchPage, CheckpointOutline, CheckpointParts, CheckpointQuery, CheckpointTuple,
    ListPage, SealReport, StoreError, ThreadHead, ThreadRecord,
};

use crate::codec::{Packer, json_bytes};
use crate::error::{corrupt, invalid};
use crate::in_memory::frame::{ChannelPart, Frame, StoredCheckpoint};
use crate::page::{PageBuilder, batch_memory_bytes, checkpoint_memory_bytes, events_memory_bytes};
use crate::query::checkpoint_matches;
use crate::retention_plan::BatchSummary;
use crate::validate::{self, LogPosition};

/// A thread with its history.
#[derive(Debug)]
pub(super) struct Thread {
    /// Thread number; a rewrite assigns a new number.
    pub(super) number: u64,
    pub(super) head: ThreadHead,
    /// Runs of the thread, oldest first.
    pub(super) runs: Vec<RunId>,
    /// Blobs that the batches of the thread mention.
    pub(super) mentions: BTreeSet<Digest>,
    pub(super) frames: Vec<Frame>,
    /// Positions of the frames with checkpoints.
    checkpoints: BTreeMap<CheckpointId, usize>,
    /// Positions of frames by the base of their events.
    pending: BTreeMap<CheckpointId, Vec<usize>>,
    values: HashMap<(ChannelName, CheckpointId), ChannelValue>,
}

/// A batch whose references to the history of its thread are resolved.
#[derive(Debug)]
pub(super) struct ResolvedBatch {
    expected_end: Option<LogEnd>,
    checkpoint: Option<StoredCheckpoint>,
}

/// The end of a thread, which the next batch follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LogEnd {
    number: u64,
    seal: Option<Digest>,
    last_seq: u64,
}

/// A batch that is validated and encoded, but not applied.
#[derive(Debug)]
pub(super) struct EncodedBatch {
    /// Where the event log of the thread must end when the batch is applied.
    pub(super) expected_end: Option<LogEnd>,
    mentions: BTreeSet<Digest>,
    frame: Option<Frame>,
}

/// Checks the parts of a batch that depend on the history of its thread.
pub(super) fn resolve_batch(
    id: &ThreadId,
    thread: Option<&Thread>,
    batch: &Batch,
) -> Result<ResolvedBatch, StoreError> {
    if let Some(current) = batch.current {
        let stored = thread.and_then(|thread| thread.stored_checkpoint(current));
        let stored = stored.ok_or_else(|| validate::no_checkpoint_error(id, current))?;
        if stored.meta.namespace != Namespace::root() {
            return Err(validate::not_root_error(id, current));
        }
    }
    let checkpoint = match &batch.checkpoint {
        Some(checkpoint) => Some(resolve_checkpoint(id, thread, checkpoint)?),
        None => None,
    };
    Ok(ResolvedBatch { expected_end: thread.map(Thread::log_end), checkpoint })
}

impl ResolvedBatch {
    /// Encodes the batch, which shows whether it can be stored. The encoding can take long and does
    /// not access the thread.
    pub(super) fn encode(self, id: &ThreadId, batch: &Batch) -> Result<EncodedBatch, StoreError> {
        let Self { expected_end, checkpoint } = self;
        let refusal = |message: String| invalid(id, message);
        let mut packer = Packer::default();
        if let Some(record) = &batch.record {
            packer.measure(record).map_err(refusal)?;
        }
        if let Some(run) = &batch.run {
            packer.measure(run).map_err(refusal)?;
        }
        let mut frame = None;
        if !batch.events.is_empty() || checkpoint.is_some() {
            let (seal, last_seq) = expected_end.map_or((None, 0), |end| (end.seal, end.last_seq));
            let new =
                Frame::new(&mut packer, seal, last_seq, batch.base, &batch.events, checkpoint);
            frame = Some(new.map_err(refusal)?);
        }
        Ok(EncodedBatch { expected_end, mentions: packer.mentions, frame })
    }
}

/// Returns the part of a checkpoint that is written: its `CheckpointMeta` and the channels that it
/// changed.
fn resolve_checkpoint(
    id: &ThreadId,
    thread: Option<&Thread>,
    checkpoint: &Checkpoint,
) -> Result<StoredCheckpoint, StoreError> {
    let Checkpoint { meta, values, list_deltas: deltas, .. } = checkpoint;
    for (channel, version) in &meta.versions {
        let exists = || thread.is_some_and(|thread| thread.has_version(channel, *version));
        if *version != meta.id && !exists() {
            return Err(validate::no_checkpoint_error(id, *version));
        }
    }
    let mut parts = BTreeMap::new();
    for channel in meta.written_channels() {
        if let Some(value) = values.get(channel) {
            let delta = deltas.get(channel).filter(|delta| {
                let base = thread.and_then(|thread| thread.value(channel, delta.base));
                extends_base(base, value, delta)
            });
            let (value, delta) = (value.clone(), delta.copied());
            parts.insert(channel.clone(), ChannelPart { value, delta });
        }
    }
    Ok(StoredCheckpoint { meta: meta.clone(), parts })
}

/// Returns whether a list delta fits an earlier version and the new value.
fn extends_base(base: Option<&ChannelValue>, value: &ChannelValue, delta: &ListDelta) -> bool {
    let items = |value: &ChannelValue| value.list().map_or(0, SharedList::len);
    let keep = delta.prefix_len as usize;
    keep > 0 && base.is_some_and(|base| items(base) >= keep) && items(value) >= keep
}

impl Thread {
    pub(super) fn new(record: ThreadRecord) -> Self {
        Self {
            number: 0,
            head: ThreadHead::new(record),
            runs: Vec::new(),
            mentions: BTreeSet::new(),
            frames: Vec::new(),
            checkpoints: BTreeMap::new(),
            pending: BTreeMap::new(),
            values: HashMap::new(),
        }
    }

    pub(super) fn log_position(&self) -> LogPosition {
        LogPosition { last_seq: self.head.last_seq, last_checkpoint: self.head.last_checkpoint }
    }

    /// Returns the end of the thread, which the next batch follows.
    pub(super) fn log_end(&self) -> LogEnd {
        let ThreadHead { seal, last_seq, .. } = self.head;
        LogEnd { number: self.number, seal, last_seq }
    }

    /// Applies an encoded batch. Returns the newest sequence number.
    pub(super) fn apply(&mut self, batch: Batch, encoded: EncodedBatch) -> u64 {
        self.mentions.extend(encoded.mentions);
        if let Some(record) = batch.record {
            self.head.record = record;
        }
        if let Some(run) = batch.run
            && !self.runs.contains(&run.id)
        {
            self.runs.push(run.id);
        }
        if let Some(frame) = encoded.frame {
            if let Some(StoredCheckpoint { meta, .. }) = &frame.checkpoint {
                self.head.last_checkpoint = Some(meta.id);
                if meta.namespace == Namespace::root() {
                    self.head.current = Some(meta.id);
                }
            }
            self.push_frame(frame);
        }
        if batch.current.is_some() {
            self.head.current = batch.current;
        }
        self.head.last_seq
    }

    /// Appends a frame.
    pub(super) fn push_frame(&mut self, frame: Frame) {
        let position = self.frames.len();
        self.head.last_seq = frame.last_seq;
        self.head.seal = Some(frame.seal);
        self.head.log_bytes += frame.bytes;
        if let Some(base) = frame.base.filter(|_| !frame.events.is_empty()) {
            self.pending.entry(base).or_default().push(position);
        }
        if let Some(StoredCheckpoint { meta, parts }) = &frame.checkpoint {
            self.checkpoints.insert(meta.id, position);
            for (channel, part) in parts {
                if let Some(version) = meta.versions.get(channel) {
                    self.values.insert((channel.clone(), *version), part.value.clone());
                }
            }
        }
        self.frames.push(frame);
    }

    /// Returns the value of a version of a channel.
    pub(super) fn value(
        &self,
        channel: &ChannelName,
        version: CheckpointId,
    ) -> Option<&ChannelValue> {
        self.values.get(&(channel.clone(), version))
    }

    /// Returns all events after a sequence number.
    pub(super) fn events_after(&self, after: u64) -> impl Iterator<Item = &Event> {
        let first = self.frames.partition_point(|frame| frame.last_seq <= after);
        let events = self.frames.iter().skip(first).flat_map(|frame| frame.events.iter());
        events.filter(move |event| event.seq > after)
    }

    /// See [`Store::events`](wattle_run::ports::Store::events).
    pub(super) fn events(&self, after: u64, limit: usize) -> Vec<Event> {
        let mut page = PageBuilder::new(limit, PAGE_EVENT_BYTES);
        for event in self.events_after(after) {
            let bytes = json_bytes(event).max(event_memory_bytes(&event.kind));
            if !page.fits(bytes) {
                break;
            }
            page.push(event.clone(), bytes);
        }
        page.into_items()
    }

    pub(super) fn checkpoint(
        &self,
        namespace: &Namespace,
        id: Option<CheckpointId>,
    ) -> Option<CheckpointTuple> {
        let is_in_namespace = |stored: &&StoredCheckpoint| stored.meta.namespace == *namespace;
        let stored = match id {
            Some(id) => self.stored_checkpoint(id).filter(is_in_namespace),
            None => self.newest_first(Bound::Unbounded).find(is_in_namespace),
        };
        stored.map(|stored| self.tuple(stored, CheckpointParts::All))
    }

    pub(super) fn outline(
        &self,
        namespace: &Namespace,
        id: CheckpointId,
    ) -> Option<CheckpointOutline> {
        let stored =
            self.stored_checkpoint(id).filter(|stored| stored.meta.namespace == *namespace)?;
        let tuple = self.tuple(stored, CheckpointParts::WithoutValues);
        Some(CheckpointOutline { head: self.head.clone(), tuple })
    }

    /// See [`Store::checkpoints`](wattle_run::ports::Store::checkpoints).
    pub(super) fn checkpoints(&self, query: &CheckpointQuery) -> ListPage<CheckpointTuple> {
        let before = query.before.map_or(Bound::Unbounded, Bound::Excluded);
        let matching = self.newest_first(before);
        let matching = matching.filter(|stored| checkpoint_matches(query, &stored.meta));
        let mut page = PageBuilder::new(query.limit.unwrap_or(usize::MAX), HISTORY_BYTES);
        for stored in matching {
            let tuple = self.tuple(stored, query.parts);
            let bytes = tuple_bytes(&tuple);
            if !page.fits(bytes) {
                break;
            }
            page.push(tuple, bytes);
        }
        page.finish()
    }

    pub(super) fn batches(&self, from: Option<u64>, bytes: usize) -> BatchPage {
        let first = from.and_then(|from| usize::try_from(from).ok()).unwrap_or(0);
        let mut page = BatchPage::default();
        let mut taken = 0;
        for (position, frame) in self.frames.iter().enumerate().skip(first) {
            if taken >= bytes as u64 && !page.batches.is_empty() {
                page.next = Some(position as u64);
                break;
            }
            let batch = frame.batch();
            taken += frame.bytes.max(batch_memory_bytes(&batch));
            page.batches.push(batch);
        }
        page
    }

    pub(super) fn verify(&self) -> Result<SealReport, StoreError> {
        let mut seal = self.head.pruned_seal;
        for frame in &self.frames {
            let found = frame.recompute_seal(seal).map_err(|message| corrupt("batch", message))?;
            if found != frame.seal {
                return Err(StoreError::Broken {
                    thread: self.head.record.id.clone(),
                    seq: frame.after_seq + 1,
                    message: "its seal does not match".to_owned(),
                });
            }
            seal = Some(found);
        }
        let last_seq = self.head.last_seq;
        let sealed_after = self.frames.first().map_or(last_seq, |frame| frame.after_seq);
        Ok(SealReport { sealed_after, last_seq, seal })
    }

    pub(super) fn stored_bytes(&self) -> u64 {
        self.head.log_bytes + json_bytes(&self.head.record)
    }

    /// Returns the summaries of the frames that retention plans read.
    pub(super) fn summaries(&self) -> Vec<BatchSummary> {
        self.frames.iter().map(Frame::summary).collect()
    }

    /// Returns whether a version of a channel is known, with or without a value.
    fn has_version(&self, channel: &ChannelName, version: CheckpointId) -> bool {
        self.checkpoints.contains_key(&version) || self.value(channel, version).is_some()
    }

    fn stored_checkpoint(&self, id: CheckpointId) -> Option<&StoredCheckpoint> {
        self.frames.get(*self.checkpoints.get(&id)?)?.checkpoint.as_ref()
    }

    fn newest_first(&self, before: Bound<CheckpointId>) -> impl Iterator<Item = &StoredCheckpoint> {
        let ids = self.checkpoints.range((Bound::Unbounded, before)).rev();
        ids.filter_map(|(id, _)| self.stored_checkpoint(*id))
    }

    fn tuple(&self, stored: &StoredCheckpoint, parts: CheckpointParts) -> CheckpointTuple {
        let meta = &stored.meta;
        let value = |(name, version): (&ChannelName, &CheckpointId)| {
            Some((name.clone(), self.value(name, *version)?.clone()))
        };
        let versions = meta.versions.iter().filter(|_| parts.has_values());
        let values = versions.filter_map(value).collect();
        let pending = self.pending.get(&meta.id).filter(|_| parts.has_events());
        let pending = pending.into_iter().flatten();
        let frames = pending.filter_map(|position| self.frames.get(*position));
        CheckpointTuple {
            checkpoint: Checkpoint::new(meta.clone(), values),
            events: frames.flat_map(|frame| frame.events.iter()).cloned().collect(),
        }
    }
}

/// Returns the approximate size of a checkpoint with its events, in bytes: of JSON or of memory,
/// whichever is larger.
fn tuple_bytes(tuple: &CheckpointTuple) -> u64 {
    let CheckpointTuple { checkpoint: Checkpoint { meta, values, .. }, events } = tuple;
    let items = values.values().flat_map(ChannelValue::items).map(|item| approx_bytes(item) + 1);
    let json = json_bytes(meta) + items.sum::<u64>();
    let events_json: u64 = events.iter().map(json_bytes).sum();
    json.max(checkpoint_memory_bytes(meta, values)) + events_json.max(events_memory_bytes(events))
}
