//! Model calls: messages, requests, completions and their deltas.
//!
//! The event log stores these types as JSON: in requests and results of journal entries, and in
//! [`Streamed`](crate::event::Streamed) events. Logs are read for years, so the format only grows:
//! a new field has a `serde(default)`, and no field is renamed. The names follow
//! `wit/wattle/llm.wit`, which guests see.

mod completion;
mod delta;
mod history;
mod image;
mod message;
mod picture;
mod request;

#[cfg(test)]
mod tests;

pub use self::completion::{Attempt, Completion, FinishReason, Usage};
pub use self::delta::Delta;
pub use self::history::{History, HistoryReference, HistoryStart, MessageId};
pub use self::image::{GeneratedImage, ImageRequest};
pub use self::message::{
    Image, ImageSource, Message, PROVIDER_STATE, Part, Role, ToolCall, ToolResult,
};
pub use self::picture::picture_type;
pub use self::request::{CompletionRequest, ResponseSchema, ToolChoice, ToolDefinition, Tries};
