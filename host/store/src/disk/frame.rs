//! A frame of the log: the events and the checkpoint that a batch adds to the history of a thread.
//!
//! A frame has a header, so that a walk along the chain of a thread decodes only headers, and a
//! body of packed records, so that one channel can be read without the other channels. `FORMAT.md`
//! describes the layout.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use wattle_graph::id::{ChannelName, CheckpointId, Digest};
use wattle_run::ports::store::StoreError;

use crate::codec::{CHECKSUM_BYTES, Checksum, checksum, unpack, unpacked_bytes};
use crate::disk::byte_reader::ByteReader;
use crate::disk::delta::{DeltaLink, LINK_BYTES};
use crate::error::corrupt;

/// Frame index of a checkpoint. Maps an earlier checkpoint to the number of the frame that contains
/// the values that the earlier checkpoint wrote.
pub(crate) type FrameIndex = BTreeMap<CheckpointId, u64>;

/// Upper bound of the bytes of a page, or of several contiguous pages, that redb needs for its own
/// data.
const PAGE_OVERHEAD_BYTES: usize = 64;

/// Size of a value that fills one page.
const PAGE_CAPACITY: usize = 4096 - PAGE_OVERHEAD_BYTES;

/// Maximum size of a chunk. Larger chunks would not save more space.
const MAX_CHUNK_BYTES: usize = 64 * 1024 - PAGE_OVERHEAD_BYTES;

const HEADER_BYTES: usize = 61;
const INDEX_ENTRY_BYTES: usize = 16;
const SEAL_BYTES: usize = 32;
const HAS_BASE: u8 = 1;
const HAS_CHECKPOINT: u8 = 2;
const HAS_SEAL: u8 = 4;
const CARRIES: u8 = 8;
const HAS_CHECKSUMS: u8 = 16;

const VALUE: &str = "channel value";

/// Highest bit of the field that holds the length of a channel's name. If it is set, the value of
/// the channel is a list delta. Names are shorter than 2 GiB, so no length uses this bit.
const IS_DELTA: u32 = 1 << 31;

/// The header of a frame, which a walk along the chain reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Header {
    /// Number of log entries that the frame takes.
    pub(crate) chunks: u32,
    /// Number of the thread's previous frame; 0 for the first frame.
    pub(crate) previous: u64,
    /// Base checkpoint of the frame's events.
    pub(crate) base: Option<CheckpointId>,
    /// Checkpoint in the frame.
    pub(crate) checkpoint: Option<CheckpointId>,
    /// Newest sequence number of the thread before the frame.
    pub(crate) after_seq: u64,
    /// Newest sequence number of the thread with the frame.
    pub(crate) last_seq: u64,
    /// Namespace of the frame's checkpoint.
    pub(crate) namespace: String,
    /// Seal of the thread up to the frame; `None` in formats without seals.
    pub(crate) seal: Option<Digest>,
    /// Whether the frame contains values of checkpoints that a rewrite dropped.
    pub(crate) carries: bool,
    /// Number of entries of the frame index; [`write`] sets this and the following fields.
    pub(crate) index_entries: u32,
    /// Size of the frame's packed events, in bytes.
    pub(crate) events_bytes: u32,
    /// Size of the frame's packed `CheckpointMeta`, in bytes.
    pub(crate) meta_bytes: u32,
    /// Checksum of all that follows the header; `None` in formats without checksums.
    pub(crate) body_checksum: Option<Checksum>,
}

impl Header {
    /// Returns whether the frame has events.
    pub(crate) fn has_events(&self) -> bool {
        self.last_seq > self.after_seq
    }

