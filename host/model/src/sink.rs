//! The deltas of a model call.

use std::sync::atomic::{AtomicBool, Ordering};

use wattle_graph::llm::Delta;
use wattle_run::ports::model::DeltaSink;

/// Receives the deltas of one call and records whether any was emitted. After the first delta
/// neither a retry nor a fallback may start another completion, unless a `restart` discards the
/// deltas.
pub(crate) struct CallSink<'a> {
    deltas: &'a dyn DeltaSink,
    has_emitted: AtomicBool,
    stream_override: Option<bool>,
}

impl<'a> CallSink<'a> {
    pub(crate) fn new(deltas: &'a dyn DeltaSink) -> Self {
        Self { deltas, has_emitted: AtomicBool::new(false), stream_override: None }
    }

    /// Overrides the provider's configuration: asks the provider for a stream, or for an unstreamed
    /// response.
    pub(crate) fn with_stream_override(mut self, streams: bool) -> Self {
        self.stream_override = Some(streams);
        self
    }

    /// Returns whether the provider is asked for a stream; `None` if the provider's configuration
    /// decides.
    pub(crate) fn stream_override(&self) -> Option<bool> {
        self.stream_override
    }

    /// Returns whether a delta was emitted since the last restart.
    pub(crate) fn has_emitted(&self) -> bool {
        self.has_emitted.load(Ordering::Relaxed)
    }

    /// Discards the emitted deltas with a `restart`, if there are any. The deltas of another
    /// completion may follow.
    pub(crate) fn restart(&self) {
        if self.has_emitted.swap(false, Ordering::Relaxed) {
            self.deltas.push(Delta::Restart);
        }
    }

    /// Emits a delta of the text.
    pub(crate) fn emit_text(&self, piece: &str) {
        if !piece.is_empty() {
            self.push(Delta::Text { text: piece.to_owned() });
        }
    }

    /// Emits a delta of the reasoning.
    pub(crate) fn emit_reasoning(&self, piece: &str) {
        if !piece.is_empty() {
            self.push(Delta::Reasoning { text: piece.to_owned() });
        }
    }

    /// Emits the start of a tool call, with the arguments received so far.
    pub(crate) fn emit_call(&self, index: usize, id: &str, name: &str, arguments: &str) {
        self.push(Delta::ToolCall {
            index: index as u32,
            id: Some(id.to_owned()),
            name: Some(name.to_owned()),
            arguments: arguments.to_owned(),
        });
    }

    /// Emits a delta of the arguments of a tool call.
    pub(crate) fn emit_arguments(&self, index: usize, piece: &str) {
        if !piece.is_empty() {
            let index = index as u32;
            let arguments = piece.to_owned();
            self.push(Delta::ToolCall { index, id: None, name: None, arguments });
        }
    }

    fn push(&self, delta: Delta) {
        self.has_emitted.store(true, Ordering::Relaxed);
        self.deltas.push(delta);
    }
}
