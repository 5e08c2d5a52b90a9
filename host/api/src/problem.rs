//! Failures as `application/problem+json` (RFC 9457), with the table of codes and statuses.

use axum::http::{HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use wattle_graph::failure::{Failure, code};
use wattle_run::ports::store::StoreError;

/// Codes that only the API uses, in addition to those of [`code`].
pub mod api_code {
    /// The request has no key or an unknown key, or names no tenant.
    pub const UNAUTHORIZED: &str = "unauthorized";
    /// The `Host` header names a host that is not configured.
    pub const HOST: &str = "host-not-allowed";
    /// A browser page of another origin sent a request that changes something.
    pub const ORIGIN: &str = "origin-not-allowed";
    /// The path has no operation for the method.
    pub const METHOD: &str = "method-not-allowed";
    /// The request body is larger than the limit.
    pub const TOO_LARGE: &str = "too-large";
    /// The request body does not have the media type that the path accepts.
    pub const MEDIA_TYPE: &str = "unsupported-media-type";
    /// The byte range lies outside of the blob.
    pub const RANGE: &str = "range";
}

/// Codes of the host, with status and title. Any other code comes from a guest and has the status
/// 500.
///
/// `limit` is 422 and not 429: the same request would reach the same limit again, so clients must
/// not retry it automatically.
const TABLE: &[(&str, StatusCode, &str)] = &[
    (code::INVALID, StatusCode::BAD_REQUEST, "invalid request"),
    (code::DENIED, StatusCode::FORBIDDEN, "not granted"),
    (code::NOT_FOUND, StatusCode::NOT_FOUND, "not found"),
    (code::EXPIRED, StatusCode::GONE, "expired"),
    (code::CONFLICT, StatusCode::CONFLICT, "not in the state that the request needs"),
    (code::BUSY, StatusCode::CONFLICT, "busy"),
    (code::CANCELLED, StatusCode::CONFLICT, "cancelled on request"),
    (code::LIMIT, StatusCode::UNPROCESSABLE_ENTITY, "limit exceeded"),
    (code::RATE_LIMITED, StatusCode::TOO_MANY_REQUESTS, "too many requests"),
    (code::UNSUPPORTED, StatusCode::NOT_IMPLEMENTED, "not supported by this host yet"),
    (code::UNAVAILABLE, StatusCode::SERVICE_UNAVAILABLE, "temporarily unavailable"),
    (code::TIMEOUT, StatusCode::GATEWAY_TIMEOUT, "timed out"),
    (code::TRAP, StatusCode::INTERNAL_SERVER_ERROR, "a plugin crashed"),
    (code::BROKEN, StatusCode::INTERNAL_SERVER_ERROR, "stored data is damaged"),
    (code::DIVERGENCE, StatusCode::INTERNAL_SERVER_ERROR, "a node diverged from its journal"),
    (code::INTERNAL, StatusCode::INTERNAL_SERVER_ERROR, "internal error of the host"),
    (api_code::UNAUTHORIZED, StatusCode::UNAUTHORIZED, "authentication required"),
    (api_code::HOST, StatusCode::MISDIRECTED_REQUEST, "unknown host name"),
    (api_code::ORIGIN, StatusCode::FORBIDDEN, "origin not allowed"),
    (api_code::METHOD, StatusCode::METHOD_NOT_ALLOWED, "method not allowed"),
    (api_code::TOO_LARGE, StatusCode::PAYLOAD_TOO_LARGE, "the request is too large"),
    (api_code::MEDIA_TYPE, StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported media type"),
    (api_code::RANGE, StatusCode::RANGE_NOT_SATISFIABLE, "range not satisfiable"),
];

/// Returns the status of responses with a code.
pub fn status_of(code: &str) -> StatusCode {
    row(code).map_or(StatusCode::INTERNAL_SERVER_ERROR, |(_, status, _)| *status)
}

fn row(code: &str) -> Option<&'static (&'static str, StatusCode, &'static str)> {
    TABLE.iter().find(|(known, ..)| *known == code)
}

/// The body of an error response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ProblemDocument {
    /// Stable URI of the kind of problem.
    #[serde(rename = "type")]
    pub kind: String,
    /// Human-readable title of the kind of problem.
    pub title: String,
    /// HTTP status of the response.
    pub status: u16,
    /// Human-readable explanation of this occurrence, with a hint.
    pub detail: String,
    /// Stable machine-readable code.
    pub code: String,
    /// Path of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// Structured data of the failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// Methods of the path, for the `Allow` header.
    #[serde(skip)]
    #[schema(ignore)]
    pub allow: Option<String>,
    /// Seconds until the request can be retried, for the `Retry-After` header.
    #[serde(skip)]
    #[schema(ignore)]
    pub retry_after: Option<u64>,
}

/// An error response. Boxed to keep `Result` small.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem(pub Box<ProblemDocument>);

impl Problem {
    /// Creates a problem with the status and title of its code.
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

    /// Creates a `not-found` problem for a resource. `what` is its kind, and `name` the name in the
    /// request.
    pub fn not_found(what: &str, name: &str, hint: &str) -> Self {
        Self::new(code::NOT_FOUND, format!("there is no {what} `{name}`; {hint}"))
    }

    /// Sets the path of the request.
    pub fn with_instance(mut self, path: &str) -> Self {
        self.0.instance = Some(path.to_owned());
        self
    }

    /// Replaces the status.
    pub fn with_status(mut self, status: StatusCode) -> Self {
        self.0.status = status.as_u16();
        self
    }

    /// Sets the seconds until the request can be retried.
    pub fn with_retry_after(mut self, seconds: u64) -> Self {
        self.0.retry_after = Some(seconds);
        self
    }

    /// Sets the structured data.
    pub fn with_details(mut self, details: Value) -> Self {
        self.0.details = Some(details);
        self
    }

    /// Creates a `method-not-allowed` problem. `allow` lists the methods of the path.
    pub fn method_not_allowed(method: &Method, path: &str, allow: &str) -> Self {
        let detail = format!("`{path}` does not support {method}; allowed: {allow}");
        let mut problem = Self::new(api_code::METHOD, detail).with_instance(path);
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

/// `Retry-After` of transient failures, in seconds. When a host shuts down, another host takes over
/// its runs within this time.
const RETRY_SECONDS: u64 = 1;

/// Returns the number of seconds after which a request can be retried; `None` if the failure is not
/// transient.
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

/// Responds to a method that a native path does not have. The framework adds the `Allow` header.
pub async fn method_not_allowed(method: Method, uri: Uri) -> Problem {
    let detail = format!("`{}` does not support {method}", uri.path());
    Problem::new(api_code::METHOD, detail).with_instance(uri.path())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_in_the_table_once() {
        for (index, (code, ..)) in TABLE.iter().enumerate() {
            assert!(!TABLE[index + 1..].iter().any(|(other, ..)| other == code), "{code}");
        }
        assert_eq!(status_of("a-guests-own"), StatusCode::INTERNAL_SERVER_ERROR);
    }

    #[test]
    fn problem_has_the_code_and_details_of_its_failure() {
        let failure = Failure::new(code::NOT_FOUND, "there is no thread `x`")
            .with_details(serde_json::json!({ "thread": "x" }));
        let problem = Problem::from(failure).with_instance("/api/v1/threads/x");
        insta::assert_json_snapshot!(*problem, @r#"
        {
          "type": "urn:wattle:problem:not-found",
          "title": "not found",
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
