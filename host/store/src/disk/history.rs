//! Reads of a thread's past: events and checkpoints, along its chain of frames.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde_json::Value;
use wattle_graph::checkpoint::{Checkpoint, CheckpointMeta, Values};
use wattle_graph::event::Event;
use wattle_graph::id::{ChannelName, CheckpointId, Namespace, ThreadId};
use wattle_run::ports::store::{CheckpointQuery, CheckpointTuple, StoreError};

use crate::disk::chain::{load, load_at, walk};
use crate::disk::frame::{Frame, Header};
use crate::disk::snapshot::Snapshot;
use crate::error::corrupt;
use crate::query::checkpoint_matches;

/// Events after a sequence number, oldest first.
pub(crate) fn events(
    snapshot: &Snapshot,
    thread: &ThreadId,
    after: u64,
    limit: usize,
) -> Result<Vec<Event>, StoreError> {
    let head = match snapshot.head(thread)? {
        Some(head) if after < head.last_seq && limit > 0 => head,
        _ => return Ok(Vec::new()),
    };
    let until = after.saturating_add(limit as u64).min(head.last_seq);
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
    let mut events = Vec::new();
    for (number, header) in frames.into_iter().rev() {
        events.extend(load(snapshot, number, header)?.events::<Event>()?);
    }
    events.retain(|event| event.seq > after && event.seq <= until);
    Ok(events)
}

/// A checkpoint by its id, or the newest of the namespace.
pub(crate) fn checkpoint(
    snapshot: &Snapshot,
    thread: &ThreadId,
    namespace: &Namespace,
    id: Option<CheckpointId>,
) -> Result<Option<CheckpointTuple>, StoreError> {
    let selection = Selection {
        oldest: id,
        limit: 1,
        header: |header: &Header| {
            header.namespace == namespace.as_str() && (id.is_none() || header.checkpoint == id)
        },
        meta: |_: &CheckpointMeta| true,
    };
    Ok(select(snapshot, thread, &selection)?.pop())
}

/// Checkpoints that match, newest first.
pub(crate) fn checkpoints(
    snapshot: &Snapshot,
    thread: &ThreadId,
    query: &CheckpointQuery,
) -> Result<Vec<CheckpointTuple>, StoreError> {
    let namespace = query.namespace.as_ref();
    let selection = Selection {
        oldest: None,
        limit: query.limit.unwrap_or(usize::MAX),
        header: |header: &Header| {
            namespace.is_none_or(|namespace| namespace.as_str() == header.namespace)
        },
        meta: |meta: &CheckpointMeta| checkpoint_matches(query, meta),
    };
    select(snapshot, thread, &selection)
}

/// Which checkpoints to take on the way back.
struct Selection<H, M> {
    /// The walk need not go past this one.
    oldest: Option<CheckpointId>,
    limit: usize,
    /// What can be told without decoding.
    header: H,
    meta: M,
}

fn select<H, M>(
    snapshot: &Snapshot,
    thread: &ThreadId,
    selection: &Selection<H, M>,
) -> Result<Vec<CheckpointTuple>, StoreError>
where
    H: Fn(&Header) -> bool,
    M: Fn(&CheckpointMeta) -> bool,
{
    let mut tuples = Vec::new();
    let Some(head) = snapshot.head(thread)? else { return Ok(tuples) };
    let mut loader = Loader { snapshot, values: HashMap::new() };
    // A checkpoint's events are newer than itself, so they were all seen when it is met.
    let mut pending: HashMap<CheckpointId, Vec<(u64, Header)>> = HashMap::new();
    for step in walk(snapshot, head.frame) {
        if tuples.len() >= selection.limit {
            break;
        }
        let (number, header) = step?;
        if let Some(base) = header.base.filter(|_| header.has_events()) {
            pending.entry(base).or_default().push((number, header.clone()));
        }
        let Some(id) = header.checkpoint else { continue };
        let events = pending.remove(&id).unwrap_or_default();
        if (selection.header)(&header) {
            let frame = load(snapshot, number, header)?;
            let meta: CheckpointMeta = frame.meta()?;
            if (selection.meta)(&meta) {
                tuples.push(loader.tuple(number, &frame, meta, events)?);
            }
        }
        if selection.oldest.is_some_and(|oldest| id <= oldest) {
            break;
        }
    }
    Ok(tuples)
}

/// Loads channel values, those that several checkpoints share only once.
struct Loader<'a> {
    snapshot: &'a Snapshot,
    values: HashMap<(u64, ChannelName), Option<Arc<Value>>>,
}

impl Loader<'_> {
    fn tuple(
        &mut self,
        number: u64,
        frame: &Frame,
        meta: CheckpointMeta,
        pending: Vec<(u64, Header)>,
    ) -> Result<CheckpointTuple, StoreError> {
        let mut events = Vec::new();
        for (number, header) in pending.into_iter().rev() {
            events.extend(load(self.snapshot, number, header)?.events::<Event>()?);
        }
        let values = self.channels(number, frame, &meta)?;
        Ok(CheckpointTuple { checkpoint: Checkpoint { meta, values }, events })
    }

    fn channels(
        &mut self,
        number: u64,
        frame: &Frame,
        meta: &CheckpointMeta,
    ) -> Result<Values, StoreError> {
        let places = frame.places()?;
        let mut by_version: BTreeMap<CheckpointId, Vec<&ChannelName>> = BTreeMap::new();
        for (channel, version) in &meta.versions {
            by_version.entry(*version).or_default().push(channel);
        }
        let mut values = Values::new();
        for (version, channels) in by_version {
            let place = if version == meta.id { Some(&number) } else { places.get(&version) };
            let place = *place.ok_or_else(|| {
                corrupt("checkpoint", format!("nothing says where version {version} stands"))
            })?;
            let own = (place == number).then_some(frame);
            self.load(place, own, &channels)?;
            for channel in channels {
                if let Some(Some(value)) = self.values.get(&(place, channel.clone())) {
                    values.insert(channel.clone(), value.clone());
                }
            }
        }
        Ok(values)
    }

    fn load(
        &mut self,
        place: u64,
        own: Option<&Frame>,
        channels: &[&ChannelName],
    ) -> Result<(), StoreError> {
        let known = |channel: &&ChannelName| {
            self.values.contains_key(&(place, ChannelName::clone(channel)))
        };
        if channels.iter().all(known) {
            return Ok(());
        }
        let loaded;
        let frame = if let Some(own) = own {
            own
        } else {
            loaded = load_at(self.snapshot, place)?;
            &loaded
        };
        for channel in channels {
            let value = frame.value(channel)?.map(Arc::new);
            self.values.insert((place, ChannelName::clone(channel)), value);
        }
        Ok(())
    }
}
