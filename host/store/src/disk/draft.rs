//! The builder of a frame: encodes its records as JSON, seals them and packs them.

use std::collections::BTreeSet;

use serde::Serialize;
use wattle_graph::checkpoint::{ChannelValue, CheckpointMeta, ListDelta, SharedList};
use wattle_graph::id::{ChannelName, CheckpointId, Digest};
use wattle_graph::seal::Sealer;
use wattle_run::ports::store::EncodedEvents;

use crate::codec::{Packer, compress};
use crate::disk::frame::{Body, Part};
use crate::disk::link::{Extent, Link};

/// The builder of a frame. Parts are added in the order of the seal: events, [`CheckpointMeta`],
/// channels by name. Errors say why a part cannot be stored.
#[derive(Debug)]
pub(crate) struct Draft {
    packer: Packer,
    sealer: Sealer,
    body: Body,
}

/// A frame without its header.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) body: Body,
    pub(crate) seal: Digest,
    /// Blobs that the frame mentions.
    pub(crate) mentions: BTreeSet<Digest>,
}

impl Draft {
    /// Begins a frame that follows the one with the seal `previous`.
    pub(crate) fn new(previous: Option<Digest>, base: Option<CheckpointId>) -> Self {
        let sealer = Sealer::new(previous, base);
        Self { packer: Packer::default(), sealer, body: Body::default() }
    }

    /// Adds the events, of which there may be none.
    pub(crate) fn events(&mut self, events: &EncodedEvents) -> Result<(), String> {
        let json = events.json()?;
        self.packer.admit(json)?;
        self.sealer.part(json);
        if !events.is_empty() {
            self.body.events = compress(json);
        }
        Ok(())
    }

    /// Adds the [`CheckpointMeta`] of the frame's checkpoint.
    pub(crate) fn meta(&mut self, meta: &CheckpointMeta) -> Result<(), String> {
        let json = self.packer.json(meta)?;
        self.sealer.part(&json);
        self.body.meta = compress(&json);
        Ok(())
    }

    /// Adds a channel with its full value.
    pub(crate) fn whole(
        &mut self,
        channel: &ChannelName,
        value: &ChannelValue,
    ) -> Result<Extent, String> {
        let json = self.packer.json(value)?;
        self.sealer.value(channel.as_str(), None, &json);
        let packed = compress(&json);
        let extent = Extent::whole(value.list().map_or(0, SharedList::len), packed.len());
        self.body.parts.push(Part { channel: channel.clone(), link: None, packed });
        Ok(extent)
    }

    /// Adds a channel with a list delta. The link comes with the extent of its base.
    pub(crate) fn tail<T: Serialize>(
        &mut self,
        channel: &ChannelName,
        mut link: Link,
        items: &[T],
    ) -> Result<Extent, String> {
        let json = self.packer.json(items)?;
        let tail = ListDelta { base: link.base, prefix_len: link.keep };
        self.sealer.value(channel.as_str(), Some(tail), &json);
        let packed = compress(&json);
        link.extent = link.extent.grown(link.keep as usize + items.len(), packed.len());
        self.body.parts.push(Part { channel: channel.clone(), link: Some(link), packed });
        Ok(link.extent)
    }

    /// Packs a record that is stored outside of the frame. The blobs that the record mentions count
    /// as mentions of the frame.
    pub(crate) fn beside<T: Serialize>(&mut self, record: &T) -> Result<Vec<u8>, String> {
        self.packer.pack(record)
    }

    /// Seals the frame.
    pub(crate) fn finish(self) -> Finished {
        let Self { packer, sealer, body } = self;
        Finished { body, seal: sealer.finish(), mentions: packer.mentions }
    }
}
