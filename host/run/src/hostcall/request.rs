//! The identity of a host call and its form in the journal.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use wattle_graph::failure::Failure;
use wattle_graph::id::Digest;

use crate::hostcall::HostCall;
use crate::json::check_depth;
use crate::limit;

/// Maximum length of a string that counts as a name rather than as content, in bytes.
const SHORT_FIELD_BYTES: usize = 256;

/// Maximum length of the JSON text of such a string, in bytes: its quotes, and `\u0000` for each of
/// its bytes.
const SHORT_FIELD_TEXT_BYTES: usize = 2 + 6 * SHORT_FIELD_BYTES;

/// Maximum length of a summary, in characters. Most URLs are shorter. A guest can choose longer
/// ones, and a statement in SQL without spaces is a single word.
const SUMMARY_CHARS: usize = 2_000;

/// A host call: its identity for re-executions, and its description for people.
pub(crate) struct CallRequest {
    /// Interface and function.
    pub function: &'static str,
    /// Digest of the whole request.
    pub digest: Digest,
    /// One-line description for people, of at most [`SUMMARY_CHARS`].
    pub summary: String,
    /// Size of the whole request in bytes.
    pub bytes: u64,
    journal_form: JournalForm,
}

/// The request as the journal stores it.
enum JournalForm {
    /// JSON value, stored whole.
    Value(Value),
    /// JSON text of the request, truncated in the journal if it is long or deep.
    Text(Vec<u8>),
}

impl CallRequest {
    /// Creates the request of a host call.
    ///
    /// # Errors
    ///
    /// `internal` if the request cannot be serialized.
    pub(crate) fn of<C: HostCall>(call: &C) -> Result<Self, Failure> {
        let text = serde_json::to_vec(call).map_err(|error| {
            Failure::internal(format!("cannot journal {}: {error}", C::FUNCTION))
        })?;
        let (digest, bytes) = (Digest::of(&text), text.len() as u64);
        let part = call.journaled_request().and_then(|part| serde_json::to_vec(&part).ok());
        let journal_form = JournalForm::Text(part.unwrap_or(text));
        let summary = shortened(&call.summary());
        Ok(Self { function: C::FUNCTION, digest, summary, bytes, journal_form })
    }

    /// Creates the request of a small call, which the journal stores whole and without a summary.
    pub(crate) fn small(function: &'static str, request: Value) -> Self {
        let text = request.to_string();
        let (digest, bytes) = (Digest::of(text.as_bytes()), text.len() as u64);
        Self {
            function,
            digest,
            summary: String::new(),
            bytes,
            journal_form: JournalForm::Value(request),
        }
    }

    /// Sets the summary.
    pub(crate) fn with_summary(self, summary: &str) -> Self {
        Self { summary: shortened(summary), ..self }
    }

    /// Omits the content, because the call has an event of its own that holds it.
    pub(crate) fn omit_content(&mut self) {
        self.journal_form = JournalForm::Value(Value::Null);
    }

    /// Returns the request as the journal stores it.
    pub(crate) fn journaled(&self) -> Value {
        match &self.journal_form {
            JournalForm::Value(request) => request.clone(),
            JournalForm::Text(text) => truncated(text),
        }
    }
}

fn shortened(summary: &str) -> String {
    summary.chars().take(SUMMARY_CHARS).collect()
}

/// Returns a request as the journal stores it. A long or deep request is truncated: the field
/// `head` has its first bytes.
fn truncated(text: &[u8]) -> Value {
    if text.len() <= limit::JOURNAL_REQUEST_BYTES {
        let whole: Option<Value> = serde_json::from_slice(text).ok();
        if let Some(whole) = whole.filter(|whole| check_depth("a request", whole).is_ok()) {
            return whole;
        }
    }
    let head = String::from_utf8_lossy(&text[..text.len().min(limit::JOURNAL_REQUEST_BYTES)]);
    let mut brief = short_fields(text);
    brief.insert("head".to_owned(), json!(head));
    brief.insert("bytes".to_owned(), json!(text.len()));
    Value::Object(brief)
}

/// Returns the short top-level strings of a request: route, tool, call id, URL. A search of the log
/// finds them even if the request is truncated.
fn short_fields(text: &[u8]) -> Map<String, Value> {
    serde_json::from_slice(text).map_or_else(|_| Map::new(), |ShortFields(fields)| fields)
}

/// The short strings among the fields of an object. All other fields are skipped without a copy of
/// their text.
struct ShortFields(Map<String, Value>);

impl<'de> Deserialize<'de> for ShortFields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ShortFieldsVisitor)
    }
}

struct ShortFieldsVisitor;

