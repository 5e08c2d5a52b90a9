//! Fields that are not part of the format, out of their pieces.

use serde_json::{Map, Value};

/// Bytes of the own fields of one message: signatures and encrypted reasoning have some ten KiB.
const OWN_BYTES: usize = 4 << 20;

/// Levels of an own field.
const DEPTH: usize = 32;

/// Strings that are said whole each time; all others go on with every piece.
const WHOLE: [&str; 4] = ["type", "id", "format", "name"];

/// Adds the fields of a piece that are not in `read`, and says how many bytes they have.
///
/// # Errors
///
/// What is wrong with them.
pub(super) fn add_fields(
    fields: &mut Map<String, Value>,
    piece: &Value,
    read: &[&str],
) -> Result<usize, String> {
    let Some(piece) = piece.as_object() else { return Ok(0) };
    let own = piece.iter().filter(|(name, value)| !read.contains(&name.as_str()) && says(value));
    let mut bytes = 0;
    for (name, value) in own {
        bytes += name.len() + weight(value, DEPTH)?;
        add(fields, name, value);
    }
    let all: usize = fields.iter().map(|(name, value)| name.len() + size(value)).sum();
    if all > OWN_BYTES {
        return Err(format!("it has more than {OWN_BYTES} bytes in fields of its own"));
    }
    Ok(bytes)
}

/// Whether a value says anything.
fn says(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => true,
    }
}

/// Bytes of the texts of a value that is not deeper than it may be.
fn weight(value: &Value, depth: usize) -> Result<usize, String> {
    let Some(depth) = depth.checked_sub(1) else {
        return Err(format!("a field of its own has more than {DEPTH} levels"));
    };
    match value {
        Value::Array(items) => items.iter().map(|item| weight(item, depth)).sum(),
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| Ok(name.len() + weight(value, depth)?)).sum()
        }
        other => Ok(size(other)),
    }
}

fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(|item| 1 + size(item)).sum(),
        Value::Object(fields) => fields.iter().map(|(name, value)| name.len() + size(value)).sum(),
        _ => 1,
    }
}

/// Adds a field to those of earlier pieces: texts go on, objects are joined, items of lists that have an
/// index are joined with the item of this index.
fn add(fields: &mut Map<String, Value>, name: &str, value: &Value) {
    match (fields.get_mut(name), value) {
        (Some(Value::String(text)), Value::String(more)) if !WHOLE.contains(&name) => {
            text.push_str(more);
        }
        (Some(Value::Object(known)), Value::Object(more)) => {
            for (name, value) in more.iter().filter(|(_, value)| !value.is_null()) {
                add(known, name, value);
            }
        }
        (Some(Value::Array(known)), Value::Array(more)) => {
            for item in more {
                add_item(known, item);
            }
        }
        _ => drop(fields.insert(name.to_owned(), value.clone())),
    }
}

fn add_item(items: &mut Vec<Value>, item: &Value) {
    let index = item.get("index");
    let known = items.iter_mut().find(|known| index.is_some() && known.get("index") == index);
    match (known, item) {
        (Some(Value::Object(known)), Value::Object(more)) => {
            for (name, value) in more.iter().filter(|(_, value)| !value.is_null()) {
                add(known, name, value);
            }
        }
        _ => items.push(item.clone()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn joined(pieces: &[Value]) -> Value {
        let mut fields = Map::new();
        for piece in pieces {
            add_fields(&mut fields, piece, &["content"]).unwrap();
        }
        Value::Object(fields)
    }

    #[test]
    fn pieces_are_put_together() {
        let detail = |text: &str, signature: Value| {
            json!({ "content": "x", "reasoning_details": [{
                "type": "reasoning.text", "text": text, "signature": signature, "index": 0,
            }] })
        };
        let pieces = [
            detail("a", Value::Null),
            detail("b", json!("s")),
            detail("", Value::Null),
            json!({ "extra_content": { "google": { "thought_signature": "t" } } }),
            json!({ "extra_content": { "google": { "thought_signature": "u" } }, "n": 1 }),
            json!({ "n": 2, "nothing": null, "empty": "" }),
        ];
        let whole = json!({ "type": "reasoning.text", "text": "ab", "signature": "s", "index": 0 });
        let expected = json!({
            "reasoning_details": [whole],
            "extra_content": { "google": { "thought_signature": "tu" } },
            "n": 2,
        });
        assert_eq!(joined(&pieces), expected);
    }

    #[test]
    fn items_without_an_index_are_items_of_their_own() {
        let piece = json!({ "list": [{ "type": "a" }] });
        let expected = json!({ "list": [{ "type": "a" }, { "type": "a" }] });
        assert_eq!(joined(&[piece.clone(), piece]), expected);
    }

    #[test]
    fn they_are_bounded() {
        let deep = (0..DEPTH).fold(json!(1), |inner, _| json!([inner]));
        let refused = |piece: Value| add_fields(&mut Map::new(), &piece, &[]).unwrap_err();
        assert!(refused(json!({ "a": deep })).contains("levels"));
        assert!(refused(json!({ "a": "x".repeat(OWN_BYTES) })).contains("bytes"));
    }
}
