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

use std::ops::Range;

use serde_json::Value;

/// Text in place of a secret.
const REDACTED: &str = "[redacted]";

/// Parts of the names of fields whose values are redacted.
const FIELDS: &[&str] = &["api_key", "apikey", "authorization", "password", "secret", "token"];

/// Parts of the names of token counts, whose numbers are not secrets.
const COUNTS: &[&str] = &["tokens", "token_count"];

/// Prefixes of keys of well-known services.
const PREFIXES: &[&str] = &["sk-", "sk_", "AIza", "ghp_", "xoxb-"];

/// Minimum bytes of a key.
const SHORTEST: usize = 8;

/// Redacts a document with the default lists of names and prefixes, as [`Redaction::value`] does.
pub fn value(document: Value) -> Value {
    Redaction::new().value(document)
}

/// Redacts a text with the default lists of names and prefixes, as [`Redaction::text`] does.
pub fn text(text: &str) -> String {
    Redaction::new().text(text)
}

/// Lists of what looks like a secret: the default lists, and the additions of an application.
///
/// | list | default |
/// |---|---|
/// | fields | `api_key`, `apikey`, `authorization`, `password`, `secret`, `token` |
/// | harmless fields | none; numbers in `tokens` and `token_count` are kept |
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

    /// Adds a part of the names of fields that are not secrets, even if the name has a part of a
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
    /// and all texts of the document as [`Redaction::text`] does. Of a field with the name of a
    /// token count, only the texts are redacted.
    pub fn value(&self, document: Value) -> Value {
        match document {
            Value::Object(fields) => fields
                .into_iter()
                .map(|(name, value)| match value {
                    value @ (Value::Null | Value::Bool(_)) => (name, value),
                    value if self.is_secret(&name) && is_count(&name) => {
                        (name, without_texts(value))
                    }
                    _ if self.is_secret(&name) => (name, REDACTED.into()),
                    value => (name, self.value(value)),
                })
                .collect(),
            Value::Array(items) => items.into_iter().map(|item| self.value(item)).collect(),
            Value::String(text) => Value::String(self.text(&text)),
            other => other,
        }
    }

    /// Redacts what looks like a secret in a text:
    ///
    /// * keys: words with the prefix of a key at the start or after `=` or `/`,
    /// * credentials: words after `Bearer`, and after `Authorization: Basic`,
    /// * values of fields with the name of a secret, as in `password=...` and in JSON.
    pub fn text(&self, text: &str) -> String {
        let mut kept = String::with_capacity(text.len());
        // The two words before, and what separates them from the next one.
        let (mut before, mut previous, mut gap) = ("", "", "");
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            let end = if is_part(c) {
                rest.find(|c| !is_part(c)).unwrap_or(rest.len())
            } else {
                rest.find(is_part).unwrap_or(rest.len())
            };
            let word = &rest[..end];
            if !is_part(c) {
                kept.push_str(word);
                (gap, rest) = (word, &rest[end..]);
                continue;
            }
            // `authorization=Bearer` is one word.
            let (field, scheme) = previous.rsplit_once('=').unwrap_or((before, previous));
            let is_credential = end >= SHORTEST
                && gap.trim().is_empty()
                && (scheme.eq_ignore_ascii_case("bearer")
                    || (scheme.eq_ignore_ascii_case("basic")
                        && field.to_lowercase().ends_with("authorization")));
            let secret = if is_credential { Some(0..end) } else { self.secret(rest, end) };
            if let Some(secret) = secret {
                kept.push_str(&rest[..secret.start]);
                kept.push_str(REDACTED);
                rest = &rest[secret.end..];
            } else {
                kept.push_str(word);
                rest = &rest[end..];
            }
            (before, previous, gap) = (previous, word, "");
        }
        kept
    }

    /// Returns the range of the secret that the first word of a text contains or names. The word
    /// ends at `end`.
    fn secret(&self, text: &str, end: usize) -> Option<Range<usize>> {
        let word = &text[..end];
        let assigned = word.match_indices('=').find_map(|(at, _)| {
            let name = word[..at].rsplit(['/', '=']).next()?;
            self.secret_value(name, text, at + 1)
        });
        let in_json = || self.secret_value(word, text, value_in_json(text, end)?);
        let key = || {
            let starts = word.match_indices(['/', '=']).map(|(at, _)| at + 1);
            let is_key = |start: &usize| {
                let key = &word[*start..];
                key.len() >= SHORTEST && has(PREFIXES, &self.prefixes, |it| key.starts_with(it))
            };
            std::iter::once(0).chain(starts).find(is_key).map(|start| start..end)
        };
        assigned.or_else(in_json).or_else(key)
    }

    /// Returns the range of the value at `start`, without its quotes, if the name is that of a
    /// secret.
    fn secret_value(&self, name: &str, text: &str, start: usize) -> Option<Range<usize>> {
        if !self.is_secret(name) {
            return None;
        }
        let quote = quote(&text[start..]);
        let start = start + quote.len();
        let value = &text[start..];
        let value = &value[..end_of_value(value, quote)];
        let is_plain = matches!(value, "" | "null" | "true" | "false" | REDACTED)
            || (is_count(name) && value.bytes().all(|byte| byte.is_ascii_digit()));
        (!is_plain).then_some(start..start + value.len())
    }

    fn is_secret(&self, name: &str) -> bool {
        let name = normal(name);
        has(FIELDS, &self.fields, |part| name.contains(part))
            && !has(&[], &self.harmless, |part| name.contains(part))
    }
}

