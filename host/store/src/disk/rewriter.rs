//! The rewriter: writes the kept frames of a thread again, for prunes, deletions of runs and
//! copies.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;
use wattle_graph::checkpoint::{ChannelValue, CheckpointMeta, SharedList};
use wattle_graph::event::Event;
use wattle_graph::id::{ChannelName, CheckpointId, RunId, ThreadId};
use wattle_graph::json_text;
use wattle_run::ports::store::{EncodedEvents, RunRecord, StoreError, ThreadRecord};

use crate::codec::{Packer, unpack};
use crate::disk::chain::{load_frame, walk_frames};
use crate::disk::delta::{ChainStats, DeltaLink};
use crate::disk::frame::{Frame, FrameIndex, Header};
use crate::disk::frame_builder::FrameBuilder;
use crate::disk::head::Head;
use crate::disk::snapshot::Snapshot;
use crate::disk::value::{ValueLoader, frame_of_version};
use crate::disk::write_set::{StagedRun, WriteSet, stored_record};
use crate::error::backend;
use crate::retention_plan::{
    BatchSummary, CheckpointSummary, Placement, RetentionPlan, ValueIndex, by_version,
    checkpoints_made_by,
};

const OP_REWRITE: &str = "rewrite a thread";

/// Bytes of log entries at which a part of a rewrite is committed. The commit takes some
/// milliseconds, for which batches wait.
const MAX_PART_BYTES: usize = 2 * 1024 * 1024;

/// Number of log entries at which a part is committed: a commit of many small entries takes longer
/// than a commit of a few large entries of the same total size.
const MAX_PART_FRAMES: usize = 512;

/// The frames of a thread, oldest first, with summaries for retention plans.
pub(crate) struct FrameList {
    frames: Vec<(u64, Header)>,
    pub(crate) summaries: Vec<BatchSummary>,
}

impl FrameList {
    /// Reads the frames of a thread.
    pub(crate) fn read(snapshot: &Snapshot, head: &Head) -> Result<Self, StoreError> {
        let mut frames = walk_frames(snapshot, head.frame).collect::<Result<Vec<_>, _>>()?;
        frames.reverse();
        let mut summaries = Vec::with_capacity(frames.len());
        for (number, header) in &frames {
            let frame = load_frame(snapshot, *number, header.clone())?;
            let checkpoints_made = checkpoints_made_by(&frame.events::<Event>()?);
            let checkpoint = match header.checkpoint {
                Some(_) => Some(CheckpointSummary::from(&frame.meta::<CheckpointMeta>()?)),
                None => None,
            };
            let Header { base, after_seq, last_seq, .. } = *header;
            summaries.push(BatchSummary {
                base,
                after_seq,
                last_seq,
                checkpoints_made,
                checkpoint,
            });
        }
        Ok(Self { frames, summaries })
    }

    /// Returns the sequence number of the first event that is kept.
    fn first_seq(
        &self,
        snapshot: &Snapshot,
        plan: &RetentionPlan,
    ) -> Result<Option<u64>, StoreError> {
        let frames = self.frames.iter().zip(&self.summaries);
        for ((number, header), _) in frames.filter(|(_, batch)| plan.may_keep_events(batch)) {
            let events = load_frame(snapshot, *number, header.clone())?.events()?;
            if let Some(first) = plan.events(header.base, events).first() {
                return Ok(Some(first.seq));
            }
        }
        Ok(None)
    }

    /// Returns all runs that occur in the frames.
    pub(crate) fn runs(&self, snapshot: &Snapshot) -> Result<BTreeSet<RunId>, StoreError> {
        let checkpoints = self.summaries.iter().filter_map(|batch| batch.checkpoint.as_ref());
        let mut runs: BTreeSet<RunId> =
            checkpoints.map(|checkpoint| checkpoint.run.clone()).collect();
        for (number, header) in &self.frames {
            let events = load_frame(snapshot, *number, header.clone())?.events::<Event>()?;
            runs.extend(events.into_iter().map(|event| event.run));
        }
        Ok(runs)
    }
}

/// The thread that a rewrite produces.
pub(crate) struct RewriteTarget {
    pub(crate) thread: ThreadId,
    pub(crate) record: ThreadRecord,
    /// Runs of the thread, oldest first.
    pub(crate) runs: Vec<RunRecord>,
    /// Thread number and log position of the thread, and the seal that its seals continue.
    pub(crate) head: Head,
    /// New ids of runs, by old id. Runs without an entry keep their ids.
    pub(crate) names: HashMap<RunId, RunId>,
}

