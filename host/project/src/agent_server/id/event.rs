//! Ids of the server-sent events of a run stream, in the form `<milliseconds>-<number>`: the time
//! of the log event, in milliseconds since 1970, and a number derived from its sequence number.
//!
//! The host does not buffer streams. A client that reconnects sends the id of the last server-sent
//! event that it received, and the host rebuilds the later server-sent events from the log.

use std::fmt;

use wattle_graph::event::Event;

/// Maximum number of ids for the server-sent events of one log event. Consecutive deltas of the
/// same kind share a server-sent event, so log events have far fewer. Server-sent events above the
/// maximum share the last id.
pub const FRAMES_PER_EVENT: u64 = 1000;

/// Id of a server-sent event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EventId {
    /// Number of the server-sent event. Numbers increase within a thread.
    pub number: u64,
    /// Time of the log event, in milliseconds since 1970.
    pub at_ms: i64,
}

impl EventId {
    /// Returns the id of a server-sent event of a log event. `index` counts the server-sent events
    /// of the log event from 0.
    pub fn new(event: &Event, index: usize) -> Self {
        let index = (index as u64).min(FRAMES_PER_EVENT - 1);
        let number = event.seq.saturating_mul(FRAMES_PER_EVENT).saturating_add(index);
        Self { number, at_ms: event.at_ms }
    }

    /// Returns the highest number of a server-sent event of the log event with sequence number
    /// `seq`.
    pub fn end_of(seq: u64) -> u64 {
        seq.saturating_mul(FRAMES_PER_EVENT).saturating_add(FRAMES_PER_EVENT - 1)
    }

    /// Returns the sequence number of the log event that the server-sent event with this number
    /// belongs to.
    pub fn seq_of(number: u64) -> u64 {
        number / FRAMES_PER_EVENT
    }

    /// Parses a `Last-Event-ID` and returns the number after which the client requests server-sent
    /// events. `-1` requests all of them. Returns `None` if the text is not the id of a server-sent
    /// event.
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
    fn last_event_ids_are_parsed() {
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
