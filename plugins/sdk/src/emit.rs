//! Events of the plugin's own in the event log, and with it in every stream.
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
//! What a model says is streamed by the host. A node that writes a message by itself can show it
//! while it grows: chat clients see a message instead of an event.
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

/// The event that brings a piece of a message.
const MESSAGE_DELTA: &str = "message.delta";

/// The event after the last piece of a message.
const MESSAGE_END: &str = "message.end";

/// Appends an event. Names are 1 to 64 of `[a-zA-Z0-9_.-]`; `message.delta` and `message.end` have
/// a meaning of their own, see [`message_delta`] and [`message_end`].
pub fn custom(name: &str, data: impl Into<Value>) -> Result<(), Failure> {
    host::emit::custom(name, data.into())
}

/// Shows a piece of text that goes on from the pieces before it, of the message that the node will
/// write under this id. One message at a time: end it before another begins.
pub fn message_delta(id: &str, text: &str) -> Result<(), Failure> {
    host::emit::custom(MESSAGE_DELTA, json!({ "id": id, "text": text }))
}

/// Says that the message under this id has all its pieces.
pub fn message_end(id: &str) -> Result<(), Failure> {
    host::emit::custom(MESSAGE_END, json!({ "id": id }))
}

/// Says how far the node is: a sentence, and a share from 0 to 1 if known. Also tells the host
/// that the node is alive.
pub fn progress(message: &str, fraction: Option<f64>) -> Result<(), Failure> {
    host::emit::progress(message, fraction)
}
