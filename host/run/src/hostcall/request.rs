//! The identity of a host call and its form in the journal.

use std::fmt;

use serde::Serialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use wattle_graph::failure::Failure;
use wattle_graph::id::Digest;
use wattle_graph::weight::weight;

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
    /// Size of the whole request with what it refers to, in bytes.
    pub bytes: u64,
    journal_form: JournalForm,
}

/// The request as the journal stores it.
enum JournalForm {
    /// JSON value, stored whole.
    Value(Value),
    /// JSON value that an event of the call holds. The journal stores null, and a divergence shows
    /// the value.
    Event(Value),
    /// JSON text of the request, truncated in the journal if it is long or deep. The function
    /// returns the fields that the journal has of a truncated request.
    Text(Vec<u8>, ReadField),
}

impl JournalForm {
    /// Returns what the journal stores.
    fn into_stored(self) -> Value {
        match self {
            Self::Value(stored) => stored,
            Self::Event(_) => Value::Null,
            Self::Text(text, read_field) => truncated(&text, read_field),
        }
    }
}

/// Returns the field of a request that a JSON text contains, if the journal stores the field of a
/// truncated request.
type ReadField = fn(&str) -> Option<Value>;

impl CallRequest {
    /// Creates the request of a host call. `resolved` is the call with what its request refers to;
    /// see [`HostCall::resolved`].
    ///
    /// # Errors
    ///
    /// `internal` if the request cannot be serialized.
    pub(crate) fn of<C: HostCall>(call: &C, resolved: Option<&C>) -> Result<Self, Failure> {
        let text = serde_json::to_vec(call).map_err(|error| {
            Failure::internal(format!("cannot journal {}: {error}", C::FUNCTION))
        })?;
        let (digest, bytes) = (Digest::of(&text), text.len() as u64 + call.referenced_bytes());
        let part = match resolved {
            Some(resolved) => serde_json::to_vec(resolved).ok(),
            None => call.journaled_request().and_then(|part| serde_json::to_vec(&part).ok()),
        };
        let journal_form = JournalForm::Text(part.unwrap_or(text), short_text);
        let summary = shortened(&call.summary());
        Ok(Self { function: C::FUNCTION, digest, summary, bytes, journal_form })
    }

    /// Creates the request of a call from the fields of an object, without a summary. If the request
    /// is long, the journal still stores each field whole that is not long itself.
    ///
    /// # Errors
    ///
    /// `internal` if the fields cannot be serialized.
    pub(crate) fn of_fields(
        function: &'static str,
        fields: &impl Serialize,
    ) -> Result<Self, Failure> {
        let text = serde_json::to_vec(fields)
            .map_err(|error| Failure::internal(format!("cannot journal {function}: {error}")))?;
        let (digest, bytes) = (Digest::of(&text), text.len() as u64);
        let journal_form = JournalForm::Text(text, short_field);
        Ok(Self { function, digest, summary: String::new(), bytes, journal_form })
    }

    /// Creates the request of a small call, which the journal stores whole and without a summary.
    pub(crate) fn small(function: &'static str, request: Value) -> Self {
        Self::of_value(function, request, JournalForm::Value)
    }

    /// Creates the request of a small call whose content is in an event of the call, and not in the
    /// journal.
    pub(crate) fn of_event(function: &'static str, content: Value) -> Self {
        Self::of_value(function, content, JournalForm::Event)
    }

    fn of_value(
        function: &'static str,
        request: Value,
        journal_form: fn(Value) -> JournalForm,
    ) -> Self {
        let text = request.to_string();
        let (digest, bytes) = (Digest::of(text.as_bytes()), text.len() as u64);
        Self {
            function,
            digest,
            summary: String::new(),
            bytes,
            journal_form: journal_form(request),
        }
    }

    /// Sets the summary.
    pub(crate) fn with_summary(self, summary: &str) -> Self {
        Self { summary: shortened(summary), ..self }
    }

