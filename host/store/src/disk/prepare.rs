//! Encoding of batches: resolves the references of a batch and packs its parts. Everything about a
//! batch that may fail is here.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use wattle_graph::checkpoint::{ChannelValue, Checkpoint, CheckpointMeta, ListDelta};
use wattle_graph::id::{ChannelName, CheckpointId, Digest, ThreadId};
use wattle_run::ports::store::{Batch, RunRecord, StoreError};

use crate::disk::chain::{Log, find};
use crate::disk::draft::{Draft, Finished};
use crate::disk::frame::{Body, Header, Places};
use crate::disk::head::Head;
use crate::disk::intake::{Group, Known, List};
use crate::disk::link::{Extent, Link};
use crate::disk::value::extent;
use crate::error::invalid;
use crate::rules;

/// A validated batch with packed parts.
pub(crate) struct Prepared {
    pub(crate) record: Option<Vec<u8>>,
    pub(crate) run: Option<Vec<u8>>,
    pub(crate) is_new_run: bool,
    pub(crate) body: Body,
    pub(crate) seal: Digest,
    pub(crate) mentions: BTreeSet<Digest>,
    /// How the lists of the batch's checkpoint are stored.
    pub(crate) lists: BTreeMap<ChannelName, List>,
}

/// Validates a batch and packs it for the frame with the number `frame`.
pub(crate) fn prepare(
    group: &mut Group,
    thread: &ThreadId,
    known: &Known,
    batch: &Batch,
    frame: u64,
) -> Result<Prepared, StoreError> {
    let is_new_run = match &batch.run {
        Some(run) => is_new_run(group, thread, run)?,
        None => false,
    };
    if let Some(current) = batch.current {
        is_root(group, thread, &known.head, current)?;
    }
    let refusal = |message: String| invalid(thread, message);
    let mut draft = Draft::new(known.head.seal, batch.base);
    draft.events(&batch.events).map_err(refusal)?;
    let mut places = Places::new();
    let mut lists = BTreeMap::new();
    if let Some(checkpoint) = &batch.checkpoint {
        draft.meta(&checkpoint.meta).map_err(refusal)?;
        let found = Found { known, places: find_places(group, thread, known, checkpoint)? };
        lists = found.channels(group, &mut draft, checkpoint, frame)?.map_err(refusal)?;
        let meta = &checkpoint.meta;
        places = found.places;
        places.retain(|version, _| meta.versions.values().any(|wanted| wanted == version));
    }
    let record = batch.record.as_ref().map(|record| draft.beside(record)).transpose();
    let record = record.map_err(refusal)?;
    let run = batch.run.as_ref().map(|run| draft.beside(run)).transpose().map_err(refusal)?;
    let Finished { mut body, seal, mentions } = draft.finish();
    body.places = places;
    Ok(Prepared { record, run, is_new_run, body, seal, mentions, lists })
}

/// The frames of the values that a checkpoint refers to.
struct Found<'a> {
    known: &'a Known,
    places: Places,
}

