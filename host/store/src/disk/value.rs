//! Reads of channel values: full values, and lists along their delta chains.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use serde_json::Value;
use wattle_graph::checkpoint::{ChannelValue, CheckpointMeta, SharedList, Values};
use wattle_graph::id::{ChannelName, CheckpointId};
use wattle_run::ports::store::StoreError;

use crate::codec::{unpack, unpacked_bytes};
use crate::disk::chain::{Log, load_at};
use crate::disk::frame::{Frame, Places};
use crate::disk::link::{Extent, Link};
use crate::error::corrupt;

const VALUE: &str = "channel value";

/// A channel in a frame, decoded.
#[derive(Debug)]
struct Piece {
    content: Content,
    /// Length in bytes of JSON.
    bytes: u64,
}

#[derive(Debug)]
enum Content {
    Whole(ChannelValue),
    Tail(Link, Vec<Value>),
}

/// A value with its length in bytes of JSON. The length of a list is that of the pieces from which
/// it was built.
type Measured = (ChannelValue, u64);

/// Number of a frame, and a channel in it.
type Spot = (u64, ChannelName);

/// Loads channel values. Frames and deltas that several values share are decoded once.
pub(crate) struct Loader<'a, L> {
    log: &'a L,
    /// The frame that was read last: the channels of one version are in one frame.
    last: Option<(u64, Rc<Frame>)>,
    pieces: HashMap<Spot, Option<Arc<Piece>>>,
    values: HashMap<Spot, Option<Measured>>,
}

/// Returns the number of the frame with a version of a checkpoint's channels.
pub(crate) fn place_of(
    meta: &CheckpointMeta,
    own: u64,
    places: &Places,
    version: CheckpointId,
) -> Result<u64, StoreError> {
    let place = if version == meta.id { Some(own) } else { places.get(&version).copied() };
    place.filter(|place| *place <= own).ok_or_else(|| {
        corrupt("checkpoint", format!("the frame index has no frame of version {version}"))
    })
}

/// Returns the sizes of the delta chain of a list in the frame `place`; `None` for other values.
pub(crate) fn extent(
    log: &impl Log,
    place: u64,
    version: CheckpointId,
    channel: &ChannelName,
) -> Result<Option<Extent>, StoreError> {
    let frame = load_at(log, place)?;
    let Some(part) = frame.part(channel)?.filter(|_| frame.header().holds(version)) else {
        return Ok(None);
    };
    match part.link {
        Some(link) => Ok(Some(link.extent)),
        None => match unpack::<Value>(VALUE, part.packed)? {
            Value::Array(items) => Ok(Some(Extent::whole(items.len(), part.packed.len()))),
            _ => Ok(None),
        },
    }
}

impl<'a, L: Log> Loader<'a, L> {
    /// Creates a loader with an empty cache.
    pub(crate) fn new(log: &'a L) -> Self {
        Self { log, last: None, pieces: HashMap::new(), values: HashMap::new() }
    }

    /// Loads the values of all channels of the checkpoint in a frame. Returns them with their total
    /// length in bytes of JSON.
    pub(crate) fn channels(
        &mut self,
        number: u64,
        frame: &Rc<Frame>,
        meta: &CheckpointMeta,
    ) -> Result<(Values, u64), StoreError> {
        let places = frame.places()?;
        self.last = Some((number, frame.clone()));
        // Ordered by frame, so that each frame is read once.
        let mut spots = Vec::with_capacity(meta.versions.len());
        for (channel, version) in &meta.versions {
            spots.push((place_of(meta, number, &places, *version)?, *version, channel));
        }
        // The newest frame comes first, because it is already loaded.
        spots.sort_unstable_by(|a, b| b.cmp(a));
        let (mut values, mut bytes) = (Values::new(), 0_u64);
        for (place, version, channel) in spots {
            if let Some((value, own)) = self.measured(place, version, channel)? {
                values.insert(channel.clone(), value);
                bytes = bytes.saturating_add(own);
            }
        }
        Ok((values, bytes))
    }

