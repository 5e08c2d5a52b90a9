//! An answer that arrives in pieces, for a plugin that looks at tokens. End users see tokens
//! without this: the host streams every call into the event log.
//!
//! A stream is one journaled call like [`llm::Request::complete`](crate::llm::Request::complete):
//! a re-executed node gets the same answer again, though perhaps cut into other pieces. So only
//! the whole answer may decide what a node does. Dropping the stream before its end cancels the
//! model call.

use serde_json::Value;

use crate::failure::Failure;
use crate::host;
use crate::llm::{Completion, Request};

/// A piece of a streamed answer.
#[derive(Debug, Clone, PartialEq)]
pub enum StreamEvent {
    /// More text.
    Text(String),
    /// More reasoning.
    Reasoning(String),
    /// More of a tool call.
    ToolCallDelta {
        /// Which call of the answer, from 0.
        index: u32,
        /// The tool, in the first piece.
        name: Option<String>,
        /// A piece of the arguments.
        arguments: String,
    },
    /// Everything before is void: the model answers again, since its first answer did not have
    /// the shape that was asked for.
    Restart,
    /// A kind this version has no case for.
    Other(Value),
}

/// An answer that arrives in pieces. As an iterator it yields them one by one, and ends with the
/// answer or after a failure.
#[derive(Debug)]
pub struct CompletionStream {
    handle: host::llm::Stream,
    ready: std::vec::IntoIter<StreamEvent>,
    over: bool,
}

/// Calls a model and hands out its answer in pieces.
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

impl CompletionStream {
    /// The whole answer. Pieces that were not read yet are skipped.
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
