//! Reads of a thread's history: events and checkpoints, along its chain of frames.

mod cursors;

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

use crate::codec::{unpack, unpacked_bytes};
use crate::disk::chain::{LogReader as _, load_frame, load_frame_at, walk_frames};
use crate::disk::delta::DeltaLink;
use crate::disk::frame::{Frame, Header};
use crate::disk::head::Head;
use crate::disk::snapshot::{Mark, Snapshot};
use crate::disk::value::ValueLoader;
use crate::page::{
    EventPage, PageBuilder, batch_memory_bytes, checkpoint_memory_bytes, unpack_events,
};
use crate::query::checkpoint_matches;
use cursors::Cursor;
pub(crate) use cursors::Cursors;

/// Maximum size of the events since a checkpoint that are read together, in bytes of JSON.
/// Compressed, the events may take a thousandth of this size in the file. The events of ten
/// thousand tasks with 6 KB each fit.
pub const PENDING_LIMIT_BYTES: u64 = 64 * 1024 * 1024;

/// Maximum memory of the events since a checkpoint that are read together, in bytes. Texts take
/// about as much memory as JSON, and lists of small values up to 36 times as much.
pub const PENDING_MEMORY_BYTES: u64 = 2 * PENDING_LIMIT_BYTES;

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
        add_events_between(snapshot, &head, (after, until), &mut page)?;
        after = until;
        width = width.saturating_mul(2);
    }
    Ok(page.into_events())
}

/// Adds the events after a sequence number, up to another, to a page.
fn add_events_between(
    snapshot: &Snapshot,
    head: &Head,
    (after, until): (u64, u64),
    page: &mut EventPage,
) -> Result<(), StoreError> {
    let newest = snapshot.find_mark(head.number, until)?.map_or(head.frame, |mark| mark.frame);
    let mut frames = Vec::new();
    for step in walk_frames(snapshot, newest) {
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
        if let Some(packed) = load_frame(snapshot, number, header)?.packed_events()? {
            page.add(packed, &(after + 1..=until))?;
        }
    }
    Ok(())
}

/// Returns batches from a frame on, oldest first, up to about `bytes` bytes of JSON and of memory.
/// The chain links only to older frames, so it is read in parts, each from its mark back to the part
/// before it.
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
    let (mut from, mut taken) = (from.unwrap_or(1), 0);
    let find = |seq| snapshot.find_mark(head.number, seq);
    let mut mark = mark_at_frame(from, head.last_seq, find)?;
    while from <= head.frame {
        let newest = mark.map_or(head.frame, |mark| mark.frame);
        let mut frames = Vec::new();
        for step in walk_frames(snapshot, newest) {
            let (number, header) = step?;
            let is_first = header.previous < from;
            frames.push((number, header));
            if is_first {
                break;
            }
        }
        for (number, header) in frames.into_iter().rev() {
            if taken >= bytes as u64 && !page.batches.is_empty() {
                page.next = Some(number);
                return Ok(page);
            }
            let frame = load_frame(snapshot, number, header)?;
            let batch = batch(&frame)?;
            taken += frame.json_bytes()?.max(batch_memory_bytes(&batch));
            page.batches.push(batch);
        }
        from = newest + 1;
        if let Some(Mark { seq, .. }) = mark {
            mark = find(seq + 1)?;
        }
    }
    Ok(page)
}

/// Returns the first mark at or after a frame. Marks ascend by event and by frame, so a binary
/// search finds the mark. `find` returns the first mark at or after an event. No mark is after
/// `last_seq`.
fn mark_at_frame(
    frame: u64,
    last_seq: u64,
    find: impl Fn(u64) -> Result<Option<Mark>, StoreError>,
) -> Result<Option<Mark>, StoreError> {
    let (mut low, mut high, mut found) = (0, last_seq + 1, None);
    while low < high {
        let middle = low + (high - low) / 2;
        match find(middle)? {
            Some(earlier) if earlier.frame < frame => low = earlier.seq + 1,
            later => (high, found) = (middle, later),
        }
    }
    Ok(found)
}

