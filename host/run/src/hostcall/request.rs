//! The identity of a host call and its form in the journal.

use serde_json::{Map, Value, json};
use wattle_graph::failure::Failure;
use wattle_graph::id::Digest;

use crate::hostcall::HostCall;
use crate::json::check_depth;
use crate::limit;

/// Maximum length of a string that counts as a name rather than as content, in bytes.
const SHORT_FIELD_BYTES: usize = 256;

/// A host call: its identity for re-executions, and its description for people.
pub(crate) struct CallRequest {
    /// Interface and function.
    pub function: &'static str,
    /// Digest of the whole request.
    pub digest: Digest,
    /// One-line description for people.
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
        Ok(Self { function: C::FUNCTION, digest, summary: call.summary(), bytes, journal_form })
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
    pub(crate) fn with_summary(self, summary: String) -> Self {
        Self { summary, ..self }
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

/// Returns a request, truncated to its head if it is long or deep.
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
    let Ok(Value::Object(whole)) = serde_json::from_slice(text) else { return Map::new() };
    let is_short = |value: &Value| value.as_str().is_some_and(|it| it.len() <= SHORT_FIELD_BYTES);
    whole.into_iter().filter(|(_, value)| is_short(value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
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
    fn digest_covers_omitted_parts_of_a_request() {
        let one = CallRequest::of(&call("x", Some(json!({ "count": 1 })))).unwrap();
        let two = CallRequest::of(&call("x", Some(json!({ "count": 2 })))).unwrap();
        assert_eq!(one.journaled(), two.journaled());
        assert_ne!(one.digest, two.digest);
    }
}
