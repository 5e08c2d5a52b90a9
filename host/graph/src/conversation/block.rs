//! Conversion of content blocks from other sources for models.
//!
//! A text or an image is converted to a part. Any other block is replaced with a description of its
//! type and size. No block therefore prevents a conversation from continuing.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::id::BlobRef;
use crate::json_text;
use crate::llm::{Image, ImageSource, PROVIDER_STATE, Part};
use crate::message::WithoutId;

/// Types of blocks that only the provider of the model understands.
const OPAQUE: &[&str] = &[PROVIDER_STATE, "provider_part", "reasoning_signature"];

/// Types of blocks with reasoning, which is not sent back to models.
const THOUGHTS: &[&str] = &["thinking", "redacted_thinking", "reasoning", "reasoning_content"];

/// Types of blocks that contain an image, whatever their media type is.
const PICTURE_BLOCKS: &[&str] = &["image", "image_url", "input_image"];

/// Keys of a file's media type.
const MEDIA_TYPES: &[&str] = &["mime_type", "mimeType", "media_type", "mediaType", "format"];

/// Keys of a file's data.
const BYTES: &[&str] = &["data", "base64", "bytes", "blob", "file_data"];

/// Keys of a file's URL.
const ADDRESSES: &[&str] = &["url", "uri", "image_url", "file_url", "file_uri", "fileUri"];

/// Keys of a file's id at a provider.
const IDS: &[&str] = &["file_id", "fileId"];

/// Keys of the name of a file or a tool.
const NAMES: &[&str] = &["filename", "file_name", "fileName", "title", "name"];

/// Keys of a block whose value may be an object with the fields of a file.
const HOLDERS: &[&str] = &[
    "source",
    "file",
    "image",
    "image_url",
    "input_audio",
    "audio",
    "video",
    "document",
    "inline_data",
    "inlineData",
    "file_data",
    "fileData",
    "resource",
];

/// Schemes of URLs that providers fetch.
const SCHEMES: &[&str] = &["https", "http", "gs"];

/// Media type of an image format that no provider accepts.
const DRAWING: &str = "image/svg+xml";

/// Maximum length of a name in a description, in characters.
const NAME_CHARS: usize = 120;

/// Base64 encodes three bytes as four characters.
const BASE64_CHARS: usize = 4;
const BASE64_BYTES: usize = 3;

/// An image in the format of the state.
#[derive(Debug, PartialEq, Deserialize)]
pub(super) struct StoredImage {
    /// Location of the data.
    pub(super) source: StoredSource,
    /// Media type, such as `image/png`.
    pub(super) media_type: String,
    /// Extension fields, of which models get none.
    #[serde(rename = "extra", default)]
    _extra: Map<String, Value>,
}

/// Location of the data of an image. The texts are not checked.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum StoredSource {
    /// A reference to a blob.
    Blob(String),
    /// A URL.
    Url(String),
    /// A location that only later versions know.
    Other(String),
}

/// Returns true for a block that only the provider understands. Such a block is sent back
/// unchanged.
pub(super) fn is_opaque(block: &Value) -> bool {
    OPAQUE.contains(&kind(block))
}

/// Returns true for a block with reasoning that is not sent back.
pub(super) fn is_thought(block: &Value) -> bool {
    THOUGHTS.contains(&kind(block))
}

/// Converts an image to an image part. Converts it to a description if messages of the role cannot
/// contain images (`sees` is false), or if providers reject the image.
pub(super) fn picture(image: &StoredImage, sees: bool) -> Part {
    if sees && let Some(image) = taken(&image.source, &image.media_type) {
        return Part::Image(image);
    }
    let place = match &image.source {
        StoredSource::Url(url) => data_url(url).map_or_else(|| name(url), |(_, data)| size(data)),
        StoredSource::Blob(place) | StoredSource::Other(place) => name(place),
    };
    Part::Text(words("image", Some(image.media_type.as_str()), [place]))
}

/// Converts a block to a text part, an image part, or a description of the block. `sees` is true if
/// messages of the role can contain images.
pub(super) fn shown(block: &Value, sees: bool) -> Part {
    if let Some(text) = block.as_str().or_else(|| block.get("text")?.as_str()) {
        return Part::Text(text.to_owned());
    }
    match picture_of(block).filter(|_| sees) {
        Some(image) => Part::Image(image),
        None => Part::Text(told(block)),
    }
}

/// Returns the image of a block, if it has one that providers accept.
fn picture_of(block: &Value) -> Option<Image> {
    let media_type = find(block, MEDIA_TYPES);
    let is_named = PICTURE_BLOCKS.contains(&kind(block)) || media_type.is_some_and(is_picture);
    if !is_named {
        return None;
    }
    let place = find(block, BYTES).or_else(|| find(block, ADDRESSES))?;
    let (url, media_type) = if place.contains(':') {
        (place.to_owned(), media_type.unwrap_or("image/*"))
    } else {
        let media_type = media_type?;
        (format!("data:{media_type};base64,{place}"), media_type)
    };
    taken(&StoredSource::Url(url), media_type)
}