    /// Keeps only what the journal stores of the request, for the time of the call. Returns its
    /// weight with the summary, in bytes.
    pub(crate) fn truncate(&mut self) -> u64 {
        let form = std::mem::replace(&mut self.journal_form, JournalForm::Value(Value::Null));
        let stored = form.into_stored();
        let bytes = weight(&stored) + self.summary.len() as u64;
        self.journal_form = JournalForm::Value(stored);
        bytes
    }

    /// Returns the request as the journal stores it. Until [`Self::truncate`] is called, the result
    /// has the content that an event of the call holds, for a divergence.
    pub(crate) fn journaled(&self) -> Value {
        match &self.journal_form {
            JournalForm::Value(request) | JournalForm::Event(request) => request.clone(),
            JournalForm::Text(text, read_field) => truncated(text, *read_field),
        }
    }

    /// Returns the request as the journal stores it, and the summary.
    pub(crate) fn into_journaled(self) -> (Value, String) {
        (self.journal_form.into_stored(), self.summary)
    }
}

fn shortened(summary: &str) -> String {
    summary.chars().take(SUMMARY_CHARS).collect()
}

/// Returns a request as the journal stores it. A long or deep request is truncated: the field
/// `head` has its first bytes.
fn truncated(text: &[u8], read_field: ReadField) -> Value {
    if text.len() <= limit::JOURNAL_REQUEST_BYTES {
        let whole: Option<Value> = serde_json::from_slice(text).ok();
        if let Some(whole) = whole.filter(|whole| check_depth("a request", whole).is_ok()) {
            return whole;
        }
    }
    let head = String::from_utf8_lossy(&text[..text.len().min(limit::JOURNAL_REQUEST_BYTES)]);
    let mut brief = fields_of(text, read_field);
    brief.insert("head".to_owned(), json!(head));
    brief.insert("bytes".to_owned(), json!(text.len()));
    Value::Object(brief)
}

/// Returns those top-level fields of a request that `read_field` returns; none if the text is not
/// that of an object.
fn fields_of(text: &[u8], read_field: ReadField) -> Map<String, Value> {
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let fields = deserializer.deserialize_map(FieldsVisitor(read_field));
    match (fields, deserializer.end()) {
        (Ok(fields), Ok(())) => fields,
        (Err(_), _) | (_, Err(_)) => Map::new(),
    }
}

/// Reads those fields of an object that a function returns. All other fields are skipped without a
/// copy of their text.
struct FieldsVisitor(ReadField);

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = Map<String, Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Self::Value, A::Error> {
        let mut fields = Map::new();
        // Of several fields with one name the last one counts, even if it is not returned.
        while let Some((name, text)) = object.next_entry::<String, &'de RawValue>()? {
            if let Some(field) = (self.0)(text.get()) {
                fields.insert(name, field);
            } else {
                fields.shift_remove(&name);
            }
        }
        Ok(fields)
    }
}

/// Returns the string that a JSON text contains, if the text is a short string: route, tool, call
/// id, URL. A search of the log finds such a field even if its request is truncated.
fn short_text(text: &str) -> Option<Value> {
    if text.len() > SHORT_FIELD_TEXT_BYTES {
        return None;
    }
    let field: String = serde_json::from_str(text).ok()?;
    (field.len() <= SHORT_FIELD_BYTES).then_some(Value::String(field))
}

