//! The values of channels as an export wrote them: whole, or as what was added to the one before.
//!
//! They are put together when a checkpoint is looked at and not before. What is in memory is then
//! never much more than the file, however often it says that a value begins as another one.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use wattle_graph::checkpoint::{CheckpointMeta, Values};
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{ChannelName, CheckpointId};

use crate::ports::store::{StoredBatch, StoredValue};

/// Everything that was written, oldest first.
#[derive(Default)]
pub(super) struct Written {
    parts: Vec<Part>,
    /// Where in `parts` the value of a channel is, by the checkpoint that wrote it.
    places: BTreeMap<ChannelName, BTreeMap<CheckpointId, usize>>,
}

/// One value.
enum Part {
    Whole(Arc<Value>),
    /// The first `keep` items of an earlier one, and what was added.
    Tail {
        base: usize,
        keep: usize,
        items: Vec<Value>,
    },
}

impl Part {
    /// How many items it has; `None` if it is no array.
    fn len(&self) -> Option<usize> {
        match self {
            Self::Whole(value) => value.as_array().map(Vec::len),
            Self::Tail { keep, items, .. } => Some(keep + items.len()),
        }
    }
}

impl Written {
    /// Keeps the values that a batch wrote.
    pub(super) fn keep(&mut self, batch: &StoredBatch) -> Result<(), Failure> {
        let Some(meta) = &batch.checkpoint else { return Ok(()) };
        for (channel, stored) in &batch.values {
            let place = match stored {
                StoredValue::Whole(value) => self.add(Part::Whole(Arc::new(value.clone()))),
                StoredValue::Tail { base, keep, items } => self
                    .tail(channel, *base, *keep as usize, items)
                    .ok_or_else(|| not_there(channel, *base))?,
            };
            self.places.entry(channel.clone()).or_default().insert(meta.id, place);
        }
        Ok(())
    }

    fn add(&mut self, part: Part) -> usize {
        self.parts.push(part);
        self.parts.len() - 1
    }

    fn tail(
        &mut self,
        channel: &ChannelName,
        base: CheckpointId,
        keep: usize,
        items: &[Value],
    ) -> Option<usize> {
        let base = self.place(channel, base)?;
        let before = self.parts.get(base)?.len().filter(|len| keep <= *len)?;
        if items.is_empty() && keep == before {
            return Some(base);
        }
        Some(self.add(Part::Tail { base, keep, items: items.to_vec() }))
    }

    fn place(&self, channel: &ChannelName, version: CheckpointId) -> Option<usize> {
        self.places.get(channel)?.get(&version).copied()
    }

    /// Whether all values of a checkpoint are there: none was pruned.
    pub(super) fn has_all(&self, meta: &CheckpointMeta) -> bool {
        meta.versions.iter().all(|(channel, version)| self.place(channel, *version).is_some())
    }

    /// The values of a checkpoint, as far as they are there.
    pub(super) fn of(&self, meta: &CheckpointMeta) -> Values {
        let value = |(channel, version): (&ChannelName, &CheckpointId)| {
            Some((channel.clone(), self.value(self.place(channel, *version)?)?))
        };
        meta.versions.iter().filter_map(value).collect()
    }

    /// Puts a value together. Every part is after the one that it begins as, so this ends.
    fn value(&self, place: usize) -> Option<Arc<Value>> {
        let mut pieces: Vec<&[Value]> = Vec::new();
        let (mut at, mut wanted) = (place, usize::MAX);
        loop {
            match self.parts.get(at)? {
                Part::Whole(value) if pieces.is_empty() => return Some(value.clone()),
                Part::Whole(value) => {
                    let items = value.as_array()?;
                    pieces.push(&items[..wanted.min(items.len())]);
                    break;
                }
                Part::Tail { base, keep, items } => {
                    let own = wanted.saturating_sub(*keep).min(items.len());
                    pieces.push(&items[..own]);
                    (at, wanted) = (*base, wanted.min(*keep));
                }
            }
        }
        let items = pieces.iter().rev().flat_map(|piece| piece.iter()).cloned();
        Some(Arc::new(Value::Array(items.collect())))
    }
}

fn not_there(channel: &ChannelName, base: CheckpointId) -> Failure {
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

    /// The first value is whole; of each other the number of items that stay, and what is added.
    fn written(first: Value, tails: &[(usize, Value)]) -> Written {
        let mut written = Written::default();
        let place = written.add(Part::Whole(Arc::new(first)));
        written.places.entry(channel()).or_default().insert(CheckpointId(0), place);
        for (number, (keep, items)) in (0..).zip(tails) {
            let items = items.as_array().unwrap();
            let place = written.tail(&channel(), CheckpointId(number), *keep, items).unwrap();
            written.places.entry(channel()).or_default().insert(CheckpointId(number + 1), place);
        }
        written
    }

    fn at(written: &Written, version: u64) -> Value {
        let place = written.place(&channel(), CheckpointId(version)).unwrap();
        written.value(place).unwrap().as_ref().clone()
    }

    #[test]
    fn a_value_is_put_together_from_all_that_it_begins_as() {
        let tails = [(2, json!([3, 4])), (1, json!([5])), (2, json!([])), (0, json!([6]))];
        let written = written(json!([1, 2]), &tails);
        let all: Vec<Value> = (0..=4).map(|version| at(&written, version)).collect();
        let expected =
            [json!([1, 2]), json!([1, 2, 3, 4]), json!([1, 5]), json!([1, 5]), json!([6])];
        assert_eq!(all, expected);
    }

    #[test]
    fn more_items_than_there_are_cannot_be_kept() {
        let mut written = written(json!([1, 2]), &[(1, json!([3]))]);
        let mut tail = |base, keep| written.tail(&channel(), CheckpointId(base), keep, &[]);
        assert!(tail(1, 2).is_some());
        assert!(tail(1, 3).is_none() && tail(9, 0).is_none());
        let mut written = self::written(json!("text"), &[]);
        assert!(written.tail(&channel(), CheckpointId(0), 0, &[]).is_none());
    }

    #[test]
    fn what_begins_as_a_long_value_takes_the_space_of_what_it_adds() {
        let long = Value::Array(vec![json!(0); 10_000]);
        // Each of them in full would be a thousand million items.
        let tails: Vec<_> = (0..100_000).map(|number| (10_000, json!([number]))).collect();
        let written = written(long, &tails);
        let last = at(&written, 100_000);
        assert_eq!((last.as_array().unwrap().len(), &last[10_000]), (10_001, &json!(99_999)));
    }
}
