//! The rewriter: writes the kept frames of a thread again, for prunes, deletions of runs and
//! copies.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;
use wattle_graph::checkpoint::{ChannelValue, CheckpointMeta, SharedList};
use wattle_graph::event::Event;
use wattle_graph::id::{ChannelName, CheckpointId, RunId, ThreadId};
use wattle_run::ports::store::{EncodedEvents, RunRecord, StoreError, ThreadRecord};

use crate::codec::{Packer, unpack};
use crate::disk::chain::{load_frame, walk_frames};
use crate::disk::delta::{ChainStats, DeltaLink};
use crate::disk::frame::{Frame, FrameIndex, Header};
use crate::disk::frame_builder::FrameBuilder;
use crate::disk::head::Head;
use crate::disk::snapshot::Snapshot;
use crate::disk::stage::{Stage, StagedRun};
use crate::disk::value::{ValueLoader, frame_of_version};
use crate::error::backend;
use crate::retention_plan::{
    BatchSummary, CheckpointSummary, Placement, RetentionPlan, ValueIndex, by_version,
    checkpoints_made_by,
};

const REWRITE: &str = "rewrite a thread";

/// Bytes of log entries that end a part of a rewrite. The commit of a part takes some milliseconds,
/// for which batches wait.
const PART_BYTES: usize = 2 * 1024 * 1024;

/// Number of log entries that ends a part: many small entries take longer than a few large ones of
/// the same size.
const PART_FRAMES: usize = 512;

/// The frames of a thread, oldest first, and their outlines for plans.
pub(crate) struct Past {
    frames: Vec<(u64, Header)>,
    pub(crate) summaries: Vec<BatchSummary>,
}

impl Past {
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
        for (number, header) in &self.frames {
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
pub(crate) struct Target {
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
/// `part` and returns the last one, which has the head.
pub(crate) fn rewrite<P>(
    snapshot: &Snapshot,
    past: &Past,
    plan: &RetentionPlan,
    target: Target,
    next_entry: u64,
    mut part: P,
) -> Result<Stage, StoreError>
where
    P: FnMut(Stage) -> Result<(), StoreError>,
{
    let Target { thread, record, runs, mut head, names } = target;
    let last_seq = head.last_seq;
    head.pruned_seq = past.first_seq(snapshot, plan)?.map_or(last_seq, |first| first - 1);
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
        stage: amid(),
        packer: Packer::default(),
    };
    for (number, header) in &past.frames {
        rewriter.frame(*number, &load_frame(snapshot, *number, header.clone())?)?;
        if let Some(stage) = rewriter.part() {
            part(stage)?;
        }
    }
    rewriter.head.last_seq = last_seq;
    rewriter.finish(&thread, &record, &runs)
}

struct Rewriter<'a> {
    snapshot: &'a Snapshot,
    plan: &'a RetentionPlan,
    names: HashMap<RunId, RunId>,
    head: Head,
    next_entry: u64,
    value_index: ValueIndex<u64>,
    /// Sizes of the delta chains that were written.
    chains: HashMap<(ChannelName, CheckpointId), ChainStats>,
    stage: Stage,
    packer: Packer,
}

/// A channel in a rewritten frame.
enum Share {
    Whole(ChannelValue),
    Tail(DeltaLink, Vec<Value>),
}

/// Creates an empty part. The log may already have later entries.
fn amid() -> Stage {
    Stage { is_amid: true, ..Stage::default() }
}

impl Rewriter<'_> {
    /// Returns the staged part if it is large enough for a commit.
    fn part(&mut self) -> Option<Stage> {
        let is_due = self.stage.log_bytes >= PART_BYTES || self.stage.log.len() >= PART_FRAMES;
        if !is_due {
            return None;
        }
        let (number, frame) = (self.head.number, self.head.frame);
        let mut stage = std::mem::replace(&mut self.stage, amid());
        stage.remains.insert(number, Some(frame));
        Some(stage)
    }

    fn frame(&mut self, number: u64, frame: &Frame) -> Result<(), StoreError> {
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
            frame_index = self.channels(&mut builder, (number, frame), &meta)?;
            header.carries = frame_index.values().any(|frame_no| *frame_no == self.next_entry);
            self.head.carries |= header.carries;
            self.value_index.insert_checkpoint(meta.id, self.next_entry);
        }
        let (mut body, seal) = builder.finish();
        body.frame_index = frame_index;
        header.seal = Some(seal);
        self.stage.add_frame(&mut self.head, &mut self.next_entry, header, &body);
        Ok(())
    }

    /// Adds the channels that the frame of a checkpoint has after the rewrite. Returns the frame
    /// index of the others.
    fn channels(
        &mut self,
        builder: &mut FrameBuilder,
        (number, frame): (u64, &Frame),
        meta: &CheckpointMeta,
    ) -> Result<FrameIndex, StoreError> {
        let mut shares = BTreeMap::new();
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
                let share = match self.tail(frame, channel).filter(|_| version == meta.id) {
                    Some(share) => Some(share),
                    None => loader.value(frame_no, version, channel)?.map(Share::Whole),
                };
                shares.extend(share.map(|share| (channel, share)));
            }
            if version != meta.id {
                frame_index.insert(version, self.next_entry);
            }
        }
        for (channel, share) in shares {
            self.add(builder, channel, meta.versions[channel], share)?;
        }
        Ok(frame_index)
    }

    /// Returns the list delta of a channel if its base was kept.
    fn tail(&self, frame: &Frame, channel: &ChannelName) -> Option<Share> {
        let part = frame.part(channel).ok()??;
        let mut link = part.link?;
        link.frame_no = self.value_index.get(channel, link.base)?;
        link.chain = *self.chains.get(&(channel.clone(), link.base))?;
        Some(Share::Tail(link, unpack("channel value", part.packed).ok()?))
    }

    fn add(
        &mut self,
        builder: &mut FrameBuilder,
        channel: &ChannelName,
        version: CheckpointId,
        share: Share,
    ) -> Result<(), StoreError> {
        let chain = match share {
            Share::Whole(value) => {
                let items = value.list().map_or(0, SharedList::len);
                builder.push_full(channel, items, self.packer.encode(&value).map_err(refusal)?)
            }
            Share::Tail(link, added) => {
                let items = link.keep as usize + added.len();
                builder.push_delta(
                    channel,
                    link,
                    items,
                    self.packer.encode(&added).map_err(refusal)?,
                )
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
    ) -> Result<Stage, StoreError> {
        let number = self.head.number;
        self.stage.records.insert(thread.clone(), self.packer.pack(record).map_err(refusal)?);
        for (position, run) in (0..).zip(runs) {
            let packed = self.packer.pack(run).map_err(refusal)?;
            self.stage.thread_runs.insert((number, position), run.id.clone());
            self.stage.runs.insert(run.id.clone(), StagedRun { thread: thread.clone(), packed });
        }
        let mentions = self.packer.mentions.into_iter();
        self.stage.mentions = mentions.map(|blob| (number, blob)).collect();
        self.stage.heads.insert(thread.clone(), self.head);
        Ok(self.stage)
    }

    fn rename(&self, run: &mut RunId) {
        if let Some(name) = self.names.get(run) {
            run.clone_from(name);
        }
    }
}

fn refusal(message: String) -> StoreError {
    backend(REWRITE, message)
}
