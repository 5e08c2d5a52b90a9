//! The last bytes that a guest wrote to stdout and stderr, and the cause of a trap that these bytes
//! contain.
//!
//! A guest that panics or throws an exception writes the reason to its output, and then executes
//! `unreachable`. This module finds that reason for the failure of the call. The output of guests
//! without a gate, such as plugins that describe themselves, is kept nowhere else.

mod cause;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::load::text::sanitize;

pub(crate) use self::cause::Cause;

/// Minimum number of bytes at the end of a stream that are kept. At most twice as many bytes are
/// kept. A stack trace has some KiB.
const MAX_STREAM_BYTES: usize = 8 << 10;

/// Maximum number of lines that [`GuestOutput::last_lines`] returns.
const MAX_LAST_LINES: usize = 3;

/// Maximum length of a line that [`last_lines`] returns, in characters.
const MAX_LINE_CHARS: usize = 200;

/// An output stream of a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StandardStream {
    Out,
    Err,
}

impl StandardStream {
    /// Returns the name of the stream, which is also the level of the log messages from this
    /// stream.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Out => "stdout",
            Self::Err => "stderr",
        }
    }
}

/// The output of one guest. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct GuestOutput(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    panic: Option<Cause>,
}

impl GuestOutput {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends bytes that the guest wrote to a stream. Drops the oldest bytes if there are too
    /// many.
    pub(crate) fn write(&self, stream: StandardStream, bytes: &[u8]) {
        let mut state = self.lock();
        let kept = match stream {
            StandardStream::Out => &mut state.stdout,
            StandardStream::Err => &mut state.stderr,
        };
        kept.extend_from_slice(last(bytes, MAX_STREAM_BYTES));
        // If every write dropped bytes, every write would move the remaining bytes.
        if kept.len() > 2 * MAX_STREAM_BYTES {
            kept.drain(..kept.len() - MAX_STREAM_BYTES);
        }
    }

    /// Keeps the cause that the guest itself reported. A later call replaces this cause.
    pub(crate) fn set_panic(&self, cause: Cause) {
        self.lock().panic = Some(cause);
    }

    /// Returns the cause that the guest reported. Otherwise returns the cause at the end of its
    /// stderr or, if there is none, of its stdout.
    pub(crate) fn cause(&self) -> Option<Cause> {
        let given = self.lock().panic.clone();
        let find = |stream| Cause::find(&self.end(stream, MAX_STREAM_BYTES));
        given.or_else(|| find(StandardStream::Err)).or_else(|| find(StandardStream::Out))
    }

    /// Returns the last lines of stderr or, if it has none, of stdout, without blank lines. Returns
    /// `None` if the guest wrote nothing.
    pub(crate) fn last_lines(&self) -> Option<String> {
        [StandardStream::Err, StandardStream::Out]
            .into_iter()
            .find_map(|stream| last_lines(&self.end(stream, MAX_STREAM_BYTES), MAX_LAST_LINES))
    }

    /// Returns at most the last `max_bytes` bytes of a stream, in whole lines if there are several
    /// lines.
    pub(crate) fn end(&self, stream: StandardStream, max_bytes: usize) -> String {
        let state = self.lock();
        let kept = match stream {
            StandardStream::Out => &state.stdout,
            StandardStream::Err => &state.stderr,
        };
        let end = last(kept, max_bytes);
        let text = String::from_utf8_lossy(end);
        match text.split_once('\n') {
            Some((_, lines)) if end.len() < kept.len() && !lines.is_empty() => lines.to_owned(),
            _ => text.into_owned(),
        }
    }
}

/// Returns at most the last `max_lines` lines of a text, without blank lines. Returns `None` if all
/// lines are blank.
pub(crate) fn last_lines(text: &str, max_lines: usize) -> Option<String> {
    let lines = text.lines().rev().map(|line| sanitize(line.trim_end(), MAX_LINE_CHARS));
    let lines = lines.filter(|line| !line.trim().is_empty()).take(max_lines);
    let mut lines: Vec<String> = lines.collect();
    lines.reverse();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

fn last(bytes: &[u8], count: usize) -> &[u8] {
    &bytes[bytes.len().saturating_sub(count)..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_stream_is_kept_in_whole_lines() {
        let output = GuestOutput::default();
        for number in 0..10_000 {
            output.write(StandardStream::Out, format!("line {number}\n").as_bytes());
        }
        output.write(StandardStream::Err, b"one line");
        let end = output.end(StandardStream::Out, 2_000);
        assert!(end.len() <= 2_000 && end.starts_with("line "), "{end}");
        assert!(end.ends_with("line 9998\nline 9999\n"), "{end}");
        assert!(output.lock().stdout.len() <= 2 * MAX_STREAM_BYTES);
        assert_eq!(output.end(StandardStream::Err, 4), "line");
        output.write(StandardStream::Err, &vec![b'x'; 100_000]);
        assert_eq!(output.end(StandardStream::Err, 100_000).len(), MAX_STREAM_BYTES + 8);
    }

    #[test]
    fn last_lines_are_those_of_stderr_without_blank_lines() {
        let output = GuestOutput::default();
        assert_eq!(output.last_lines(), None);
        output.write(StandardStream::Out, b"loading\n\n");
        assert_eq!(output.last_lines().as_deref(), Some("loading"));
        output.write(StandardStream::Err, b"one\ntwo\n\n\x1b[31mthree \n \nfour\n\x1b\n");
        assert_eq!(output.last_lines().as_deref(), Some("two\n[31mthree\nfour"));
        output.write(StandardStream::Err, &[b'x'; 1_000]);
        let long = format!("[31mthree\nfour\n{}", "x".repeat(MAX_LINE_CHARS));
        assert_eq!(output.last_lines(), Some(long));
        assert_eq!(last_lines("one\ntwo \n \n", 1).as_deref(), Some("two"));
    }

    #[test]
    fn cause_that_the_guest_reported_precedes_its_output() {
        let output = GuestOutput::default();
        assert_eq!(output.cause(), None);
        output.write(StandardStream::Out, b"Assertion failed: a (a.c: f: 1)\n");
        assert_eq!(output.cause().unwrap().text, "Assertion failed: a");
        output.write(StandardStream::Err, b"Assertion failed: b (b.c: f: 1)");
        assert_eq!(output.cause().unwrap().text, "Assertion failed: b");
        output.set_panic(Cause::from_fields("c", &[]));
        assert_eq!(output.cause().unwrap().text, "c");
    }
}
