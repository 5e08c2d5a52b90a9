//! Conversion of content between the Agent Server API (a string or blocks) and the state (a string
//! or parts).
//!
//! An image in any form becomes a part with its URL. The text of a block or of a file becomes a
//! text part. A block that models cannot read is stored unchanged, and the node decides how to
//! describe the block to a model.

mod encoded;
mod file;

use serde::Deserialize as _;
use serde_json::{Map, Value, json};
use wattle_graph::llm::{Image, ImageSource, Part};

/// Converts content of the Agent Server API to content of the state.
///
/// # Errors
///
/// Returns a message that names the invalid block.
pub(super) fn from_wire(content: &Value) -> Result<Value, String> {
    match content {
        Value::Null => Ok(Value::String(String::new())),
        Value::String(_) => Ok(content.clone()),
        Value::Array(blocks) => each(blocks).map(Value::Array),
        _ => Err("`content` must be a string or an array of blocks".to_owned()),
    }
}

/// Converts content of the state to content of the Agent Server API.
pub(super) fn to_wire(content: &Value) -> Value {
    match content {
        Value::Null => Value::String(String::new()),
        Value::Array(parts) => parts.iter().map(block).collect(),
        other => other.clone(),
    }
}

/// Returns true if the content converts back to the same blocks. Such blocks are not stored.
pub(super) fn survives(blocks: &Value, content: &Value) -> bool {
    to_wire(content) == *blocks
}

/// Converts blocks to parts and keeps their order.
fn each(blocks: &[Value]) -> Result<Vec<Value>, String> {
    let mut all = Vec::with_capacity(blocks.len());
    for (index, block) in blocks.iter().enumerate() {
        let kind = block.get("type").and_then(Value::as_str);
        let kind = kind.map_or_else(String::new, |kind| format!(" (`{kind:.40}`)"));
        all.extend(parts(block).map_err(|why| format!("content[{index}]{kind}: {why}"))?);
    }
    Ok(all)
}

/// Converts a block to a part, or to the parts of the blocks inside it.
fn parts(block: &Value) -> Result<Vec<Value>, String> {
    let fields = match block {
        Value::String(text) => return Ok(vec![json!({ "text": text })]),
        Value::Object(fields) if !fields.is_empty() => fields,
        _ => return Err("a block must be a string, or an object with a `type`".to_owned()),
    };
    match fields.get("type").and_then(Value::as_str) {
        Some(kind) => typed(kind, block, fields),
        None => untyped(block, fields),
    }
}

fn typed(kind: &str, block: &Value, fields: &Map<String, Value>) -> Result<Vec<Value>, String> {
    let text = |name: &str| fields.get(name).and_then(Value::as_str);
    let part = match kind {
        "text" | "input_text" | "output_text" => {
            let text = text("text").ok_or("the block has no `text`")?;
            Some(json!({ "text": text }))
        }
        "refusal" => text("refusal").map(|text| json!({ "text": text })),
        "thinking" => text("thinking").map(|text| json!({ "reasoning": text })),
        "reasoning" => reasoning(fields),
        "tool_result" | "search_result" => return inside(block, fields.get("content")),
        "document" if block.pointer("/source/type").is_some_and(|it| it == "content") => {
            return inside(block, block.pointer("/source/content"));
        }
        // One client library wraps unknown blocks in this type.
        "non_standard" => return inside(block, fields.get("value")),
        _ => file::read(kind, fields)?,
    };
    Ok(vec![part.unwrap_or_else(|| json!({ "other": block }))])
}

/// Returns the reasoning of a block: one string, or the texts of its `summary`, joined by empty
/// lines.
fn reasoning(fields: &Map<String, Value>) -> Option<Value> {
    let whole = ["reasoning", "text"].iter().find_map(|name| fields.get(*name)?.as_str());
    if let Some(text) = whole {
        return Some(json!({ "reasoning": text }));
    }
    let texts = fields.get("summary").and_then(Value::as_array).into_iter().flatten();
    let texts: Vec<&str> = texts.filter_map(|it| it.get("text")?.as_str()).collect();
    (!texts.is_empty()).then(|| json!({ "reasoning": texts.join("\n\n") }))
}

/// Converts the content of a block. Returns the block itself if it has no content.
fn inside(block: &Value, held: Option<&Value>) -> Result<Vec<Value>, String> {
    match held {
        Some(Value::Array(blocks)) if !blocks.is_empty() => each(blocks),
        Some(held @ (Value::String(_) | Value::Object(_))) => parts(held),
        _ => Ok(vec![json!({ "other": block })]),
    }
}

/// Converts a block without a type: a part of the state that a client sends back, or a block in a
/// format whose blocks have no type.
fn untyped(block: &Value, fields: &Map<String, Value>) -> Result<Vec<Value>, String> {
    match Part::deserialize(block) {
        // An image with a URL is validated like an image in any other format.
        Ok(Part::Image(Image { source: ImageSource::Url(_), .. })) | Err(_) => {}
        Ok(_) => return Ok(vec![block.clone()]),
    }
    let kind = if fields.contains_key("image") { "image" } else { "" };
    let part = file::read(kind, fields)?;
    Ok(vec![part.unwrap_or_else(|| json!({ "other": block }))])
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

#[cfg(test)]
mod tests;
