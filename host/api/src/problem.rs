//! Failures as `application/problem+json` (RFC 9457), with the one table of codes and statuses.

use axum::http::{HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use wattle_graph::failure::{Failure, code};
use wattle_run::ports::store::StoreError;

/// Codes that only the API uses; the others are those of [`code`].
pub mod api_code {
    /// No key, or an unknown one.
    pub const UNAUTHORIZED: &str = "unauthorized";
    /// The `Host` header names a host that was not configured.
    pub const HOST: &str = "host-not-allowed";
    /// A browser page of another origin tries to change something.
    pub const ORIGIN: &str = "origin-not-allowed";
    /// The path exists for other methods.
    pub const METHOD: &str = "method-not-allowed";
    /// The request body is larger than the limit.
    pub const TOO_LARGE: &str = "too-large";
    /// The request body is not JSON.
    pub const MEDIA_TYPE: &str = "unsupported-media-type";
    /// The byte range lies outside the blob.
    pub const RANGE: &str = "range";
}

/// Every code that the host itself answers with, its status and its title. A code that is not
/// here comes from a guest and is answered with 500.
///
/// `limit` is 422 and not 429: the same request would reach the same limit again, so clients must
/// not repeat it by themselves.
const TABLE: &[(&str, StatusCode, &str)] = &[
    (code::INVALID, StatusCode::BAD_REQUEST, "the request makes no sense"),
    (code::DENIED, StatusCode::FORBIDDEN, "not granted"),
    (code::NOT_FOUND, StatusCode::NOT_FOUND, "there is no such thing"),
    (code::EXPIRED, StatusCode::GONE, "it has expired"),
    (code::CONFLICT, StatusCode::CONFLICT, "not in the state that the request needs"),
    (code::BUSY, StatusCode::CONFLICT, "somebody else is at work on it"),
    (code::CANCELLED, StatusCode::CONFLICT, "cancelled on request"),
    (code::LIMIT, StatusCode::UNPROCESSABLE_ENTITY, "a limit was reached"),
    (code::RATE_LIMITED, StatusCode::TOO_MANY_REQUESTS, "too many requests"),
    (code::UNSUPPORTED, StatusCode::NOT_IMPLEMENTED, "not supported by this host yet"),
    (code::UNAVAILABLE, StatusCode::SERVICE_UNAVAILABLE, "something needed cannot be reached"),
    (code::TIMEOUT, StatusCode::GATEWAY_TIMEOUT, "it took too long"),
    (code::TRAP, StatusCode::INTERNAL_SERVER_ERROR, "a plugin crashed"),
    (code::BROKEN, StatusCode::INTERNAL_SERVER_ERROR, "what is stored was changed"),
    (code::DIVERGENCE, StatusCode::INTERNAL_SERVER_ERROR, "a re-executed node did something else"),
    (code::INTERNAL, StatusCode::INTERNAL_SERVER_ERROR, "a fault of the host"),
    (api_code::UNAUTHORIZED, StatusCode::UNAUTHORIZED, "a key is needed"),
    (api_code::HOST, StatusCode::MISDIRECTED_REQUEST, "unknown host name"),
    (api_code::ORIGIN, StatusCode::FORBIDDEN, "the page's origin may not call"),
    (api_code::METHOD, StatusCode::METHOD_NOT_ALLOWED, "the path has other methods"),
    (api_code::TOO_LARGE, StatusCode::PAYLOAD_TOO_LARGE, "the request is too large"),
    (api_code::MEDIA_TYPE, StatusCode::UNSUPPORTED_MEDIA_TYPE, "the body must be JSON"),
    (api_code::RANGE, StatusCode::RANGE_NOT_SATISFIABLE, "no such range"),
];

/// The status that a code is answered with.
pub fn status_of(code: &str) -> StatusCode {
    row(code).map_or(StatusCode::INTERNAL_SERVER_ERROR, |(_, status, _)| *status)
}

fn row(code: &str) -> Option<&'static (&'static str, StatusCode, &'static str)> {
    TABLE.iter().find(|(known, ..)| *known == code)
}

/// The body of a problem answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ProblemDocument {
    /// A stable URI of the kind of problem.
    #[serde(rename = "type")]
    pub kind: String,
    /// The kind of problem in words.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What happened this time, and what to do.
    pub detail: String,
    /// A stable word for programs.
    pub code: String,
    /// The path that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// Structured facts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// Methods that the path has, for the `Allow` header.
    #[serde(skip)]
    #[schema(ignore)]
    pub allow: Option<String>,
    /// Seconds until the request may be tried again, for the `Retry-After` header.
    #[serde(skip)]
    #[schema(ignore)]
    pub retry_after: Option<u64>,
}

