//! Messages of the AI SDK, for an app whose page sends the whole conversation, as `useChat` does by
//! default.
//!
//! [`read()`] checks the messages, [`Part`] parses a part, and [`to_stored`] converts a message to
//! those of the state.

mod client;
mod message;
mod part;
mod read;

pub use self::client::{CallIds, Part, ToolPart, to_stored};
pub use self::message::{Role, UiMessage};
pub(super) use self::part::{CallState, UiPart};
pub use self::read::{Limits, read};
