//! The blocks of a client's message. A message stores these blocks beside the content that they
//! were converted to.
//!
//! Most bytes of a conversation are images, and the content contains every image. The stored blocks
//! therefore refer to an image by the position of its part in the content.

use serde_json::{Map, Value, json};

/// Minimum length of a string that is replaced by a reference to an image, in bytes.
const LEAST_BYTES: usize = 256;

/// Field that marks stored blocks with references to images.
const FOLDED: &str = "folded";

/// Key of a reference to the URL of an image. Its value is the position of the part in the content.
const ADDRESS: &str = "$address";

/// Key of a reference to the base64 data of an image. Its value is the position of the part in the
/// content.
const BASE64: &str = "$base64";

/// Precedes the base64 data in a data URL.
const BEFORE_BASE64: &str = ";base64,";

/// Returns the blocks in the form that a message stores.
pub(super) fn fold(blocks: &Value, content: &Value) -> Value {
    let pictures = pictures(content);
    if pictures.is_empty() || holds_mark(blocks) {
        return blocks.clone();
    }
    json!({ FOLDED: folded(blocks, &pictures) })
}

/// Returns stored blocks in the form that the client wrote.
pub(super) fn unfold(kept: &Value, content: &Value) -> Value {
    match kept.get(FOLDED) {
        Some(blocks) => unfolded(blocks, content),
        None => kept.clone(),
    }
}

/// Returns the URLs of images with at least [`LEAST_BYTES`], each with the position of its part.
fn pictures(content: &Value) -> Vec<(usize, &str)> {
    let parts = content.as_array().into_iter().flatten().enumerate();
    let urls = parts.filter_map(|(place, part)| Some((place, url_of(part)?)));
    urls.filter(|(_, url)| url.len() >= LEAST_BYTES).collect()
}

fn url_of(part: &Value) -> Option<&str> {
    part.pointer("/image/source/url")?.as_str()
}

/// Returns true if the blocks of a client contain the key of a reference, which makes references
/// ambiguous.
fn holds_mark(value: &Value) -> bool {
    let is_mark = |name: &str| name == ADDRESS || name == BASE64;
    match value {
        Value::Array(items) => items.iter().any(holds_mark),
        Value::Object(fields) => {
            fields.iter().any(|(name, value)| is_mark(name) || holds_mark(value))
        }
        _ => false,
    }
}

fn folded(value: &Value, pictures: &[(usize, &str)]) -> Value {
    match value {
        Value::String(text) if text.len() >= LEAST_BYTES => {
            mark(text, pictures).unwrap_or_else(|| value.clone())
        }
        Value::Array(items) => items.iter().map(|item| folded(item, pictures)).collect(),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| (name.clone(), folded(value, pictures)));
            Value::Object(fields.collect())
        }
        other => other.clone(),
    }
}

/// Returns the reference for a string that is the URL or the data of an image.
fn mark(text: &str, pictures: &[(usize, &str)]) -> Option<Value> {
    pictures.iter().find_map(|(place, url)| {
        let before = url.strip_suffix(text)?;
        if before.is_empty() {
            return Some(json!({ ADDRESS: place }));
        }
        let is_data = before.starts_with("data:") && before.ends_with(BEFORE_BASE64);
        is_data.then(|| json!({ BASE64: place }))
    })
}

fn unfolded(value: &Value, content: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(|item| unfolded(item, content)).collect(),
        Value::Object(fields) => {
            if let Some(text) = marked(fields, content) {
                return text.into();
            }
            let field = |(name, value): (&String, &Value)| (name.clone(), unfolded(value, content));
            Value::Object(fields.iter().map(field).collect())
        }
        other => other.clone(),
    }
}

/// Returns the URL or the data to which a reference refers; `None` if `fields` is not a reference.
fn marked<'c>(fields: &Map<String, Value>, content: &'c Value) -> Option<&'c str> {
    if let Some(place) = fields.get(ADDRESS) {
        return at(place, content);
    }
    let (_, data) = at(fields.get(BASE64)?, content)?.split_once(BEFORE_BASE64)?;
    Some(data)
}

/// Returns the URL of the image in the part at position `place`.
fn at<'c>(place: &Value, content: &'c Value) -> Option<&'c str> {
    let place = usize::try_from(place.as_u64()?).ok()?;
    url_of(content.get(place)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(data: &str) -> Value {
        let url = format!("data:image/png;base64,{data}");
        json!({ "image": { "source": { "url": url }, "media_type": "image/png" } })
    }

    #[test]
    fn images_are_stored_once() {
        let (one, two) = ("A".repeat(400), "B".repeat(400));
        let content = json!([{ "text": "look" }, picture(&one), picture(&two)]);
        let blocks = json!([
            { "type": "text", "text": "look", "index": 0 },
            { "type": "image", "source": { "type": "base64", "data": one } },
            { "type": "image_url", "image_url": format!("data:image/png;base64,{two}") },
        ]);
        let kept = fold(&blocks, &content);
        assert_eq!(kept["folded"][1]["source"]["data"], json!({ "$base64": 1 }));
        assert_eq!(kept["folded"][2]["image_url"], json!({ "$address": 2 }));
        assert_eq!(unfold(&kept, &content), blocks);
        assert_ne!(unfold(&kept, &json!("rewritten")), blocks);
    }

    #[test]
    fn blocks_without_long_images_are_unchanged() {
        let blocks = json!([{ "type": "image", "data": "AAAA" }, "long text ".repeat(40)]);
        let content = json!([picture("AAAA"), { "text": "long text ".repeat(40) }]);
        assert_eq!(fold(&blocks, &content), blocks);
        assert_eq!(unfold(&blocks, &content), blocks);
        let long = "A".repeat(400);
        let own = json!([{ "type": "image", "data": long, "note": { "$address": 0 } }]);
        let content = json!([picture(&long)]);
        assert_eq!(unfold(&fold(&own, &content), &content), own);
    }
}
