//! Pages of lists. A page is limited by its number of items and by its bytes: of JSON, and of
//! memory where a decoded item may take far more memory than its JSON.

use std::ops::RangeInclusive;

use serde::Deserialize;
use wattle_graph::checkpoint::{ChannelValue, CheckpointMeta, Values};
use wattle_graph::event::Event;
use wattle_graph::weight::{most_weight, weight};
use wattle_run::limit::PAGE_EVENT_BYTES;
use wattle_run::log::event_memory_bytes;
use wattle_run::ports::store::{ListPage, StoreError, StoredBatch, StoredValue};

use crate::codec::{unpack, unpack_json, unpacked_bytes};
use crate::error::corrupt;

const EVENTS: &str = "events";

/// The rest of a list of JSON after its last element.
const LIST_END: &[u8] = b"]";

/// A page that is being read.
#[derive(Debug)]
pub(crate) struct PageBuilder<T> {
    items: Vec<T>,
    /// Number of further items that fit.
    left: usize,
    /// Bytes of further items that fit.
    bytes_left: u64,
    /// Whether the list has an item that is not in the page.
    is_truncated: bool,
}

impl<T> PageBuilder<T> {
    /// Creates an empty page for at most `limit` items of at most `bytes` bytes together.
    pub(crate) fn new(limit: usize, bytes: u64) -> Self {
        Self { items: Vec::new(), left: limit, bytes_left: bytes, is_truncated: false }
    }

    /// Returns whether the next item of the list, with `bytes` bytes, fits. The first item fits
    /// whatever its size. If the item does not fit, the page is complete.
    pub(crate) fn fits(&mut self, bytes: u64) -> bool {
        let has_room = self.is_empty() || bytes <= self.bytes_left;
        self.is_truncated |= self.left == 0 || !has_room;
        !self.is_truncated
    }

    /// Decodes and adds the next item of the list, with `bytes` bytes, if it [fits](Self::fits).
    /// Returns whether it fits.
    pub(crate) fn add(
        &mut self,
        bytes: u64,
        decode: impl FnOnce() -> Result<T, StoreError>,
    ) -> Result<bool, StoreError> {
        let fits = self.fits(bytes);
        if fits {
            self.push(decode()?, bytes);
        }
        Ok(fits)
    }

    /// Adds an item that fits.
    pub(crate) fn push(&mut self, item: T, bytes: u64) {
        self.items.push(item);
        self.left = self.left.saturating_sub(1);
        self.bytes_left = self.bytes_left.saturating_sub(bytes);
    }

    /// Returns whether the page has no item.
    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Returns whether no further item fits.
    pub(crate) fn is_full(&self) -> bool {
        self.is_truncated || self.left == 0
    }

    /// Ends the page although the list continues.
    pub(crate) fn truncate(&mut self) {
        self.is_truncated = true;
    }

    /// Returns how many further items the limit on the number of items allows.
    pub(crate) fn left(&self) -> usize {
        self.left
    }

    /// Returns how many bytes of further items fit. The first item of a page may exceed this
    /// number.
    pub(crate) fn bytes_left(&self) -> u64 {
        self.bytes_left
    }

    /// Returns the page. The page is the last page of its list unless an item did not fit.
    pub(crate) fn finish(self) -> ListPage<T> {
        ListPage { items: self.items, is_last: !self.is_truncated }
    }

    /// Returns the items.
    pub(crate) fn into_items(self) -> Vec<T> {
        self.items
    }
}

/// A page of the events of a log that is being read from packed lists of events.
#[derive(Debug)]
pub(crate) struct EventPage(PageBuilder<Event>);

impl EventPage {
    /// Creates an empty page for at most `limit` events.
    pub(crate) fn new(limit: usize) -> Self {
        Self(PageBuilder::new(limit, PAGE_EVENT_BYTES))
    }

    /// Returns how many further events the limit on the number of events allows.
    pub(crate) fn left(&self) -> usize {
        self.0.left()
    }

    /// Returns how many bytes of further events fit.
    pub(crate) fn bytes_left(&self) -> u64 {
        self.0.bytes_left()
    }

    /// Returns whether no further event fits.
    pub(crate) fn is_full(&self) -> bool {
        self.0.is_full()
    }

    /// Adds the events of a packed list that have one of the sequence numbers `seqs`, as many as
    /// fit. The caller adds lists in the order of the log. Checks the size of the list before
    /// decoding it, and decodes a list that may take more memory than is left event by event.
    pub(crate) fn add(
        &mut self,
        packed: &[u8],
        seqs: &RangeInclusive<u64>,
    ) -> Result<(), StoreError> {
        let Self(page) = self;
        let bytes = unpacked_bytes(packed);
        if bytes > page.bytes_left && !page.is_empty() {
            page.truncate();
            return Ok(());
        }
        if most_weight(bytes) > page.bytes_left {
            return self.add_part(packed, seqs);
        }
        let events: Vec<Event> = unpack(EVENTS, packed)?;
        let mut bytes = bytes.max(events_memory_bytes(&events));
        for event in events {
            if seqs.contains(&event.seq) {
                // The first event counts the bytes of the whole list, and further events count zero
                // bytes.
                let bytes = std::mem::take(&mut bytes);
                if !page.fits(bytes) {
                    break;
                }
                page.push(event, bytes);
            }
        }
        Ok(())
    }

