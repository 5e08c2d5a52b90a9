//! stdout and stderr of WASI guests. Each line that is not blank becomes a log message, if the
//! guest has a gate. The end of the output is kept for the failure of the guest.
//!
//! The functions of a stream do not wait, except for `ready`. A guest may write as many bytes as
//! `check_write` last permitted. `check_write` permits no bytes while earlier messages must be
//! flushed, and the guest then waits in `ready`.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::io::AsyncWrite;
use wasmtime_wasi::async_trait;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamError, StreamResult};
use wattle_run::gate::Gate;
use wattle_run::gate::unwind::Unwind;
use wattle_run::hostcall::log::LogMessage;

use crate::guest_output::{GuestOutput, StandardStream};

/// Maximum length of a message, in bytes. A longer line is split between two characters.
const MAX_LINE_BYTES: usize = 8 << 10;

/// Maximum number of bytes that a guest may write at once. WASI hosts usually permit this number.
const MAX_WRITE_BYTES: usize = 64 << 10;

/// Converts the reason why the gate unwinds the guest to the error that ends the guest.
pub(crate) type IntoTrap = fn(Unwind) -> wasmtime::Error;

/// An output stream of a guest.
pub(crate) struct LogStream {
    writer: Arc<LineBuffer>,
}

/// A handle of the stream.
struct Handle {
    writer: Arc<LineBuffer>,
    /// Bytes that the guest may write before it calls `check_write` again.
    permitted: usize,
}

/// The current line, which all handles of the guest share.
struct LineBuffer {
    gate: Option<Arc<Gate>>,
    output: GuestOutput,
    stream: StandardStream,
    into_trap: IntoTrap,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    line: Vec<u8>,
    /// The reason to unwind the guest; `None` once a handle has reported it.
    unwind: Option<Unwind>,
}

impl LogStream {
    /// Creates a stream. Its lines become messages of the gate, with the name of the stream as
    /// their level.
    pub(crate) fn new(
        gate: Option<Arc<Gate>>,
        output: GuestOutput,
        stream: StandardStream,
        into_trap: IntoTrap,
    ) -> Self {
        let state = Mutex::default();
        Self { writer: Arc::new(LineBuffer { gate, output, stream, into_trap, state }) }
    }
}

impl IsTerminal for LogStream {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for LogStream {
    /// Returns a sink. Only WASI 0.3 uses this function, and this host does not link WASI 0.3.
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(tokio::io::sink())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(Handle { writer: self.writer.clone(), permitted: 0 })
    }
}

#[async_trait]
impl Pollable for Handle {
    async fn ready(&mut self) {
        let Some(gate) = &self.writer.gate else { return };
        if let Err(unwind) = gate.flush_log().await {
            self.writer.lock().unwind = Some(unwind);
        }
    }
}

impl OutputStream for Handle {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.permitted = self.permitted.checked_sub(bytes.len()).ok_or_else(|| {
            StreamError::trap("the guest wrote more bytes than `check-write` permitted")
        })?;
        self.writer.output.write(self.writer.stream, &bytes);
        if self.writer.gate.is_none() {
            return Ok(());
        }
        let mut state = self.writer.lock();
        for byte in bytes {
            if let Some(message) = append(&mut state.line, byte) {
                self.writer.log(&message);
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        if let Some(unwind) = self.writer.lock().unwind.take() {
            return Err(StreamError::Trap((self.writer.into_trap)(unwind)));
        }
        let is_due = self.writer.gate.as_ref().is_some_and(|gate| gate.is_log_flush_due());
        self.permitted = if is_due { 0 } else { MAX_WRITE_BYTES };
        Ok(self.permitted)
    }
}

impl LineBuffer {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn log(&self, line: &[u8]) {
        let Some(gate) = &self.gate else { return };
        if !line.trim_ascii().is_empty() {
            gate.push_log(LogMessage::new(self.stream.name(), String::from_utf8_lossy(line)));
        }
    }
}

impl Drop for LineBuffer {
    /// Logs the last line if no line break ends it.
    fn drop(&mut self) {
        let line = std::mem::take(&mut self.lock().line);
        self.log(&line);
    }
}

/// Appends a byte to a line. Returns the message that is complete: a line with its end, or the
/// start of a long line.
fn append(line: &mut Vec<u8>, byte: u8) -> Option<Vec<u8>> {
    if byte == b'\n' {
        return Some(std::mem::take(line));
    }
    line.push(byte);
    if line.len() < MAX_LINE_BYTES {
        return None;
    }
    let end = line.len() - incomplete_bytes(line);
    let rest = line.split_off(end);
    Some(std::mem::replace(line, rest))
}

/// Returns the length of the incomplete UTF-8 character at the end of a line, in bytes.
fn incomplete_bytes(line: &[u8]) -> usize {
    let end = line.utf8_chunks().last().map_or(&b""[..], |chunk| chunk.invalid());
    // An error without a length means that further bytes can complete the character.
    match std::str::from_utf8(end) {
        Err(error) if error.error_len().is_none() => end.len(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the messages of a text.
    fn messages(text: &[u8]) -> Vec<Vec<u8>> {
        let mut line = Vec::new();
        let mut messages: Vec<_> =
            text.iter().filter_map(|byte| append(&mut line, *byte)).collect();
        messages.push(line);
        messages
    }

    #[test]
    fn long_line_is_split_between_two_characters() {
        for start in ["", "a", "ab", "abc"] {
            for character in ["a", "ö", "€", "🦀"] {
                let text = format!("{start}{}", character.repeat(MAX_LINE_BYTES));
                let messages = messages(text.as_bytes());
                let whole = |message: Vec<u8>| String::from_utf8(message).unwrap();
                let messages: Vec<String> = messages.into_iter().map(whole).collect();
                assert!(messages.iter().all(|message| message.len() <= MAX_LINE_BYTES));
                assert_eq!(messages.concat(), text);
            }
        }
    }

    #[test]
    fn long_line_of_invalid_bytes_is_split_at_the_limit() {
        for byte in [0x80, 0xff] {
            let lengths: Vec<usize> =
                messages(&[byte; MAX_LINE_BYTES + 1]).iter().map(Vec::len).collect();
            assert_eq!(lengths, [MAX_LINE_BYTES, 1]);
        }
    }

    #[test]
    fn line_break_ends_a_message() {
        assert_eq!(messages(b"one\n\ntwo"), [&b"one"[..], b"", b"two"]);
    }
}
