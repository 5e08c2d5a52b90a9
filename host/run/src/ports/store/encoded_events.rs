//! Events with their JSON, as a batch contains them.

use std::ops::Deref;
use std::sync::Arc;

use bytes::Bytes;
use wattle_graph::event::Event;

/// Events with their JSON. The JSON of an event is written once; seals, size limits and stores use
/// these bytes. Clones share the events and the bytes.
#[derive(Clone, Debug, Default)]
pub struct EncodedEvents {
    events: Arc<[Event]>,
    json: Bytes,
    /// The reason why an event has no JSON; `None` if all events have JSON.
    error: Option<Arc<str>>,
}

impl EncodedEvents {
    /// Returns the JSON of the list of events; empty without events.
    ///
    /// # Errors
    ///
    /// The reason why an event cannot be written as JSON. A store rejects the batch of such an
    /// event.
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
            let seq = event.seq;
            encoder.push(UnnumberedEvent::new(event), seq);
        }
        encoder.take()
    }
}

impl From<Vec<Event>> for EncodedEvents {
    fn from(events: Vec<Event>) -> Self {
        events.into_iter().collect()
    }
}

/// The JSON of an event up to its sequence number, which is the first field.
const BEFORE_NUMBER: &[u8] = br#"{"seq":"#;

/// The JSON of an event that has no sequence number yet, up to the end of the first field.
const UNNUMBERED: &[u8] = br#"{"seq":0"#;

/// Initial capacity for the JSON of an event, and for that of a list, in bytes. Most events have
/// less, and the events of most supersteps.
const JSON_CAPACITY: usize = 1 << 10;

/// Maximum length of a sequence number and of the separator before its event, in bytes.
const NUMBER_BYTES: usize = 21;

/// An event with its JSON, before it has a sequence number.
#[derive(Debug)]
pub(crate) struct UnnumberedEvent {
    event: Event,
    /// The JSON with the number zero, or the reason why there is no JSON.
    json: Result<Vec<u8>, String>,
}

impl UnnumberedEvent {
    /// Writes the JSON of an event.
    pub(crate) fn new(mut event: Event) -> Self {
        event.seq = 0;
        let json = unnumbered_json(&event);
        Self { event, json }
    }
}

/// Returns the JSON of an event with the sequence number zero.
fn unnumbered_json(event: &Event) -> Result<Vec<u8>, String> {
    let mut json = Vec::with_capacity(JSON_CAPACITY);
    serde_json::to_writer(&mut json, event).map_err(|error| error.to_string())?;
    if !json.starts_with(UNNUMBERED) {
        return Err("its JSON does not begin with its sequence number".to_owned());
    }
    Ok(json)
}

/// Collects events with their JSON. Gives each event its number, and appends the JSON that was
/// written before.
#[derive(Debug, Default)]
pub(crate) struct EventEncoder {
    events: Vec<Event>,
    /// The JSON of the list so far, without the bracket at its end; empty without events.
    json: Vec<u8>,
    error: Option<Arc<str>>,
}

impl EventEncoder {
    /// Adds an event with a number. Returns the length of its JSON.
    pub(crate) fn push(&mut self, event: UnnumberedEvent, seq: u64) -> usize {
        let UnnumberedEvent { mut event, json } = event;
        let before = self.json.len();
        match json {
            Ok(json) => {
                // Otherwise the buffer would grow in each of the first calls below.
                let missing = NUMBER_BYTES + json.len();
                self.json.reserve(if before == 0 { missing.max(JSON_CAPACITY) } else { missing });
                self.json.push(if before == 0 { b'[' } else { b',' });
                self.json.extend_from_slice(BEFORE_NUMBER);
                self.json.extend_from_slice(itoa::Buffer::new().format(seq).as_bytes());
                self.json.extend_from_slice(&json[UNNUMBERED.len()..]);
            }
            Err(error) => {
                self.error.get_or_insert_with(|| {
                    format!("event {seq} cannot be written as JSON: {error}").into()
                });
            }
        }
        event.seq = seq;
        self.events.push(event);
        self.json.len() - before
    }

    /// Takes all events that were added since the last call.
    pub(crate) fn take(&mut self) -> EncodedEvents {
        let Self { events, mut json, error } = std::mem::take(self);
        if !json.is_empty() {
            json.push(b']');
        }
        EncodedEvents { events: events.into(), json: json.into(), error }
    }
}

#[cfg(test)]
mod tests {
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
    fn json_of_encoded_events_is_that_of_the_event_list() {
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
    fn encoder_is_empty_after_its_events_were_taken() {
        let mut encoder = EventEncoder::default();
        for seq in [1, 2] {
            encoder.push(UnnumberedEvent::new(event(seq, &json!(seq))), seq);
            let taken = encoder.take();
            assert_eq!(taken.json(), Ok(&*serde_json::to_vec(&[event(seq, &json!(seq))]).unwrap()));
        }
        assert!(encoder.take().is_empty());
    }

    #[test]
    fn encoded_events_have_the_numbers_that_the_encoder_received() {
        let mut encoder = EventEncoder::default();
        for seq in [0, 9, 10, u64::MAX] {
            let length = encoder.push(UnnumberedEvent::new(event(3, &json!("x"))), seq);
            assert_eq!(length, 1 + serde_json::to_vec(&event(seq, &json!("x"))).unwrap().len());
        }
        let taken = encoder.take();
        let numbers = |events: &[Event]| events.iter().map(|event| event.seq).collect::<Vec<_>>();
        assert_eq!(numbers(&taken), [0, 9, 10, u64::MAX]);
        let written: Vec<Event> = serde_json::from_slice(taken.json().unwrap()).unwrap();
        assert_eq!(*taken, *written);
    }

    #[test]
    fn list_with_an_event_that_cannot_be_written_has_no_json() {
        let broken = |error: &str| UnnumberedEvent {
            json: Err(error.to_owned()),
            ..UnnumberedEvent::new(event(0, &json!(null)))
        };
        let mut encoder = EventEncoder::default();
        encoder.push(UnnumberedEvent::new(event(0, &json!(null))), 1);
        assert_eq!(encoder.push(broken("one"), 2), 0);
        encoder.push(broken("two"), 3);
        let taken = encoder.take();
        assert_eq!(taken.json(), Err("event 2 cannot be written as JSON: one"));
        assert_eq!(taken.len(), 3);
    }
}
