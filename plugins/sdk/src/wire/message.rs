//! Messages and their parts.

use crate::bindings::imports::wattle::plugin::types as raw;
use crate::blob::BlobRef;
use crate::message::{Image, ImageSource, Message, Part, Role, ToolCall, ToolResult};
use crate::wire::convert::{extra, raw_extra, value};

impl From<Message> for raw::Message {
    fn from(message: Message) -> Self {
        Self {
            role: message.role.into(),
            parts: message.parts.into_iter().map(Into::into).collect(),
            extra: raw_extra(message.extra),
        }
    }
}

impl From<Role> for raw::Role {
    fn from(role: Role) -> Self {
        match role {
            Role::System => Self::System,
            Role::User => Self::User,
            Role::Assistant => Self::Assistant,
            Role::Tool => Self::Tool,
            Role::Other(name) => Self::Other(name),
        }
    }
}

impl From<Part> for raw::Part {
    fn from(part: Part) -> Self {
        match part {
            Part::Text(text) => Self::Text(text),
            Part::Image(image) => Self::Image(image.into()),
            Part::ToolCall(call) => Self::ToolCall(raw::ToolCall {
                id: call.id,
                name: call.name,
                arguments: call.arguments.to_string(),
                extra: raw_extra(call.extra),
            }),
            Part::ToolResult(result) => Self::ToolResult(raw::ToolResult {
                call_id: result.call_id,
                content: result.content,
                is_error: result.is_error,
                extra: raw_extra(result.extra),
            }),
            Part::Reasoning(text) => Self::Reasoning(text),
            Part::Other(value) => Self::Other(value.to_string()),
        }
    }
}

impl From<raw::Part> for Part {
    fn from(part: raw::Part) -> Self {
        match part {
            raw::Part::Text(text) => Self::Text(text),
            raw::Part::Image(image) => Self::Image(image.into()),
            raw::Part::ToolCall(call) => Self::ToolCall(ToolCall {
                id: call.id,
                name: call.name,
                arguments: value(&call.arguments),
                extra: extra(call.extra),
            }),
            raw::Part::ToolResult(result) => Self::ToolResult(ToolResult {
                call_id: result.call_id,
                content: result.content,
                is_error: result.is_error,
                extra: extra(result.extra),
            }),
            raw::Part::Reasoning(text) => Self::Reasoning(text),
            raw::Part::Other(text) => Self::Other(value(&text)),
        }
    }
}

impl From<Image> for raw::Image {
    fn from(image: Image) -> Self {
        let source = match image.source {
            ImageSource::Blob(blob) => raw::ImageSource::Blob(blob.0),
            ImageSource::Url(url) => raw::ImageSource::Url(url),
            ImageSource::Other(text) => raw::ImageSource::Other(text),
        };
        Self { source, media_type: image.media_type, extra: raw_extra(image.extra) }
    }
}

impl From<raw::Image> for Image {
    fn from(image: raw::Image) -> Self {
        let source = match image.source {
            raw::ImageSource::Blob(blob) => ImageSource::Blob(BlobRef(blob)),
            raw::ImageSource::Url(url) => ImageSource::Url(url),
            raw::ImageSource::Other(text) => ImageSource::Other(text),
        };
        Self { source, media_type: image.media_type, extra: extra(image.extra) }
    }
}