/// Stages the kept frames of a thread, from the log entry `next_entry` on. Passes each full part to
/// `part` and returns the last part, which has the head.
pub(crate) fn rewrite<P>(
    snapshot: &Snapshot,
    frame_list: &FrameList,
    plan: &RetentionPlan,
    target: RewriteTarget,
    next_entry: u64,
    mut part: P,
) -> Result<WriteSet, StoreError>
where
    P: FnMut(WriteSet) -> Result<(), StoreError>,
{
    let RewriteTarget { thread, record, runs, mut head, names } = target;
    let last_seq = head.last_seq;
    head.pruned_seq = frame_list.first_seq(snapshot, plan)?.map_or(last_seq, |first| first - 1);
    (head.frame, head.frames, head.bytes) = (0, 0, 0);
    (head.current, head.runs, head.runs_taken) = (plan.current, runs.len() as u64, 0);
    (head.seal_before, head.carries) = (head.seal, false);
    head.last_seq = head.pruned_seq;
    let mut rewriter = Rewriter {
        snapshot,
        plan,
        names,
        head,
        next_entry,
        value_index: ValueIndex::default(),
        chains: HashMap::new(),
        write_set: new_part(),
        packer: Packer::default(),
    };
    for (number, header) in &frame_list.frames {
        rewriter.rewrite_frame(*number, &load_frame(snapshot, *number, header.clone())?)?;
        if let Some(write_set) = rewriter.take_full_part() {
            part(write_set)?;
        }
    }
    rewriter.head.last_seq = last_seq;
    rewriter.finish(&thread, &record, &runs)
}

/// Writes the kept frames of a thread into write sets, and tracks where their values are.
struct Rewriter<'a> {
    snapshot: &'a Snapshot,
    plan: &'a RetentionPlan,
    names: HashMap<RunId, RunId>,
    head: Head,
    next_entry: u64,
    value_index: ValueIndex<u64>,
    /// Sizes of the delta chains that were written.
    chains: HashMap<(ChannelName, CheckpointId), ChainStats>,
    write_set: WriteSet,
    packer: Packer,
}

/// A channel in a rewritten frame.
enum RewrittenValue {
    Full(ChannelValue),
    Delta(DeltaLink, Vec<Value>),
}

/// Creates an empty part. The log may already have later entries.
fn new_part() -> WriteSet {
    WriteSet { has_later_entries: true, ..WriteSet::default() }
}