/// Returns a description of a message that models cannot get. The size is that of the message
/// without its id.
pub(super) fn message(message: &Value) -> Part {
    let role = message.get("role").and_then(Value::as_str).filter(|role| !role.is_empty());
    let further = role.map(name).into_iter().chain([text_size(&WithoutId(message))]);
    Part::Text(words("message", None, further))
}

/// Describes a block.
fn told(block: &Value) -> String {
    let kind = match (kind(block), block.as_object()) {
        ("", Some(fields)) => fields.keys().next().map_or("content", String::as_str),
        ("", None) => "content",
        (kind, _) => kind.strip_prefix("input_").unwrap_or(kind),
    };
    let bytes = find(block, BYTES);
    let address = || find(block, ADDRESSES).or_else(|| find(block, IDS));
    let place = bytes.or_else(address);
    let in_url = place.and_then(data_url);
    let declared = find(block, MEDIA_TYPES).or(in_url.map(|(media_type, _)| media_type));
    let media_type = declared.map(|it| {
        // The value may be a format such as `wav` instead of a media type.
        if it.contains('/') { it.to_owned() } else { format!("{kind}/{it}") }
    });
    let extent = match (in_url, place) {
        (Some((_, data)), _) => size(data),
        (None, Some(data)) if bytes.is_some() => size(data),
        (None, Some(address)) => name(address),
        (None, None) => text_size(block),
    };
    let named = find(block, NAMES).map(name);
    words(kind, media_type.as_deref(), named.into_iter().chain([extent]))
}

/// Returns a description, such as `[audio audio/wav, 12345 bytes, not shown]`.
fn words(
    kind: &str,
    media_type: Option<&str>,
    further: impl IntoIterator<Item = String>,
) -> String {
    let mut words = name(kind);
    if let Some(media_type) = media_type {
        words.push(' ');
        words.push_str(&name(media_type));
    }
    for word in further {
        words.push_str(", ");
        words.push_str(&word);
    }
    format!("[{words}, not shown]")
}

/// Removes control characters from a name, and truncates it.
fn name(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).take(NAME_CHARS).collect()
}

/// Formats the size of the data that base64 text encodes.
fn size(base64: &str) -> String {
    let letters = base64.trim_end_matches('=').len();
    format!("{} bytes", letters * BASE64_BYTES / BASE64_CHARS)
}

/// Formats the size of a value as JSON text.
fn text_size<T: Serialize>(value: &T) -> String {
    let bytes = json_text::length(value).expect("a JSON value has a text");
    format!("{bytes} bytes")
}

fn kind(block: &Value) -> &str {
    block.get("type").and_then(Value::as_str).unwrap_or_default()
}

/// Returns the value of the first key that is a string, in a block or in the objects within it that
/// describe a file.
fn find<'b>(block: &'b Value, names: &[&str]) -> Option<&'b str> {
    let own = names.iter().find_map(|name| block.get(name)?.as_str());
    own.or_else(|| HOLDERS.iter().find_map(|holder| find(block.get(holder)?, names)))
}

/// Returns the image for a model if providers accept it. A rejected image in a conversation would
/// make every later turn fail.
fn taken(source: &StoredSource, media_type: &str) -> Option<Image> {
    let source = match source {
        StoredSource::Blob(text) if is_picture(media_type) => {
            ImageSource::Blob(BlobRef::parse(text)?)
        }
        StoredSource::Url(url) if is_taken_url(url, media_type) => ImageSource::Url(url.clone()),
        StoredSource::Blob(_) | StoredSource::Url(_) | StoredSource::Other(_) => return None,
    };
    Some(Image { source, media_type: media_type.to_owned() })
}

/// Returns true if providers accept an image with a URL. A data URL has a media type of its own.
fn is_taken_url(url: &str, media_type: &str) -> bool {
    match data_url(url) {
        Some((media_type, data)) => is_picture(media_type) && is_base64(data),
        None => is_address(url) && is_picture(media_type),
    }
}

fn is_picture(media_type: &str) -> bool {
    let media_type = media_type.trim().to_ascii_lowercase();
    let is_image = media_type.strip_prefix("image/").is_some_and(|rest| !rest.is_empty());
    is_image && !media_type.starts_with(DRAWING) && !media_type.contains(',')
}

fn is_address(url: &str) -> bool {
    let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
    SCHEMES.iter().any(|it| scheme.eq_ignore_ascii_case(it))
}

/// Returns the media type and the base64 data of a data URL.
fn data_url(url: &str) -> Option<(&str, &str)> {
    url.strip_prefix("data:")?.split_once(";base64,")
}

