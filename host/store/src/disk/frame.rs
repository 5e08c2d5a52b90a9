//! One frame of the log: what a batch adds to a thread's history.
//!
//! A frame is a fixed header, so that a walk along a thread's chain need not decode anything, and
//! a body of packed records, so that one channel can be read without the others. See the page on
//! the format for the layout.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use wattle_graph::id::{ChannelName, CheckpointId};
use wattle_run::ports::store::StoreError;

use crate::codec::unpack;
use crate::error::corrupt;

/// Where the channels of a checkpoint stand: version to the frame of that checkpoint.
pub(crate) type Places = BTreeMap<CheckpointId, u64>;

/// What redb needs of a page, or of several together, for itself; with some to spare.
const PAGE_OVERHEAD_BYTES: usize = 64;

/// A value this large fills one page.
const PAGE_ROOM: usize = 4096 - PAGE_OVERHEAD_BYTES;

/// Larger chunks would save nothing more.
const CHUNK_LIMIT_BYTES: usize = 64 * 1024 - PAGE_OVERHEAD_BYTES;

const HEADER_BYTES: usize = 61;
const PLACE_BYTES: usize = 16;
const HAS_BASE: u8 = 1;
const HAS_CHECKPOINT: u8 = 2;

/// What a walk along the chain needs to know of a frame.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Header {
    /// Entries of the log that it takes.
    pub(crate) chunks: u32,
    /// The thread's frame before; 0 for the first.
    pub(crate) previous: u64,
    /// The checkpoint its events belong to.
    pub(crate) base: Option<CheckpointId>,
    /// The checkpoint in it.
    pub(crate) checkpoint: Option<CheckpointId>,
    /// The thread's newest event before it.
    pub(crate) after_seq: u64,
    /// The thread's newest event with it.
    pub(crate) last_seq: u64,
    /// Nested graph of its checkpoint.
    pub(crate) namespace: String,
    /// How many entries its list of places has; [`write`] sets this and the following.
    pub(crate) places: u32,
    /// Packed bytes of its events.
    pub(crate) events_bytes: u32,
    /// Packed bytes of its checkpoint's facts.
    pub(crate) meta_bytes: u32,
}

impl Header {
    /// Whether it has events.
    pub(crate) fn has_events(&self) -> bool {
        self.last_seq > self.after_seq
    }

    /// Reads the header at the start of a frame's first chunk.
    pub(crate) fn read(chunk: &[u8]) -> Result<Self, StoreError> {
        let mut rest = Reader { what: "frame header", rest: chunk };
        let flags = rest.bytes(1)?[0];
        let some = |flag: u8, id: u64| (flags & flag != 0).then_some(CheckpointId(id));
        let mut header = Self {
            chunks: rest.u32()?,
            previous: rest.u64()?,
            base: some(HAS_BASE, rest.u64()?),
            checkpoint: some(HAS_CHECKPOINT, rest.u64()?),
            after_seq: rest.u64()?,
            last_seq: rest.u64()?,
            namespace: String::new(),
            places: rest.u32()?,
            events_bytes: rest.u32()?,
            meta_bytes: rest.u32()?,
        };
        let length = rest.u32()? as usize;
        let namespace = std::str::from_utf8(rest.bytes(length)?);
        header.namespace.push_str(namespace.map_err(|error| corrupt("frame header", error))?);
        Ok(header)
    }

    fn write(&self, flags: u8, bytes: &mut Vec<u8>) {
        bytes.push(flags);
        bytes.extend(self.chunks.to_le_bytes());
        let id = |id: Option<CheckpointId>| id.map_or(0, |id| id.0);
        for number in
            [self.previous, id(self.base), id(self.checkpoint), self.after_seq, self.last_seq]
        {
            bytes.extend(number.to_le_bytes());
        }
        let namespace = self.namespace.len() as u32;
        for number in [self.places, self.events_bytes, self.meta_bytes, namespace] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(self.namespace.as_bytes());
    }
}

/// The packed records of a new frame.
#[derive(Debug, Default)]
pub(crate) struct Body {
    /// All events, packed as one list; empty without any.
    pub(crate) events: Vec<u8>,
    /// The checkpoint's facts; empty without one.
    pub(crate) meta: Vec<u8>,
    /// Where its unchanged channels stand.
    pub(crate) places: Places,
    /// Its changed channels.
    pub(crate) values: Vec<(ChannelName, Vec<u8>)>,
}