    /// Decodes the header at the beginning of a frame's first chunk, which is the log entry
    /// `number`.
    pub(crate) fn read(number: u64, chunk: &[u8]) -> Result<Self, StoreError> {
        let mut rest = ByteReader::new("frame header", chunk);
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
            seal: None,
            carries: flags & CARRIES != 0,
            index_entries: rest.u32()?,
            events_bytes: rest.u32()?,
            meta_bytes: rest.u32()?,
            body_checksum: None,
        };
        let length = rest.u32()? as usize;
        let namespace = std::str::from_utf8(rest.bytes(length)?);
        header.namespace.push_str(namespace.map_err(|error| corrupt("frame header", error))?);
        if flags & HAS_SEAL != 0 {
            header.seal = Some(Digest::from_bytes(rest.array()?));
        }
        if flags & HAS_CHECKSUMS != 0 {
            header.body_checksum = Some(rest.array()?);
            let before = &chunk[..chunk.len() - rest.rest().len()];
            let check: Checksum = rest.array()?;
            if check != checksum(&[&number.to_le_bytes(), before]) {
                let message = format!("the checksum of log entry {number} does not match");
                return Err(corrupt("frame header", message));
            }
        }
        Ok(header)
    }

    /// Returns whether the frame can contain values that the checkpoint `version` wrote.
    pub(crate) fn may_hold(&self, version: CheckpointId) -> bool {
        self.checkpoint == Some(version)
            || self.carries && self.checkpoint.is_some_and(|id| id > version)
    }

    fn bytes(&self) -> usize {
        let seal = if self.seal.is_some() { SEAL_BYTES } else { 0 };
        let checks = if self.body_checksum.is_some() { 2 * CHECKSUM_BYTES } else { 0 };
        HEADER_BYTES + self.namespace.len() + seal + checks
    }

    fn flags(&self) -> u8 {
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        flag(self.base.is_some(), HAS_BASE)
            | flag(self.checkpoint.is_some(), HAS_CHECKPOINT)
            | flag(self.seal.is_some(), HAS_SEAL)
            | flag(self.carries, CARRIES)
            | flag(self.body_checksum.is_some(), HAS_CHECKSUMS)
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        bytes.push(self.flags());
        bytes.extend(self.chunks.to_le_bytes());
        let id = |id: Option<CheckpointId>| id.map_or(0, |id| id.0);
        for number in
            [self.previous, id(self.base), id(self.checkpoint), self.after_seq, self.last_seq]
        {
            bytes.extend(number.to_le_bytes());
        }
        let namespace = self.namespace.len() as u32;
        for number in [self.index_entries, self.events_bytes, self.meta_bytes, namespace] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(self.namespace.as_bytes());
        bytes.extend(self.seal.iter().flat_map(Digest::as_bytes));
    }
}

/// The packed records of a new frame.
#[derive(Debug, Default)]
pub(crate) struct Body {
    /// All events, packed as one list; empty without events.
    pub(crate) events: Vec<u8>,
    /// The packed `CheckpointMeta`; empty without a checkpoint.
    pub(crate) meta: Vec<u8>,
    /// Frame index of the channels that the checkpoint did not change.
    pub(crate) frame_index: FrameIndex,
    /// Channels of the frame, in the order of their names.
    pub(crate) parts: Vec<ChannelPart>,
}

/// A channel in a new frame.
#[derive(Debug)]
pub(crate) struct ChannelPart {
    pub(crate) channel: ChannelName,
    /// Link to the base, if the frame has a list delta.
    pub(crate) link: Option<DeltaLink>,
    /// The packed value, or the packed items of the list delta.
    pub(crate) packed: Vec<u8>,
}

impl ChannelPart {
    fn bytes(&self) -> usize {
        let link = if self.link.is_some() { LINK_BYTES } else { 0 };
        8 + self.channel.as_str().len() + link + self.packed.len()
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        let delta_flag = if self.link.is_some() { IS_DELTA } else { 0 };
        bytes.extend((self.channel.as_str().len() as u32 | delta_flag).to_le_bytes());
        bytes.extend((self.packed.len() as u32).to_le_bytes());
        bytes.extend(self.channel.as_str().as_bytes());
        if let Some(link) = &self.link {
            link.write(bytes);
        }
        bytes.extend(&self.packed);
    }
}