/// Returns the value that a JSON text contains, if the text is neither long nor deep.
fn short_field(text: &str) -> Option<Value> {
    if text.len() > limit::JOURNAL_REQUEST_BYTES {
        return None;
    }
    let field: Value = serde_json::from_str(text).ok()?;
    check_depth("a field", &field).is_ok().then_some(field)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocation::allocated_bytes;
    use crate::hostcall::sql::{Query, Statement};
    use crate::limit::JSON_DEPTH;
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
        let request = CallRequest::of(&call("x", None), None).unwrap();
        assert_eq!(request.journaled(), json!(call("x", None)));
        assert_eq!((request.function, request.summary.as_str()), ("tools.call", "find"));
    }

    #[test]
    fn long_request_is_journaled_with_its_head_and_short_fields() {
        let long = call(&"x".repeat(limit::JOURNAL_REQUEST_BYTES), None);
        let request = CallRequest::of(&long, None).unwrap();
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
        let summary = CallRequest::of(&Query(statement), None).unwrap().summary;
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
        let found = fields_of(request.to_string().as_bytes(), short_text);
        assert_eq!(json!(found).to_string(), json!({ "z": "last", "a": short }).to_string());
        let twice = fields_of(br#"{"b":"1","a":"1","b":"2","a":[]}"#, short_text);
        assert_eq!(Value::from(twice), json!({ "b": "2" }), "the last field of a name counts");
        for text in ["", "[\"a\"]", "{\"a\":\"b\"", "{\"a\":\"b\"}}"] {
            assert!(fields_of(text.as_bytes(), short_text).is_empty(), "{text}");
        }
    }

    #[test]
    fn short_fields_of_a_large_request_take_little_memory() {
        // Escaped text cannot be borrowed.
        let large = call(&"line\n".repeat(2 << 20), None);
        let text = serde_json::to_vec(&large).unwrap();
        assert!(text.len() > 10 << 20, "{}", text.len());
        let (found, bytes) = allocated_bytes(|| fields_of(&text, short_text));
        assert_eq!(Value::from(found), json!({ "tool": "find", "call_id": "c1" }));
        assert!(bytes < 16 << 10, "{bytes} bytes");
    }

    #[test]
    fn fields_that_are_not_long_are_journaled_with_a_long_request() {
        let long = "x".repeat(limit::JOURNAL_REQUEST_BYTES);
        let deep = (0..JSON_DEPTH).fold(json!(0), |inner, _| json!([inner]));
        let short = json!({ "graph": "g", "input": { "out": [1, null] }, "context": null });
        let request = CallRequest::of_fields("runs.start", &short).unwrap();
        assert_eq!((request.journaled(), request.summary.as_str()), (short, ""));
        let request = json!({ "graph": "g", "input": { "out": long }, "context": { "deep": 1 } });
        let shown = CallRequest::of_fields("runs.start", &request).unwrap().journaled();
        assert_eq!((&shown["graph"], &shown["context"]), (&json!("g"), &json!({ "deep": 1 })));
        assert_eq!(shown.get("input"), None);
        assert_eq!(shown["head"].as_str().map(str::len), Some(limit::JOURNAL_REQUEST_BYTES));
        let request = json!({ "input": null, "context": deep });
        let shown = CallRequest::of_fields("runs.start", &request).unwrap().journaled();
        assert_eq!((&shown["context"], shown.get("input")), (&deep, Some(&Value::Null)));
    }

    #[test]
    fn truncated_request_is_what_the_journal_stores() {
        for argument in ["x".to_owned(), "x".repeat(10 * limit::JOURNAL_REQUEST_BYTES)] {
            let mut request = CallRequest::of(&call(&argument, None), None).unwrap();
            let (stored, digest) = (request.journaled(), request.digest);
            assert_eq!(request.truncate(), weight(&stored) + "find".len() as u64);
            assert_eq!((request.journaled(), request.digest), (stored.clone(), digest));
            assert!(matches!(request.journal_form, JournalForm::Value(_)), "without its text");
            assert_eq!(request.into_journaled(), (stored, "find".to_owned()));
        }
    }

    #[test]
    fn content_that_an_event_holds_is_not_journaled() {
        let content = json!(["seen", [1, 2]]);
        let mut request = CallRequest::of_event("emit.custom", content.clone());
        assert_eq!(request.journaled(), content, "a divergence shows it");
        assert_eq!(request.digest, CallRequest::small("emit.custom", content).digest);
        assert_eq!(request.truncate(), weight(&Value::Null));
        assert_eq!(request.journaled(), Value::Null);
        assert_eq!(request.into_journaled(), (Value::Null, String::new()));
    }

    #[test]
    fn digest_covers_omitted_parts_of_a_request() {
        let one = CallRequest::of(&call("x", Some(json!({ "count": 1 }))), None).unwrap();
        let two = CallRequest::of(&call("x", Some(json!({ "count": 2 }))), None).unwrap();
        assert_eq!(one.journaled(), two.journaled());
        assert_ne!(one.digest, two.digest);
    }
}