impl Body {
    fn bytes(&self) -> usize {
        let value = |(name, value): &(ChannelName, Vec<u8>)| name.as_str().len() + value.len() + 8;
        let values: usize = self.values.iter().map(value).sum();
        self.places.len() * PLACE_BYTES + self.events.len() + self.meta.len() + values
    }
}

/// Puts a frame together and cuts it into the chunks that go into the log.
pub(crate) fn write(mut header: Header, body: &Body) -> Vec<Vec<u8>> {
    header.places = body.places.len() as u32;
    header.events_bytes = body.events.len() as u32;
    header.meta_bytes = body.meta.len() as u32;
    let total = HEADER_BYTES + header.namespace.len() + body.bytes();
    let sizes = chunk_sizes(total);
    header.chunks = sizes.len() as u32;
    let mut flags = 0;
    flags |= if header.base.is_some() { HAS_BASE } else { 0 };
    flags |= if header.checkpoint.is_some() { HAS_CHECKPOINT } else { 0 };
    let mut bytes = Vec::with_capacity(total);
    header.write(flags, &mut bytes);
    for (version, frame) in &body.places {
        bytes.extend(version.0.to_le_bytes());
        bytes.extend(frame.to_le_bytes());
    }
    bytes.extend(&body.events);
    bytes.extend(&body.meta);
    for (name, value) in &body.values {
        bytes.extend((name.as_str().len() as u32).to_le_bytes());
        bytes.extend((value.len() as u32).to_le_bytes());
        bytes.extend(name.as_str().as_bytes());
        bytes.extend(value);
    }
    cut(bytes, &sizes)
}

/// redb gives a value that is larger than a page a power of two of pages. So a frame is cut into
/// chunks that fill such powers, the largest first, and wastes less than a page.
fn chunk_sizes(mut total: usize) -> Vec<usize> {
    let mut sizes = Vec::new();
    while total > PAGE_ROOM {
        let mut size = PAGE_ROOM;
        while size < CHUNK_LIMIT_BYTES && size * 2 + PAGE_OVERHEAD_BYTES <= total {
            size = size * 2 + PAGE_OVERHEAD_BYTES;
        }
        sizes.push(size);
        total -= size;
    }
    sizes.push(total);
    sizes
}

fn cut(bytes: Vec<u8>, sizes: &[usize]) -> Vec<Vec<u8>> {
    if sizes.len() == 1 {
        return vec![bytes];
    }
    let mut rest = bytes.as_slice();
    let mut chunks = Vec::with_capacity(sizes.len());
    for size in sizes {
        let (chunk, after) = rest.split_at((*size).min(rest.len()));
        chunks.push(chunk.to_vec());
        rest = after;
    }
    chunks
}

/// A whole frame.
#[derive(Debug)]
pub(crate) struct Frame {
    header: Header,
    bytes: Vec<u8>,
}

impl Frame {
    /// A frame from all its chunks, put together.
    pub(crate) fn new(header: Header, bytes: Vec<u8>) -> Self {
        Self { header, bytes }
    }

    /// Its events.
    pub(crate) fn events<T: DeserializeOwned>(&self) -> Result<Vec<T>, StoreError> {
        if !self.header.has_events() {
            return Ok(Vec::new());
        }
        let mut rest = self.body("events")?;
        rest.bytes(self.places_bytes())?;
        unpack("events", rest.bytes(self.header.events_bytes as usize)?)
    }

    /// The facts of its checkpoint.
    pub(crate) fn meta<T: DeserializeOwned>(&self) -> Result<T, StoreError> {
        let mut rest = self.body("checkpoint")?;
        rest.bytes(self.places_bytes() + self.header.events_bytes as usize)?;
        unpack("checkpoint", rest.bytes(self.header.meta_bytes as usize)?)
    }

    /// Where the unchanged channels of its checkpoint stand.
    pub(crate) fn places(&self) -> Result<Places, StoreError> {
        let mut rest = self.body("checkpoint")?;
        let mut places = Places::new();
        for _ in 0..self.header.places {
            let version = CheckpointId(rest.u64()?);
            places.insert(version, rest.u64()?);
        }
        Ok(places)
    }

