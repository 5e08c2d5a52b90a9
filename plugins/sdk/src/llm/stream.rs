//! Streamed completions, for plugins that process deltas themselves. They are not needed to show
//! deltas to users: the host streams every model call into the event log.
//!
//! A stream is one journaled call, like [`llm::Request::complete`](crate::llm::Request::complete).
//! A node that is executed again gets the same completion, but the deltas can be split differently.
//! Decisions of a node must therefore depend only on the whole completion. Dropping the stream
//! before its end cancels the model call.

use serde_json::Value;

use crate::failure::Failure;
use crate::host;
use crate::llm::{Completion, Request};

/// A delta of a streamed completion.
#[derive(Debug, Clone, PartialEq)]
pub enum StreamEvent {
    /// Text that continues the text before.
    Text(String),
    /// Reasoning that continues the reasoning before.
    Reasoning(String),
    /// A part of a tool call.
    ToolCallDelta {
        /// Position among the tool calls of the completion, from 0.
        index: u32,
        /// Name of the tool, in the first delta of the call.
        name: Option<String>,
        /// The next part of the arguments as JSON text.
        arguments: String,
    },
    /// Discards the deltas so far. The model writes the completion again, because the first one
    /// violated the schema.
    Restart,
    /// A kind unknown to this SDK version.
    Other(Value),
}

/// A streamed completion. The iterator yields its deltas. It ends when the completion is complete
/// or the call has failed.
#[derive(Debug)]
pub struct CompletionStream {
    handle: host::llm::Stream,
    ready: std::vec::IntoIter<StreamEvent>,
    over: bool,
}

/// Calls a model and streams its completion.
///
/// ```
/// use wattle_plugin::llm::{self, Completion, Request, StreamEvent};
/// use wattle_plugin::{Failure, testing::FakeHost};
///
/// let host = FakeHost::new().llm(|_| Ok(Completion::of_text("two words")));
/// host.run(|| {
///     let mut stream = llm::stream(Request::route("chat").user("go"))?;
///     let mut text = String::new();
///     for event in &mut stream {
///         match event? {
///             StreamEvent::Text(piece) => text.push_str(&piece),
///             StreamEvent::Restart => text.clear(),
///             _ => {}
///         }
///     }
///     assert_eq!(text, "two words");
///     assert_eq!(stream.finish()?.text(), "two words");
///     Ok::<_, Failure>(())
/// })?;
/// # Ok::<_, Failure>(())
/// ```
pub fn stream(request: Request) -> Result<CompletionStream, Failure> {
    let handle = host::llm::stream(request)?;
    Ok(CompletionStream { handle, ready: Vec::new().into_iter(), over: false })
}

impl Request {
    /// Calls the model and streams its completion, see [`stream()`].
    pub fn stream(self) -> Result<CompletionStream, Failure> {
        stream(self)
    }
}

impl CompletionStream {
    /// Waits for the whole completion. Skips deltas that were not read.
    pub fn finish(mut self) -> Result<Completion, Failure> {
        for event in &mut self {
            event?;
        }
        self.handle.finish()
    }
}

impl Iterator for CompletionStream {
    type Item = Result<StreamEvent, Failure>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(event) = self.ready.next() {
            return Some(Ok(event));
        }
        if self.over {
            return None;
        }
        match self.handle.next() {
            Ok(events) => {
                self.over = events.is_empty();
                self.ready = events.into_iter();
                self.ready.next().map(Ok)
            }
            Err(failure) => {
                self.over = true;
                Some(Err(failure))
            }
        }
    }
}
