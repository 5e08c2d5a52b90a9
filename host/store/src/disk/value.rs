//! Reads channel values: whole ones, and lists along the links of their ends.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use serde_json::Value;
use wattle_graph::checkpoint::{CheckpointMeta, Values};
use wattle_graph::id::{ChannelName, CheckpointId};
use wattle_run::ports::store::StoreError;

use crate::codec::unpack;
use crate::disk::chain::{Log, load_at};
use crate::disk::frame::{Frame, Places};
use crate::disk::link::{Extent, Link};
use crate::error::corrupt;

const VALUE: &str = "channel value";

/// What a frame holds of a channel, decoded.
#[derive(Debug)]
enum Piece {
    Whole(Arc<Value>),
    Tail(Link, Vec<Value>),
}

/// A frame's share of a channel.
type Spot = (u64, ChannelName);

/// Loads channel values, each piece that several of them share only once.
pub(crate) struct Loader<'a, L> {
    log: &'a L,
    /// The frame read last: channels of one version stand together.
    last: Option<(u64, Rc<Frame>)>,
    pieces: HashMap<Spot, Option<Arc<Piece>>>,
    values: HashMap<Spot, Option<Arc<Value>>>,
}

/// Where a version of a checkpoint's channels stands.
pub(crate) fn place_of(
    meta: &CheckpointMeta,
    own: u64,
    places: &Places,
    version: CheckpointId,
) -> Result<u64, StoreError> {
    let place = if version == meta.id { Some(own) } else { places.get(&version).copied() };
    place.filter(|place| *place <= own).ok_or_else(|| {
        corrupt("checkpoint", format!("nothing says where version {version} stands"))
    })
}

/// What a list takes that stands at a place, as far as a frame there tells; `None` for other
/// values.
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
    /// One that has loaded nothing yet.
    pub(crate) fn new(log: &'a L) -> Self {
        Self { log, last: None, pieces: HashMap::new(), values: HashMap::new() }
    }

    /// Values of all channels of the checkpoint in a frame.
    pub(crate) fn channels(
        &mut self,
        number: u64,
        frame: &Rc<Frame>,
        meta: &CheckpointMeta,
    ) -> Result<Values, StoreError> {
        let places = frame.places()?;
        self.last = Some((number, frame.clone()));
        // Channels of one frame together, so that it is read once.
        let mut spots = Vec::with_capacity(meta.versions.len());
        for (channel, version) in &meta.versions {
            spots.push((place_of(meta, number, &places, *version)?, *version, channel));
        }
        // Newest first, which begins with the frame at hand.
        spots.sort_unstable_by(|a, b| b.cmp(a));
        let mut values = Values::new();
        for (place, version, channel) in spots {
            if let Some(value) = self.value(place, version, channel)? {
                values.insert(channel.clone(), value);
            }
        }
        Ok(values)
    }

    /// The value of a channel that stands at a place; `None` if it has none.
    pub(crate) fn value(
        &mut self,
        place: u64,
        version: CheckpointId,
        channel: &ChannelName,
    ) -> Result<Option<Arc<Value>>, StoreError> {
        let spot = (place, channel.clone());
        if let Some(value) = self.values.get(&spot) {
            return Ok(value.clone());
        }
        let value = match self.piece(place, version, channel)?.as_deref() {
            None => None,
            Some(Piece::Whole(value)) => Some(value.clone()),
            Some(Piece::Tail(link, items)) => Some(self.list(place, channel, *link, items)?),
        };
        self.values.insert(spot, value.clone());
        Ok(value)
    }

    /// A list from its end back to its last whole value.
    fn list(
        &mut self,
        place: u64,
        channel: &ChannelName,
        link: Link,
        items: &[Value],
    ) -> Result<Arc<Value>, StoreError> {
        let mut list: Vec<Value> = items.iter().rev().cloned().collect();
        // The list is gathered backwards: `wanted` items are still to come.
        let (mut place, mut link, mut wanted) = (place, link, link.keep as usize);
        while wanted > 0 {
            if link.place >= place {
                return Err(corrupt(VALUE, format!("its beginning stands after it, at {place}")));
            }
            let piece = self.piece(link.place, link.base, channel)?;
            let piece = piece.ok_or_else(|| corrupt(VALUE, "its beginning is missing"))?;
            let (kept, items) = match &*piece {
                Piece::Whole(value) => (0, value.as_array().map_or(&[][..], Vec::as_slice)),
                Piece::Tail(link, items) => (link.keep as usize, items.as_slice()),
            };
            if kept + items.len() < wanted {
                return Err(corrupt(VALUE, "its beginning is too short"));
            }
            list.extend(items[..wanted.saturating_sub(kept)].iter().rev().cloned());
            wanted = wanted.min(kept);
            if let Piece::Tail(next, _) = &*piece {
                (place, link) = (link.place, *next);
            }
        }
        list.reverse();
        Ok(Arc::new(Value::Array(list)))
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
            return Err(corrupt(VALUE, format!("version {version} does not stand at {place}")));
        }
        let piece = match frame.part(channel)? {
            None => None,
            Some(part) => Some(Arc::new(match part.link {
                Some(link) => Piece::Tail(link, unpack(VALUE, part.packed)?),
                None => Piece::Whole(Arc::new(unpack(VALUE, part.packed)?)),
            })),
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
