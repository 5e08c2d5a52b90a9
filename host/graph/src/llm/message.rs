//! Messages: who speaks, and what is said in which parts.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::BlobRef;

/// Who speaks.
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
    /// One this version does not know.
    Other(String),
}

/// Where the bytes of a picture are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImageSource {
    /// In the blob store.
    Blob(BlobRef),
    /// At an address the provider fetches, or a data URL.
    Url(String),
}

/// A picture in a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// Where.
    pub source: ImageSource,
    /// Such as `image/png`.
    pub media_type: String,
}

/// A model's request to call a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The id that the result must carry.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Its arguments.
    pub arguments: Value,
}

/// The answer to a tool call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The call.
    pub call_id: String,
    /// What the model reads.
    pub content: String,
    /// Whether the tool failed.
    pub is_error: bool,
}

/// `type` of the [`Part::Other`] that holds what a model's provider sent for itself, such as signatures.
/// Messages of `std` and of the Agent Server keep the part in a field of this name.
pub const PROVIDER_STATE: &str = "provider_state";

/// One piece of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Text.
    Text(String),
    /// A picture.
    Image(Image),
    /// A request for a tool.
    ToolCall(ToolCall),
    /// A tool's answer.
    ToolResult(ToolResult),
    /// Reasoning text.
    Reasoning(String),
    /// Something this version does not know, and state of a provider: see [`PROVIDER_STATE`].
    Other(Value),
}

/// One message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub parts: Vec<Part>,
}
