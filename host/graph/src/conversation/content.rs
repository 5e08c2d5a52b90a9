//! Content of messages in the format of the state: a string, or an array of parts.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::conversation::block::{self, StoredImage};
use crate::llm::Part;

/// A part of a content, in the format in which plugins write it. A field that models do not get has
/// a name with an underscore. It is declared because a part with an invalid field is not a part,
/// but a block from another source.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StoredPart<'v> {
    Text(String),
    Image(StoredImage),
    ToolCall(StoredToolCall),
    ToolResult(StoredToolResult),
    Reasoning(String),
    /// A block from another source.
    #[serde(skip)]
    Other(&'v Value),
}

#[derive(Debug, PartialEq, Deserialize)]
struct StoredToolCall {
    #[serde(rename = "id")]
    _id: String,
    name: String,
    #[serde(default)]
    arguments: Value,
    #[serde(rename = "extra", default)]
    _extra: Map<String, Value>,
}

#[derive(Debug, PartialEq, Deserialize)]
struct StoredToolResult {
    #[serde(rename = "call_id")]
    _call_id: String,
    content: String,
    #[serde(rename = "is_error", default)]
    _is_error: bool,
    #[serde(rename = "extra", default)]
    _extra: Map<String, Value>,
}

/// Converts the content of a message to parts for a model. `role` is the role of the message.
/// `is_call` returns true for the ids of the tool calls of the message.
///
/// A block that is not a text or an image is replaced with a description, so that a conversation
/// can always continue. Empty texts are omitted, because providers reject them.
pub(super) fn to_parts(content: &Value, role: &str, is_call: &dyn Fn(&str) -> bool) -> Vec<Part> {
    let parts = read(content).into_iter().filter_map(|part| to_part(part, role, is_call));
    parts.filter(|part| !matches!(part, Part::Text(text) if text.is_empty())).collect()
}

/// Converts a part for a model. Only messages of users and tools can contain images, and only
/// messages of the model can contain opaque state and reasoning.
fn to_part(part: StoredPart<'_>, role: &str, is_call: &dyn Fn(&str) -> bool) -> Option<Part> {
    let is_own = role == "assistant";
    let sees = matches!(role, "user" | "tool");
    match part {
        StoredPart::Reasoning(text) if is_own => Some(Part::Reasoning(text)),
        StoredPart::Text(text) | StoredPart::Reasoning(text) => Some(Part::Text(text)),
        StoredPart::Image(image) => Some(block::picture(&image, sees)),
        StoredPart::ToolResult(result) => Some(Part::Text(result.content)),
        StoredPart::ToolCall(call) => {
            let call = json!({ "type": "tool_call", "name": call.name, "args": call.arguments });
            Some(block::shown(&call, sees))
        }
        StoredPart::Other(block) if block::is_opaque(block) => {
            is_own.then(|| Part::Other(block.clone()))
        }
        StoredPart::Other(block)
            if is_own && (block::is_thought(block) || is_called(block, is_call)) =>
        {
            None
        }
        StoredPart::Other(block) => Some(block::shown(block, sees)),
    }
}

/// Returns true if a block is one of the message's tool calls in the format of a provider.
fn is_called(block: &Value, is_call: &dyn Fn(&str) -> bool) -> bool {
    let id = ["call_id", "id"].iter().find_map(|name| block.get(name)?.as_str());
    id.is_some_and(is_call)
}

/// Reads the parts of a content.
fn read(content: &Value) -> Vec<StoredPart<'_>> {
    match content {
        Value::Null => Vec::new(),
        Value::String(text) => vec![StoredPart::Text(text.clone())],
        Value::Array(parts) => parts.iter().map(read_part).collect(),
        block => vec![StoredPart::Other(block)],
    }
}

/// Reads a part. An invalid part is a block from another source.
fn read_part(part: &Value) -> StoredPart<'_> {
    match part {
        Value::String(text) => StoredPart::Text(text.clone()),
        part => match wrapped(part) {
            Some(block) => StoredPart::Other(block),
            None => StoredPart::deserialize(part).unwrap_or(StoredPart::Other(part)),
        },
    }
}

/// Returns the block of a part `{"other": block}`.
fn wrapped(part: &Value) -> Option<&Value> {
    let fields = part.as_object().filter(|fields| fields.len() == 1)?;
    fields.get("other")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{StoredPart, read, read_part};
    use crate::conversation::block::StoredSource;

    fn text(text: &str) -> StoredPart<'static> {
        StoredPart::Text(text.to_owned())
    }

    #[test]
    fn texts_and_parts_are_read() {
        let picture =
            json!({ "image": { "source": { "url": "https://a/b" }, "media_type": "image/*" } });
        assert_eq!(read(&json!("a")), [text("a")]);
        let content = json!([{ "text": "a" }, picture]);
        let parts = read(&content);
        let [StoredPart::Text(_), StoredPart::Image(image)] = &parts[..] else {
            panic!("{parts:?}");
        };
        assert_eq!(image.source, StoredSource::Url("https://a/b".to_owned()));
        assert_eq!(image.media_type, "image/*");
        assert_eq!(
            read(&json!(["a", { "reasoning": "b" }])),
            [text("a"), StoredPart::Reasoning("b".to_owned())]
        );
        let block = json!({ "type": "audio" });
        assert_eq!(read(&json!([{ "other": block }])), [StoredPart::Other(&block)]);
        assert_eq!(read(&json!([{ "other": null }])), [StoredPart::Other(&Value::Null)]);
        assert!(read(&json!(null)).is_empty());
    }

    #[test]
    fn parts_have_the_defaults_of_their_fields() {
        let call = json!({ "tool_call": { "id": "c", "name": "add" } });
        let StoredPart::ToolCall(call) = read_part(&call) else { panic!("{call}") };
        assert_eq!((call.name.as_str(), &call.arguments), ("add", &Value::Null));
        let result = json!({ "tool_result": { "call_id": "c", "content": "1", "new": 7 } });
        let StoredPart::ToolResult(result) = read_part(&result) else { panic!("{result}") };
        assert_eq!(result.content, "1");
    }

    #[test]
    fn invalid_parts_are_kept() {
        let image = |extra: Value| {
            let source = json!({ "url": "a" });
            json!([{ "image": { "source": source, "media_type": "b", "extra": extra } }])
        };
        assert!(matches!(read(&image(json!({ "c": 1 })))[..], [StoredPart::Image(_)]));
        for content in [
            json!([{ "text": "a" }, { "video": 1 }]),
            json!([{ "type": "image", "data": "x" }]),
            json!([{ "image": { "source": 7 } }]),
            json!([{ "tool_call": { "name": "add" } }]),
            json!([{ "tool_result": { "call_id": "c", "content": "1", "is_error": 7 } }]),
            json!([{ "text": 7 }]),
            json!([{ "text": "a", "other": "b" }]),
            json!(["a", 7]),
            json!([{}]),
            json!([null]),
            json!({ "text": "a" }),
            json!(7),
            image(json!(7)),
            image(json!(null)),
        ] {
            let last = content.as_array().map_or(&content, |parts| &parts[parts.len() - 1]);
            assert_eq!(read(&content).last(), Some(&StoredPart::Other(last)), "{content}");
        }
    }
}
