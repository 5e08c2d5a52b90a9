//! Sealing of encoded batches: resolves the references of a batch and seals its parts. Every error
//! of a batch is detected here.

use std::collections::{BTreeMap, BTreeSet};

use wattle_graph::checkpoint::{Checkpoint, CheckpointMeta, ListDelta, SharedList};
use wattle_graph::id::{ChannelName, CheckpointId, Digest, ThreadId};
use wattle_run::ports::store::{Batch, RunRecord, StoreError};

use crate::codec::Packer;
use crate::disk::chain::{LogReader, find_frames};
use crate::disk::commit_group::{CachedThread, CommitGroup, ListState};
use crate::disk::delta::{ChainStats, DeltaLink};
use crate::disk::encode::{EncodedBatch, EncodedValue, written_values};
use crate::disk::frame::{Body, FrameIndex, Header};
use crate::disk::frame_builder::FrameBuilder;
use crate::disk::head::Head;
use crate::disk::value::chain_stats;
use crate::disk::write_set::StagedRun;
use crate::error::invalid;
use crate::validate;

/// A validated batch with encoded parts.
pub(crate) struct SealedBatch {
    pub(crate) record: Option<Vec<u8>>,
    pub(crate) run: Option<StagedRun>,
    pub(crate) is_new_run: bool,
    pub(crate) body: Body,
    pub(crate) seal: Digest,
    pub(crate) mentions: BTreeSet<Digest>,
    /// How the lists of the batch's checkpoint are stored.
    pub(crate) lists: BTreeMap<ChannelName, ListState>,
}

/// Validates an encoded batch and seals it for the frame with the number `frame`. If the batch
/// could not be encoded, `encoded` is the reason why the batch cannot be stored.
pub(crate) fn seal_batch(
    group: &mut CommitGroup,
    thread: &ThreadId,
    cached: &CachedThread,
    batch: &Batch,
    encoded: Result<EncodedBatch, String>,
    frame: u64,
) -> Result<SealedBatch, StoreError> {
    let is_new_run = match &batch.run {
        Some(run) => is_new_run(group, thread, run)?,
        None => false,
    };
    if let Some(current) = batch.current {
        ensure_root(group, thread, &cached.head, current)?;
    }
    let refusal = |message: String| invalid(thread, message);
    let EncodedBatch { record, run, events, meta, values, mut mentions } =
        encoded.map_err(refusal)?;
    let mut builder = FrameBuilder::new(cached.head.seal, batch.base);
    builder.events(batch.events.json().map_err(|message| invalid(thread, message))?, events);
    let mut frame_index = FrameIndex::new();
    let mut lists = BTreeMap::new();
    if let (Some(checkpoint), Some(encoded)) = (&batch.checkpoint, meta) {
        builder.meta(encoded);
        let refs =
            FrameRefs { cached, frame_index: resolve_frames(group, thread, cached, checkpoint)? };
        let mut packer = Packer::default();
        let added =
            refs.add_channels(group, (&mut builder, &mut packer), checkpoint, values, frame)?;
        lists = added.map_err(refusal)?;
        mentions.append(&mut packer.mentions);
        let meta = &checkpoint.meta;
        frame_index = refs.frame_index;
        frame_index.retain(|version, _| meta.versions.values().any(|wanted| wanted == version));
    }
    let (mut body, seal) = builder.finish();
    body.frame_index = frame_index;
    Ok(SealedBatch { record, run, is_new_run, body, seal, mentions, lists })
}

/// The frames of the values that a checkpoint refers to.
struct FrameRefs<'a> {
    cached: &'a CachedThread,
    frame_index: FrameIndex,
}

