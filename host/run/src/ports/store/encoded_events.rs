//! Events with their JSON, as a batch has them.

use std::ops::Deref;
use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;
use wattle_graph::event::Event;

/// Events with their JSON. The JSON of an event is written once; seals, size limits and stores use
/// these bytes. Clones share the events and the bytes.
#[derive(Clone, Debug, Default)]
pub struct EncodedEvents {
    events: Arc<[Event]>,
    json: Bytes,
    /// Why an event has no JSON.
    error: Option<Arc<str>>,
}

impl EncodedEvents {
    /// Returns the JSON of the list of events; empty without events.
    ///
    /// # Errors
    ///
    /// The reason why an event cannot be written as JSON. A store refuses the batch.
    pub fn json(&self) -> Result<&[u8], &str> {
        match &self.error {
            None => Ok(&self.json),
            Some(error) => Err(error),
        }
    }

    /// Returns the events without copying them.
    pub fn shared(&self) -> Arc<[Event]> {
        self.events.clone()
    }
}

impl Deref for EncodedEvents {
    type Target = [Event];

    fn deref(&self) -> &[Event] {
        &self.events
    }
}

impl FromIterator<Event> for EncodedEvents {
    fn from_iter<I: IntoIterator<Item = Event>>(events: I) -> Self {
        let mut encoder = EventEncoder::default();
        for event in events {
            encoder.push(event);
        }
        encoder.take()
    }
}

impl From<Vec<Event>> for EncodedEvents {
    fn from(events: Vec<Event>) -> Self {
        events.into_iter().collect()
    }
}

/// Collects events and writes the JSON of each when it is added.
#[derive(Debug, Default)]
pub(crate) struct EventEncoder {
    events: Vec<Event>,
    json: JsonArray,
    error: Option<Arc<str>>,
}

impl EventEncoder {
    /// Adds an event. Returns the length of its JSON.
    pub(crate) fn push(&mut self, event: Event) -> usize {
        let before = self.json.0.len();
        if let Err(error) = self.json.push(&event) {
            self.error.get_or_insert_with(|| {
                format!("event {} cannot be written as JSON: {error}", event.seq).into()
            });
        }
        self.events.push(event);
        self.json.0.len() - before
    }

    /// Takes all events that were added since the last call.
    pub(crate) fn take(&mut self) -> EncodedEvents {
        let Self { events, json, error } = std::mem::take(self);
        EncodedEvents { events: events.into(), json: json.finish().into(), error }
    }
}

/// A JSON array that is written item by item. The text is that of a list of the items.
#[derive(Debug, Default)]
struct JsonArray(Vec<u8>);

impl JsonArray {
    /// Writes an item. After an error the text is as before.
    fn push<T: Serialize>(&mut self, item: &T) -> serde_json::Result<()> {
        let Self(text) = self;
        let end = text.len();
        text.push(if end == 0 { b'[' } else { b',' });
        let written = serde_json::to_writer(&mut *text, item);
        if written.is_err() {
            text.truncate(end);
        }
        written
    }

    /// Returns the text; empty without items.
    fn finish(self) -> Vec<u8> {
        let Self(mut text) = self;
        if !text.is_empty() {
            text.push(b']');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use serde::Serializer;
    use serde::ser::{Error as _, SerializeSeq as _};
    use serde_json::{Value, json};

    use super::*;

    fn event(seq: u64, data: &Value) -> Event {
        serde_json::from_value(json!({
            "seq": seq, "at_ms": 1, "run": "r", "type": "custom", "task": "t", "node": "n",
            "name": "note", "data": data,
        }))
        .unwrap()
    }

    #[test]
    fn json_is_that_of_the_list() {
        let data = [json!(null), json!({ "z": [1.5, "\u{1}\"ü"], "a": {} }), json!("x".repeat(9))];
        for length in 1..=data.len() {
            let events: Vec<Event> =
                (1..).zip(&data[..length]).map(|(n, it)| event(n, it)).collect();
            let encoded = EncodedEvents::from(events.clone());
            assert_eq!(encoded.json(), Ok(&*serde_json::to_vec(&events).unwrap()));
            assert_eq!(*encoded, *events);
            assert_eq!(*encoded.shared(), *events);
        }
        assert_eq!(EncodedEvents::from(Vec::new()).json(), Ok(&b""[..]));
    }

    #[test]
    fn encoder_begins_anew_after_its_events_were_taken() {
        let mut encoder = EventEncoder::default();
        for seq in [1, 2] {
            encoder.push(event(seq, &json!(seq)));
            let taken = encoder.take();
            assert_eq!(taken.json(), Ok(&*serde_json::to_vec(&[event(seq, &json!(seq))]).unwrap()));
        }
        assert!(encoder.take().is_empty());
    }

    /// Counts how often it is encoded.
    struct Counted<'c>(&'c Cell<u32>);

    impl Serialize for Counted<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            self.0.set(self.0.get() + 1);
            serializer.serialize_u32(self.0.get())
        }
    }

    #[test]
    fn each_item_is_encoded_once() {
        let count = Cell::new(0);
        let mut array = JsonArray::default();
        for _ in 0..3 {
            array.push(&Counted(&count)).unwrap();
        }
        assert_eq!((array.finish().as_slice(), count.get()), (&b"[1,2,3]"[..], 3));
    }

    /// Fails after a part of its text was written.
    struct Broken;

    impl Serialize for Broken {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut items = serializer.serialize_seq(None)?;
            items.serialize_element("begun")?;
            Err(S::Error::custom("broken"))
        }
    }

    #[test]
    fn an_item_that_fails_leaves_no_text() {
        let mut array = JsonArray::default();
        assert!(array.push(&Broken).is_err());
        array.push(&1).unwrap();
        assert!(array.push(&Broken).is_err());
        array.push(&2).unwrap();
        assert_eq!(array.finish(), b"[1,2]");
    }
}
