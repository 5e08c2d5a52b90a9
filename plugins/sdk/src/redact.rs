//! Redaction: replaces what looks like a secret in documents and texts that people read later.
//!
//! Services repeat keys in their error messages, and documents have fields such as `api_key`. A
//! plugin that stores requests, outputs or failures redacts them first:
//!
//! ```
//! use serde_json::json;
//! use wattle_plugin::redact::{self, Redaction};
//!
//! let output = json!({ "api_key": 4711, "error": "Incorrect API key: sk-abc123456" });
//! let shown = json!({ "api_key": "[redacted]", "error": "Incorrect API key: [redacted]" });
//! assert_eq!(redact::value(output), shown);
//! assert_eq!(redact::text("Bearer abc.def-123 is not valid"), "Bearer [redacted] is not valid");
//!
//! // An application adds names of its own.
//! let redaction = Redaction::new().field("phone").harmless("phone_type");
//! let shown = redaction.value(json!({ "home_phone": "555-0100", "phone_type": "home" }));
//! assert_eq!(shown, json!({ "home_phone": "[redacted]", "phone_type": "home" }));
//! ```
//!
//! Redaction recognizes names and forms only. The host itself keeps the secrets of the operator
//! away from guests.

use serde_json::Value;

/// Text in place of a secret.
const REDACTED: &str = "[redacted]";

/// Parts of the names of fields whose values are redacted.
const FIELDS: &[&str] = &["api_key", "apikey", "authorization", "password", "secret", "token"];

/// Parts of the names of token counts, which are not secrets.
const HARMLESS: &[&str] = &["tokens", "token_count"];

/// Prefixes of keys of well-known services.
const PREFIXES: &[&str] = &["sk-", "sk_", "AIza", "ghp_", "xoxb-"];

/// Minimum bytes of a key.
const SHORTEST: usize = 8;

/// Redacts a document with the default lists of names and prefixes, as [`Redaction::value`] does.
pub fn value(document: Value) -> Value {
    Redaction::new().value(document)
}

/// Redacts a text with the default list of prefixes, as [`Redaction::text`] does.
pub fn text(text: &str) -> String {
    Redaction::new().text(text)
}

/// Lists of what looks like a secret: the default lists, and the additions of an application.
///
/// | list | default |
/// |---|---|
/// | fields | `api_key`, `apikey`, `authorization`, `password`, `secret`, `token` |
/// | harmless fields | `tokens`, `token_count` |
/// | prefixes of keys | `sk-`, `sk_`, `AIza`, `ghp_`, `xoxb-` |
#[derive(Debug, Clone, Default)]
pub struct Redaction {
    fields: Vec<String>,
    harmless: Vec<String>,
    prefixes: Vec<String>,
}

impl Redaction {
    /// Creates a redaction with the default lists.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a part of the names of fields whose values are redacted. Names are compared in lower
    /// case and with `_` for `-`.
    pub fn field(mut self, part: &str) -> Self {
        self.fields.push(normal(part));
        self
    }

    /// Adds a part of the names of fields that are not secrets, also if the name has a part of a
    /// secret.
    pub fn harmless(mut self, part: &str) -> Self {
        self.harmless.push(normal(part));
        self
    }

    /// Adds a prefix of keys. A key consists of ASCII letters, digits and the characters
    /// `-_.~+/=`, and has at least 8 bytes.
    pub fn prefix(mut self, prefix: &str) -> Self {
        self.prefixes.push(prefix.to_owned());
        self
    }

    /// Redacts the values of fields with the name of a secret, of any type except null and boolean,
    /// and all texts of the document as [`Redaction::text`] does.
    pub fn value(&self, document: Value) -> Value {
        match document {
            Value::Object(fields) => fields
                .into_iter()
                .map(|(name, value)| match value {
                    value @ (Value::Null | Value::Bool(_)) => (name, value),
                    _ if self.is_secret(&name) => (name, REDACTED.into()),
                    value => (name, self.value(value)),
                })
                .collect(),
            Value::Array(items) => items.into_iter().map(|item| self.value(item)).collect(),
            Value::String(text) => Value::String(self.text(&text)),
            other => other,
        }
    }

    /// Redacts the words of a text that look like keys: those with a prefix of a key, and those
    /// after `Bearer`.
    pub fn text(&self, text: &str) -> String {
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
            let is_key = after_bearer || has(PREFIXES, &self.prefixes, |it| piece.starts_with(it));
            kept.push_str(if is_key && piece.len() >= SHORTEST { REDACTED } else { piece });
            after_bearer = piece.eq_ignore_ascii_case("bearer");
        }
        kept
    }

    fn is_secret(&self, name: &str) -> bool {
        let name = normal(name);
        has(FIELDS, &self.fields, |part| name.contains(part))
            && !has(HARMLESS, &self.harmless, |part| name.contains(part))
    }
}

/// Returns true if an item of the default list or of the additions matches.
fn has(defaults: &[&str], added: &[String], matches: impl Fn(&str) -> bool) -> bool {
    defaults.iter().any(|item| matches(item)) || added.iter().any(|item| matches(item))
}

/// Returns the name of a field in the form in which names are compared.
fn normal(name: &str) -> String {
    name.to_lowercase().replace('-', "_")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Redaction, value};

    #[test]
    fn fields_with_names_of_secrets_and_keys_in_texts_are_redacted() {
        for (document, expected) in [
            (json!([{"api_key": "sk-1"}]), json!([{"api_key": "[redacted]"}])),
            (json!({"X-Api-Key": 7}), json!({"X-Api-Key": "[redacted]"})),
            (json!({"token": {"value": "t"}}), json!({"token": "[redacted]"})),
            (json!({"input_tokens": 3}), json!({"input_tokens": 3})),
            (json!({"password": null}), json!({"password": null})),
            (json!({"has_api_key": true}), json!({"has_api_key": true})),
            (json!("Incorrect API key: sk-abc123456."), json!("Incorrect API key: [redacted]")),
            (
                json!({"a": ["Authorization: Bearer abc.def-123"]}),
                json!({"a": ["Authorization: Bearer [redacted]"]}),
            ),
            (json!("{\"key\":\"AIzaSyA0123\"}"), json!("{\"key\":\"[redacted]\"}")),
            (json!("bearer of 坏消息 sk-1"), json!("bearer of 坏消息 sk-1")),
            (json!("查询手机号13800138000的客户"), json!("查询手机号13800138000的客户")),
            (json!(""), json!("")),
        ] {
            assert_eq!(value(document.clone()), expected, "{document}");
        }
    }

    #[test]
    fn additions_extend_the_default_lists() {
        let redaction = Redaction::new().field("Id-Card").harmless("Secret-Kind").prefix("glpat-");
        for (document, expected) in [
            (json!({"id_cards": [1]}), json!({"id_cards": "[redacted]"})),
            (json!({"secret_kind": "a"}), json!({"secret_kind": "a"})),
            (json!({"secret": "a"}), json!({"secret": "[redacted]"})),
            (json!("glpat-0123 xk-01234"), json!("[redacted] xk-01234")),
        ] {
            assert_eq!(redaction.value(document.clone()), expected, "{document}");
        }
    }
}
