//! The builder of a frame: seals encoded records and collects them.

use wattle_graph::checkpoint::ListDelta;
use wattle_graph::id::{ChannelName, CheckpointId, Digest};
use wattle_graph::seal::Sealer;

use crate::codec::Encoded;
use crate::disk::frame::{Body, Part};
use crate::disk::link::{Extent, Link};

/// The builder of a frame. Parts are added in the order of the seal: events,
/// [`CheckpointMeta`](wattle_graph::checkpoint::CheckpointMeta), channels by name.
#[derive(Debug)]
pub(crate) struct Draft {
    sealer: Sealer,
    body: Body,
}

impl Draft {
    /// Begins a frame that follows the one with the seal `previous`.
    pub(crate) fn new(previous: Option<Digest>, base: Option<CheckpointId>) -> Self {
        Self { sealer: Sealer::new(previous, base), body: Body::default() }
    }

    /// Adds the events: their JSON, and the same packed. Both are empty without events.
    pub(crate) fn events(&mut self, json: &[u8], packed: Vec<u8>) {
        self.sealer.part(json);
        self.body.events = packed;
    }

    /// Adds the [`CheckpointMeta`](wattle_graph::checkpoint::CheckpointMeta) of the frame's
    /// checkpoint.
    pub(crate) fn meta(&mut self, meta: Encoded) {
        self.sealer.part(meta.json());
        self.body.meta = meta.into_packed();
    }

    /// Adds a channel with its full value, which is a list of `items` or no list.
    pub(crate) fn whole(&mut self, channel: &ChannelName, items: usize, value: Encoded) -> Extent {
        self.sealer.value(channel.as_str(), None, value.json());
        let packed = value.into_packed();
        let extent = Extent::whole(items, packed.len());
        self.body.parts.push(Part { channel: channel.clone(), link: None, packed });
        extent
    }

    /// Adds a channel with a list delta, after which the list has `items`. The link comes with the
    /// extent of its base.
    pub(crate) fn tail(
        &mut self,
        channel: &ChannelName,
        mut link: Link,
        items: usize,
        delta: Encoded,
    ) -> Extent {
        let tail = ListDelta { base: link.base, prefix_len: link.keep };
        self.sealer.value(channel.as_str(), Some(tail), delta.json());
        let packed = delta.into_packed();
        link.extent = link.extent.grown(items, packed.len());
        self.body.parts.push(Part { channel: channel.clone(), link: Some(link), packed });
        link.extent
    }

    /// Seals the frame. Returns its records and the seal.
    pub(crate) fn finish(self) -> (Body, Digest) {
        (self.body, self.sealer.finish())
    }
}
