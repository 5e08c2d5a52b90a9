//! Reads of channel values: full values, and lists along their delta chains.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use serde_json::Value;
use wattle_graph::checkpoint::{ChannelValue, CheckpointMeta, SharedList, Values};
use wattle_graph::id::{ChannelName, CheckpointId};
use wattle_run::ports::store::StoreError;

use crate::codec::{unpack, unpacked_bytes};
use crate::disk::chain::{LogReader, load_frame_at};
use crate::disk::delta::{ChainStats, DeltaLink};
use crate::disk::frame::{Frame, FrameIndex};
use crate::error::corrupt;

const VALUE: &str = "channel value";

/// A channel in a frame, decoded.
#[derive(Debug)]
struct DecodedPart {
    content: Content,
    /// Length in bytes of JSON.
    bytes: u64,
}

#[derive(Debug)]
enum Content {
    Full(ChannelValue),
    Delta(DeltaLink, Vec<Value>),
}

/// A value with its length in bytes of JSON. The length of a list is the total length of its full
/// value and list deltas.
type Measured = (ChannelValue, u64);

/// Number of a frame, and a channel in it.
type ValueKey = (u64, ChannelName);

/// Loads channel values. Frames and deltas that several values share are decoded once.
pub(crate) struct ValueLoader<'a, L> {
    log: &'a L,
    /// The frame that was read last: all values that one checkpoint wrote are in one frame.
    last: Option<(u64, Rc<Frame>)>,
    parts: HashMap<ValueKey, Option<Arc<DecodedPart>>>,
    values: HashMap<ValueKey, Option<Measured>>,
}

/// Returns the number of the frame with the values that the checkpoint `version` wrote and that the
/// checkpoint of `meta` uses. `own` is the number of the frame of the latter checkpoint.
pub(crate) fn frame_of_version(
    meta: &CheckpointMeta,
    own: u64,
    frame_index: &FrameIndex,
    version: CheckpointId,
) -> Result<u64, StoreError> {
    let frame_no = if version == meta.id { Some(own) } else { frame_index.get(&version).copied() };
    frame_no.filter(|frame_no| *frame_no <= own).ok_or_else(|| {
        let message = format!(
            "the frame index has no earlier frame for the values that checkpoint {version} wrote"
        );
        corrupt("checkpoint", message)
    })
}

/// Returns the sizes of the delta chain of a list in the frame `frame_no`; `None` for other values.
pub(crate) fn chain_stats(
    log: &impl LogReader,
    frame_no: u64,
    version: CheckpointId,
    channel: &ChannelName,
) -> Result<Option<ChainStats>, StoreError> {
    let frame = load_frame_at(log, frame_no)?;
    let Some(part) = frame.part(channel)?.filter(|_| frame.header().may_hold(version)) else {
        return Ok(None);
    };
    match part.link {
        Some(link) => Ok(Some(link.chain)),
        None => match unpack::<Value>(VALUE, part.packed)? {
            Value::Array(items) => Ok(Some(ChainStats::full(items.len(), part.packed.len()))),
            _ => Ok(None),
        },
    }
}

impl<'a, L: LogReader> ValueLoader<'a, L> {
    /// Creates a loader with an empty cache.
    pub(crate) fn new(log: &'a L) -> Self {
        Self { log, last: None, parts: HashMap::new(), values: HashMap::new() }
    }

    /// Loads the values of all channels of the checkpoint in a frame. Returns them with their total
    /// length in bytes of JSON.
    pub(crate) fn channels(
        &mut self,
        number: u64,
        frame: &Rc<Frame>,
        meta: &CheckpointMeta,
    ) -> Result<(Values, u64), StoreError> {
        let frame_index = frame.frame_index()?;
        self.last = Some((number, frame.clone()));
        // Ordered by frame, so that each frame is read once.
        let mut locations = Vec::with_capacity(meta.versions.len());
        for (channel, version) in &meta.versions {
            locations.push((
                frame_of_version(meta, number, &frame_index, *version)?,
                *version,
                channel,
            ));
        }
        // The newest frame comes first, because it is already loaded.
        locations.sort_unstable_by(|a, b| b.cmp(a));
        let (mut values, mut bytes) = (Values::new(), 0_u64);
        for (frame_no, version, channel) in locations {
            if let Some((value, own)) = self.load(frame_no, version, channel)? {
                values.insert(channel.clone(), value);
                bytes = bytes.saturating_add(own);
            }
        }
        Ok((values, bytes))
    }

