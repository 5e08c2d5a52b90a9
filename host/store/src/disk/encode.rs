//! Encoding of batches before they are queued: serialization as JSON, collection of the mentioned
//! blobs, compression, and the checksums of records.
//!
//! The callers of [`append`](wattle_run::ports::Store::append) encode their batches in parallel,
//! while the writer thread, which all of them share, commits earlier batches. The writer thread
//! only validates, seals and writes.

use std::collections::BTreeSet;

use serde_json::Value;
use wattle_graph::checkpoint::{ChannelValue, Checkpoint, ListDelta};
use wattle_graph::id::{ChannelName, Digest, ThreadId};
use wattle_graph::json_text;
use wattle_run::ports::store::Batch;

use crate::codec::{Encoded, Packer};
use crate::disk::write_set::{StagedRun, stored_record};

/// The encoded records of a batch.
#[derive(Debug)]
pub(crate) struct EncodedBatch {
    /// The record of the thread, see [`stored_record`].
    pub(crate) record: Option<Vec<u8>>,
    /// The record of the run.
    pub(crate) run: Option<StagedRun>,
    /// All events, packed as one list; empty without events.
    pub(crate) events: Vec<u8>,
    /// The [`CheckpointMeta`](wattle_graph::checkpoint::CheckpointMeta).
    pub(crate) meta: Option<Encoded>,
    /// The values that the checkpoint writes, in the order of [`written_values`].
    pub(crate) values: Vec<EncodedValue>,
    /// Blobs that the records mention.
    pub(crate) mentions: BTreeSet<Digest>,
}

/// An encoded value of a channel.
#[derive(Debug)]
pub(crate) enum EncodedValue {
    /// The full value.
    Full(Encoded),
    /// The items of a list delta. Whether the store can keep the delta in place of the full list
    /// depends on the history of the thread.
    Delta(ListDelta, Encoded),
}

impl EncodedBatch {
    /// Encodes a batch of a thread. The error says why it cannot be stored.
    pub(crate) fn of(thread: &ThreadId, batch: &Batch) -> Result<Self, String> {
        let mut packer = Packer::default();
        let (_, events) = packer.events(&batch.events)?;
        let checkpoint = batch.checkpoint.as_ref();
        let meta = checkpoint.map(|checkpoint| packer.encode(&checkpoint.meta)).transpose()?;
        let written = checkpoint.into_iter().flat_map(|checkpoint| {
            written_values(checkpoint)
                .map(move |(channel, value)| (new_items(checkpoint, channel, value), value))
        });
        let values = written.map(|(new, value)| {
            Ok(match new {
                Some((delta, items)) => {
                    let append = |json: &mut Vec<u8>| json_text::append_list(json, items);
                    EncodedValue::Delta(delta, packer.encode_with(append)?)
                }
                None => EncodedValue::Full(packer.encode_with(|json| value.append_text(json))?),
            })
        });
        let values = values.collect::<Result<_, String>>()?;
        let record = batch.record.as_ref().map(|record| packer.pack(record)).transpose()?;
        let record = record.map(|packed| stored_record(thread, &packed));
        let run = match &batch.run {
            Some(run) => Some(StagedRun::new(thread.clone(), &run.id, &packer.pack(run)?)),
            None => None,
        };
        Ok(Self { record, run, events, meta, values, mentions: packer.mentions })
    }
}

/// Returns the channels that a checkpoint writes, with their values.
pub(crate) fn written_values(
    checkpoint: &Checkpoint,
) -> impl Iterator<Item = (&ChannelName, &ChannelValue)> {
    let values = &checkpoint.values;
    let written = checkpoint.meta.written_channels();
    written.filter_map(move |channel| Some((channel, values.get(channel)?)))
}

/// Returns the list delta of a channel in a checkpoint, and the items of the delta. Returns `None`
/// if the value is not a list, or has fewer items than the delta keeps of the base.
fn new_items<'v>(
    checkpoint: &Checkpoint,
    channel: &ChannelName,
    value: &'v ChannelValue,
) -> Option<(ListDelta, Vec<&'v Value>)> {
    let tail = *checkpoint.list_deltas.get(channel).filter(|tail| tail.prefix_len > 0)?;
    Some((tail, value.list()?.tail(tail.prefix_len as usize)?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns a batch with a checkpoint that writes `list` with a list delta after `keep` items,
    /// and `text`.
    fn batch(keep: u32, list: Value) -> Batch {
        let meta = json!({
            "id": 2, "parent": 1, "step": 1, "source": "loop", "run": "r", "at_ms": 0, "next": [],
            "versions": { "list": 2, "old": 1, "text": 2 },
        });
        let checkpoint = serde_json::from_value(json!({
            "meta": meta,
            "values": { "list": list, "old": "kept", "text": "x" },
            "tails": { "list": { "base": 1, "keep": keep } },
        }));
        Batch { checkpoint: Some(checkpoint.unwrap()), ..Batch::default() }
    }

    /// Returns the JSON of the encoded values, and whether each is a list delta.
    fn values(batch: &Batch) -> Vec<(bool, String)> {
        let encoded = EncodedBatch::of(&ThreadId::new("t").unwrap(), batch).unwrap();
        let text = |encoded: &Encoded| String::from_utf8(encoded.json().to_vec()).unwrap();
        let value = |value: &EncodedValue| match value {
            EncodedValue::Full(encoded) => (false, text(encoded)),
            EncodedValue::Delta(_, encoded) => (true, text(encoded)),
        };
        encoded.values.iter().map(value).collect()
    }

    #[test]
    fn only_written_values_and_new_items_are_encoded() {
        let list = json!([1, 2, 3]);
        let of =
            |is_tail, list: &str| vec![(is_tail, list.to_owned()), (false, "\"x\"".to_owned())];
        assert_eq!(values(&batch(2, list.clone())), of(true, "[3]"));
        assert_eq!(values(&batch(3, list.clone())), of(true, "[]"));
        for (keep, list) in [(0, list.clone()), (4, list), (1, json!("no list"))] {
            assert_eq!(values(&batch(keep, list.clone())), of(false, &list.to_string()));
        }
    }
}