fn is_base64(data: &str) -> bool {
    let letters = data.strip_suffix("==").or_else(|| data.strip_suffix('=')).unwrap_or(data);
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let is_whole = !letters.is_empty() && data.len().is_multiple_of(BASE64_CHARS);
    is_whole && letters.bytes().all(is_letter)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{DRAWING, picture, shown};
    use crate::llm::{Image, ImageSource, Part};

    const PNG: &str = "iVBORw0KGgo=";

    #[test]
    fn foreign_blocks_are_described_by_type_and_size() {
        let data = "A".repeat(16_460);
        for (block, words) in [
            (
                json!({ "type": "audio", "mime_type": "audio/wav", "data": data }),
                "[audio audio/wav, 12345 bytes, not shown]",
            ),
            (
                json!({ "type": "input_audio",
                    "input_audio": { "data": "aGVsbG8=", "format": "wav" } }),
                "[audio audio/wav, 5 bytes, not shown]",
            ),
            (
                json!({ "type": "file", "file": { "filename": "a.pdf",
                    "file_data": "data:application/pdf;base64,aGVsbG8=" } }),
                "[file application/pdf, a.pdf, 5 bytes, not shown]",
            ),
            (
                json!({ "type": "document",
                    "source": { "type": "url", "url": "https://a/b.pdf" } }),
                "[document, https://a/b.pdf, not shown]",
            ),
            (
                json!({ "type": "image", "source": { "type": "file", "file_id": "file-1" } }),
                "[image, file-1, not shown]",
            ),
            (
                json!({ "type": "image", "mime_type": "image/png", "data": "no base64!" }),
                "[image image/png, 7 bytes, not shown]",
            ),
            (
                json!({ "type": "tool_use", "id": "c", "name": "add", "input": {} }),
                "[tool_use, add, 52 bytes, not shown]",
            ),
            (json!({ "video": { "uri": "gs://a/b" } }), "[video, gs://a/b, not shown]"),
            (json!({ "type": "a\nb" }), "[ab, 15 bytes, not shown]"),
            (json!(12), "[content, 2 bytes, not shown]"),
        ] {
            assert_eq!(shown(&block, true), Part::Text(words.to_owned()), "{block}");
        }
        for block in [json!({ "type": "x", "text": "hi" }), json!("hi")] {
            assert_eq!(shown(&block, true), Part::Text("hi".to_owned()));
        }
    }

    #[test]
    fn images_in_blocks_are_shown_if_the_role_permits() {
        let url = format!("data:image/png;base64,{PNG}");
        let blocks = [
            json!({ "type": "image", "mime_type": "image/png", "data": PNG }),
            json!({ "type": "image", "source": { "media_type": "image/png", "data": PNG } }),
            json!({ "type": "image_url", "image_url": { "url": url }, "mime_type": "image/png" }),
            json!({ "inlineData": { "mimeType": "image/png", "data": PNG } }),
        ];
        for block in blocks {
            let source = ImageSource::Url(url.clone());
            let image = Image { source, media_type: "image/png".to_owned() };
            assert_eq!(shown(&block, true), Part::Image(image), "{block}");
            let Part::Text(words) = shown(&block, false) else { panic!("{block}") };
            assert!(words.contains("image/png, 8 bytes, not shown"), "{words}");
        }
    }

    #[test]
    fn rejected_images_are_described() {
        let blob = format!("blob:{}", "0".repeat(64));
        let taken = |source: Value, media_type: &str| {
            let image = json!({ "source": source, "media_type": media_type });
            picture(&serde_json::from_value(image).unwrap(), true)
        };
        for (source, media_type) in [
            (json!({ "url": format!("data:image/png;base64,{PNG}") }), ""),
            (json!({ "url": "https://a/b.png" }), "image/*"),
            (json!({ "url": "gs://a/b.png" }), "image/png"),
            (json!({ "blob": blob }), "image/png"),
        ] {
            let part = taken(source.clone(), media_type);
            assert!(matches!(part, Part::Image(_)), "{source}: {part:?}");
        }
        for (source, media_type, words) in [
            (
                json!({ "url": "data:image/png;base64,?" }),
                "image/png",
                "[image image/png, 0 bytes,",
            ),
            (json!({ "url": "data:image/png,abc" }), "image/png", "[image image/png, data:"),
            (json!({ "url": "data:text/html;base64,aGk=" }), "image/*", "[image image/*, 2 bytes,"),
            (json!({ "url": "https://a/b" }), "application/pdf", "[image application/pdf, https:"),
            (json!({ "url": "file:///a.png" }), "image/png", "[image image/png, file:///a.png,"),
            (json!({ "blob": "blob:7" }), "image/png", "[image image/png, blob:7,"),
            (json!({ "blob": blob }), DRAWING, "[image image/svg+xml, blob:0"),
        ] {
            let Part::Text(told) = taken(source.clone(), media_type) else { panic!("{source}") };
            assert!(told.starts_with(words), "{told}");
        }
    }
}