    /// Loads the value of a channel from the frame `frame_no`; `None` if the frame has no value of
    /// the channel.
    pub(crate) fn value(
        &mut self,
        frame_no: u64,
        version: CheckpointId,
        channel: &ChannelName,
    ) -> Result<Option<ChannelValue>, StoreError> {
        Ok(self.load(frame_no, version, channel)?.map(|(value, _)| value))
    }

    fn load(
        &mut self,
        frame_no: u64,
        version: CheckpointId,
        channel: &ChannelName,
    ) -> Result<Option<Measured>, StoreError> {
        let key = (frame_no, channel.clone());
        if let Some(value) = self.values.get(&key) {
            return Ok(value.clone());
        }
        let value = match self.decode_part(frame_no, version, channel)?.as_deref() {
            None => None,
            Some(DecodedPart { content: Content::Full(value), bytes }) => {
                Some((value.clone(), *bytes))
            }
            Some(DecodedPart { content: Content::Delta(link, items), bytes }) => {
                let (list, before) = self.build_list(frame_no, channel, *link, items)?;
                Some((list, bytes.saturating_add(before)))
            }
        };
        self.values.insert(key, value.clone());
        Ok(value)
    }

    /// Builds a list from its newest delta back to the last full value. Returns the list, and the
    /// total length of its full value and its earlier deltas.
    fn build_list(
        &mut self,
        frame_no: u64,
        channel: &ChannelName,
        link: DeltaLink,
        items: &[Value],
    ) -> Result<Measured, StoreError> {
        // The full value and each delta of the chain are in separate frames.
        let ChainStats { deltas, full_bytes, delta_bytes, .. } = link.chain;
        self.log.ensure_budget(u64::from(deltas), full_bytes.saturating_add(delta_bytes))?;
        let mut list: Vec<Value> = items.iter().rev().cloned().collect();
        let mut bytes = 0_u64;
        // The list is built from its end. `missing` is the number of leading items that are not yet
        // read.
        let (mut frame_no, mut link, mut missing) = (frame_no, link, link.keep as usize);
        while missing > 0 {
            if link.frame_no >= frame_no {
                let message = format!("the delta in frame {frame_no} does not follow its base");
                return Err(corrupt(VALUE, message));
            }
            let decoded = self.decode_part(link.frame_no, link.base, channel)?;
            let decoded =
                decoded.ok_or_else(|| corrupt(VALUE, "the base of a list delta is missing"))?;
            bytes = bytes.saturating_add(decoded.bytes);
            let (kept, items): (usize, Vec<&Value>) = match &decoded.content {
                Content::Full(value) => {
                    (0, value.list().into_iter().flat_map(SharedList::iter).collect())
                }
                Content::Delta(link, items) => (link.keep as usize, items.iter().collect()),
            };
            if kept + items.len() < missing {
                return Err(corrupt(VALUE, "the base of a list delta is too short"));
            }
            list.extend(items[..missing.saturating_sub(kept)].iter().rev().copied().cloned());
            missing = missing.min(kept);
            if let Content::Delta(next, _) = &decoded.content {
                (frame_no, link) = (link.frame_no, *next);
            }
        }
        list.reverse();
        Ok((Value::Array(list).into(), bytes))
    }

    fn decode_part(
        &mut self,
        frame_no: u64,
        version: CheckpointId,
        channel: &ChannelName,
    ) -> Result<Option<Arc<DecodedPart>>, StoreError> {
        let key = (frame_no, channel.clone());
        if let Some(decoded) = self.parts.get(&key) {
            return Ok(decoded.clone());
        }
        let log = self.log;
        let frame = self.frame(frame_no)?;
        if !frame.header().may_hold(version) {
            return Err(corrupt(
                VALUE,
                format!(
                    "frame {frame_no} should contain a value that checkpoint {version} wrote, but \
                     its header excludes that"
                ),
            ));
        }
        let decoded = match frame.part(channel)? {
            None => None,
            Some(part) => {
                let bytes = unpacked_bytes(part.packed);
                log.consume_json(bytes)?;
                let content = match part.link {
                    Some(link) => Content::Delta(link, unpack(VALUE, part.packed)?),
                    None => Content::Full(unpack(VALUE, part.packed)?),
                };
                Some(Arc::new(DecodedPart { content, bytes }))
            }
        };
        self.parts.insert(key, decoded.clone());
        Ok(decoded)
    }

    fn frame(&mut self, frame_no: u64) -> Result<&Frame, StoreError> {
        let frame = match self.last.take() {
            Some((number, frame)) if number == frame_no => frame,
            _ => Rc::new(load_frame_at(self.log, frame_no)?),
        };
        Ok(&*self.last.insert((frame_no, frame)).1)
    }
}