impl FrameRefs<'_> {
    /// Adds the changed channels to a frame. The inner error says why a channel cannot be stored.
    fn add_channels(
        &self,
        group: &mut CommitGroup,
        (builder, packer): (&mut FrameBuilder, &mut Packer),
        checkpoint: &Checkpoint,
        encoded: Vec<EncodedValue>,
        frame: u64,
    ) -> Result<Result<BTreeMap<ChannelName, ListState>, String>, StoreError> {
        let meta = &checkpoint.meta;
        let mut lists = self.unchanged_lists(meta);
        for ((channel, value), encoded) in written_values(checkpoint).zip(encoded) {
            let items = value.list().map_or(0, SharedList::len);
            let chain = match encoded {
                EncodedValue::Full(full) => builder.push_full(channel, items, full),
                EncodedValue::Delta(list_delta, delta) => {
                    match self.delta_link(group, channel, list_delta)? {
                        Some(link) => builder.push_delta(channel, link, items, delta),
                        None => match packer.encode_with(|json| value.append_text(json)) {
                            Ok(full) => builder.push_full(channel, items, full),
                            Err(message) => return Ok(Err(message)),
                        },
                    }
                }
            };
            if value.list().is_some() {
                lists.insert(
                    channel.clone(),
                    ListState { version: meta.id, frame_no: frame, chain },
                );
            }
        }
        Ok(Ok(lists))
    }

    /// Returns the lists that a checkpoint did not change.
    fn unchanged_lists(&self, meta: &CheckpointMeta) -> BTreeMap<ChannelName, ListState> {
        let mut lists = self.cached.lists.clone();
        lists.retain(|channel, list| meta.versions.get(channel) == Some(&list.version));
        lists
    }

    /// Returns the link of a list delta; `None` if the full value must be stored.
    fn delta_link(
        &self,
        group: &mut CommitGroup,
        channel: &ChannelName,
        delta: ListDelta,
    ) -> Result<Option<DeltaLink>, StoreError> {
        let ListDelta { base, prefix_len: keep } = delta;
        let Some((frame_no, chain)) = self.list_state(group, channel, base)? else {
            return Ok(None);
        };
        let is_enough = keep <= chain.items && !chain.needs_full_value();
        Ok(is_enough.then_some(DeltaLink { base, frame_no, keep, chain }))
    }

    fn list_state(
        &self,
        group: &mut CommitGroup,
        channel: &ChannelName,
        version: CheckpointId,
    ) -> Result<Option<(u64, ChainStats)>, StoreError> {
        if let Some(list) = self.cached.lists.get(channel).filter(|list| list.version == version) {
            return Ok(Some((list.frame_no, list.chain)));
        }
        let Some(frame_no) = self.frame_index.get(&version) else {
            return Ok(None);
        };
        let chain = chain_stats(&group.overlay()?, *frame_no, version, channel)?;
        Ok(chain.map(|chain| (*frame_no, chain)))
    }
}

/// Returns whether a run is neither stored nor staged.
///
/// # Errors
///
/// [`StoreError::InvalidBatch`] if the run belongs to another thread.
pub(crate) fn is_new_run(
    group: &mut CommitGroup,
    thread: &ThreadId,
    run: &RunRecord,
) -> Result<bool, StoreError> {
    let owner = match group.write_set.runs.get(&run.id) {
        Some(staged) => Some(staged.thread.clone()),
        None => group.overlay()?.snapshot.thread_of_run(&run.id)?,
    };
    match owner {
        Some(owner) if owner != *thread => {
            Err(validate::foreign_run_error(thread, run.id.as_str(), &owner))
        }
        owner => Ok(owner.is_none()),
    }
}

/// Checks that a checkpoint exists and belongs to the root graph, so that it may become the current
/// checkpoint.
fn ensure_root(
    group: &mut CommitGroup,
    thread: &ThreadId,
    head: &Head,
    id: CheckpointId,
) -> Result<(), StoreError> {
    if head.current == Some(id) {
        return Ok(());
    }
    let overlay = group.overlay()?;
    let found = find_frames(&overlay, head.frame, None, BTreeSet::from([id]))?;
    let frame_no = *found.get(&id).ok_or_else(|| validate::no_checkpoint_error(thread, id))?;
    let namespace = overlay.entry(frame_no, |chunk| Header::read(frame_no, chunk))?.namespace;
    if namespace.is_empty() { Ok(()) } else { Err(validate::not_root_error(thread, id)) }
}

/// Returns the frames of the values to which a checkpoint refers: the values of the channels that
/// the checkpoint did not change, and the bases of its list deltas. Some bases may be missing.
fn resolve_frames(
    group: &mut CommitGroup,
    thread: &ThreadId,
    cached: &CachedThread,
    checkpoint: &Checkpoint,
) -> Result<FrameIndex, StoreError> {
    let meta = &checkpoint.meta;
    let unchanged = meta.versions.values().filter(|version| **version != meta.id);
    let bases = checkpoint.list_deltas.iter().filter(|(channel, delta)| {
        cached.lists.get(*channel).is_none_or(|list| list.version != delta.base)
    });
    let mut frame_index = FrameIndex::new();
    let mut wanted: BTreeSet<_> = unchanged.copied().collect();
    wanted.extend(bases.map(|(_, delta)| delta.base).filter(|base| *base < meta.id));
    // After a rewrite, the frame with the values of a version may differ between checkpoints.
    if !cached.head.carries || meta.parent == cached.head.last_checkpoint {
        wanted.retain(|version| match cached.frame_index.get(version) {
            Some(frame_no) => frame_index.insert(*version, *frame_no).is_some(),
            None => true,
        });
    }
    if !wanted.is_empty() {
        frame_index.extend(find_frames(&group.overlay()?, cached.head.frame, meta.parent, wanted)?);
    }
    let missing =
        |version: &&CheckpointId| **version != meta.id && !frame_index.contains_key(*version);
    match meta.versions.values().find(missing) {
        Some(version) => Err(validate::no_checkpoint_error(thread, *version)),
        None => Ok(frame_index),
    }
}