    /// Loads the value of a channel from the frame `place`; `None` if there is none.
    pub(crate) fn value(
        &mut self,
        place: u64,
        version: CheckpointId,
        channel: &ChannelName,
    ) -> Result<Option<ChannelValue>, StoreError> {
        Ok(self.measured(place, version, channel)?.map(|(value, _)| value))
    }

    fn measured(
        &mut self,
        place: u64,
        version: CheckpointId,
        channel: &ChannelName,
    ) -> Result<Option<Measured>, StoreError> {
        let spot = (place, channel.clone());
        if let Some(value) = self.values.get(&spot) {
            return Ok(value.clone());
        }
        let value = match self.piece(place, version, channel)?.as_deref() {
            None => None,
            Some(Piece { content: Content::Whole(value), bytes }) => Some((value.clone(), *bytes)),
            Some(Piece { content: Content::Tail(link, items), bytes }) => {
                let (list, before) = self.list(place, channel, *link, items)?;
                Some((list, bytes.saturating_add(before)))
            }
        };
        self.values.insert(spot, value.clone());
        Ok(value)
    }

    /// Builds a list from its newest delta back to the last full value. Returns it with the length
    /// of the pieces before that delta.
    fn list(
        &mut self,
        place: u64,
        channel: &ChannelName,
        link: Link,
        items: &[Value],
    ) -> Result<Measured, StoreError> {
        // The pieces of the chain, each of which is in a frame of its own.
        let Extent { tails, whole_bytes, tail_bytes, .. } = link.extent;
        self.log.foresee(u64::from(tails), whole_bytes.saturating_add(tail_bytes))?;
        let mut list: Vec<Value> = items.iter().rev().cloned().collect();
        let mut bytes = 0_u64;
        // The list is built backwards: `wanted` items are still missing.
        let (mut place, mut link, mut wanted) = (place, link, link.keep as usize);
        while wanted > 0 {
            if link.place >= place {
                let message = format!("the delta in frame {place} does not follow its base");
                return Err(corrupt(VALUE, message));
            }
            let piece = self.piece(link.place, link.base, channel)?;
            let piece =
                piece.ok_or_else(|| corrupt(VALUE, "the base of a list delta is missing"))?;
            bytes = bytes.saturating_add(piece.bytes);
            let (kept, items): (usize, Vec<&Value>) = match &piece.content {
                Content::Whole(value) => {
                    (0, value.list().into_iter().flat_map(SharedList::iter).collect())
                }
                Content::Tail(link, items) => (link.keep as usize, items.iter().collect()),
            };
            if kept + items.len() < wanted {
                return Err(corrupt(VALUE, "the base of a list delta is too short"));
            }
            list.extend(items[..wanted.saturating_sub(kept)].iter().rev().copied().cloned());
            wanted = wanted.min(kept);
            if let Content::Tail(next, _) = &piece.content {
                (place, link) = (link.place, *next);
            }
        }
        list.reverse();
        Ok((Value::Array(list).into(), bytes))
    }

    fn piece(
        &mut self,
        place: u64,
        version: CheckpointId,
        channel: &ChannelName,
    ) -> Result<Option<Arc<Piece>>, StoreError> {
        let spot = (place, channel.clone());
        if let Some(piece) = self.pieces.get(&spot) {
            return Ok(piece.clone());
        }
        let frame = self.frame(place)?;
        if !frame.header().holds(version) {
            return Err(corrupt(
                VALUE,
                format!("frame {place} has no values of version {version}"),
            ));
        }
        let piece = match frame.part(channel)? {
            None => None,
            Some(part) => {
                let content = match part.link {
                    Some(link) => Content::Tail(link, unpack(VALUE, part.packed)?),
                    None => Content::Whole(unpack(VALUE, part.packed)?),
                };
                Some(Arc::new(Piece { content, bytes: unpacked_bytes(part.packed) }))
            }
        };
        self.pieces.insert(spot, piece.clone());
        Ok(piece)
    }

    fn frame(&mut self, place: u64) -> Result<&Frame, StoreError> {
        let frame = match self.last.take() {
            Some((number, frame)) if number == place => frame,
            _ => Rc::new(load_at(self.log, place)?),
        };
        Ok(&*self.last.insert((place, frame)).1)
    }
}
