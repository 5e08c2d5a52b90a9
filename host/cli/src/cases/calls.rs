//! Results that a case provides for calls of models and services.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};
use wattle_graph::failure::Failure;
use wattle_graph::llm::{Completion, FinishReason, Part, ToolCall, Usage};
use wattle_run::hostcall::http::HttpResponse;

use crate::cases::date::Today;
use crate::cases::matcher::Matcher;

/// Name of the model in the completions of a case.
const MODEL: &str = "case";

/// The result of one call of a model or a service. Each stub is used for at most one call.
#[derive(Clone, Debug)]
pub(crate) struct CallStub {
    /// Matcher that the request of a call must satisfy.
    pub(crate) request: Matcher,
    /// The result of a call with a matching request.
    pub(crate) result: StubResult,
    /// The entry as it is written in the data set.
    pub(crate) source: Value,
}

/// The result of a call.
#[derive(Clone, Debug)]
pub(crate) enum StubResult {
    /// The completion of a model.
    Completion(Result<Completion, Failure>),
    /// The response to an HTTP request.
    Response(Result<HttpResponse, Failure>),
}

/// An entry as it is written in the data set.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    llm: Option<Value>,
    http: Option<Value>,
    text: Option<String>,
    json: Option<Value>,
    #[serde(default)]
    tool_calls: Vec<CalledTool>,
    status: Option<u16>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    failure: Option<FailedCall>,
}

/// A tool call that a model requests.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CalledTool {
    name: String,
    #[serde(default)]
    arguments: Value,
}

/// A failure of a call.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FailedCall {
    code: String,
    #[serde(default)]
    message: String,
    #[serde(default)]
    retryable: bool,
}

impl CallStub {
    /// Parses an entry under `calls`.
    pub(crate) fn parse(source: &Value) -> Result<Self, String> {
        let entry: Entry =
            serde_json::from_value(source.clone()).map_err(|error| error.to_string())?;
        let (request, result) = match (&entry.llm, &entry.http) {
            (Some(request), None) => (request, StubResult::Completion(entry.completion()?)),
            (None, Some(request)) => (request, StubResult::Response(entry.response()?)),
            _ => {
                return Err(
                    "an entry needs either `llm` or `http`, which describes the request".into()
                );
            }
        };
        let request = Matcher::parse(request)?;
        Ok(Self { request, result, source: source.clone() })
    }

    /// Returns true if the entry provides the result for a request.
    pub(crate) fn matches(&self, request: &Value, today: &Today) -> bool {
        self.request.matches_value(request, today)
    }
}

impl Entry {
    fn failure(&self) -> Result<Option<Failure>, String> {
        let Some(FailedCall { code, message, retryable }) = &self.failure else { return Ok(None) };
        let has_result = self.text.is_some()
            || self.json.is_some()
            || self.status.is_some()
            || !self.tool_calls.is_empty();
        if has_result {
            return Err("`failure` excludes every other result".into());
        }
        let mut failure = Failure::new(code.as_str(), message.as_str());
        failure.retryable = *retryable;
        Ok(Some(failure))
    }

    fn completion(&self) -> Result<Result<Completion, Failure>, String> {
        if self.status.is_some() || !self.headers.is_empty() {
            return Err("only a response to `http` has `status` and `headers`".into());
        }
        if let Some(failure) = self.failure()? {
            return Ok(Err(failure));
        }
        let text = match (&self.text, &self.json) {
            (Some(_), Some(_)) => return Err("`text` and `json` exclude each other".into()),
            (Some(text), None) => Some(text.clone()),
            (None, json) => json.as_ref().map(Value::to_string),
        };
        let calls = self.tool_calls.iter().enumerate().map(|(index, call)| {
            let arguments = match &call.arguments {
                Value::Null => json!({}),
                arguments => arguments.clone(),
            };
            Part::ToolCall(ToolCall {
                id: format!("call-{index}"),
                name: call.name.clone(),
                arguments,
            })
        });
        let parts: Vec<Part> = text.into_iter().map(Part::Text).chain(calls).collect();
        if parts.is_empty() {
            return Err(
                "a completion for `llm` needs `text`, `json`, `tool_calls` or `failure`".into()
            );
        }
        let is_call = !self.tool_calls.is_empty();
        Ok(Ok(Completion {
            id: None,
            parts,
            // The structured output is set later, because the request decides whether it is needed.
            structured: None,
            finish_reason: if is_call { FinishReason::ToolCalls } else { FinishReason::Stop },
            usage: Usage::default(),
            model: MODEL.to_owned(),
            attempts: Vec::new(),
        }))
    }

