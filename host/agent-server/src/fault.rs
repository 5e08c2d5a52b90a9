//! Why a request is not answered, in the form `{"detail": "..."}`.

use axum::Json;
use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;
use axum::response::{IntoResponse, Response};
use serde_json::json;
use wattle_api::problem::{Problem, api_code, retry_seconds, status_of};
use wattle_graph::failure::{Failure, code};
use wattle_run::ports::store::StoreError;

use crate::wire::request::Invalid;

/// Codes that clients of this protocol know by another status than those of the native API.
const TABLE: &[(&str, StatusCode)] = &[
    (code::INVALID, StatusCode::UNPROCESSABLE_ENTITY),
    (code::EXPIRED, StatusCode::NOT_FOUND),
    (api_code::MEDIA_TYPE, StatusCode::UNPROCESSABLE_ENTITY),
    // Clients try 501 again, and again in vain.
    (code::UNSUPPORTED, StatusCode::UNPROCESSABLE_ENTITY),
];

/// An answer that says why there is no other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    status: StatusCode,
    detail: String,
    /// Seconds until the request may be tried again.
    retry_after: Option<u64>,
}

impl Fault {
    fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into(), retry_after: None }
    }

    /// Something of the request does not exist.
    pub(crate) fn missing(what: &str, id: &str) -> Self {
        Self::not_found(format!("there is no {what} `{id}`"))
    }

    /// The same in other words.
    pub(crate) fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, detail)
    }

    /// The request is not of the form that it needs.
    pub(crate) fn unprocessable(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
    }

    /// The form is right, and what it says cannot be done.
    pub(crate) fn value(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    /// Something stands in the way.
    pub(crate) fn conflict(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, detail)
    }

    /// What it says.
    pub(crate) fn detail(&self) -> &str {
        &self.detail
    }

    /// The status that it is answered with.
    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    fn of_code(code: &str, detail: String) -> Self {
        let row = TABLE.iter().find(|(known, _)| *known == code);
        Self::new(row.map_or_else(|| status_of(code), |(_, status)| *status), detail)
    }
}

impl From<Problem> for Fault {
    fn from(problem: Problem) -> Self {
        let retry_after = problem.retry_after;
        Self { retry_after, ..Self::of_code(&problem.code, problem.detail.clone()) }
    }
}

impl From<Failure> for Fault {
    fn from(failure: Failure) -> Self {
        let retry_after = retry_seconds(&failure);
        Self { retry_after, ..Self::of_code(&failure.code, failure.message) }
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Failure::from(error).into()
    }
}

impl From<Invalid> for Fault {
    fn from(invalid: Invalid) -> Self {
        let detail = invalid.to_string();
        match invalid {
            Invalid::Value(_) => Self::value(detail),
            Invalid::Schema(_) => Self::unprocessable(detail),
        }
    }
}

impl IntoResponse for Fault {
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
    fn codes_have_the_statuses_that_clients_know() {
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
            assert_eq!(Fault::from(Failure::new(code, "")).status.as_u16(), status, "{code}");
        }
    }
}