impl<'de> Visitor<'de> for ShortFieldsVisitor {
    type Value = ShortFields;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<ShortFields, A::Error> {
        let mut fields = Map::new();
        // Of several fields with one name the last one counts, even if it is not a short string.
        while let Some((name, text)) = object.next_entry::<String, &'de RawValue>()? {
            fields.insert(name, short_text(text.get()).map_or(Value::Null, Value::String));
        }
        fields.retain(|_, field| field.is_string());
        Ok(ShortFields(fields))
    }
}

/// Returns the string that a JSON text contains, if the text is a short string.
fn short_text(text: &str) -> Option<String> {
    if text.len() > SHORT_FIELD_TEXT_BYTES {
        return None;
    }
    let field: String = serde_json::from_str(text).ok()?;
    (field.len() <= SHORT_FIELD_BYTES).then_some(field)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocation::allocated_bytes;
    use crate::hostcall::sql::{Query, Statement};
    use wattle_graph::tool::ToolRequest;

    fn call(argument: &str, state: Option<Value>) -> ToolRequest {
        ToolRequest {
            tool: "find".to_owned(),
            call_id: "c1".to_owned(),
            arguments: json!({ "text": argument }),
            timeout_ms: None,
            state,
        }
    }

    #[test]
    fn short_request_is_journaled_whole() {
        let request = CallRequest::of(&call("x", None)).unwrap();
        assert_eq!(request.journaled(), json!(call("x", None)));
        assert_eq!((request.function, request.summary.as_str()), ("tools.call", "find"));
    }

    #[test]
    fn long_request_is_journaled_with_its_head_and_short_fields() {
        let long = call(&"x".repeat(limit::JOURNAL_REQUEST_BYTES), None);
        let request = CallRequest::of(&long).unwrap();
        let shown = request.journaled();
        assert_eq!((&shown["tool"], &shown["call_id"]), (&json!("find"), &json!("c1")));
        assert_eq!(shown["bytes"], json!(request.bytes));
        assert_eq!(shown["head"].as_str().map(str::len), Some(limit::JOURNAL_REQUEST_BYTES));
    }

    #[test]
    fn summary_of_a_long_request_is_truncated() {
        let numbers = vec!["7"; limit::JOURNAL_REQUEST_BYTES].join(",");
        let text = format!("SELECT name FROM cities WHERE id IN ({numbers})");
        let statement = Statement { database: "geo".to_owned(), text, parameters: Vec::new() };
        let summary = CallRequest::of(&Query(statement)).unwrap().summary;
        assert!(summary.starts_with("geo: SELECT name FROM cities WHERE id IN (7,7"), "{summary}");
        assert_eq!(summary.chars().count(), SUMMARY_CHARS);
        let small = CallRequest::small("sql.transaction", Value::Null);
        let named = small.with_summary(&"x".repeat(SUMMARY_CHARS + 1));
        assert_eq!(named.summary.len(), SUMMARY_CHARS);
    }

    #[test]
    fn short_fields_of_a_request_are_its_short_strings_in_their_order() {
        let (short, long) = ("\u{1}".repeat(SHORT_FIELD_BYTES), "x".repeat(SHORT_FIELD_BYTES + 1));
        let request = json!({
            "z": "last", "a": short, "b": long, "c": 1, "d": null, "e": ["x"], "f": { "g": "x" },
        });
        let found = short_fields(request.to_string().as_bytes());
        assert_eq!(json!(found).to_string(), json!({ "z": "last", "a": short }).to_string());
        let twice = short_fields(br#"{"b":"1","a":"1","b":"2","a":[]}"#);
        assert_eq!(Value::from(twice), json!({ "b": "2" }), "the last field of a name counts");
        for text in ["", "[\"a\"]", "{\"a\":\"b\"", "{\"a\":\"b\"}}"] {
            assert!(short_fields(text.as_bytes()).is_empty(), "{text}");
        }
    }

    #[test]
    fn short_fields_of_a_large_request_take_little_memory() {
        // Escaped text cannot be borrowed.
        let large = call(&"line\n".repeat(2 << 20), None);
        let text = serde_json::to_vec(&large).unwrap();
        assert!(text.len() > 10 << 20, "{}", text.len());
        let (found, bytes) = allocated_bytes(|| short_fields(&text));
        assert_eq!(Value::from(found), json!({ "tool": "find", "call_id": "c1" }));
        assert!(bytes < 16 << 10, "{bytes} bytes");
    }

    #[test]
    fn digest_covers_omitted_parts_of_a_request() {
        let one = CallRequest::of(&call("x", Some(json!({ "count": 1 })))).unwrap();
        let two = CallRequest::of(&call("x", Some(json!({ "count": 2 })))).unwrap();
        assert_eq!(one.journaled(), two.journaled());
        assert_ne!(one.digest, two.digest);
    }
}
