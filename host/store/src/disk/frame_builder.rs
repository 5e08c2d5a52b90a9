//! The builder of a frame: seals encoded records and collects them.

use wattle_graph::checkpoint::ListDelta;
use wattle_graph::id::{ChannelName, CheckpointId, Digest};
use wattle_graph::seal::Sealer;

use crate::codec::Encoded;
use crate::disk::delta::{ChainStats, DeltaLink};
use crate::disk::frame::{Body, ChannelPart};

/// The builder of a frame. Parts are added in the order of the seal: events,
/// [`CheckpointMeta`](wattle_graph::checkpoint::CheckpointMeta), channels by name.
#[derive(Debug)]
pub(crate) struct FrameBuilder {
    sealer: Sealer,
    body: Body,
}

impl FrameBuilder {
    /// Begins a frame that follows the frame with the seal `previous`.
    pub(crate) fn new(previous: Option<Digest>, base: Option<CheckpointId>) -> Self {
        Self { sealer: Sealer::new(previous, base), body: Body::default() }
    }

    /// Adds the events, as JSON and packed. Both are empty without events.
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

    /// Adds a channel with its full value. `items` is the number of items if the value is a list.
    pub(crate) fn push_full(
        &mut self,
        channel: &ChannelName,
        items: usize,
        value: Encoded,
    ) -> ChainStats {
        self.sealer.value(channel.as_str(), None, value.json());
        let packed = value.into_packed();
        let chain = ChainStats::full(items, packed.len());
        self.body.parts.push(ChannelPart { channel: channel.clone(), link: None, packed });
        chain
    }

    /// Adds a channel with a list delta. `items` is the number of items of the list with the delta.
    /// `link` has the chain sizes of the base.
    pub(crate) fn push_delta(
        &mut self,
        channel: &ChannelName,
        mut link: DeltaLink,
        items: usize,
        delta: Encoded,
    ) -> ChainStats {
        let list_delta = ListDelta { base: link.base, prefix_len: link.keep };
        self.sealer.value(channel.as_str(), Some(list_delta), delta.json());
        let packed = delta.into_packed();
        link.chain = link.chain.with_delta(items, packed.len());
        self.body.parts.push(ChannelPart { channel: channel.clone(), link: Some(link), packed });
        link.chain
    }

    /// Seals the frame. Returns its records and the seal.
    pub(crate) fn finish(self) -> (Body, Digest) {
        (self.body, self.sealer.finish())
    }
}
