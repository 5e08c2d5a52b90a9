//! Errors in Google's format.

use axum::{Json, http::StatusCode, response::IntoResponse as _};
use serde_json::{Value, json};

use super::{faults::Fault, reply::Reply};

/// Returns the fault of a model that is no longer served.
pub fn google_not_found(model: &str) -> Fault {
    let message = format!(
        "models/{model} is not found for API version v1beta, or is not supported for \
         generateContent. Call ListModels to see the list of available models."
    );
    let body = error_body(StatusCode::NOT_FOUND, &message);
    Fault::Status { status: 404, retry_after: None, body: Some(body) }
}

/// Returns the fault of an exceeded quota, with the delay after which a retry may succeed.
pub fn google_quota(retry_delay: &str) -> Fault {
    let mut body = error_body(StatusCode::TOO_MANY_REQUESTS, "You exceeded your current quota.");
    body["error"]["details"] = json!([
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": retry_delay},
    ]);
    Fault::Status { status: 429, retry_after: None, body: Some(body) }
}

/// Returns an error in Google's format.
pub(super) fn error_body(status: StatusCode, message: &str) -> Value {
    let name = match status.as_u16() {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        400..=499 => "INVALID_ARGUMENT",
        503 => "UNAVAILABLE",
        _ => "INTERNAL",
    };
    json!({"error": {"code": status.as_u16(), "message": message, "status": name}})
}

/// Responds with an error in Google's format.
pub(super) fn refuse(status: StatusCode, message: &str) -> Reply {
    let response = (status, Json(error_body(status, message))).into_response();
    Reply { rule: "refuse", response }
}