    /// Adds events of a list that may be larger than a page. Decodes only the events that fit, and
    /// the one after them.
    fn add_part(&mut self, packed: &[u8], seqs: &RangeInclusive<u64>) -> Result<(), StoreError> {
        let Self(page) = self;
        let json = unpack_json(EVENTS, packed)?;
        for element in (Elements { rest: &json }) {
            let (seq, json) = element?;
            if seqs.contains(&seq) {
                let event = decode(json)?;
                let bytes = event_memory_bytes(&event.kind).max(json.len() as u64);
                if !page.fits(bytes) {
                    break;
                }
                page.push(event, bytes);
            }
        }
        Ok(())
    }

    /// Returns the events.
    pub(crate) fn into_events(self) -> Vec<Event> {
        self.0.into_items()
    }
}

/// Decodes a packed list of events, and adds them to `events`. Returns their memory in bytes. Stops
/// after the event with which their memory exceeds `most` bytes.
pub(crate) fn unpack_events(
    packed: &[u8],
    most: u64,
    events: &mut Vec<Event>,
) -> Result<u64, StoreError> {
    if most_weight(unpacked_bytes(packed)) <= most {
        let list: Vec<Event> = unpack(EVENTS, packed)?;
        let bytes = events_memory_bytes(&list);
        events.extend(list);
        return Ok(bytes);
    }
    let json = unpack_json(EVENTS, packed)?;
    let mut bytes = 0_u64;
    for element in (Elements { rest: &json }) {
        let event = decode(element?.1)?;
        bytes = bytes.saturating_add(event_memory_bytes(&event.kind));
        events.push(event);
        if bytes > most {
            break;
        }
    }
    Ok(bytes)
}

/// Returns the memory of a checkpoint, in bytes: its inputs of tasks, its metadata and its values.
pub(crate) fn checkpoint_memory_bytes(meta: &CheckpointMeta, values: &Values) -> u64 {
    meta_memory_bytes(meta) + values.values().map(ChannelValue::memory_bytes).sum::<u64>()
}

/// Returns the memory of a batch, in bytes: its events, and the inputs of tasks, the metadata and
/// the values of its checkpoint.
pub(crate) fn batch_memory_bytes(batch: &StoredBatch) -> u64 {
    let values = batch.values.values().map(|value| match value {
        StoredValue::Whole(value) => weight(value),
        StoredValue::ListDelta { items, .. } => items.iter().map(weight).sum(),
    });
    let meta = batch.checkpoint.as_ref().map_or(0, meta_memory_bytes);
    events_memory_bytes(&batch.events) + meta + values.sum::<u64>()
}

/// Returns the memory of the inputs of tasks and of the metadata, in bytes.
fn meta_memory_bytes(meta: &CheckpointMeta) -> u64 {
    let triggers = meta.next.iter().chain(&meta.deferred);
    let inputs = triggers.filter_map(|trigger| trigger.input.as_deref());
    inputs.chain(meta.metadata.values()).map(weight).sum()
}

/// Returns the memory of events, in bytes.
pub(crate) fn events_memory_bytes(events: &[Event]) -> u64 {
    events.iter().map(|event| event_memory_bytes(&event.kind)).sum()
}

/// Decodes an event of a list.
fn decode(json: &[u8]) -> Result<Event, StoreError> {
    serde_json::from_slice(json).map_err(|error| corrupt(EVENTS, error))
}

/// Iterates over the elements of a JSON list of events without decoding them. Yields the sequence
/// number and the JSON of each element.
struct Elements<'a> {
    /// The part of the list that was not read, with the bracket or the comma before it.
    rest: &'a [u8],
}

/// An event of which only the sequence number is decoded.
#[derive(Deserialize)]
struct EventSeq {
    seq: u64,
}

