//! A frame of the log, decoded in full, for checks of the format. The store itself decodes only the
//! parts of a frame that it needs.

use wattle_graph::checkpoint::CheckpointMeta;
use wattle_graph::event::Event;
use wattle_graph::id::ChannelName;
use wattle_run::ports::store::StoreError;

use crate::codec::{Packer, unpack};
use crate::disk::delta::DeltaLink;
use crate::disk::frame::{self, Body, ChannelPart, Frame, FrameIndex, Header};
use crate::error::corrupt;

/// A decoded frame.
#[derive(Clone, Debug, PartialEq)]
pub struct DecodedFrame {
    header: Header,
    events: Vec<Event>,
    checkpoint: Option<CheckpointMeta>,
    frame_index: FrameIndex,
    values: Vec<(ChannelName, Option<DeltaLink>, serde_json::Value)>,
}

impl DecodedFrame {
    /// Decodes the frame that begins at the log entry `number`, from its chunks in order.
    ///
    /// # Errors
    ///
    /// [`StoreError::Corrupt`] if the bytes are not a valid frame.
    pub fn read(number: u64, bytes: &[u8]) -> Result<Self, StoreError> {
        let header = Header::read(number, bytes)?;
        let frame = Frame::new(header.clone(), bytes.to_vec())?;
        let checkpoint = header.checkpoint.map(|_| frame.meta()).transpose()?;
        let mut values = Vec::new();
        for part in frame.parts()? {
            let part = part?;
            values.push((part.name()?, part.link, unpack("channel value", part.packed)?));
        }
        let (events, frame_index) = (frame.events()?, frame.frame_index()?);
        // These fields describe the encoding, not the content.
        let header = Header {
            chunks: 0,
            index_entries: 0,
            events_bytes: 0,
            meta_bytes: 0,
            body_checksum: None,
            ..header
        };
        Ok(Self { header, events, checkpoint, frame_index, values })
    }

    /// Encodes the frame in the current format, for the log entry `number`.
    ///
    /// # Errors
    ///
    /// [`StoreError::Corrupt`] if a record is too large or nested too deeply to be written.
    pub fn write(&self, number: u64) -> Result<Vec<u8>, StoreError> {
        let mut packer = Packer::default();
        let refused = |message: String| corrupt("frame", message);
        let mut body = Body { frame_index: self.frame_index.clone(), ..Body::default() };
        if self.header.has_events() {
            body.events = packer.pack(&self.events).map_err(refused)?;
        }
        if let Some(checkpoint) = &self.checkpoint {
            body.meta = packer.pack(checkpoint).map_err(refused)?;
        }
        for (channel, link, value) in &self.values {
            let packed = packer.pack(value).map_err(refused)?;
            body.parts.push(ChannelPart { channel: channel.clone(), link: *link, packed });
        }
        Ok(frame::write(self.header.clone(), &body, number).concat())
    }
}
