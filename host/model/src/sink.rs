//! Pieces of an answer on their way to the caller.

use std::sync::atomic::{AtomicBool, Ordering};

use wattle_graph::llm::Delta;
use wattle_run::ports::model::Deltas;

/// Where the pieces of one call go. It remembers whether anything was handed on: from then on the
/// call belongs to the model that is answering, and neither a retry nor a fallback may begin anew.
pub(crate) struct Sink<'a> {
    deltas: &'a dyn Deltas,
    begun: AtomicBool,
    streams: Option<bool>,
}

impl<'a> Sink<'a> {
    pub(crate) fn new(deltas: &'a dyn Deltas) -> Self {
        Self { deltas, begun: AtomicBool::new(false), streams: None }
    }

    /// The same for an answer that comes in pieces, or as a whole.
    pub(crate) fn with_streams(mut self, streams: bool) -> Self {
        self.streams = Some(streams);
        self
    }

    /// Whether the answer comes in pieces; `None` if the configuration of the provider says so.
    pub(crate) fn streams(&self) -> Option<bool> {
        self.streams
    }

    /// Whether a part of the present answer was handed on.
    pub(crate) fn begun(&self) -> bool {
        self.begun.load(Ordering::Relaxed)
    }

    /// Takes back what was handed on: another answer follows.
    pub(crate) fn restart(&self) {
        if self.begun.swap(false, Ordering::Relaxed) {
            self.deltas.push(Delta::Restart);
        }
    }

    /// A piece of text.
    pub(crate) fn text(&self, piece: &str) {
        if !piece.is_empty() {
            self.push(Delta::Text { text: piece.to_owned() });
        }
    }

    /// A piece of reasoning.
    pub(crate) fn reasoning(&self, piece: &str) {
        if !piece.is_empty() {
            self.push(Delta::Reasoning { text: piece.to_owned() });
        }
    }

    /// The beginning of a request for a tool, with what there is of its arguments.
    pub(crate) fn call(&self, index: usize, id: &str, name: &str, arguments: &str) {
        self.push(Delta::ToolCall {
            index: index as u32,
            id: Some(id.to_owned()),
            name: Some(name.to_owned()),
            arguments: arguments.to_owned(),
        });
    }

    /// More of its arguments.
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