    /// The value of a channel that its checkpoint changed; `None` if it has none.
    pub(crate) fn value<T: DeserializeOwned>(
        &self,
        channel: &ChannelName,
    ) -> Result<Option<T>, StoreError> {
        let mut rest = self.body("channel value")?;
        let before = self.header.events_bytes as usize + self.header.meta_bytes as usize;
        rest.bytes(self.places_bytes() + before)?;
        while !rest.rest.is_empty() {
            let name_bytes = rest.u32()? as usize;
            let value_bytes = rest.u32()? as usize;
            let name = rest.bytes(name_bytes)?;
            let value = rest.bytes(value_bytes)?;
            if name == channel.as_str().as_bytes() {
                return unpack("channel value", value).map(Some);
            }
        }
        Ok(None)
    }

    fn places_bytes(&self) -> usize {
        self.header.places as usize * PLACE_BYTES
    }

    fn body(&self, what: &'static str) -> Result<Reader<'_>, StoreError> {
        let mut rest = Reader { what, rest: &self.bytes };
        rest.bytes(HEADER_BYTES + self.header.namespace.len())?;
        Ok(rest)
    }
}

struct Reader<'a> {
    what: &'static str,
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn bytes(&mut self, count: usize) -> Result<&'a [u8], StoreError> {
        let Some((bytes, rest)) = self.rest.split_at_checked(count) else {
            let message = format!("{count} bytes expected, {} there", self.rest.len());
            return Err(corrupt(self.what, message));
        };
        self.rest = rest;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], StoreError> {
        let mut array = [0; N];
        array.copy_from_slice(self.bytes(N)?);
        Ok(array)
    }

    fn u32(&mut self) -> Result<u32, StoreError> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, StoreError> {
        self.array().map(u64::from_le_bytes)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::codec::Packer;

    fn sample(value: &Value) -> (Header, Body) {
        let mut packer = Packer::default();
        let header = Header {
            previous: 7,
            base: Some(CheckpointId(0)),
            checkpoint: Some(CheckpointId(3)),
            after_seq: 4,
            last_seq: 6,
            namespace: "child".into(),
            ..Header::default()
        };
        let body = Body {
            events: packer.pack(&[1, 2]).unwrap(),
            meta: packer.pack("meta").unwrap(),
            places: Places::from([(CheckpointId(2), 5)]),
            values: vec![
                (ChannelName::new("a").unwrap(), packer.pack("small").unwrap()),
                (ChannelName::new("b").unwrap(), packer.pack(value).unwrap()),
            ],
        };
        (header, body)
    }

    fn check(value: &Value) {
        let (header, body) = sample(value);
        let chunks = write(header, &body);
        let read = Header::read(&chunks[0]).unwrap();
        assert_eq!(read.chunks as usize, chunks.len());
        assert_eq!((read.previous, read.base), (7, Some(CheckpointId(0))));
        assert_eq!(read.namespace, "child");
        let frame = Frame::new(read, chunks.concat());
        assert_eq!(frame.events::<u32>().unwrap(), [1, 2]);
        assert_eq!(frame.meta::<String>().unwrap(), "meta");
        assert_eq!(frame.places().unwrap(), body.places);
        let channel = |name| frame.value::<Value>(&ChannelName::new(name).unwrap()).unwrap();
        assert_eq!(channel("b").as_ref(), Some(value));
        assert_eq!(channel("c"), None);
    }

    #[test]
    fn frames_come_back() {
        check(&json!(1));
        let noise: String =
            (0..200_000_u32).map(|n| n.wrapping_mul(2_654_435_761).to_string()).collect();
        check(&json!(noise));
    }

    #[test]
    fn chunks_fill_powers_of_two_of_pages() {
        assert_eq!(chunk_sizes(100), [100]);
        assert_eq!(chunk_sizes(10_000), [8128, 1872]);
        for total in [4032, 4033, 8127, 8128, 8129, 65_472, 1_000_000] {
            let sizes = chunk_sizes(total);
            assert_eq!(sizes.iter().sum::<usize>(), total);
            let pages: usize = sizes.iter().map(|size| (size + 64).next_power_of_two()).sum();
            assert!(pages <= total + 4096 + 64 * sizes.len(), "{total} takes {pages}");
        }
    }

    #[test]
    fn cut_frames_are_typed_errors() {
        let (header, body) = sample(&json!("x"));
        let bytes = write(header, &body).concat();
        for length in 0..bytes.len() {
            let whole = Header::read(&bytes[..length]).and_then(|header| {
                let frame = Frame::new(header, bytes[..length].to_vec());
                frame.events::<u32>()?;
                frame.meta::<String>()?;
                frame.value::<Value>(&ChannelName::new("b").unwrap())
            });
            assert!(matches!(whole, Err(StoreError::Corrupt { .. }) | Ok(None)), "{length}");
        }
    }
}
