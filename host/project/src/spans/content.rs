//! Inputs and outputs of models and tools as text of bounded length.
//!
//! Tracing backends truncate or reject long attributes. Long strings inside a JSON value are
//! truncated first, so that most values remain valid JSON.

use serde_json::Value;

/// Maximum length of a string inside a JSON value, in bytes. Images are longer, and most prompts
/// are shorter.
const TEXT_BYTES: usize = 8 << 10;

/// Maximum length of an attribute, in bytes.
const DOCUMENT_BYTES: usize = 64 << 10;

/// Returns a value as JSON text, truncated if the text is too long.
pub(super) fn json(value: &Value) -> String {
    cut(shortened(value).to_string(), DOCUMENT_BYTES)
}

/// Returns a text, truncated to the maximum length of a string.
pub(super) fn text(text: &str) -> String {
    if text.len() <= TEXT_BYTES {
        return text.to_owned();
    }
    cut(text[..text.floor_char_boundary(TEXT_BYTES)].to_owned(), TEXT_BYTES)
        + &format!("... ({} bytes)", text.len())
}

fn shortened(value: &Value) -> Value {
    match value {
        Value::String(it) => Value::String(text(it)),
        Value::Array(items) => items.iter().map(shortened).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(key, value)| (key.clone(), shortened(value))).collect()
        }
        other => other.clone(),
    }
}

fn cut(mut text: String, bytes: usize) -> String {
    if text.len() > bytes {
        let whole = text.len();
        text.truncate(text.floor_char_boundary(bytes));
        text.push_str(&format!("... ({whole} bytes)"));
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn long_strings_are_truncated_in_valid_json() {
        let shown = json(&json!({ "a": "\u{e9}".repeat(TEXT_BYTES), "b": [1, "x"] }));
        let again: Value = serde_json::from_str(&shown).unwrap();
        assert!(again["a"].as_str().unwrap().ends_with("... (16384 bytes)"));
        assert_eq!(again["b"], json!([1, "x"]));
        let many = json(&json!(vec!["x".repeat(TEXT_BYTES); 20]));
        assert!(many.len() < DOCUMENT_BYTES + 32 && many.ends_with("bytes)"));
    }
}
