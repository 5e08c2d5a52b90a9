//! A frame: the events and the checkpoint that one batch adds to a thread in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use wattle_graph::checkpoint::{ChannelValue, CheckpointMeta, ListDelta};
use wattle_graph::event::Event;
use wattle_graph::id::{ChannelName, CheckpointId, Digest};
use wattle_graph::json_text;
use wattle_graph::seal::Sealer;
use wattle_run::ports::store::{EncodedEvents, StoredBatch, StoredValue};

use crate::codec::Packer;
use crate::retention_plan::{BatchSummary, CheckpointSummary, checkpoints_made_by};

/// A batch with events or a checkpoint.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) base: Option<CheckpointId>,
    pub(super) events: Arc<[Event]>,
    pub(super) checkpoint: Option<StoredCheckpoint>,
    /// Newest sequence number of the thread before the frame.
    pub(super) after_seq: u64,
    /// Newest sequence number of the thread with the frame.
    pub(super) last_seq: u64,
    pub(super) seal: Digest,
    /// Size in bytes of JSON.
    pub(super) bytes: u64,
}

/// A checkpoint with the channels that it wrote.
#[derive(Debug)]
pub(super) struct StoredCheckpoint {
    pub(super) meta: CheckpointMeta,
    pub(super) parts: BTreeMap<ChannelName, ChannelPart>,
}

/// A written channel.
#[derive(Clone, Debug)]
pub(super) struct ChannelPart {
    pub(super) value: ChannelValue,
    /// The list delta, if the store keeps a list delta in place of the full value.
    pub(super) delta: Option<ListDelta>,
}

impl ChannelPart {
    fn delta_items(&self) -> Option<(ListDelta, Vec<&Value>)> {
        let delta = self.delta?;
        Some((delta, self.value.list()?.tail(delta.prefix_len as usize)?))
    }
}

impl Frame {
    /// Creates a frame that follows the seal `previous` and the event `after_seq`. Adds the blobs
    /// that the frame mentions to `packer`. The error says why the frame cannot be stored.
    pub(super) fn new(
        packer: &mut Packer,
        previous: Option<Digest>,
        after_seq: u64,
        base: Option<CheckpointId>,
        events: &EncodedEvents,
        checkpoint: Option<StoredCheckpoint>,
    ) -> Result<Self, String> {
        let json = events.json()?;
        packer.check_json(json)?;
        let mut frame = Self {
            base,
            after_seq: events.first().map_or(after_seq, |event| event.seq - 1),
            last_seq: events.last().map_or(after_seq, |event| event.seq),
            events: events.shared(),
            checkpoint,
            seal: Digest::from_bytes([0; 32]),
            bytes: 0,
        };
        (frame.seal, frame.bytes) = frame.seal_and_bytes(packer, previous, json)?;
        Ok(frame)
    }

    /// Computes the seal again from the records.
    pub(super) fn recompute_seal(&self, previous: Option<Digest>) -> Result<Digest, String> {
        let mut packer = Packer::default();
        let none = self.events.is_empty();
        let events = if none { Vec::new() } else { packer.json(&self.events)? };
        self.seal_and_bytes(&mut packer, previous, &events).map(|(seal, _)| seal)
    }

    /// Computes the seal, and the size in bytes of JSON. `events` is the JSON of the events.
    fn seal_and_bytes(
        &self,
        packer: &mut Packer,
        previous: Option<Digest>,
        events: &[u8],
    ) -> Result<(Digest, u64), String> {
        let mut sealer = Sealer::new(previous, self.base);
        sealer.part(events);
        let mut bytes = events.len();
        if let Some(StoredCheckpoint { meta, parts }) = &self.checkpoint {
            let meta = packer.json(meta)?;
            sealer.part(&meta);
            bytes += meta.len();
            for (channel, part) in parts {
                let (delta, json) = match part.delta_items() {
                    Some((delta, items)) => {
                        let append = |json: &mut Vec<u8>| json_text::append_list(json, items);
                        (Some(delta), packer.json_with(append)?)
                    }
                    None => (None, packer.json_with(|json| part.value.append_text(json))?),
                };
                sealer.value(channel.as_str(), delta, &json);
                bytes += json.len();
            }
        }
        Ok((sealer.finish(), bytes as u64))
    }

    /// Returns the fields of the frame that a retention plan reads.
    pub(super) fn summary(&self) -> BatchSummary {
        let checkpoint =
            self.checkpoint.as_ref().map(|stored| CheckpointSummary::from(&stored.meta));
        let Self { base, after_seq, last_seq, .. } = *self;
        let checkpoints_made = checkpoints_made_by(&self.events);
        BatchSummary { base, after_seq, last_seq, checkpoints_made, checkpoint }
    }

    /// Returns the frame as the batch of an export.
    pub(super) fn batch(&self) -> StoredBatch {
        let parts = self.checkpoint.iter().flat_map(|stored| &stored.parts);
        let value = |part: &ChannelPart| match part.delta_items() {
            Some((ListDelta { base, prefix_len: keep }, items)) => {
                StoredValue::ListDelta { base, keep, items: items.into_iter().cloned().collect() }
            }
            None => StoredValue::Whole(part.value.value().into_owned()),
        };
        StoredBatch {
            base: self.base,
            events: self.events.to_vec(),
            checkpoint: self.checkpoint.as_ref().map(|stored| stored.meta.clone()),
            values: parts.map(|(channel, part)| (channel.clone(), value(part))).collect(),
            seal: Some(self.seal),
        }
    }
}
