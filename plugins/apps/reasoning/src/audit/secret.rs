//! Redacts secrets in the audit trail: values of fields with the name of a secret, and words that
//! look like a key. Services repeat keys in their error messages.

use wattle_plugin::prelude::{Value, json};

const REDACTED: &str = "[redacted]";

/// Parts of the names of fields whose values are redacted.
const NAMES: &[&str] = &["api_key", "apikey", "authorization", "password", "secret", "token"];

/// Parts of the names of token counts, which are not secrets.
const HARMLESS: &[&str] = &["tokens", "token_count"];

/// Prefixes of keys of well-known services.
const PREFIXES: &[&str] = &["sk-", "sk_", "AIza", "ghp_", "xoxb-"];

/// Minimum bytes of a key.
const SHORTEST: usize = 8;

/// Returns the document with all secrets redacted.
pub(super) fn redacted(document: Value) -> Value {
    match document {
        Value::Object(fields) => fields
            .into_iter()
            .map(|(name, value)| match value {
                value @ (Value::Null | Value::Bool(_)) => (name, value),
                _ if is_secret(&name) => (name, json!(REDACTED)),
                value => (name, redacted(value)),
            })
            .collect(),
        Value::Array(items) => items.into_iter().map(redacted).collect(),
        Value::String(text) => Value::String(scrubbed(&text)),
        other => other,
    }
}

fn is_secret(name: &str) -> bool {
    let name = name.to_lowercase().replace('-', "_");
    NAMES.iter().any(|word| name.contains(word)) && !HARMLESS.iter().any(|word| name.contains(word))
}

/// Returns the text with all words redacted that look like keys.
fn scrubbed(text: &str) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-_.~+/=".contains(c);
    let mut kept = String::with_capacity(text.len());
    let mut after_bearer = false;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let end = if is_part(c) {
            rest.find(|c| !is_part(c)).unwrap_or(rest.len())
        } else {
            rest.find(is_part).unwrap_or(rest.len())
        };
        let (piece, later) = rest.split_at(end);
        rest = later;
        if !is_part(c) {
            after_bearer &= piece.trim().is_empty();
            kept.push_str(piece);
            continue;
        }
        let is_key = PREFIXES.iter().any(|prefix| piece.starts_with(prefix)) || after_bearer;
        kept.push_str(if is_key && piece.len() >= SHORTEST { REDACTED } else { piece });
        after_bearer = piece.eq_ignore_ascii_case("bearer");
    }
    kept
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::json;

    use super::{redacted, scrubbed};

    #[test]
    fn s1_66_values_of_secret_fields_are_redacted() {
        let shown = redacted(json!({"a": [{"api_key": "sk-1", "X-Api-Key": 7, "input_tokens": 3,
            "token": {"value": "t"}, "password": null, "has_api_key": true}]}));
        assert_eq!(
            shown,
            json!({"a": [{"api_key": "[redacted]", "X-Api-Key": "[redacted]", "input_tokens": 3,
                "token": "[redacted]", "password": null, "has_api_key": true}]})
        );
    }

    #[test]
    fn s1_66_keys_in_texts_are_redacted() {
        for (text, expected) in [
            ("Incorrect API key: sk-abc123456.", "Incorrect API key: [redacted]"),
            ("Authorization: Bearer abc.def-123", "Authorization: Bearer [redacted]"),
            ("{\"key\":\"AIzaSyA0123\"}", "{\"key\":\"[redacted]\"}"),
            ("bearer of 坏消息 sk-1", "bearer of 坏消息 sk-1"),
            ("查询手机号13800138000的客户", "查询手机号13800138000的客户"),
            ("", ""),
        ] {
            assert_eq!(scrubbed(text), expected);
        }
    }
}