impl<'a> Iterator for Elements<'a> {
    type Item = Result<(u64, &'a [u8]), StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        // `serde_json` writes lists without white space.
        let element = match std::mem::replace(&mut self.rest, LIST_END) {
            b"]" | b"[]" => return None,
            [b'[' | b',', element @ ..] => element,
            _ => return Some(Err(corrupt(EVENTS, "they are not a JSON list"))),
        };
        let mut values = serde_json::Deserializer::from_slice(element).into_iter::<EventSeq>();
        let event = match values.next() {
            Some(Ok(event)) => event,
            Some(Err(error)) => return Some(Err(corrupt(EVENTS, error))),
            None => return Some(Err(corrupt(EVENTS, "their list has no end"))),
        };
        let (json, rest) = element.split_at(values.byte_offset());
        self.rest = rest;
        Some(Ok((event.seq, json)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wattle_graph::weight::VALUE_BYTES;

    use super::*;
    use crate::codec::Packer;

    /// Returns the packed list of events with the given sequence numbers, each with a text of
    /// `length` bytes.
    fn packed(seqs: RangeInclusive<u64>, length: usize) -> Vec<u8> {
        let event = |seq| {
            json!({
                "seq": seq, "at_ms": 1, "run": "r", "type": "custom", "task": "t", "node": "n",
                "name": "a, ]} \"b\"", "data": ["x".repeat(length), [seq]],
            })
        };
        let events: Vec<_> = seqs.map(event).collect();
        Packer::default().pack(&events).unwrap()
    }

    fn read(lists: &[Vec<u8>], limit: usize, seqs: &RangeInclusive<u64>) -> Vec<u64> {
        let mut page = EventPage::new(limit);
        for list in lists {
            if !page.is_full() {
                page.add(list, seqs).unwrap();
            }
        }
        page.into_events().iter().map(|event| event.seq).collect()
    }

    #[test]
    fn small_lists_fill_a_page_up_to_its_limit() {
        let lists = [packed(1..=3, 10), packed(4..=6, 10)];
        assert_eq!(read(&lists, 9, &(1..=9)), [1, 2, 3, 4, 5, 6]);
        assert_eq!(read(&lists, 4, &(1..=9)), [1, 2, 3, 4]);
        assert_eq!(read(&lists, 9, &(3..=5)), [3, 4, 5]);
        assert_eq!(read(&lists, 0, &(1..=9)), [0; 0]);
    }

    #[test]
    fn large_list_is_read_in_parts() {
        let third = PAGE_EVENT_BYTES as usize / 3;
        let list = [packed(1..=5, third)];
        assert_eq!(read(&list, 9, &(1..=9)), [1, 2]);
        assert_eq!(read(&list, 9, &(3..=9)), [3, 4]);
        assert_eq!(read(&list, 1, &(3..=9)), [3]);
        assert_eq!(read(&list, 9, &(5..=9)), [5]);
        assert_eq!(read(&list, 9, &(2..=2)), [2]);
        let small_first = [packed(1..=1, 10), packed(2..=6, third)];
        assert_eq!(read(&small_first, 9, &(1..=9)), [1], "the large list is left to the next page");
    }

    /// Returns packed events that take 24 times the memory of their JSON, a third of a page each.
    fn dense(seqs: RangeInclusive<u64>) -> Vec<u8> {
        let lists = PAGE_EVENT_BYTES / VALUE_BYTES / 3;
        let data = json!(vec![json!([]); lists as usize]);
        let event = |seq| {
            json!({
                "seq": seq, "at_ms": 1, "run": "r", "type": "custom", "task": "t", "node": "n",
                "name": "dense", "data": data,
            })
        };
        let packed = Packer::default().pack(&seqs.map(event).collect::<Vec<_>>()).unwrap();
        assert!(unpacked_bytes(&packed) < PAGE_EVENT_BYTES);
        packed
    }

    #[test]
    fn memory_of_events_counts_and_not_only_their_json() {
        assert_eq!(read(&[dense(1..=5)], 9, &(1..=9)), [1, 2]);
        assert_eq!(read(&[packed(1..=1, 10), dense(2..=6)], 9, &(1..=9)), [1, 2, 3]);
        assert_eq!(read(&[dense(1..=1), dense(2..=2), dense(3..=3)], 9, &(1..=9)), [1, 2]);
    }

    #[test]
    fn events_are_decoded_up_to_a_limit_of_memory() {
        let (list, third) = (dense(1..=5), PAGE_EVENT_BYTES / 3);
        for (most, expected) in [(u64::MAX, 5), (4 * third, 4), (2 * third, 2)] {
            let mut events = Vec::new();
            let bytes = unpack_events(&list, most, &mut events).unwrap();
            assert_eq!(events.len(), expected, "{most}");
            assert_eq!((bytes, bytes > most), (events_memory_bytes(&events), most != u64::MAX));
        }
    }

    #[test]
    fn event_that_is_larger_than_a_page_is_read_alone() {
        let lists = [packed(1..=1, PAGE_EVENT_BYTES as usize + 1), packed(2..=2, 10)];
        assert_eq!(read(&lists, 9, &(1..=9)), [1]);
        assert_eq!(read(&lists[1..], 9, &(2..=9)), [2]);
    }

    #[test]
    fn iterating_over_a_damaged_json_list_ends_with_an_error() {
        let elements = |json: &'static str| Elements { rest: json.as_bytes() };
        let seqs = |json| elements(json).map(|it| it.unwrap().0).collect::<Vec<_>>();
        assert_eq!(seqs("[]"), [0; 0]);
        assert_eq!(seqs(r#"[{"seq":1},{"a":"]","seq":2}]"#), [1, 2]);
        for damaged in ["", "1", "[", r#"[{"seq":1}"#, r#"[{"seq":1},"#, r#"[{"seq":1},{"a":1}]"#] {
            let last = elements(damaged).last();
            assert!(last.is_some_and(|it| it.is_err()), "{damaged}");
        }
    }
}
