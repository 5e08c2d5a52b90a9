//! Reads of a thread's history: events and checkpoints, along its chain of frames.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use wattle_graph::checkpoint::{Checkpoint, CheckpointMeta, Values};
use wattle_graph::event::Event;
use wattle_graph::id::{CheckpointId, Namespace, ThreadId};
use wattle_run::limit::HISTORY_BYTES;
use wattle_run::ports::store::{
    BatchPage, CheckpointOutline, CheckpointParts, CheckpointQuery, CheckpointTuple, ListPage,
    StoreError, StoredBatch, StoredValue, ThreadSnapshot,
};

use crate::codec::{plain_bytes, unpack};
use crate::disk::chain::{load, walk};
use crate::disk::frame::{Frame, Header};
use crate::disk::head::Head;
use crate::disk::link::Link;
use crate::disk::snapshot::Snapshot;
use crate::disk::value::Loader;
use crate::page::{EventPage, PageBuilder};
use crate::query::checkpoint_matches;

/// Maximum size of the events since a checkpoint that are read together, in bytes of JSON. They may
/// take a thousandth of that in the file, and several times as much memory when they are decoded.
/// Ten thousand tasks of 6 KB fit.
pub const PENDING_LIMIT_BYTES: u64 = 64 * 1024 * 1024;

/// See [`Store::events`](wattle_run::ports::Store::events).
pub(crate) fn events(
    snapshot: &Snapshot,
    thread: &ThreadId,
    after: u64,
    limit: usize,
) -> Result<Vec<Event>, StoreError> {
    let Some(head) = snapshot.head(thread)? else {
        return Ok(Vec::new());
    };
    let mut page = EventPage::new(limit);
    let mut after = after.max(head.pruned_seq);
    // One pass is mostly enough. Further passes are needed where events were dropped.
    let mut width = limit as u64;
    while !page.is_full() && after < head.last_seq {
        let until = after.saturating_add(width).min(head.last_seq);
        add_between(snapshot, &head, (after, until), &mut page)?;
        after = until;
        width = width.saturating_mul(2);
    }
    Ok(page.into_events())
}

/// Adds the events after a sequence number, up to another, to a page.
fn add_between(
    snapshot: &Snapshot,
    head: &Head,
    (after, until): (u64, u64),
    page: &mut EventPage,
) -> Result<(), StoreError> {
    let newest = snapshot.mark(head.number, until)?.unwrap_or(head.frame);
    let mut frames = Vec::new();
    for step in walk(snapshot, newest) {
        let (number, header) = step?;
        if header.last_seq <= after {
            break;
        }
        if header.has_events() && header.after_seq < until {
            frames.push((number, header));
        }
    }
    for (number, header) in frames.into_iter().rev() {
        if page.is_full() {
            break;
        }
        if let Some(packed) = load(snapshot, number, header)?.packed_events()? {
            page.add(packed, &(after + 1..=until))?;
        }
    }
    Ok(())
}

/// Returns batches from a frame on, oldest first, up to about `bytes` bytes. The chain leads to older
/// frames only, so the frames are read in parts, each from its mark back to the part before it.
pub(crate) fn batches(
    snapshot: &Snapshot,
    thread: &ThreadId,
    from: Option<u64>,
    bytes: usize,
) -> Result<BatchPage, StoreError> {
    let mut page = BatchPage::default();
    let Some(head) = snapshot.head(thread)? else {
        return Ok(page);
    };
    let marks = snapshot.marks(head.number)?;
    let (mut from, mut taken) = (from.unwrap_or(1), 0);
    for newest in marks.into_values().chain([head.frame]) {
        if newest < from {
            continue;
        }
        let mut frames = Vec::new();
        for step in walk(snapshot, newest) {
            let (number, header) = step?;
            let is_first = header.previous < from;
            frames.push((number, header));
            if is_first {
                break;
            }
        }
        for (number, header) in frames.into_iter().rev() {
            if taken >= bytes && !page.batches.is_empty() {
                page.next = Some(number);
                return Ok(page);
            }
            let frame = load(snapshot, number, header)?;
            taken += frame.bytes();
            page.batches.push(batch(&frame)?);
        }
        from = newest + 1;
    }
    Ok(page)
}

