//! An incremental parser of server-sent events.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// One server-sent event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// The event type.
    pub event: String,
    /// The id, or an empty text.
    pub id: String,
    /// The data.
    pub data: String,
}

/// The identity of a server-sent event for comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    /// The number in the id, which increases with every server-sent event of a thread.
    pub(super) number: u64,
    /// The digest of type, id and data.
    pub(super) digest: u64,
}

impl Frame {
    /// Returns the number in the id, which follows a time in some streams.
    fn number(&self) -> Option<u64> {
        self.id.rsplit('-').next()?.parse().ok()
    }

    /// Returns the mark of the server-sent event, or `None` if it has no id and therefore belongs
    /// to no log event.
    pub(super) fn mark(&self) -> Option<Mark> {
        let mut hasher = DefaultHasher::new();
        (&self.event, &self.id, &self.data).hash(&mut hasher);
        Some(Mark { number: self.number()?, digest: hasher.finish() })
    }
}

/// Parses server-sent events from chunks that end anywhere.
#[derive(Debug, Default)]
pub(super) struct Parser {
    line: Vec<u8>,
    frame: Frame,
    ready: VecDeque<Frame>,
}

impl Parser {
    /// Parses a chunk.
    pub(super) fn push(&mut self, mut piece: &[u8]) {
        while let Some(end) = piece.iter().position(|byte| *byte == b'\n') {
            self.line.extend_from_slice(&piece[..end]);
            piece = &piece[end + 1..];
            self.end_line();
        }
        self.line.extend_from_slice(piece);
    }

    /// Returns the oldest complete server-sent event.
    pub(super) fn pop(&mut self) -> Option<Frame> {
        self.ready.pop_front()
    }

    fn end_line(&mut self) {
        let line = String::from_utf8_lossy(self.line.strip_suffix(b"\r").unwrap_or(&self.line));
        match line.split_once(':') {
            _ if line.is_empty() => {
                let frame = std::mem::take(&mut self.frame);
                if !frame.event.is_empty() {
                    self.ready.push_back(frame);
                }
            }
            Some(("event", value)) => self.frame.event = text(value),
            Some(("id", value)) => self.frame.id = text(value),
            Some(("data", value)) => self.frame.data.push_str(&text(value)),
            // A comment.
            _ => {}
        }
        self.line.clear();
    }
}

fn text(value: &str) -> String {
    value.strip_prefix(' ').unwrap_or(value).to_owned()
}

#[cfg(test)]
mod tests {
    use super::{Frame, Parser};

    const STREAM: &str = "event: metadata\r\ndata: {\"a\":\"b: c\"}\r\nid: 17-3000\r\n\r\n\
                          : heartbeat\r\n\r\nevent: end\ndata: \u{e9}\n\n";

    fn frame(event: &str, id: &str, data: &str) -> Frame {
        Frame { event: event.into(), id: id.into(), data: data.into() }
    }

    #[test]
    fn chunks_may_end_anywhere() {
        let wanted = [frame("metadata", "17-3000", "{\"a\":\"b: c\"}"), frame("end", "", "\u{e9}")];
        for size in [1, 2, 7, STREAM.len()] {
            let mut parser = Parser::default();
            STREAM.as_bytes().chunks(size).for_each(|piece| parser.push(piece));
            let read: Vec<_> = std::iter::from_fn(|| parser.pop()).collect();
            assert_eq!(read, wanted, "pieces of {size} bytes");
        }
    }

    #[test]
    fn marks_of_different_frames_differ() {
        let mark = |id: &str, data: &str| frame("values", id, data).mark();
        assert_eq!(mark("17-3000", "1"), mark("17-3000", "1"));
        assert_ne!(mark("17-3000", "1"), mark("17-3000", "2"));
        assert_eq!(mark("17-3000", "1").unwrap().number, 3_000);
        assert_eq!(mark("42", "").unwrap().number, 42);
        assert_eq!(mark("", "1"), None);
    }
}
