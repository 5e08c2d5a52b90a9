//! Ids of frames: where in the log they come from, in the form `<milliseconds>-<number>`.
//!
//! Streams keep no buffer. A client that reconnects names a number, and the frames from there on
//! are made from the same log again.

use std::fmt;

use wattle_graph::event::Event;

/// Frames that one event may become with ids of their own. Pieces of an answer that go together
/// are one frame, so that no event comes near; further frames share the last id.
pub const FRAMES_PER_EVENT: u64 = 1000;

/// The id of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EventId {
    /// Grows with every frame of a thread.
    pub number: u64,
    /// When the event happened, milliseconds since 1970.
    pub at_ms: i64,
}

impl EventId {
    /// The id of the `index`-th frame that an event becomes.
    pub fn new(event: &Event, index: usize) -> Self {
        let index = (index as u64).min(FRAMES_PER_EVENT - 1);
        let number = event.seq.saturating_mul(FRAMES_PER_EVENT).saturating_add(index);
        Self { number, at_ms: event.at_ms }
    }

    /// The highest number that a frame made of the event in that place of the log can have.
    pub fn end_of(seq: u64) -> u64 {
        seq.saturating_mul(FRAMES_PER_EVENT).saturating_add(FRAMES_PER_EVENT - 1)
    }

    /// The place in the log of the event that the frame of a number was made of.
    pub fn seq_of(number: u64) -> u64 {
        number / FRAMES_PER_EVENT
    }

    /// The number after which frames are wanted, from a `Last-Event-ID`: `-1` wants all. `None` if
    /// it is no id.
    pub fn number_of(text: &str) -> Option<u64> {
        match text.trim() {
            "-1" => Some(0),
            text => text.rsplit_once('-')?.1.parse().ok(),
        }
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.at_ms, self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::EventId;

    #[test]
    fn ids_are_read_by_their_number() {
        let id = EventId { number: 12_003, at_ms: 1_795_293_980_021 };
        assert_eq!(id.to_string(), "1795293980021-12003");
        for (text, number) in [
            ("1795293980021-12003", Some(12_003)),
            ("-1", Some(0)),
            (" -1 ", Some(0)),
            ("synth:01a1ffd7-1f40-73b2-8214-8d1d83460c9c:1795293980021-12003", Some(12_003)),
            ("", None),
            ("12", None),
            ("a-b", None),
        ] {
            assert_eq!(EventId::number_of(text), number, "{text:?}");
        }
        assert_eq!((EventId::seq_of(id.number), EventId::end_of(12)), (12, 12_999));
    }
}