fn batch(frame: &Frame) -> Result<StoredBatch, StoreError> {
    let header = frame.header();
    let mut values = BTreeMap::new();
    for part in frame.parts()? {
        let part = part?;
        let value = match part.link {
            None => StoredValue::Whole(unpack("channel value", part.packed)?),
            Some(Link { base, keep, .. }) => {
                StoredValue::ListDelta { base, keep, items: unpack("channel value", part.packed)? }
            }
        };
        values.insert(part.name()?, value);
    }
    Ok(StoredBatch {
        base: header.base,
        events: frame.events()?,
        checkpoint: header.checkpoint.map(|_| frame.meta()).transpose()?,
        values,
        seal: header.seal,
    })
}

/// Returns a thread with its current checkpoint and its newest run.
pub(crate) fn latest(
    snapshot: &Snapshot,
    thread: &ThreadId,
) -> Result<Option<ThreadSnapshot>, StoreError> {
    let Some(head) = snapshot.thread(thread)? else {
        return Ok(None);
    };
    let tuple = match head.current {
        Some(id) => checkpoint(snapshot, thread, &Namespace::root(), Some(id))?,
        None => None,
    };
    let run = match &head.record.run {
        Some(run) => snapshot.run(run)?,
        None => None,
    };
    Ok(Some(ThreadSnapshot { head, tuple, run }))
}

/// Returns a checkpoint by its id, or the newest one of the namespace.
pub(crate) fn checkpoint(
    snapshot: &Snapshot,
    thread: &ThreadId,
    namespace: &Namespace,
    id: Option<CheckpointId>,
) -> Result<Option<CheckpointTuple>, StoreError> {
    select_one(snapshot, thread, (namespace, id), CheckpointParts::All)
}

/// Returns a checkpoint with its thread, without the channel values.
pub(crate) fn outline(
    snapshot: &Snapshot,
    thread: &ThreadId,
    namespace: &Namespace,
    id: CheckpointId,
) -> Result<Option<CheckpointOutline>, StoreError> {
    let Some(head) = snapshot.thread(thread)? else {
        return Ok(None);
    };
    let parts = CheckpointParts::WithoutValues;
    let tuple = select_one(snapshot, thread, (namespace, Some(id)), parts)?;
    Ok(tuple.map(|tuple| CheckpointOutline { head, tuple }))
}

/// Selects a checkpoint by its id, or the newest one of the namespace.
fn select_one(
    snapshot: &Snapshot,
    thread: &ThreadId,
    (namespace, id): (&Namespace, Option<CheckpointId>),
    parts: CheckpointParts,
) -> Result<Option<CheckpointTuple>, StoreError> {
    let selection = Selection {
        oldest: id,
        limit: 1,
        parts,
        header: |header: &Header| {
            header.namespace == namespace.as_str() && (id.is_none() || header.checkpoint == id)
        },
        meta: |_: &CheckpointMeta| true,
    };
    Ok(select(snapshot, thread, &selection)?.items.pop())
}

/// See [`Store::checkpoints`](wattle_run::ports::Store::checkpoints).
pub(crate) fn checkpoints(
    snapshot: &Snapshot,
    thread: &ThreadId,
    query: &CheckpointQuery,
) -> Result<ListPage<CheckpointTuple>, StoreError> {
    let namespace = query.namespace.as_ref();
    // Checked in the header, so that newer checkpoints are not loaded.
    let is_before = |id: CheckpointId| query.before.is_none_or(|before| id < before);
    let selection = Selection {
        oldest: None,
        limit: query.limit.unwrap_or(usize::MAX),
        parts: query.parts,
        header: |header: &Header| {
            namespace.is_none_or(|namespace| namespace.as_str() == header.namespace)
                && header.checkpoint.is_none_or(is_before)
        },
        meta: |meta: &CheckpointMeta| checkpoint_matches(query, meta),
    };
    select(snapshot, thread, &selection)
}

/// Which checkpoints a walk selects, and what it reads of them.
struct Selection<H, M> {
    /// The walk ends at this checkpoint.
    oldest: Option<CheckpointId>,
    limit: usize,
    parts: CheckpointParts,
    /// Filter on the header, which needs no decoding.
    header: H,
    meta: M,
}