/// Returns true for a character of a word.
fn is_part(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-_.~+/=".contains(c)
}

/// Returns the start of the value of a JSON field whose name ends at `end`.
fn value_in_json(text: &str, end: usize) -> Option<usize> {
    let rest = &text[end..];
    let quote = quote(rest);
    let rest = rest[quote.len()..].trim_start().strip_prefix(':')?.trim_start();
    (!quote.is_empty()).then_some(text.len() - rest.len())
}

/// Returns the quote that a text begins with, with the backslashes that it has in JSON within JSON.
fn quote(text: &str) -> &str {
    let rest = text.trim_start_matches('\\');
    let backslashes = text.len() - rest.len();
    let is_quote = rest.starts_with('"') || (backslashes == 0 && rest.starts_with('\''));
    if is_quote { &text[..=backslashes] } else { "" }
}

/// Returns the length of a value after its opening quote, which is empty for a bare value.
fn end_of_value(value: &str, quote: &str) -> usize {
    if quote.is_empty() {
        let is_end = |c: char| c.is_whitespace() || "&;,\"'<>()[]{}".contains(c);
        return value.find(is_end).unwrap_or(value.len());
    }
    // Each level of JSON doubles the backslashes of the level within it, and adds one to a quote.
    // A closing quote has as many as the opening one. Backslashes at the end of the value add a
    // multiple of twice the length of the quote. Any other number is that of a quote in the value.
    let mut backslashes = 0;
    for (at, c) in value.char_indices() {
        if quote.ends_with(c) && backslashes % (2 * quote.len()) == quote.len() - 1 {
            return at - (quote.len() - 1);
        }
        backslashes = if c == '\\' { backslashes + 1 } else { 0 };
    }
    value.len()
}

/// Returns true if a field has the name of a token count.
fn is_count(name: &str) -> bool {
    let name = normal(name);
    COUNTS.iter().any(|part| name.contains(part))
}

/// Redacts the texts of a document, and keeps its numbers.
fn without_texts(document: Value) -> Value {
    match document {
        Value::Object(fields) => {
            fields.into_iter().map(|(name, value)| (name, without_texts(value))).collect()
        }
        Value::Array(items) => items.into_iter().map(without_texts).collect(),
        Value::String(_) => REDACTED.into(),
        other => other,
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
    use serde_json::Value;

    use super::{Redaction, text, value};
    use crate::vectors::vectors;

    /// A document, and how it is shown.
    type Case = (Value, Value);

    #[test]
    fn fields_with_names_of_secrets_and_keys_in_texts_are_redacted() {
        for (document, expected) in vectors::<Vec<Case>>("redacted") {
            if let Some(whole) = document.as_str() {
                assert_eq!(text(whole), expected, "{whole}");
            }
            assert_eq!(value(document.clone()), expected, "{document}");
        }
    }

    #[test]
    fn additions_extend_the_default_lists() {
        let redaction = Redaction::new().field("Id-Card").harmless("Secret-Kind").prefix("glpat-");
        for (document, expected) in vectors::<Vec<Case>>("redacted_with_additions") {
            assert_eq!(redaction.value(document.clone()), expected, "{document}");
        }
    }
}
