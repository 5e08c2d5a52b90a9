//! A parser of server-sent events.
//!
//! Chunks may end anywhere: within a line break, an event or a character. Lines end with LF, CR LF
//! or CR. Comments, which services send to keep a connection alive, are skipped. The empty line
//! after the last event may be missing. A line `error: {...}` is an event with an error object.

use memchr::memchr2;
use wattle_run::json::lenient;

/// Starts of lines that the formats do not use: comments and fields.
const IGNORED_PREFIXES: [&str; 4] = [":", "event:", "id:", "retry:"];

/// Start of a line with an error object. Builds of llama.cpp until 2025 send such lines.
const ERROR_PREFIX: &str = "error:";

/// Maximum characters of a line that is not part of an event.
const MAX_NON_EVENT_CHARS: usize = 200;

/// The parser. It returns the data of events.
#[derive(Debug, Default)]
pub(super) struct SseParser {
    /// The incomplete line.
    line: Vec<u8>,
    /// The data of the incomplete event.
    data: Option<String>,
    /// Whether the last byte was a CR. An LF after a CR belongs to the same line break.
    after_cr: bool,
    /// The start of the first line that is not part of an event.
    non_event_line: Option<String>,
}

impl SseParser {
    /// Parses bytes. Returns the data of all events that are complete now.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut events = Vec::new();
        let mut rest = bytes;
        while let Some(end) = memchr2(b'\n', b'\r', rest) {
            let after_cr = std::mem::replace(&mut self.after_cr, rest[end] == b'\r');
            self.line.extend_from_slice(&rest[..end]);
            // An LF right after a CR belongs to the same line break.
            if !(rest[end] == b'\n' && end == 0 && after_cr) {
                events.extend(self.finish_line());
            }
            rest = &rest[end + 1..];
        }
        if !rest.is_empty() {
            self.after_cr = false;
            self.line.extend_from_slice(rest);
        }
        events
    }

    /// Returns the last event, if the empty line after it is missing.
    pub(super) fn finish(&mut self) -> Option<String> {
        let complete = if self.line.is_empty() { None } else { self.finish_line() };
        complete.or_else(|| self.data.take())
    }

    /// Returns the number of bytes of the incomplete event.
    pub(super) fn pending_bytes(&self) -> usize {
        self.line.len() + self.data.as_ref().map_or(0, String::len)
    }

    /// Returns the start of the first line that is not part of an event. The response may be
    /// something else, such as a web page.
    pub(super) fn non_event_line(&self) -> Option<&str> {
        self.non_event_line.as_deref()
    }

    fn finish_line(&mut self) -> Option<String> {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            return self.data.take();
        }
        // Only complete lines are decoded, so no multi-byte character is split. Invalid UTF-8 is
        // replaced.
        let line = lenient::decode(&line);
        let line = line.trim_start_matches('\u{feff}');
        if let Some(value) = line.strip_prefix("data:") {
            let value = value.strip_prefix(' ').unwrap_or(value);
            match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.data = Some(value.to_owned()),
            }
            return None;
        }
        if self.non_event_line.is_none()
            && !IGNORED_PREFIXES.iter().any(|start| line.starts_with(start))
        {
            self.non_event_line = Some(line.trim().chars().take(MAX_NON_EVENT_CHARS).collect());
        }
        error_event(line)
    }
}

/// Returns the data of an event with the error object of a line; `None` if the line has none.
fn error_event(line: &str) -> Option<String> {
    let error = line.strip_prefix(ERROR_PREFIX)?.trim();
    error.starts_with('{').then(|| format!("{{\"error\":{error}}}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert_eq, proptest};

    use super::*;

    fn read(pieces: &[&[u8]]) -> Vec<String> {
        let mut events = SseParser::default();
        let mut found: Vec<String> = pieces.iter().flat_map(|piece| events.feed(piece)).collect();
        found.extend(events.finish());
        found
    }

    #[test]
    fn every_way_of_writing_events_is_parsed() {
        let cases: [(&str, &[&str]); 11] = [
            ("data: a\n\ndata: b\n\n", &["a", "b"]),
            ("data: a\r\n\r\ndata:b\r\n\r\n", &["a", "b"]),
            ("data: a\r\rdata: b\r\r", &["a", "b"]),
            ("\n\n\ndata: a\n\n\n\n", &["a"]),
            (": keep-alive\n\n: keep-alive\n\nevent: x\nid: 1\ndata: a\n\n", &["a"]),
            ("data: a\ndata:\ndata:  b\n\n", &["a\n\n b"]),
            ("\u{feff}data: a\n\ndata: b", &["a", "b"]),
            ("event: ping\n\nretry: 1\n", &[]),
            ("error: {\"code\":400}\n\ndata: a\n\n", &["{\"error\":{\"code\":400}}", "a"]),
            ("data: a\n\nerror:{}", &["a", "{\"error\":{}}"]),
            ("error: busy\n\n", &[]),
        ];
        for (text, expected) in cases {
            assert_eq!(read(&[text.as_bytes()]), expected, "{text:?}");
        }
    }

    #[test]
    fn lines_outside_of_events_are_reported() {
        for (text, foreign) in [
            ("", None),
            (": x\n\nevent: y\nid: 1\nretry: 1\ndata: a\n\n", None),
            ("busy", Some("busy")),
            ("data: a\n\nx-y: 1\nx-z: 1\n", Some("x-y: 1")),
            ("<html>\r\n</html>\r\n", Some("<html>")),
        ] {
            let mut events = SseParser::default();
            events.feed(text.as_bytes());
            events.finish();
            assert_eq!(events.non_event_line(), foreign, "{text:?}");
        }
        let mut events = SseParser::default();
        events.feed(format!("{}\n", "é".repeat(1_000)).as_bytes());
        assert_eq!(
            events.non_event_line().map(|line| line.chars().count()),
            Some(MAX_NON_EVENT_CHARS)
        );
    }

    proptest! {
        #[test]
        fn chunk_boundaries_do_not_matter(
            texts in proptest::collection::vec("[a-z{}\u{4f60}\u{597d}\u{1f600} ]{0,12}", 0..6),
            ends in any::<u8>(),
            cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..8),
        ) {
            let end = ["\n", "\r\n", "\r"][usize::from(ends % 3)];
            let wire: String =
                texts.iter().map(|text| format!(": x{end}data: {text}{end}{end}")).collect();
            let bytes = wire.as_bytes();
            let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            places.extend([0, bytes.len()]);
            places.sort_unstable();
            let pieces: Vec<&[u8]> =
                places.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            prop_assert_eq!(read(&pieces), texts);
        }
    }
}
