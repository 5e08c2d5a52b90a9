//! What a message says: text, or blocks on their side and parts on ours.
//!
//! A picture in any form is a part with its address; the text of a block or of a file is a text.
//! What no model is shown stays the block that it is, and a node says of it what it can.

mod encoded;
mod file;

use serde::Deserialize as _;
use serde_json::{Map, Value, json};
use wattle_graph::llm::{Image, ImageSource, Part};

/// Content as the state holds it.
///
/// # Errors
///
/// Which block is wrong, and why.
pub(super) fn from_wire(content: &Value) -> Result<Value, String> {
    match content {
        Value::Null => Ok(Value::String(String::new())),
        Value::String(_) => Ok(content.clone()),
        Value::Array(blocks) => each(blocks).map(Value::Array),
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

/// The parts of blocks, in order.
fn each(blocks: &[Value]) -> Result<Vec<Value>, String> {
    let mut all = Vec::with_capacity(blocks.len());
    for (index, block) in blocks.iter().enumerate() {
        let kind = block.get("type").and_then(Value::as_str);
        let kind = kind.map_or_else(String::new, |kind| format!(" (`{kind:.40}`)"));
        all.extend(parts(block).map_err(|why| format!("block {index}{kind}: {why}"))?);
    }
    Ok(all)
}

/// The parts of a block: one, or as many as there are in the blocks inside of it.
fn parts(block: &Value) -> Result<Vec<Value>, String> {
    let fields = match block {
        Value::String(text) => return Ok(vec![json!({ "text": text })]),
        Value::Object(fields) if !fields.is_empty() => fields,
        _ => return Err("a block must be a text, or an object with a `type`".to_owned()),
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
            let text = text("text").ok_or("it has no `text`")?;
            Some(json!({ "text": text }))
        }
        "refusal" => text("refusal").map(|text| json!({ "text": text })),
        "thinking" => text("thinking").map(|text| json!({ "reasoning": text })),
        "reasoning" => reasoning(fields),
        "tool_result" | "search_result" => return inside(block, fields.get("content")),
        "document" if block.pointer("/source/type").is_some_and(|it| it == "content") => {
            return inside(block, block.pointer("/source/content"));
        }
        // How one library writes a block that it does not know.
        "non_standard" => return inside(block, fields.get("value")),
        _ => file::read(kind, fields)?,
    };
    Ok(vec![part.unwrap_or_else(|| json!({ "other": block }))])
}

/// What a model thought, whole or as a list of texts.
fn reasoning(fields: &Map<String, Value>) -> Option<Value> {
    let whole = ["reasoning", "text"].iter().find_map(|name| fields.get(*name)?.as_str());
    if let Some(text) = whole {
        return Some(json!({ "reasoning": text }));
    }
    let texts = fields.get("summary").and_then(Value::as_array).into_iter().flatten();
    let texts: Vec<&str> = texts.filter_map(|it| it.get("text")?.as_str()).collect();
    (!texts.is_empty()).then(|| json!({ "reasoning": texts.join("\n\n") }))
}

/// The parts of what a block holds; the block itself if that is none that has any.
fn inside(block: &Value, held: Option<&Value>) -> Result<Vec<Value>, String> {
    match held {
        Some(Value::Array(blocks)) if !blocks.is_empty() => each(blocks),
        Some(held @ (Value::String(_) | Value::Object(_))) => parts(held),
        _ => Ok(vec![json!({ "other": block })]),
    }
}

/// A block without a type: a part of ours that comes back, or one of a system that gives none.
fn untyped(block: &Value, fields: &Map<String, Value>) -> Result<Vec<Value>, String> {
    match Part::deserialize(block) {
        // The picture is looked at as one of any other system.
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
