//! Errors of the Agent Server API: a status and `{"detail": "..."}`.

use axum::Json;
use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;
use axum::response::{IntoResponse, Response};
use serde_json::json;
use wattle_api::problem::{Problem, api_code, retry_seconds, status_of};
use wattle_graph::failure::{Failure, code};
use wattle_run::ports::store::StoreError;

use crate::wire::request::RequestError;

/// Failure codes whose status differs from that of the native API.
const STATUS_OVERRIDES: &[(&str, StatusCode)] = &[
    (code::INVALID, StatusCode::UNPROCESSABLE_ENTITY),
    (code::EXPIRED, StatusCode::NOT_FOUND),
    (api_code::MEDIA_TYPE, StatusCode::UNPROCESSABLE_ENTITY),
    // Clients retry a 501, but a retry cannot succeed.
    (code::UNSUPPORTED, StatusCode::UNPROCESSABLE_ENTITY),
];

/// An error of the Agent Server API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ApiError {
    status: StatusCode,
    detail: String,
    /// Seconds after which a retry can succeed.
    retry_after: Option<u64>,
}

impl ApiError {
    fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into(), retry_after: None }
    }

    /// Returns 404 for a resource that does not exist.
    pub(crate) fn missing(what: &str, id: &str) -> Self {
        Self::not_found(format!("there is no {what} `{id}`"))
    }

    /// Returns 404 with a message.
    pub(crate) fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, detail)
    }

    /// Returns 422: the request is malformed.
    pub(crate) fn unprocessable(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
    }

    /// Returns 400: the request is well-formed but cannot be carried out.
    pub(crate) fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    /// Returns 409: the request conflicts with the current state.
    pub(crate) fn conflict(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, detail)
    }

    /// Returns 500: the handler of the request panicked.
    ///
    /// # Errors
    ///
    /// Always returns the error, so that a caller can return the result in place of the handler's
    /// result.
    pub(crate) fn panicked<T>() -> Result<T, Self> {
        Err(Failure::internal("internal error: the request handler panicked").into())
    }

    /// Returns the message for the client.
    pub(crate) fn detail(&self) -> &str {
        &self.detail
    }

    /// Returns the status of the response.
    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    fn from_code(code: &str, detail: String) -> Self {
        let row = STATUS_OVERRIDES.iter().find(|(known, _)| *known == code);
        Self::new(row.map_or_else(|| status_of(code), |(_, status)| *status), detail)
    }
}

impl From<Problem> for ApiError {
    fn from(problem: Problem) -> Self {
        let retry_after = problem.retry_after;
        Self { retry_after, ..Self::from_code(&problem.code, problem.detail.clone()) }
    }
}

impl From<Failure> for ApiError {
    fn from(failure: Failure) -> Self {
        let retry_after = retry_seconds(&failure);
        Self { retry_after, ..Self::from_code(&failure.code, failure.message) }
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        Failure::from(error).into()
    }
}

impl From<RequestError> for ApiError {
    fn from(error: RequestError) -> Self {
        let detail = error.to_string();
        match error {
            RequestError::BadRequest(_) => Self::bad_request(detail),
            RequestError::Unprocessable(_) => Self::unprocessable(detail),
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        if self.status.is_server_error() {
            tracing::warn!(status = self.status.as_u16(), "{}", self.detail);
        }
        let retry_after = self.retry_after.map(|seconds| [(RETRY_AFTER, seconds.to_string())]);
        (self.status, retry_after, Json(json!({ "detail": self.detail }))).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failure_codes_map_to_statuses() {
        for (code, status) in [
            (code::INVALID, 422),
            (code::NOT_FOUND, 404),
            (code::EXPIRED, 404),
            (code::BUSY, 409),
            (code::CONFLICT, 409),
            (code::UNAVAILABLE, 503),
            (code::INTERNAL, 500),
            ("a-guests-own", 500),
        ] {
            assert_eq!(ApiError::from(Failure::new(code, "")).status.as_u16(), status, "{code}");
        }
    }
}
