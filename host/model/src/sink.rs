//! The deltas of a model call.

use std::sync::atomic::{AtomicBool, Ordering};

use wattle_graph::llm::Delta;
use wattle_run::ports::model::Deltas;

/// Receives the deltas of one call and records whether any was emitted. After the first delta
/// neither a retry nor a fallback may start another completion, unless a `restart` discards the
/// deltas.
pub(crate) struct Sink<'a> {
    deltas: &'a dyn Deltas,
    begun: AtomicBool,
    streams: Option<bool>,
}

impl<'a> Sink<'a> {
    pub(crate) fn new(deltas: &'a dyn Deltas) -> Self {
        Self { deltas, begun: AtomicBool::new(false), streams: None }
    }

    /// Overrides the provider's configuration: asks the provider for a stream, or for an unstreamed
    /// response.
    pub(crate) fn with_streams(mut self, streams: bool) -> Self {
        self.streams = Some(streams);
        self
    }

    /// Returns whether the provider is asked for a stream; `None` if the provider's configuration
    /// decides.
    pub(crate) fn streams(&self) -> Option<bool> {
        self.streams
    }

    /// Returns whether a delta was emitted since the last restart.
    pub(crate) fn begun(&self) -> bool {
        self.begun.load(Ordering::Relaxed)
    }

    /// Discards the emitted deltas with a `restart`, if there are any. Another completion follows.
    pub(crate) fn restart(&self) {
        if self.begun.swap(false, Ordering::Relaxed) {
            self.deltas.push(Delta::Restart);
        }
    }

    /// Emits a delta of the text.
    pub(crate) fn text(&self, piece: &str) {
        if !piece.is_empty() {
            self.push(Delta::Text { text: piece.to_owned() });
        }
    }

    /// Emits a delta of the reasoning.
    pub(crate) fn reasoning(&self, piece: &str) {
        if !piece.is_empty() {
            self.push(Delta::Reasoning { text: piece.to_owned() });
        }
    }

    /// Emits the start of a tool call, with the arguments received so far.
    pub(crate) fn call(&self, index: usize, id: &str, name: &str, arguments: &str) {
        self.push(Delta::ToolCall {
            index: index as u32,
            id: Some(id.to_owned()),
            name: Some(name.to_owned()),
            arguments: arguments.to_owned(),
        });
    }

    /// Emits a delta of the arguments of a tool call.
    pub(crate) fn arguments(&self, index: usize, piece: &str) {
        if !piece.is_empty() {
            let index = index as u32;
            let arguments = piece.to_owned();
            self.push(Delta::ToolCall { index, id: None, name: None, arguments });
        }
    }

    fn push(&self, delta: Delta) {
        self.begun.store(true, Ordering::Relaxed);
        self.deltas.push(delta);
    }
}