impl Rewriter<'_> {
    /// Returns the current part and begins the next part, if the part is large enough for a commit.
    fn take_full_part(&mut self) -> Option<WriteSet> {
        let is_due = self.write_set.log_bytes >= MAX_PART_BYTES
            || self.write_set.log.len() >= MAX_PART_FRAMES;
        if !is_due {
            return None;
        }
        let (number, frame) = (self.head.number, self.head.frame);
        let mut write_set = std::mem::replace(&mut self.write_set, new_part());
        write_set.orphans.insert(number, Some(frame));
        Some(write_set)
    }

    fn rewrite_frame(&mut self, number: u64, frame: &Frame) -> Result<(), StoreError> {
        let old = frame.header();
        let mut events = self.plan.events(old.base, frame.events()?);
        for event in &mut events {
            self.rename(&mut event.run);
        }
        let kept = old.checkpoint.filter(|id| self.plan.keeps(*id));
        if events.is_empty() && kept.is_none() {
            return Ok(());
        }
        let mut header = Header {
            base: old.base,
            checkpoint: kept,
            after_seq: events.first().map_or(self.head.last_seq, |event| event.seq - 1),
            last_seq: events.last().map_or(self.head.last_seq, |event| event.seq),
            ..Header::default()
        };
        let mut builder = FrameBuilder::new(self.head.seal, old.base);
        let events = EncodedEvents::from(events);
        let (json, packed) = self.packer.events(&events).map_err(refusal)?;
        builder.events(json, packed);
        let mut frame_index = FrameIndex::new();
        if kept.is_some() {
            let mut meta: CheckpointMeta = frame.meta()?;
            self.rename(&mut meta.run);
            builder.meta(self.packer.encode(&meta).map_err(refusal)?);
            meta.namespace.as_str().clone_into(&mut header.namespace);
            frame_index = self.add_channels(&mut builder, (number, frame), &meta)?;
            header.carries = frame_index.values().any(|frame_no| *frame_no == self.next_entry);
            self.head.carries |= header.carries;
            self.value_index.insert_checkpoint(meta.id, self.next_entry);
        }
        let (mut body, seal) = builder.finish();
        body.frame_index = frame_index;
        header.seal = Some(seal);
        self.write_set.add_frame(&mut self.head, &mut self.next_entry, header, &body);
        Ok(())
    }

    /// Adds to `builder` the channel values that the frame of a checkpoint contains after the
    /// rewrite. Returns the frame index: for each older version of a channel, the number of the
    /// frame that contains its value after the rewrite.
    fn add_channels(
        &mut self,
        builder: &mut FrameBuilder,
        (number, frame): (u64, &Frame),
        meta: &CheckpointMeta,
    ) -> Result<FrameIndex, StoreError> {
        let mut values = BTreeMap::new();
        let mut frame_index = FrameIndex::new();
        let mut loader = ValueLoader::new(self.snapshot);
        let old_index = frame.frame_index()?;
        for (version, channels) in by_version(meta) {
            if version != meta.id
                && let Placement::InFrame(frame_no) = self.value_index.find(version, &channels)
            {
                frame_index.insert(version, frame_no);
                continue;
            }
            let frame_no = frame_of_version(meta, number, &old_index, version)?;
            for channel in channels {
                let value = match self.kept_delta(frame, channel).filter(|_| version == meta.id) {
                    Some(value) => Some(value),
                    None => loader.value(frame_no, version, channel)?.map(RewrittenValue::Full),
                };
                values.extend(value.map(|value| (channel, value)));
            }
            if version != meta.id {
                frame_index.insert(version, self.next_entry);
            }
        }
        for (channel, value) in values {
            self.add_channel(builder, channel, meta.versions[channel], value)?;
        }
        Ok(frame_index)
    }

    /// Returns the list delta of a channel if its base was kept.
    fn kept_delta(&self, frame: &Frame, channel: &ChannelName) -> Option<RewrittenValue> {
        let part = frame.part(channel).ok()??;
        let mut link = part.link?;
        link.frame_no = self.value_index.get(channel, link.base)?;
        link.chain = *self.chains.get(&(channel.clone(), link.base))?;
        Some(RewrittenValue::Delta(link, unpack("channel value", part.packed).ok()?))
    }

    fn add_channel(
        &mut self,
        builder: &mut FrameBuilder,
        channel: &ChannelName,
        version: CheckpointId,
        value: RewrittenValue,
    ) -> Result<(), StoreError> {
        let chain = match value {
            RewrittenValue::Full(value) => {
                let items = value.list().map_or(0, SharedList::len);
                let encoded = self.packer.encode_with(|json| value.append_text(json));
                builder.push_full(channel, items, encoded.map_err(refusal)?)
            }
            RewrittenValue::Delta(link, added) => {
                let items = link.keep as usize + added.len();
                let encoded = self.packer.encode_with(|json| json_text::append_list(json, &added));
                builder.push_delta(channel, link, items, encoded.map_err(refusal)?)
            }
        };
        self.value_index.insert(channel, version, self.next_entry);
        self.chains.insert((channel.clone(), version), chain);
        Ok(())
    }

    fn finish(
        mut self,
        thread: &ThreadId,
        record: &ThreadRecord,
        runs: &[RunRecord],
    ) -> Result<WriteSet, StoreError> {
        let number = self.head.number;
        let packed = self.packer.pack(record).map_err(refusal)?;
        self.write_set.records.insert(thread.clone(), stored_record(thread, &packed));
        for (position, run) in (0..).zip(runs) {
            let packed = self.packer.pack(run).map_err(refusal)?;
            self.write_set.thread_runs.insert((number, position), run.id.clone());
            let staged = StagedRun::new(thread.clone(), &run.id, &packed);
            self.write_set.runs.insert(run.id.clone(), staged);
        }
        let mentions = self.packer.mentions.into_iter();
        self.write_set.mentions = mentions.map(|blob| (number, blob)).collect();
        self.write_set.heads.insert(thread.clone(), self.head);
        Ok(self.write_set)
    }

    fn rename(&self, run: &mut RunId) {
        if let Some(name) = self.names.get(run) {
            run.clone_from(name);
        }
    }
}

fn refusal(message: String) -> StoreError {
    backend(OP_REWRITE, message)
}
