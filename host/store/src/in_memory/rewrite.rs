//! Rewrites of threads in memory, for prunes, deletions of runs and copies.

use std::collections::{BTreeMap, HashMap};

use wattle_graph::id::{ChannelName, RunId};
use wattle_run::ports::store::{EncodedEvents, RunRecord, StoreError, ThreadRecord};

use crate::codec::Packer;
use crate::error::invalid;
use crate::in_memory::frame::{ChannelPart, Frame, StoredCheckpoint};
use crate::in_memory::thread::Thread;
use crate::retention_plan::{Placement, RetentionPlan, ValueIndex, by_version};

/// The thread that a rewrite produces.
pub(super) struct RewriteTarget<'a> {
    pub(super) record: ThreadRecord,
    /// Runs of the thread, oldest first.
    pub(super) runs: &'a [RunRecord],
    /// New ids of runs, by old id. Runs without an entry keep their ids.
    pub(super) names: &'a HashMap<RunId, RunId>,
    /// Whether the seals of the thread continue the seals of the old thread.
    pub(super) continues_seals: bool,
}

impl Thread {
    /// Returns the part of the thread that a plan keeps, as another thread.
    pub(super) fn rewrite(
        &self,
        plan: &RetentionPlan,
        target: RewriteTarget<'_>,
    ) -> Result<Self, StoreError> {
        let RewriteTarget { record, runs, names, continues_seals } = target;
        let id = record.id.clone();
        let refusal = |message: String| invalid(&id, message);
        let mut packer = Packer::default();
        packer.measure(&record).map_err(refusal)?;
        for run in runs {
            packer.measure(run).map_err(refusal)?;
        }
        let mut thread = Self::new(record);
        thread.runs = runs.iter().map(|run| run.id.clone()).collect();
        thread.head.pruned_seal = self.head.seal.filter(|_| continues_seals);
        thread.head.seal = thread.head.pruned_seal;
        let kept_events = |frame: &Frame| plan.events(frame.base, frame.events.to_vec());
        let first = self.frames.iter().find_map(|frame| kept_events(frame).first().map(|e| e.seq));
        thread.head.pruned_seq = first.map_or(self.head.last_seq, |first| first - 1);
        thread.head.last_seq = thread.head.pruned_seq;
        let mut value_index = ValueIndex::default();
        for old in &self.frames {
            let mut events = kept_events(old);
            for event in &mut events {
                rename(names, &mut event.run);
            }
            let kept = old.checkpoint.as_ref().filter(|stored| plan.keeps(stored.meta.id));
            if events.is_empty() && kept.is_none() {
                continue;
            }
            let checkpoint = kept.map(|stored| {
                let parts = self.parts(&mut value_index, stored, thread.frames.len());
                let mut meta = stored.meta.clone();
                rename(names, &mut meta.run);
                StoredCheckpoint { meta, parts }
            });
            let (seal, last_seq) = (thread.head.seal, thread.head.last_seq);
            let events = EncodedEvents::from(events);
            let frame = Frame::new(&mut packer, seal, last_seq, old.base, &events, checkpoint);
            thread.push_frame(frame.map_err(refusal)?);
        }
        thread.mentions = packer.mentions;
        thread.head.last_seq = self.head.last_seq;
        thread.head.last_checkpoint = self.head.last_checkpoint;
        thread.head.current = plan.current;
        Ok(thread)
    }

    /// Returns the channels that the frame of a checkpoint has after the rewrite.
    fn parts(
        &self,
        value_index: &mut ValueIndex<usize>,
        stored: &StoredCheckpoint,
        position: usize,
    ) -> BTreeMap<ChannelName, ChannelPart> {
        let meta = &stored.meta;
        let mut parts = BTreeMap::new();
        for (version, channels) in by_version(meta) {
            let is_own = version == meta.id;
            if !is_own && matches!(value_index.find(version, &channels), Placement::InFrame(_)) {
                continue;
            }
            for channel in channels {
                if let Some(value) = self.value(channel, version) {
                    let own = stored.parts.get(channel).filter(|_| is_own);
                    let delta = own.and_then(|part| part.delta);
                    let delta =
                        delta.filter(|delta| value_index.get(channel, delta.base).is_some());
                    parts.insert(channel.clone(), ChannelPart { value: value.clone(), delta });
                }
            }
        }
        for channel in parts.keys() {
            value_index.insert(channel, meta.versions[channel], position);
        }
        value_index.insert_checkpoint(meta.id, position);
        parts
    }
}

fn rename(names: &HashMap<RunId, RunId>, run: &mut RunId) {
    if let Some(name) = names.get(run) {
        run.clone_from(name);
    }
}
