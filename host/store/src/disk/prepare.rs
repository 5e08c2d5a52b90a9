//! Preparation of encoded batches: resolves the references of a batch and seals its parts.
//! Everything about a batch that may fail is here.

use std::collections::{BTreeMap, BTreeSet};

use wattle_graph::checkpoint::{Checkpoint, CheckpointMeta, ListDelta, SharedList};
use wattle_graph::id::{ChannelName, CheckpointId, Digest, ThreadId};
use wattle_run::ports::store::{Batch, RunRecord, StoreError};

use crate::codec::Packer;
use crate::disk::chain::{Log, find};
use crate::disk::draft::Draft;
use crate::disk::encode::{EncodedBatch, EncodedValue, written_values};
use crate::disk::frame::{Body, Header, Places};
use crate::disk::head::Head;
use crate::disk::intake::{Group, Known, List};
use crate::disk::link::{Extent, Link};
use crate::disk::value::extent;
use crate::error::invalid;
use crate::validate;

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

/// Validates an encoded batch and seals it for the frame with the number `frame`. `encoded` is an
/// error that says why the batch cannot be stored, if it could not be encoded.
pub(crate) fn prepare(
    group: &mut Group,
    thread: &ThreadId,
    known: &Known,
    batch: &Batch,
    encoded: Result<EncodedBatch, String>,
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
    let EncodedBatch { record, run, events, meta, values, mut mentions } =
        encoded.map_err(refusal)?;
    let mut draft = Draft::new(known.head.seal, batch.base);
    draft.events(batch.events.json().map_err(|message| invalid(thread, message))?, events);
    let mut places = Places::new();
    let mut lists = BTreeMap::new();
    if let (Some(checkpoint), Some(encoded)) = (&batch.checkpoint, meta) {
        draft.meta(encoded);
        let found = Found { known, places: find_places(group, thread, known, checkpoint)? };
        let mut packer = Packer::default();
        let added = found.channels(group, (&mut draft, &mut packer), checkpoint, values, frame)?;
        lists = added.map_err(refusal)?;
        mentions.append(&mut packer.mentions);
        let meta = &checkpoint.meta;
        places = found.places;
        places.retain(|version, _| meta.versions.values().any(|wanted| wanted == version));
    }
    let (mut body, seal) = draft.finish();
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
        (draft, packer): (&mut Draft, &mut Packer),
        checkpoint: &Checkpoint,
        encoded: Vec<EncodedValue>,
        frame: u64,
    ) -> Result<Result<BTreeMap<ChannelName, List>, String>, StoreError> {
        let meta = &checkpoint.meta;
        let mut lists = self.unchanged(meta);
        for ((channel, value), encoded) in written_values(checkpoint).zip(encoded) {
            let items = value.list().map_or(0, SharedList::len);
            let extent = match encoded {
                EncodedValue::Whole(whole) => draft.whole(channel, items, whole),
                EncodedValue::Tail(tail, delta) => match self.link(group, channel, tail)? {
                    Some(link) => draft.tail(channel, link, items, delta),
                    None => match packer.encode(value) {
                        Ok(whole) => draft.whole(channel, items, whole),
                        Err(message) => return Ok(Err(message)),
                    },
                },
            };
            if value.list().is_some() {
                lists.insert(channel.clone(), List { version: meta.id, place: frame, extent });
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

    /// Returns the link of a list delta; `None` if the full value must be stored.
    fn link(
        &self,
        group: &mut Group,
        channel: &ChannelName,
        tail: ListDelta,
    ) -> Result<Option<Link>, StoreError> {
        let ListDelta { base, prefix_len: keep } = tail;
        let Some((place, extent)) = self.list(group, channel, base)? else {
            return Ok(None);
        };
        let is_enough = keep <= extent.items && !extent.needs_full_value();
        Ok(is_enough.then_some(Link { base, place, keep, extent }))
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
        Some(owner) if owner != *thread => {
            Err(validate::foreign_run_error(thread, run.id.as_str(), &owner))
        }
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
    let place = *found.get(&id).ok_or_else(|| validate::no_checkpoint_error(thread, id))?;
    let namespace = ahead.entry(place, |chunk| Header::read(place, chunk))?.namespace;
    if namespace.is_empty() { Ok(()) } else { Err(validate::not_root_error(thread, id)) }
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
        Some(version) => Err(validate::no_checkpoint_error(thread, *version)),
        None => Ok(places),
    }
}