/// An answer that says why there is no other. Boxed, since it travels in many `Result`s.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem(pub Box<ProblemDocument>);

impl Problem {
    /// A problem with the status and title of its code.
    pub fn new(code: &str, detail: impl Into<String>) -> Self {
        let title = row(code).map_or("the app failed", |(_, _, title)| *title);
        Self(Box::new(ProblemDocument {
            kind: format!("urn:wattle:problem:{code}"),
            title: title.to_owned(),
            status: status_of(code).as_u16(),
            detail: detail.into(),
            code: code.to_owned(),
            instance: None,
            details: None,
            allow: None,
            retry_after: None,
        }))
    }

    /// Something of the request does not exist.
    pub fn not_found(what: &str, name: &str, hint: &str) -> Self {
        Self::new(code::NOT_FOUND, format!("there is no {what} `{name}`; {hint}"))
    }

    /// Names the path that was asked for.
    pub fn at(mut self, path: &str) -> Self {
        self.0.instance = Some(path.to_owned());
        self
    }

    /// The same problem with another status.
    pub fn with_status(mut self, status: StatusCode) -> Self {
        self.0.status = status.as_u16();
        self
    }

    /// Says in how many seconds the request may be tried again.
    pub fn retry_after(mut self, seconds: u64) -> Self {
        self.0.retry_after = Some(seconds);
        self
    }

    /// Adds structured facts.
    pub fn with_details(mut self, details: Value) -> Self {
        self.0.details = Some(details);
        self
    }

    /// The path exists for the given methods only.
    pub fn method_not_allowed(method: &Method, path: &str, allow: &str) -> Self {
        let detail = format!("`{path}` does not answer {method}; it answers {allow}");
        let mut problem = Self::new(api_code::METHOD, detail).at(path);
        problem.0.allow = Some(allow.to_owned());
        problem
    }
}

impl std::ops::Deref for Problem {
    type Target = ProblemDocument;

    fn deref(&self) -> &ProblemDocument {
        &self.0
    }
}

/// Seconds until a request may be tried again that failed for something that passes by itself: another
/// host needs less to recover a run that this one stopped.
const RETRY_SECONDS: u64 = 1;

/// Seconds until a request may be tried again that failed so; `None` if that is of no use.
pub fn retry_seconds(failure: &Failure) -> Option<u64> {
    (failure.retryable && failure.code == code::UNAVAILABLE).then_some(RETRY_SECONDS)
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Self {
        let mut problem = Self::new(&failure.code, failure.message.as_str());
        problem.0.retry_after = retry_seconds(&failure);
        problem.0.details = failure.details;
        problem
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        Failure::from(error).into()
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        if status.is_server_error() {
            tracing::warn!(code = self.code, instance = self.instance, "{}", self.detail);
        }
        let mut response = (status, axum::Json(&*self)).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(allow) =
            self.allow.as_deref().and_then(|allow| HeaderValue::from_str(allow).ok())
        {
            headers.insert(header::ALLOW, allow);
        }
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, seconds.into());
        }
        response
    }
}

/// Answers a native path that was asked for with a method it does not have. The framework adds
/// the `Allow` header.
pub async fn method_not_allowed(method: Method, uri: Uri) -> Problem {
    let detail = format!("`{}` does not answer {method}", uri.path());
    Problem::new(api_code::METHOD, detail).at(uri.path())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_stands_in_the_table_once() {
        for (index, (code, ..)) in TABLE.iter().enumerate() {
            assert!(!TABLE[index + 1..].iter().any(|(other, ..)| other == code), "{code}");
        }
        assert_eq!(status_of("a-guests-own"), StatusCode::INTERNAL_SERVER_ERROR);
    }

    #[test]
    fn a_failure_keeps_its_code_and_details() {
        let failure = Failure::new(code::NOT_FOUND, "there is no thread `x`")
            .with_details(serde_json::json!({ "thread": "x" }));
        let problem = Problem::from(failure).at("/api/v1/threads/x");
        insta::assert_json_snapshot!(*problem, @r#"
        {
          "type": "urn:wattle:problem:not-found",
          "title": "there is no such thing",
          "status": 404,
          "detail": "there is no thread `x`",
          "code": "not-found",
          "instance": "/api/v1/threads/x",
          "details": {
            "thread": "x"
          }
        }
        "#);
    }
}