impl Found<'_> {
    /// Adds the changed channels to a frame. The inner error says why one cannot be stored.
    fn channels(
        &self,
        group: &mut Group,
        draft: &mut Draft,
        checkpoint: &Checkpoint,
        frame: u64,
    ) -> Result<Result<BTreeMap<ChannelName, List>, String>, StoreError> {
        let Checkpoint { meta, values, list_deltas: tails } = checkpoint;
        let mut lists = self.unchanged(meta);
        for channel in meta.written_channels() {
            let Some(value) = values.get(channel) else {
                continue;
            };
            let tail = tails.get(channel);
            let added = match self.end(group, channel, value, tail)? {
                Some((link, items)) => draft.tail(channel, link, &items),
                None => draft.whole(channel, value),
            };
            match added {
                Ok(extent) if value.list().is_some() => {
                    lists.insert(channel.clone(), List { version: meta.id, place: frame, extent });
                }
                Ok(_) => {}
                Err(message) => return Ok(Err(message)),
            }
        }
        Ok(Ok(lists))
    }

    /// Returns the lists that a checkpoint did not change.
    fn unchanged(&self, meta: &CheckpointMeta) -> BTreeMap<ChannelName, List> {
        let mut lists = self.known.lists.clone();
        lists.retain(|channel, list| meta.versions.get(channel) == Some(&list.version));
        lists
    }

    /// Returns the list delta of a list, if it is enough to store that.
    fn end<'v>(
        &self,
        group: &mut Group,
        channel: &ChannelName,
        value: &'v ChannelValue,
        tail: Option<&ListDelta>,
    ) -> Result<Option<(Link, Vec<&'v Value>)>, StoreError> {
        let (Some(ListDelta { base, prefix_len: keep }), Some(list)) = (tail, value.list()) else {
            return Ok(None);
        };
        let Some((place, extent)) = self.list(group, channel, *base)? else {
            return Ok(None);
        };
        let new = list.tail(*keep as usize).filter(|_| *keep > 0);
        if *keep > extent.items || extent.is_whole_due() {
            return Ok(None);
        }
        let link = Link { base: *base, place, keep: *keep, extent };
        Ok(new.map(|new| (link, new)))
    }

    fn list(
        &self,
        group: &mut Group,
        channel: &ChannelName,
        version: CheckpointId,
    ) -> Result<Option<(u64, Extent)>, StoreError> {
        if let Some(list) = self.known.lists.get(channel).filter(|list| list.version == version) {
            return Ok(Some((list.place, list.extent)));
        }
        let Some(place) = self.places.get(&version) else {
            return Ok(None);
        };
        let extent = extent(&group.ahead()?, *place, version, channel)?;
        Ok(extent.map(|extent| (*place, extent)))
    }
}

/// Returns whether a run is neither stored nor staged.
///
/// # Errors
///
/// [`StoreError::InvalidBatch`] if the run belongs to another thread.
pub(crate) fn is_new_run(
    group: &mut Group,
    thread: &ThreadId,
    run: &RunRecord,
) -> Result<bool, StoreError> {
    let owner = match group.stage.runs.get(&run.id) {
        Some(staged) => Some(staged.thread.clone()),
        None => group.ahead()?.snapshot.run(&run.id)?.map(|run| run.thread),
    };
    match owner {
        Some(owner) if owner != *thread => Err(rules::foreign_run(thread, run.id.as_str(), &owner)),
        owner => Ok(owner.is_none()),
    }
}

/// Checks that a checkpoint may become the current one of a thread.
fn is_root(
    group: &mut Group,
    thread: &ThreadId,
    head: &Head,
    id: CheckpointId,
) -> Result<(), StoreError> {
    if head.current == Some(id) {
        return Ok(());
    }
    let ahead = group.ahead()?;
    let found = find(&ahead, head.frame, None, BTreeSet::from([id]))?;
    let place = *found.get(&id).ok_or_else(|| rules::no_checkpoint(thread, id))?;
    let namespace = ahead.entry(place, |chunk| Header::read(place, chunk))?.namespace;
    if namespace.is_empty() { Ok(()) } else { Err(rules::not_root(thread, id)) }
}

/// Returns the frames of all that a checkpoint refers to: the channels that it did not change, and
/// the bases of its list deltas. Some bases may be missing.
fn find_places(
    group: &mut Group,
    thread: &ThreadId,
    known: &Known,
    checkpoint: &Checkpoint,
) -> Result<Places, StoreError> {
    let meta = &checkpoint.meta;
    let unchanged = meta.versions.values().filter(|version| **version != meta.id);
    let bases = checkpoint.list_deltas.iter().filter(|(channel, tail)| {
        known.lists.get(*channel).is_none_or(|list| list.version != tail.base)
    });
    let mut places = Places::new();
    let mut wanted: BTreeSet<_> = unchanged.copied().collect();
    wanted.extend(bases.map(|(_, tail)| tail.base).filter(|base| *base < meta.id));
    // After a rewrite, the frame of a version may differ between checkpoints.
    if !known.head.carries || meta.parent == known.head.last_checkpoint {
        wanted.retain(|version| match known.places.get(version) {
            Some(place) => places.insert(*version, *place).is_some(),
            None => true,
        });
    }
    if !wanted.is_empty() {
        places.extend(find(&group.ahead()?, known.head.frame, meta.parent, wanted)?);
    }
    let missing = |version: &&CheckpointId| **version != meta.id && !places.contains_key(*version);
    match meta.versions.values().find(missing) {
        Some(version) => Err(rules::no_checkpoint(thread, *version)),
        None => Ok(places),
    }
}