fn batch(frame: &Frame) -> Result<StoredBatch, StoreError> {
    let header = frame.header();
    let mut values = BTreeMap::new();
    for part in frame.parts()? {
        let part = part?;
        let value = match part.link {
            None => StoredValue::Whole(unpack("channel value", part.packed)?),
            Some(DeltaLink { base, keep, .. }) => {
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
    let Some(head) = snapshot.head(thread)? else {
        return Ok(None);
    };
    if let (Some(id), Some(newest)) = (id, head.last_checkpoint) {
        // Most checkpoints have a frame each, which the walk passes.
        snapshot.ensure_budget(newest.0.saturating_sub(id.0), 0)?;
    }
    let filter = CheckpointFilter {
        oldest: id,
        before: None,
        limit: 1,
        parts,
        header: |header: &Header| {
            header.namespace == namespace.as_str() && (id.is_none() || header.checkpoint == id)
        },
        meta: |_: &CheckpointMeta| true,
    };
    let (mut page, _) = select(snapshot, thread, &head, &filter, None)?;
    Ok(page.items.pop())
}

/// See [`Store::checkpoints`](wattle_run::ports::Store::checkpoints).
pub(crate) fn checkpoints(
    snapshot: &Snapshot,
    thread: &ThreadId,
    query: &CheckpointQuery,
    cursors: &Cursors,
) -> Result<ListPage<CheckpointTuple>, StoreError> {
    let Some(head) = snapshot.head(thread)? else {
        return Ok(ListPage::empty());
    };
    let namespace = query.namespace.as_ref();
    let filter = CheckpointFilter {
        oldest: None,
        before: query.before,
        limit: query.limit.unwrap_or(usize::MAX),
        parts: query.parts,
        header: |header: &Header| {
            namespace.is_none_or(|namespace| namespace.as_str() == header.namespace)
        },
        meta: |meta: &CheckpointMeta| checkpoint_matches(query, meta),
    };
    let from = cursors.find(head.number, head.frame, query);
    let (page, end) = select(snapshot, thread, &head, &filter, from)?;
    if let (Some(last), Some(end)) = (page.items.last(), end) {
        cursors.insert(head.number, query, last.checkpoint.meta.id, end);
    }
    Ok(page)
}

/// The checkpoints that a walk selects, and the parts of them that it reads.
struct CheckpointFilter<H, M> {
    /// The walk ends at this checkpoint.
    oldest: Option<CheckpointId>,
    /// The walk selects only checkpoints before this checkpoint. The walk compares the header of a
    /// frame, so newer checkpoints are not loaded.
    before: Option<CheckpointId>,
    limit: usize,
    parts: CheckpointParts,
    /// Filter on the header, which needs no decoding.
    header: H,
    meta: M,
}

impl<H, M> CheckpointFilter<H, M> {
    fn is_before(&self, id: CheckpointId) -> bool {
        self.before.is_none_or(|before| id < before)
    }

    /// Returns the checkpoint whose events a frame contains, if the filter reads events.
    fn base_of_events(&self, header: &Header) -> Option<CheckpointId> {
        let base = header.base.filter(|_| header.has_events() && self.parts.has_events());
        base.filter(|base| self.is_before(*base))
    }
}

/// Reads a page of checkpoints, from the newest one or from the cursor `from` on. Returns the page
/// and, if the list continues, the cursor at its end.
fn select<H, M>(
    snapshot: &Snapshot,
    thread: &ThreadId,
    head: &Head,
    filter: &CheckpointFilter<H, M>,
    from: Option<Cursor>,
) -> Result<(ListPage<CheckpointTuple>, Option<Cursor>), StoreError>
where
    H: Fn(&Header) -> bool,
    M: Fn(&CheckpointMeta) -> bool,
{
    let mut page = PageBuilder::new(filter.limit, HISTORY_BYTES);
    let mut loader = ValueLoader::new(snapshot);
    // The events of a checkpoint are newer than the checkpoint, so the walk passes all of these
    // events before it reaches the checkpoint.
    let mut pending: HashMap<CheckpointId, Vec<VisitedFrame>> = HashMap::new();
    let mut steps = walk_frames(snapshot, head.frame);
    if let Some(Cursor { newest, next, passed }) = from {
        while steps.position() > newest
            && let Some(step) = steps.next()
        {
            let (number, header) = step?;
            if let Some(base) = filter.base_of_events(&header) {
                pending.entry(base).or_default().push(VisitedFrame::header(number, header));
            }
        }
        for (base, number) in passed {
            pending.entry(base).or_default().push(VisitedFrame::number(number));
        }
        steps = walk_frames(snapshot, next);
    }
    let mut end = None;
    loop {
        if page.is_full() && steps.position() > 0 {
            page.truncate();
            end = Some(steps.position());
            break;
        }
        let Some(step) = steps.next() else { break };
        let (number, header) = step?;
        let (base, checkpoint) = (filter.base_of_events(&header), header.checkpoint);
        let is_selected =
            checkpoint.is_some_and(|id| filter.is_before(id)) && (filter.header)(&header);
        let mut visited = VisitedFrame::header(number, header);
        // A frame with a checkpoint and events is loaded once.
        let frame = if is_selected { Some(visited.frame(snapshot)?) } else { None };
        if let Some(base) = base {
            pending.entry(base).or_default().push(visited);
        }
        let Some(id) = checkpoint else { continue };
        let mut since = pending.remove(&id).unwrap_or_default();
        if let Some(frame) = frame {
            let mut bytes = unpacked_bytes(frame.packed_meta()?);
            snapshot.consume_json(bytes)?;
            let meta: CheckpointMeta = frame.meta()?;
            if (filter.meta)(&meta) {
                let (events, events_bytes) = pending_events(snapshot, thread, id, &mut since)?;
                let mut values = Values::new();
                if filter.parts.has_values() {
                    let (loaded, values_bytes) = loader.channels(number, &frame, &meta)?;
                    values = loaded;
                    bytes = bytes.saturating_add(values_bytes);
                }
                // One checkpoint fits whatever its size, so it need not be weighed.
                if filter.limit > 1 {
                    bytes = bytes.max(checkpoint_memory_bytes(&meta, &values));
                }
                bytes = bytes.saturating_add(events_bytes);
                if !page.fits(bytes) {
                    pending.insert(id, since);
                    end = Some(number);
                    break;
                }
                let checkpoint = Checkpoint::new(meta, values);
                page.push(CheckpointTuple { checkpoint, events }, bytes);
            }
        }
        if filter.oldest.is_some_and(|oldest| id <= oldest) {
            break;
        }
    }
    let end = end.map(|next| Cursor { newest: head.frame, next, passed: passed(&pending, next) });
    Ok((page.finish(), end))
}

/// Returns the frames after the frame `next` that a walk has passed, each with the checkpoint that
/// its events belong to.
fn passed(
    pending: &HashMap<CheckpointId, Vec<VisitedFrame>>,
    next: u64,
) -> Vec<(CheckpointId, u64)> {
    let of = |(base, frames): (&CheckpointId, &Vec<VisitedFrame>)| {
        let numbers = frames.iter().map(|visited| visited.number).filter(|number| *number > next);
        numbers.map(|number| (*base, number)).collect::<Vec<_>>()
    };
    pending.iter().flat_map(of).collect()
}

/// A frame that the walk has passed.
struct VisitedFrame {
    number: u64,
    content: FrameContent,
}

/// What the walk has read of a frame.
enum FrameContent {
    Nothing,
    Header(Header),
    Frame(Rc<Frame>),
}

impl VisitedFrame {
    fn number(number: u64) -> Self {
        Self { number, content: FrameContent::Nothing }
    }

    fn header(number: u64, header: Header) -> Self {
        Self { number, content: FrameContent::Header(header) }
    }

    /// Returns the complete frame, and keeps it.
    fn frame(&mut self, snapshot: &Snapshot) -> Result<Rc<Frame>, StoreError> {
        let frame = match &self.content {
            FrameContent::Nothing => Rc::new(load_frame_at(snapshot, self.number)?),
            FrameContent::Header(header) => {
                Rc::new(load_frame(snapshot, self.number, header.clone())?)
            }
            FrameContent::Frame(frame) => return Ok(frame.clone()),
        };
        self.content = FrameContent::Frame(frame.clone());
        Ok(frame)
    }
}

/// Returns the events of the frames that belong to a checkpoint, and their size in bytes: of JSON
/// or of memory, whichever is larger. The size of the JSON is checked before any event is decoded.
fn pending_events(
    snapshot: &Snapshot,
    thread: &ThreadId,
    checkpoint: CheckpointId,
    pending: &mut [VisitedFrame],
) -> Result<(Vec<Event>, u64), StoreError> {
    let too_large =
        |bytes, limit| StoreError::TooLarge { thread: thread.clone(), checkpoint, bytes, limit };
    let (mut frames, mut json_bytes) = (Vec::with_capacity(pending.len()), 0);
    for visited in pending.iter_mut().rev() {
        let frame = visited.frame(snapshot)?;
        let more = frame.packed_events()?.map_or(0, unpacked_bytes);
        snapshot.consume_json(more)?;
        json_bytes += more;
        if json_bytes > PENDING_LIMIT_BYTES {
            return Err(too_large(json_bytes, PENDING_LIMIT_BYTES));
        }
        frames.push(frame);
    }
    let (mut events, mut memory_bytes) = (Vec::new(), 0);
    for frame in frames {
        if let Some(packed) = frame.packed_events()? {
            memory_bytes +=
                unpack_events(packed, PENDING_MEMORY_BYTES - memory_bytes, &mut events)?;
        }
        if memory_bytes > PENDING_MEMORY_BYTES {
            return Err(too_large(memory_bytes, PENDING_MEMORY_BYTES));
        }
    }
    Ok((events, json_bytes.max(memory_bytes)))
}

#[cfg(test)]
mod tests;