fn select<H, M>(
    snapshot: &Snapshot,
    thread: &ThreadId,
    selection: &Selection<H, M>,
) -> Result<ListPage<CheckpointTuple>, StoreError>
where
    H: Fn(&Header) -> bool,
    M: Fn(&CheckpointMeta) -> bool,
{
    let mut page = PageBuilder::new(selection.limit, HISTORY_BYTES);
    let Some(head) = snapshot.head(thread)? else {
        return Ok(page.finish());
    };
    let mut loader = Loader::new(snapshot);
    // The events of a checkpoint are newer than the checkpoint, so the walk passes all of them
    // before it.
    let mut pending: HashMap<CheckpointId, Vec<Seen>> = HashMap::new();
    for step in walk(snapshot, head.frame) {
        if page.is_full() {
            page.cut();
            break;
        }
        let (number, header) = step?;
        let checkpoint = header.checkpoint;
        let is_wanted = checkpoint.is_some() && (selection.header)(&header);
        let mut seen = Seen::Header(number, header);
        // A frame with a checkpoint and events is loaded once.
        let frame = if is_wanted { Some(seen.frame(snapshot)?) } else { None };
        if let Some(base) = seen.base_of_events().filter(|_| selection.parts.has_events()) {
            pending.entry(base).or_default().push(seen);
        }
        let Some(id) = checkpoint else { continue };
        let events = pending.remove(&id).unwrap_or_default();
        if let Some(frame) = frame {
            let meta: CheckpointMeta = frame.meta()?;
            if (selection.meta)(&meta) {
                let mut bytes = plain_bytes(frame.packed_meta()?);
                let (events, events_bytes) = pending_of(snapshot, thread, id, events)?;
                bytes = bytes.saturating_add(events_bytes);
                let mut values = Values::new();
                if selection.parts.has_values() {
                    let (loaded, values_bytes) = loader.channels(number, &frame, &meta)?;
                    values = loaded;
                    bytes = bytes.saturating_add(values_bytes);
                }
                if !page.fits(bytes) {
                    break;
                }
                let checkpoint = Checkpoint { meta, values, list_deltas: BTreeMap::new() };
                page.push(CheckpointTuple { checkpoint, events }, bytes);
            }
        }
        if selection.oldest.is_some_and(|oldest| id <= oldest) {
            break;
        }
    }
    Ok(page.finish())
}

/// A frame that the walk has passed.
enum Seen {
    Header(u64, Header),
    Frame(Rc<Frame>),
}

impl Seen {
    /// Returns the base checkpoint of the frame's events; `None` if the frame has no events.
    fn base_of_events(&self) -> Option<CheckpointId> {
        let header = match self {
            Self::Header(_, header) => header,
            Self::Frame(frame) => frame.header(),
        };
        header.base.filter(|_| header.has_events())
    }

    /// Returns the complete frame, and keeps it.
    fn frame(&mut self, snapshot: &Snapshot) -> Result<Rc<Frame>, StoreError> {
        let frame = match self {
            Self::Header(number, header) => Rc::new(load(snapshot, *number, header.clone())?),
            Self::Frame(frame) => return Ok(frame.clone()),
        };
        *self = Self::Frame(frame.clone());
        Ok(frame)
    }
}

/// Returns the events of the frames that belong to a checkpoint, and their size in bytes of JSON.
/// The size is checked before any event is decoded.
fn pending_of(
    snapshot: &Snapshot,
    thread: &ThreadId,
    checkpoint: CheckpointId,
    pending: Vec<Seen>,
) -> Result<(Vec<Event>, u64), StoreError> {
    let (mut frames, mut bytes) = (Vec::with_capacity(pending.len()), 0);
    for mut seen in pending.into_iter().rev() {
        let frame = seen.frame(snapshot)?;
        bytes += frame.packed_events()?.map_or(0, plain_bytes);
        if bytes > PENDING_LIMIT_BYTES {
            let (thread, limit) = (thread.clone(), PENDING_LIMIT_BYTES);
            return Err(StoreError::TooLarge { thread, checkpoint, bytes, limit });
        }
        frames.push(frame);
    }
    let mut events = Vec::new();
    for frame in frames {
        events.extend(frame.events::<Event>()?);
    }
    Ok((events, bytes))
}

#[cfg(test)]
mod tests;
