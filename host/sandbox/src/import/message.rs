//! Conversion of messages and parts, which model calls and tool calls share.

use wattle_graph::failure::Failure;
use wattle_graph::llm::{Image, ImageSource, Message, Part, Role, ToolCall, ToolResult};
use wattle_run::limit;

use crate::bindings::wattle::plugin::types;
use crate::import::types::{parse_blob_ref, unsupported_case};
use crate::json::{CallJson, to_text};

/// Converts a message of a guest.
pub(crate) fn into_message(
    message: types::Message,
    json: CallJson<'_>,
) -> Result<Message, Failure> {
    let role = match message.role {
        types::Role::System => Role::System,
        types::Role::User => Role::User,
        types::Role::Assistant => Role::Assistant,
        types::Role::Tool => Role::Tool,
        types::Role::Other(name) => Role::Other(name),
    };
    let parts = message.parts.into_iter().map(|part| into_part(part, json));
    Ok(Message { role, parts: parts.collect::<Result<_, _>>()? })
}

/// Converts a part of a guest.
pub(crate) fn into_part(part: types::Part, json: CallJson<'_>) -> Result<Part, Failure> {
    let parse = |text: &str, field| json.parse(text, field, limit::CALL_JSON_BYTES);
    Ok(match part {
        types::Part::Text(text) => Part::Text(text),
        types::Part::Image(image) => Part::Image(into_image(image, json.function())?),
        types::Part::ToolCall(call) => Part::ToolCall(ToolCall {
            arguments: parse(&call.arguments, "tool-call.arguments")?,
            id: call.id,
            name: call.name,
        }),
        types::Part::ToolResult(result) => Part::ToolResult(ToolResult {
            call_id: result.call_id,
            content: result.content,
            is_error: result.is_error,
        }),
        types::Part::Reasoning(text) => Part::Reasoning(text),
        types::Part::Other(text) => Part::Other(parse(&text, "part.other")?),
    })
}

fn into_image(image: types::Image, function: &str) -> Result<Image, Failure> {
    let source = match image.source {
        types::ImageSource::Blob(text) => ImageSource::Blob(parse_blob_ref(&text, function)?),
        types::ImageSource::Url(url) => ImageSource::Url(url),
        types::ImageSource::Other(case) => {
            return Err(unsupported_case(function, "image-source", &case));
        }
    };
    Ok(Image { source, media_type: image.media_type })
}

/// Converts a part for a guest.
pub(crate) fn from_part(part: Part) -> types::Part {
    match part {
        Part::Text(text) => types::Part::Text(text),
        Part::Image(image) => types::Part::Image(types::Image {
            source: match image.source {
                ImageSource::Blob(blob) => types::ImageSource::Blob(blob.to_string()),
                ImageSource::Url(url) => types::ImageSource::Url(url),
            },
            media_type: image.media_type,
            extra: Vec::new(),
        }),
        Part::ToolCall(call) => types::Part::ToolCall(types::ToolCall {
            id: call.id,
            name: call.name,
            arguments: to_text(&call.arguments),
            extra: Vec::new(),
        }),
        Part::ToolResult(result) => types::Part::ToolResult(types::ToolResult {
            call_id: result.call_id,
            content: result.content,
            is_error: result.is_error,
            extra: Vec::new(),
        }),
        Part::Reasoning(text) => types::Part::Reasoning(text),
        Part::Other(value) => types::Part::Other(to_text(&value)),
    }
}

/// Returns the length of the JSON text of a part, in bytes.
pub(crate) fn part_json_bytes(part: &types::Part) -> usize {
    match part {
        types::Part::ToolCall(call) => call.arguments.len(),
        types::Part::Other(text) => text.len(),
        types::Part::Text(_)
        | types::Part::Image(_)
        | types::Part::ToolResult(_)
        | types::Part::Reasoning(_) => 0,
    }
}

/// Returns the size of a part as the guest wrote it, in bytes.
pub(crate) fn part_bytes(part: &types::Part) -> usize {
    match part {
        types::Part::Text(text) | types::Part::Reasoning(text) | types::Part::Other(text) => {
            text.len()
        }
        types::Part::Image(image) => {
            let (types::ImageSource::Blob(text)
            | types::ImageSource::Url(text)
            | types::ImageSource::Other(text)) = &image.source;
            text.len() + image.media_type.len()
        }
        types::Part::ToolCall(call) => call.id.len() + call.name.len() + call.arguments.len(),
        types::Part::ToolResult(result) => result.call_id.len() + result.content.len(),
    }
}
