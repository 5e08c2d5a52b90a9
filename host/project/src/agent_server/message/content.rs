//! What a message says: text, or blocks on their side and parts on ours.

use serde_json::{Value, json};

/// The media type of a picture of which a client gives only the address.
const ANY_PICTURE: &str = "image/*";

/// Content as the state holds it.
pub(super) fn from_wire(content: &Value) -> Result<Value, String> {
    match content {
        Value::Null => Ok(Value::String(String::new())),
        Value::String(_) => Ok(content.clone()),
        Value::Array(blocks) => blocks.iter().map(part).collect(),
        _ => Err("`content` must be a text or a list of blocks".to_owned()),
    }
}

/// Content as clients know it.
pub(super) fn to_wire(content: &Value) -> Value {
    match content {
        Value::Null => Value::String(String::new()),
        Value::Array(parts) => parts.iter().map(block).collect(),
        other => other.clone(),
    }
}

/// Whether every block is known by what becomes of it, so that none needs to be kept.
pub(super) fn survives(blocks: &Value, content: &Value) -> bool {
    to_wire(content) == *blocks
}

fn part(block: &Value) -> Result<Value, String> {
    let fields = match block {
        Value::String(text) => return Ok(json!({ "text": text })),
        Value::Object(fields) => fields,
        _ => return Err("a block of `content` must be a text or an object".to_owned()),
    };
    let text = |name: &str| fields.get(name).and_then(Value::as_str);
    Ok(match text("type") {
        Some("text") => {
            let text = text("text").ok_or("a `text` block of `content` has no `text`")?;
            json!({ "text": text })
        }
        Some("image_url") => {
            let image = fields.get("image_url");
            let url = image.and_then(|image| image.get("url").unwrap_or(image).as_str());
            picture(url.ok_or("an `image_url` block of `content` has no address")?)
        }
        Some("image") if text("url").is_some() => picture(text("url").unwrap_or_default()),
        Some("reasoning") if text("reasoning").is_some() => {
            json!({ "reasoning": text("reasoning") })
        }
        Some(_) => json!({ "other": block }),
        // A part of ours that comes back.
        None if fields.len() == 1 => block.clone(),
        None => return Err("a block of `content` has no `type`".to_owned()),
    })
}

fn picture(url: &str) -> Value {
    let media_type = url.strip_prefix("data:").and_then(|data| data.split([';', ',']).next());
    let media_type = media_type.filter(|it| !it.is_empty()).unwrap_or(ANY_PICTURE);
    json!({ "image": { "source": { "url": url }, "media_type": media_type } })
}

fn block(part: &Value) -> Value {
    let Some(fields) = part.as_object() else { return part.clone() };
    if let Some(text) = fields.get("text").filter(|_| fields.len() == 1) {
        return json!({ "type": "text", "text": text });
    }
    if let Some(text) = fields.get("reasoning").filter(|_| fields.len() == 1) {
        return json!({ "type": "reasoning", "reasoning": text });
    }
    if let Some(url) = part.pointer("/image/source/url") {
        return json!({ "type": "image_url", "image_url": { "url": url } });
    }
    fields.get("other").cloned().unwrap_or_else(|| part.clone())
}