impl Body {
    fn bytes(&self) -> usize {
        let parts: usize = self.parts.iter().map(ChannelPart::bytes).sum();
        self.frame_index.len() * INDEX_ENTRY_BYTES + self.events.len() + self.meta.len() + parts
    }
}

/// Encodes a frame and splits it into the chunks for the log entries from `number` on.
pub(crate) fn write(mut header: Header, body: &Body, number: u64) -> Vec<Vec<u8>> {
    header.index_entries = body.frame_index.len() as u32;
    header.events_bytes = body.events.len() as u32;
    header.meta_bytes = body.meta.len() as u32;
    header.body_checksum = Some(Checksum::default());
    let total = header.bytes() + body.bytes();
    let sizes = chunk_sizes(total);
    header.chunks = sizes.len() as u32;
    let mut bytes = Vec::with_capacity(total);
    header.write(&mut bytes);
    let checks_at = bytes.len();
    bytes.extend([0; 2 * CHECKSUM_BYTES]);
    for (version, frame) in &body.frame_index {
        bytes.extend(version.0.to_le_bytes());
        bytes.extend(frame.to_le_bytes());
    }
    bytes.extend(&body.events);
    bytes.extend(&body.meta);
    for part in &body.parts {
        part.write(&mut bytes);
    }
    let (head, rest) = bytes.split_at_mut(checks_at + 2 * CHECKSUM_BYTES);
    head[checks_at..checks_at + CHECKSUM_BYTES].copy_from_slice(&checksum(&[rest]));
    let (before, check) = head.split_at_mut(checks_at + CHECKSUM_BYTES);
    check.copy_from_slice(&checksum(&[&number.to_le_bytes(), before]));
    split_chunks(bytes, &sizes)
}

/// Returns the sizes of the chunks of a frame. redb allocates a power of two of pages for a value
/// that is larger than a page. So each chunk fills such a number of pages, the largest chunk first,
/// and a frame wastes less than one page.
fn chunk_sizes(mut total: usize) -> Vec<usize> {
    let mut sizes = Vec::new();
    while total > PAGE_CAPACITY {
        let mut size = PAGE_CAPACITY;
        while size < MAX_CHUNK_BYTES && size * 2 + PAGE_OVERHEAD_BYTES <= total {
            size = size * 2 + PAGE_OVERHEAD_BYTES;
        }
        sizes.push(size);
        total -= size;
    }
    sizes.push(total);
    sizes
}

