//! Messages: a role, and content in parts.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::BlobRef;

/// The author of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Instructions.
    System,
    /// The user.
    User,
    /// The model.
    Assistant,
    /// A tool.
    Tool,
    /// A role that this version does not know.
    Other(String),
}

/// Location of the bytes of an image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImageSource {
    /// In the blob store.
    Blob(BlobRef),
    /// At a URL that the provider fetches, or in a data URL.
    Url(String),
}

/// An image in a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// Location of the bytes.
    pub source: ImageSource,
    /// Media type, such as `image/png`.
    pub media_type: String,
}

/// A tool call that a model requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Id of the call, which the result repeats.
    pub id: String,
    /// Name of the tool.
    pub name: String,
    /// Arguments of the call.
    pub arguments: Value,
}

/// The result of a tool call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    /// Id of the call.
    pub call_id: String,
    /// Text that the model reads.
    pub content: String,
    /// Whether the tool failed.
    pub is_error: bool,
}

/// The `type` of a [`Part::Other`] with data that a provider expects in later requests, such as
/// signatures. Messages of the `std` plugin and of the Agent Server store the part in a field of
/// this name.
pub const PROVIDER_STATE: &str = "provider_state";

/// One part of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Text.
    Text(String),
    /// An image.
    Image(Image),
    /// A tool call.
    ToolCall(ToolCall),
    /// The result of a tool call.
    ToolResult(ToolResult),
    /// Reasoning text.
    Reasoning(String),
    /// A part that this version does not know, or state of a provider; see [`PROVIDER_STATE`].
    Other(Value),
}

/// One message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Author of the message.
    pub role: Role,
    /// Content of the message.
    pub parts: Vec<Part>,
}
