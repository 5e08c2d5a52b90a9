//! The channel values of an export, stored whole or as list deltas.
//!
//! Values are assembled on demand. Memory use stays close to the size of the export, however many
//! values share a prefix.

use std::collections::BTreeMap;

use serde_json::Value;
use wattle_graph::checkpoint::{ChannelValue, CheckpointMeta, SharedList, Values};
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{ChannelName, CheckpointId};

use crate::ports::store::{StoredBatch, StoredValue};

/// All stored values, oldest first.
#[derive(Default)]
pub(super) struct StoredValues {
    parts: Vec<StoredPart>,
    /// Index in `parts` of each value, by channel and by the checkpoint that wrote it.
    indexes: BTreeMap<ChannelName, BTreeMap<CheckpointId, usize>>,
}

/// One value.
enum StoredPart {
    Whole(ChannelValue),
    /// The first `kept_items` items of an earlier value, and the appended items.
    ListDelta {
        base: usize,
        kept_items: usize,
        items: Vec<Value>,
    },
}

impl StoredPart {
    /// Returns the number of items, or `None` if the value is not an array.
    fn len(&self) -> Option<usize> {
        match self {
            Self::Whole(value) => value.list().map(SharedList::len),
            Self::ListDelta { kept_items, items, .. } => Some(kept_items + items.len()),
        }
    }
}

impl StoredValues {
    /// Adds the values that a batch stored.
    pub(super) fn add_batch(&mut self, batch: &StoredBatch) -> Result<(), Failure> {
        let Some(meta) = &batch.checkpoint else { return Ok(()) };
        for (channel, stored) in &batch.values {
            let place = match stored {
                StoredValue::Whole(value) => self.add(StoredPart::Whole(value.clone().into())),
                StoredValue::ListDelta { base, keep, items } => self
                    .add_list_delta(channel, *base, *keep as usize, items)
                    .ok_or_else(|| value_missing(channel, *base))?,
            };
            self.indexes.entry(channel.clone()).or_default().insert(meta.id, place);
        }
        Ok(())
    }

    fn add(&mut self, part: StoredPart) -> usize {
        self.parts.push(part);
        self.parts.len() - 1
    }

    fn add_list_delta(
        &mut self,
        channel: &ChannelName,
        base: CheckpointId,
        kept_items: usize,
        items: &[Value],
    ) -> Option<usize> {
        let base = self.index_of(channel, base)?;
        let before = self.parts.get(base)?.len().filter(|len| kept_items <= *len)?;
        if items.is_empty() && kept_items == before {
            return Some(base);
        }
        Some(self.add(StoredPart::ListDelta { base, kept_items, items: items.to_vec() }))
    }

    fn index_of(&self, channel: &ChannelName, version: CheckpointId) -> Option<usize> {
        self.indexes.get(channel)?.get(&version).copied()
    }

    /// Returns true if all values of a checkpoint exist: none was pruned.
    pub(super) fn has_all(&self, meta: &CheckpointMeta) -> bool {
        meta.versions.iter().all(|(channel, version)| self.index_of(channel, *version).is_some())
    }

    /// Returns the values of a checkpoint that exist.
    pub(super) fn values_of(&self, meta: &CheckpointMeta) -> Values {
        let value = |(channel, version): (&ChannelName, &CheckpointId)| {
            Some((channel.clone(), self.value(self.index_of(channel, *version)?)?))
        };
        meta.versions.iter().filter_map(value).collect()
    }

    /// Assembles the value at an index of `parts` from its list deltas and the whole value before
    /// them. The loop ends because every list delta refers to an earlier value.
    fn value(&self, place: usize) -> Option<ChannelValue> {
        let mut pieces: Vec<Vec<&Value>> = Vec::new();
        let (mut at, mut wanted) = (place, usize::MAX);
        loop {
            match self.parts.get(at)? {
                StoredPart::Whole(value) if pieces.is_empty() => return Some(value.clone()),
                StoredPart::Whole(value) => {
                    pieces.push(value.list()?.iter().take(wanted).collect());
                    break;
                }
                StoredPart::ListDelta { base, kept_items, items } => {
                    let own = wanted.saturating_sub(*kept_items).min(items.len());
                    pieces.push(items[..own].iter().collect());
                    (at, wanted) = (*base, wanted.min(*kept_items));
                }
            }
        }
        let items = pieces.into_iter().rev().flatten().cloned();
        Some(items.collect::<SharedList>().into())
    }
}

fn value_missing(channel: &ChannelName, base: CheckpointId) -> Failure {
    let text = format!("the value of `{channel}` at {base} is not in the export");
    Failure::new(code::BROKEN, text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn channel() -> ChannelName {
        ChannelName::new("items").unwrap()
    }

    /// Builds values: the first is whole, and each further one has a number of kept items and the
    /// appended items.
    fn written(first: Value, tails: &[(usize, Value)]) -> StoredValues {
        let mut written = StoredValues::default();
        let place = written.add(StoredPart::Whole(first.into()));
        written.indexes.entry(channel()).or_default().insert(CheckpointId(0), place);
        for (number, (keep, items)) in (0..).zip(tails) {
            let items = items.as_array().unwrap();
            let place =
                written.add_list_delta(&channel(), CheckpointId(number), *keep, items).unwrap();
            written.indexes.entry(channel()).or_default().insert(CheckpointId(number + 1), place);
        }
        written
    }

    fn at(written: &StoredValues, version: u64) -> Value {
        let place = written.index_of(&channel(), CheckpointId(version)).unwrap();
        written.value(place).unwrap().value().into_owned()
    }

    #[test]
    fn exported_values_are_assembled_from_list_deltas() {
        let tails = [(2, json!([3, 4])), (1, json!([5])), (2, json!([])), (0, json!([6]))];
        let written = written(json!([1, 2]), &tails);
        let all: Vec<Value> = (0..=4).map(|version| at(&written, version)).collect();
        let expected =
            [json!([1, 2]), json!([1, 2, 3, 4]), json!([1, 5]), json!([1, 5]), json!([6])];
        assert_eq!(all, expected);
    }

    #[test]
    fn list_delta_keeps_at_most_the_items_of_its_base() {
        let mut written = written(json!([1, 2]), &[(1, json!([3]))]);
        let mut tail =
            |base, keep| written.add_list_delta(&channel(), CheckpointId(base), keep, &[]);
        assert!(tail(1, 2).is_some());
        assert!(tail(1, 3).is_none() && tail(9, 0).is_none());
        let mut written = self::written(json!("text"), &[]);
        assert!(written.add_list_delta(&channel(), CheckpointId(0), 0, &[]).is_none());
    }

    #[test]
    fn list_delta_uses_only_its_own_memory() {
        let long = Value::Array(vec![json!(0); 10_000]);
        // Stored whole, all values together would have a thousand million items.
        let tails: Vec<_> = (0..100_000).map(|number| (10_000, json!([number]))).collect();
        let written = written(long, &tails);
        let last = at(&written, 100_000);
        assert_eq!((last.as_array().unwrap().len(), &last[10_000]), (10_001, &json!(99_999)));
    }
}
