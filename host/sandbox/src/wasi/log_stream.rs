//! stdout and stderr of WASI guests. Each line becomes a log message.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tokio::io::AsyncWrite;
use wasmtime_wasi::async_trait;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamResult};
use wattle_run::gate::Gate;
use wattle_run::hostcall::log::LogMessage;

/// Maximum length of a message, in bytes. A longer line is split.
const MAX_LINE_BYTES: usize = 8 << 10;

/// Maximum number of bytes that a guest may write at once, as WASI hosts usually grant.
const MAX_WRITE_BYTES: usize = 64 << 10;

/// An output stream of a guest.
pub(crate) struct LogStream {
    output: LogOutput,
}

/// The current line, which all handles of the guest share.
#[derive(Clone)]
struct LogOutput(Arc<LineBuffer>);

struct LineBuffer {
    gate: Arc<Gate>,
    level: &'static str,
    line: Mutex<Vec<u8>>,
}

impl LogStream {
    /// Creates a stream whose lines become messages of a level.
    pub(crate) fn new(gate: Arc<Gate>, level: &'static str) -> Self {
        Self { output: LogOutput(Arc::new(LineBuffer { gate, level, line: Mutex::default() })) }
    }
}

impl IsTerminal for LogStream {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for LogStream {
    /// Returns a sink. Only WASI 0.3 uses it, which this host does not link.
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(tokio::io::sink())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.output.clone())
    }
}

#[async_trait]
impl Pollable for LogOutput {
    async fn ready(&mut self) {}
}

impl OutputStream for LogOutput {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        let mut line = self.0.line.lock().unwrap_or_else(PoisonError::into_inner);
        for byte in bytes {
            if byte != b'\n' {
                line.push(byte);
            }
            if byte == b'\n' || line.len() >= MAX_LINE_BYTES {
                self.0.log(&std::mem::take(&mut *line));
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(MAX_WRITE_BYTES)
    }
}

impl LineBuffer {
    fn log(&self, line: &[u8]) {
        self.gate.push_log(LogMessage::new(self.level, String::from_utf8_lossy(line)));
    }
}

impl Drop for LineBuffer {
    /// Logs a last line without a line break.
    fn drop(&mut self) {
        let line = std::mem::take(self.line.get_mut().unwrap_or_else(PoisonError::into_inner));
        if !line.is_empty() {
            self.log(&line);
        }
    }
}
