//! Responses that reject a request before its handler runs.

use std::time::Duration;

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde_json::json;
use wattle_graph::failure::code;

use crate::problem::Problem;

/// The format of error responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorFormat {
    /// `application/problem+json`.
    Problem,
    /// `{"detail": "..."}`, the error format of Agent Servers.
    Detail,
}

/// The rejection of a request.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Rejection {
    problem: Problem,
    /// Delay until a retry is allowed.
    retry_after: Option<Duration>,
}

impl From<Problem> for Rejection {
    fn from(problem: Problem) -> Self {
        let retry_after = problem.retry_after.map(Duration::from_secs);
        Self { problem, retry_after }
    }
}

impl Rejection {
    /// Creates a rejection with status 429 and the delay until a retry is allowed.
    pub(super) fn too_many_requests(detail: String, wait: Duration) -> Self {
        let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).max(1);
        let details = json!({ "retry_after_ms": wait_ms });
        let problem = Problem::new(code::RATE_LIMITED, detail).with_details(details);
        Self { problem, retry_after: Some(wait) }
    }

    /// Converts the rejection into a response to a request for `path`.
    pub(super) fn into_response(self, format: ErrorFormat, path: &str) -> Response {
        let mut response = match format {
            ErrorFormat::Problem => self.problem.with_instance(path).into_response(),
            ErrorFormat::Detail => detail_response(&self.problem),
        };
        if let Some(wait) = self.retry_after {
            // Round up to whole seconds, so that a retry is never too early.
            let seconds = wait.as_millis().div_ceil(1_000).max(1);
            response.headers_mut().insert(header::RETRY_AFTER, number(seconds));
        }
        response
    }
}

fn detail_response(problem: &Problem) -> Response {
    let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = (status, Json(json!({ "detail": problem.detail }))).into_response();
    if status == StatusCode::UNAUTHORIZED {
        let bearer = HeaderValue::from_static("Bearer");
        response.headers_mut().insert(header::WWW_AUTHENTICATE, bearer);
    }
    response
}

fn number(seconds: u128) -> HeaderValue {
    HeaderValue::from(u64::try_from(seconds).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;

    use super::*;
    use crate::problem::api_code;

    async fn response_parts(
        rejection: Rejection,
        format: ErrorFormat,
    ) -> (u16, Option<String>, serde_json::Value) {
        let response = rejection.into_response(format, "/x");
        let (parts, body) = response.into_parts();
        let bytes = to_bytes(body, usize::MAX).await.unwrap();
        let retry = parts.headers.get(header::RETRY_AFTER);
        let retry = retry.map(|value| value.to_str().unwrap().to_owned());
        (parts.status.as_u16(), retry, serde_json::from_slice(&bytes).unwrap())
    }

    #[tokio::test]
    async fn both_formats_have_retry_after() {
        let rejection =
            || Rejection::too_many_requests("slower".into(), Duration::from_millis(1_001));
        let (status, retry, body) = response_parts(rejection(), ErrorFormat::Problem).await;
        assert_eq!((status, retry.as_deref()), (429, Some("2")));
        assert_eq!((&body["code"], &body["instance"]), (&json!("rate-limited"), &json!("/x")));
        assert_eq!(body["details"]["retry_after_ms"], 1_001);
        let (status, retry, body) = response_parts(rejection(), ErrorFormat::Detail).await;
        assert_eq!((status, retry.as_deref()), (429, Some("2")));
        assert_eq!(body, json!({ "detail": "slower" }));
    }

    #[tokio::test]
    async fn rejection_for_a_missing_key_has_no_retry_after() {
        let rejection = Rejection::from(Problem::new(api_code::UNAUTHORIZED, "a key"));
        let (status, retry, body) = response_parts(rejection, ErrorFormat::Detail).await;
        assert_eq!((status, retry, body), (401, None, json!({ "detail": "a key" })));
    }
}