fn split_chunks(bytes: Vec<u8>, sizes: &[usize]) -> Vec<Vec<u8>> {
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

/// A complete frame.
#[derive(Debug)]
pub(crate) struct Frame {
    header: Header,
    bytes: Vec<u8>,
}

impl Frame {
    /// Creates a frame from the bytes of all its chunks.
    ///
    /// # Errors
    ///
    /// [`StoreError::Corrupt`] if the bytes do not match their checksum.
    pub(crate) fn new(header: Header, bytes: Vec<u8>) -> Result<Self, StoreError> {
        if let Some(check) = header.body_checksum {
            let body = bytes.get(header.bytes()..).unwrap_or_default();
            if checksum(&[body]) != check {
                return Err(corrupt("frame", "its checksum does not match"));
            }
        }
        Ok(Self { header, bytes })
    }

    /// Returns the header.
    pub(crate) fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the size of the events, the `CheckpointMeta` and the values, in bytes of JSON.
    pub(crate) fn json_bytes(&self) -> Result<u64, StoreError> {
        let events = self.packed_events()?.map_or(0, unpacked_bytes);
        let values = self.parts()?.map(|part| part.map(|part| unpacked_bytes(part.packed)));
        Ok(events + unpacked_bytes(self.packed_meta()?) + values.sum::<Result<u64, _>>()?)
    }

    /// Decodes the events.
    pub(crate) fn events<T: DeserializeOwned>(&self) -> Result<Vec<T>, StoreError> {
        match self.packed_events()? {
            Some(packed) => unpack("events", packed),
            None => Ok(Vec::new()),
        }
    }

    /// Returns the packed events; `None` if the frame has no events.
    pub(crate) fn packed_events(&self) -> Result<Option<&[u8]>, StoreError> {
        if !self.header.has_events() {
            return Ok(None);
        }
        let mut rest = self.body("events")?;
        rest.bytes(self.index_bytes())?;
        rest.bytes(self.header.events_bytes as usize).map(Some)
    }

    /// Decodes the `CheckpointMeta`.
    pub(crate) fn meta<T: DeserializeOwned>(&self) -> Result<T, StoreError> {
        unpack("checkpoint", self.packed_meta()?)
    }

    /// Returns the packed `CheckpointMeta`.
    pub(crate) fn packed_meta(&self) -> Result<&[u8], StoreError> {
        let mut rest = self.body("checkpoint")?;
        rest.bytes(self.index_bytes() + self.header.events_bytes as usize)?;
        rest.bytes(self.header.meta_bytes as usize)
    }

    /// Decodes the frame index of the channels that the checkpoint did not change.
    pub(crate) fn frame_index(&self) -> Result<FrameIndex, StoreError> {
        let mut rest = self.body("checkpoint")?;
        let mut frame_index = FrameIndex::new();
        for _ in 0..self.header.index_entries {
            let version = CheckpointId(rest.u64()?);
            frame_index.insert(version, rest.u64()?);
        }
        Ok(frame_index)
    }

    /// Returns the value or the list delta that the frame contains for a channel; `None` if it
    /// contains neither.
    pub(crate) fn part(&self, channel: &ChannelName) -> Result<Option<StoredPart<'_>>, StoreError> {
        for part in self.parts()? {
            let part = part?;
            if part.channel == channel.as_str().as_bytes() {
                return Ok(Some(part));
            }
        }
        Ok(None)
    }

    /// Returns the value or the list delta of each channel in the frame.
    pub(crate) fn parts(
        &self,
    ) -> Result<impl Iterator<Item = Result<StoredPart<'_>, StoreError>>, StoreError> {
        let mut rest = self.body(VALUE)?;
        let before = self.header.events_bytes as usize + self.header.meta_bytes as usize;
        rest.bytes(self.index_bytes() + before)?;
        Ok(std::iter::from_fn(move || {
            if rest.rest().is_empty() {
                return None;
            }
            let part = StoredPart::read(&mut rest);
            if part.is_err() {
                rest = ByteReader::new(VALUE, &[]);
            }
            Some(part)
        }))
    }

    fn index_bytes(&self) -> usize {
        self.header.index_entries as usize * INDEX_ENTRY_BYTES
    }

    fn body(&self, what: &'static str) -> Result<ByteReader<'_>, StoreError> {
        let mut rest = ByteReader::new(what, &self.bytes);
        rest.bytes(self.header.bytes())?;
        Ok(rest)
    }
}

/// A channel in a stored frame.
#[derive(Debug)]
pub(crate) struct StoredPart<'a> {
    pub(crate) channel: &'a [u8],
    /// Link to the base, if the frame has a list delta.
    pub(crate) link: Option<DeltaLink>,
    /// The packed value, or the packed items of the list delta.
    pub(crate) packed: &'a [u8],
}

impl<'a> StoredPart<'a> {
    fn read(rest: &mut ByteReader<'a>) -> Result<Self, StoreError> {
        let name_bytes = rest.u32()?;
        let value_bytes = rest.u32()? as usize;
        let channel = rest.bytes((name_bytes & !IS_DELTA) as usize)?;
        let link = (name_bytes & IS_DELTA != 0).then(|| DeltaLink::read(rest)).transpose()?;
        Ok(Self { channel, link, packed: rest.bytes(value_bytes)? })
    }

    /// Returns the name of the channel.
    pub(crate) fn name(&self) -> Result<ChannelName, StoreError> {
        let name = std::str::from_utf8(self.channel).map_err(|error| corrupt(VALUE, error))?;
        ChannelName::new(name).map_err(|error| corrupt(VALUE, error))
    }
}

#[cfg(test)]
mod tests;
