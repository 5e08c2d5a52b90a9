//! Conversations: messages, their parts, pictures, tool calls.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::blob::{self, BlobRef};
use crate::failure::Failure;
use crate::json::Extra;

/// Who speaks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The program that gives the model its task.
    System,
    /// A person.
    User,
    /// The model.
    Assistant,
    /// A tool that answers the model.
    Tool,
    /// A role this version has no case for.
    Other(String),
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said, in order.
    pub parts: Vec<Part>,
    /// Named values beside the fixed fields.
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    pub extra: Extra,
}

impl Message {
    /// A message with one part.
    pub fn new(role: Role, part: impl Into<Part>) -> Self {
        Self { role, parts: vec![part.into()], extra: Extra::new() }
    }

    /// A message of a person.
    pub fn user(part: impl Into<Part>) -> Self {
        Self::new(Role::User, part)
    }

    /// A message of the model.
    pub fn assistant(part: impl Into<Part>) -> Self {
        Self::new(Role::Assistant, part)
    }

    /// The answer to a tool call.
    pub fn tool_result(call_id: impl Into<String>, content: impl Into<String>) -> Self {
        Self::new(
            Role::Tool,
            Part::ToolResult(ToolResult {
                call_id: call_id.into(),
                content: content.into(),
                is_error: false,
                extra: Extra::new(),
            }),
        )
    }

    /// All text parts, joined.
    pub fn text(&self) -> String {
        text_of(&self.parts)
    }
}

/// `type` of the [`Part::Other`] that holds what a model's provider sent for itself, such as signatures.
pub const PROVIDER_STATE: &str = "provider_state";

/// One piece of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Text.
    Text(String),
    /// A picture.
    Image(Image),
    /// The model wants a tool called.
    ToolCall(ToolCall),
    /// What the tool answered.
    ToolResult(ToolResult),
    /// The model's reasoning, sent back where a provider demands it.
    Reasoning(String),
    /// A kind this version has no case for. The one of type [`PROVIDER_STATE`] goes back as it is, with the
    /// message in which it came.
    Other(Value),
}

impl From<&str> for Part {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Part {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Image> for Part {
    fn from(image: Image) -> Self {
        Self::Image(image)
    }
}

/// A picture in a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Image {
    /// Where its bytes are.
    pub source: ImageSource,
    /// For example `image/png`.
    pub media_type: String,
    /// Named values beside the fixed fields.
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    pub extra: Extra,
}

impl Image {
    /// A picture in the blob store.
    pub fn blob(blob: BlobRef, media_type: impl Into<String>) -> Self {
        let source = ImageSource::Blob(blob);
        Self { source, media_type: media_type.into(), extra: Extra::new() }
    }

    /// A picture at an address that the model's provider can reach.
    pub fn url(url: impl Into<String>, media_type: impl Into<String>) -> Self {
        let source = ImageSource::Url(url.into());
        Self { source, media_type: media_type.into(), extra: Extra::new() }
    }

    /// A picture from a data URL; its bytes go to the blob store.
    ///
    /// ```
    /// use wattle_plugin::prelude::*;
    /// use wattle_plugin::testing::FakeHost;
    ///
    /// FakeHost::new().run(|| {
    ///     let image = Image::data_url("data:image/png;base64,iVBORw==")?;
    ///     assert_eq!(image.media_type, "image/png");
    ///     Ok::<_, Failure>(())
    /// })?;
    /// # Ok::<_, Failure>(())
    /// ```
    pub fn data_url(url: &str) -> Result<Self, Failure> {
        let data = blob::parse_data_url(url)?;
        let blob = blob::put(&data.bytes, &data.media_type)?;
        Ok(Self::blob(blob, data.media_type))
    }
}

/// Where the bytes of a picture are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImageSource {
    /// In the blob store.
    Blob(BlobRef),
    /// At an address.
    Url(String),
    /// Somewhere this version has no case for.
    Other(String),
}

/// A model's request to call a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The id that the result must carry.
    pub id: String,
    /// Which tool.
    pub name: String,
    /// Its arguments.
    pub arguments: Value,
    /// Named values beside the fixed fields.
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    pub extra: Extra,
}

/// The answer to a tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The id of the call.
    pub call_id: String,
    /// What the model reads.
    pub content: String,
    /// Whether the tool failed.
    #[serde(default)]
    pub is_error: bool,
    /// Named values beside the fixed fields.
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    pub extra: Extra,
}

/// All text parts, joined.
pub(crate) fn text_of(parts: &[Part]) -> String {
    texts_of(parts).collect()
}

/// All text parts.
pub(crate) fn texts_of(parts: &[Part]) -> impl Iterator<Item = &str> {
    parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.as_str()),
        _ => None,
    })
}
