//! Messages of conversations: roles, parts, images and tool calls.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::blob::{self, BlobRef};
use crate::failure::Failure;
use crate::json::Extra;

/// The author of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Instructions to the model.
    System,
    /// A person.
    User,
    /// The model.
    Assistant,
    /// A tool that returns a result to the model.
    Tool,
    /// A role unknown to this SDK version.
    Other(String),
}

/// A message of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Author of the message.
    pub role: Role,
    /// Content in order.
    pub parts: Vec<Part>,
    /// Extension fields.
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    pub extra: Extra,
}

impl Message {
    /// Creates a message with one part.
    pub fn new(role: Role, part: impl Into<Part>) -> Self {
        Self { role, parts: vec![part.into()], extra: Extra::new() }
    }

    /// Creates a message of a person.
    pub fn user(part: impl Into<Part>) -> Self {
        Self::new(Role::User, part)
    }

    /// Creates a message of the model.
    pub fn assistant(part: impl Into<Part>) -> Self {
        Self::new(Role::Assistant, part)
    }

    /// Creates a message with the result of a tool call.
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

    /// Returns all text parts, joined.
    pub fn text(&self) -> String {
        text_of(&self.parts)
    }
}

/// Value of `type` in a [`Part::Other`] with opaque data of the provider, such as signatures.
pub const PROVIDER_STATE: &str = "provider_state";

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Text.
    Text(String),
    /// An image.
    Image(Image),
    /// A tool call that the model requests.
    ToolCall(ToolCall),
    /// The result of a tool call.
    ToolResult(ToolResult),
    /// Reasoning of the model. The host sends it back to providers that require it.
    Reasoning(String),
    /// A kind unknown to this SDK version. A part of type [`PROVIDER_STATE`] is sent back to the
    /// provider unchanged, together with the message that contained it.
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

/// An image in a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Image {
    /// Location of the data.
    pub source: ImageSource,
    /// Media type, such as `image/png`.
    pub media_type: String,
    /// Extension fields.
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    pub extra: Extra,
}

impl Image {
    /// Creates an image from a blob.
    pub fn blob(blob: BlobRef, media_type: impl Into<String>) -> Self {
        let source = ImageSource::Blob(blob);
        Self { source, media_type: media_type.into(), extra: Extra::new() }
    }

    /// Creates an image from a URL that the provider of the model can reach.
    pub fn url(url: impl Into<String>, media_type: impl Into<String>) -> Self {
        let source = ImageSource::Url(url.into());
        Self { source, media_type: media_type.into(), extra: Extra::new() }
    }

    /// Creates an image from a data URL. Stores its data as a blob.
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

/// Location of the data of an image.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImageSource {
    /// A blob that contains the data.
    Blob(BlobRef),
    /// A URL at which the provider of the model can fetch the data.
    Url(String),
    /// A location unknown to this SDK version.
    Other(String),
}

/// A tool call that a model requests.
// The schema of each app with conversations has the line above as its description, and those of the
// fields.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCall {
    /// Id of the call, which its result must contain.
    pub id: String,
    /// Name of the tool.
    pub name: String,
    /// Arguments as JSON.
    #[serde(default)]
    pub arguments: Value,
    /// Extension fields.
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    #[schemars(skip)]
    pub extra: Extra,
}

/// The result of a tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// Id of the call to which the result belongs.
    pub call_id: String,
    /// Content for the model.
    pub content: String,
    /// True if the tool failed.
    #[serde(default)]
    pub is_error: bool,
    /// Extension fields.
    #[serde(default, skip_serializing_if = "Extra::is_empty")]
    pub extra: Extra,
}

/// Returns all text parts, joined.
pub(crate) fn text_of(parts: &[Part]) -> String {
    texts_of(parts).collect()
}

/// Returns all text parts.
pub(crate) fn texts_of(parts: &[Part]) -> impl Iterator<Item = &str> {
    parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.as_str()),
        _ => None,
    })
}