    fn response(&self) -> Result<Result<HttpResponse, Failure>, String> {
        if !self.tool_calls.is_empty() {
            return Err("only a completion for `llm` has `tool_calls`".into());
        }
        if let Some(failure) = self.failure()? {
            return Ok(Err(failure));
        }
        let (kind, body) = match (&self.text, &self.json) {
            (Some(_), Some(_)) => return Err("`text` and `json` exclude each other".into()),
            (Some(text), None) => ("text/plain; charset=utf-8", text.clone()),
            (None, Some(json)) => ("application/json", json.to_string()),
            (None, None) => ("text/plain; charset=utf-8", String::new()),
        };
        let mut headers: BTreeMap<String, String> =
            self.headers.iter().map(|(name, value)| (name.to_lowercase(), value.clone())).collect();
        headers.entry("content-type".to_owned()).or_insert_with(|| kind.to_owned());
        Ok(Ok(HttpResponse {
            status: self.status.unwrap_or(200),
            headers: headers.into_iter().collect(),
            body: body.into(),
            url: String::new(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;

    use super::*;

    fn result(entry: Value) -> StubResult {
        CallStub::parse(&entry).unwrap().result
    }

    #[test]
    fn completions_have_text_documents_and_tool_calls() {
        let StubResult::Completion(Ok(text)) = result(json!({ "llm": {}, "text": "hello" })) else {
            panic!("a completion")
        };
        assert_eq!((text.text(), text.structured), ("hello".to_owned(), None));
        let document = json!({ "llm": { "route": "chat" }, "json": { "kind": "buy" } });
        let StubResult::Completion(Ok(document)) = result(document) else { panic!("a completion") };
        assert_eq!(document.structured, None);
        assert_eq!(document.text(), r#"{"kind":"buy"}"#);
        let calls = json!({ "llm": {}, "tool_calls": [{ "name": "now" }] });
        let StubResult::Completion(Ok(calls)) = result(calls) else { panic!("a completion") };
        assert_eq!(calls.finish_reason, FinishReason::ToolCalls);
        assert_eq!(calls.tool_calls().next().unwrap().arguments, json!({}));
    }

    #[test]
    fn responses_have_a_status_headers_and_a_body() {
        let entry = json!({ "http": {}, "status": 404, "headers": { "X-Id": "7" }, "json": [1] });
        let StubResult::Response(Ok(response)) = result(entry) else { panic!("a response") };
        assert_eq!((response.status, &response.body[..]), (404, &b"[1]"[..]));
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let expected = [header("content-type", "application/json"), header("x-id", "7")];
        assert_eq!(response.headers, expected);
        let failed = json!({ "http": {}, "failure": { "code": "timeout", "retryable": true } });
        let StubResult::Response(Err(failure)) = result(failed) else { panic!("a failure") };
        assert!(failure.code == "timeout" && failure.retryable);
    }

    #[test]
    fn an_entry_has_the_result_of_matching_requests() {
        let today = Today { now_ms: 0, zone: TimeZone::UTC };
        let entry = json!({ "http": { "method": "GET", "url": { "$matches": "/quotes/" } } });
        let entry = CallStub::parse(&entry).unwrap();
        let request = |url: &str| json!({ "method": "GET", "url": url, "headers": [] });
        assert!(entry.matches(&request("https://a.example/quotes/7"), &today));
        assert!(!entry.matches(&request("https://a.example/"), &today));
    }

    #[test]
    fn invalid_entries_are_refused() {
        for (entry, why) in [
            (json!({ "text": "a" }), "either `llm` or `http`"),
            (json!({ "llm": {}, "http": {}, "text": "a" }), "either `llm` or `http`"),
            (json!({ "llm": {} }), "needs `text`"),
            (json!({ "llm": {}, "text": "a", "json": 1 }), "exclude each other"),
            (json!({ "llm": {}, "text": "a", "status": 200 }), "only a response to `http`"),
            (json!({ "http": {}, "tool_calls": [{ "name": "a" }] }), "only a completion for `llm`"),
            (
                json!({ "http": {}, "text": "a", "failure": { "code": "a" } }),
                "excludes every other result",
            ),
            (json!({ "sql": {} }), "unknown field `sql`"),
            (json!({ "llm": { "$like": 1 }, "text": "a" }), "there is no matcher"),
        ] {
            let error = CallStub::parse(&entry).unwrap_err();
            assert!(error.contains(why), "{entry}: {error}");
        }
    }
}
