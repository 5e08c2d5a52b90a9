//! Custom events and progress, which appear in the event log and in all streams.
//!
//! ```
//! use serde_json::json;
//! use wattle_plugin::{Failure, emit, testing::FakeHost};
//!
//! let host = FakeHost::new();
//! host.run(|| {
//!     emit::progress("reading page 3 of 4", Some(0.75))?;
//!     emit::custom("page-read", json!({"page": 3}))
//! })?;
//! assert_eq!(host.emitted()[0], ("page-read".to_owned(), json!({"page": 3})));
//! # Ok::<_, Failure>(())
//! ```
//!
//! # Messages
//!
//! The host streams the completions of models. A node that writes a message itself can stream it in
//! the same way: chat clients then show a growing message instead of an event.
//!
//! ```
//! use serde_json::json;
//! use wattle_plugin::{Failure, emit, testing::FakeHost};
//!
//! let host = FakeHost::new();
//! host.run(|| {
//!     emit::message_delta("greeting", "Hello,")?;
//!     emit::message_delta("greeting", " world!")?;
//!     emit::message_end("greeting")
//! })?;
//! let first = ("message.delta".to_owned(), json!({"id": "greeting", "text": "Hello,"}));
//! assert_eq!(host.emitted()[0], first);
//! assert_eq!(host.emitted()[2].0, "message.end");
//! // The node then writes the whole message, with the id `greeting`, to its channel.
//! # Ok::<_, Failure>(())
//! ```

use serde_json::{Value, json};

use crate::failure::Failure;
use crate::host;

/// Name of the event that contains a delta of a message.
const MESSAGE_DELTA: &str = "message.delta";

/// Name of the event that ends a streamed message.
const MESSAGE_END: &str = "message.end";

/// Appends an event to the log. The name has 1 to 64 characters of `[a-zA-Z0-9_.-]`. The names
/// `message.delta` and `message.end` are reserved, see [`message_delta`] and [`message_end`].
pub fn custom(name: &str, data: impl Into<Value>) -> Result<(), Failure> {
    host::emit::custom(name, data.into())
}

/// Streams a delta of the message that the node will write with this id. The text continues the
/// earlier deltas of the message. A message must end before another one begins.
pub fn message_delta(id: &str, text: &str) -> Result<(), Failure> {
    host::emit::custom(MESSAGE_DELTA, json!({ "id": id, "text": text }))
}

/// Ends the streamed message with this id.
pub fn message_end(id: &str) -> Result<(), Failure> {
    host::emit::custom(MESSAGE_END, json!({ "id": id }))
}

/// Reports the progress of the node: a message, and the completed fraction from 0 to 1 if it is
/// known. The event is also a task heartbeat, which restarts the idle timeout of the attempt.
pub fn progress(message: &str, fraction: Option<f64>) -> Result<(), Failure> {
    host::emit::progress(message, fraction)
}
