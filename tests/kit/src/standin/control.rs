//! The control endpoints over HTTP: faults, request log and release.

use axum::{
    Json,
    http::StatusCode,
    response::{IntoResponse as _, Response},
};
use serde_json::json;

use super::{call::Call, fault_rule::FaultRule, shared::Shared};

/// Responds to a request under `/__`. Such requests are not logged, and faults do not apply to
/// them.
pub(super) fn answer(shared: &Shared, call: &Call) -> Response {
    match (call.method.as_str(), call.path.as_str()) {
        ("GET", "/__faults") => Json(shared.orders.list()).into_response(),
        ("POST", "/__faults") => add_fault(shared, call),
        ("DELETE", "/__faults") => {
            shared.orders.clear();
            StatusCode::NO_CONTENT.into_response()
        }
        ("GET", "/__requests") => Json(shared.journal.list()).into_response(),
        ("DELETE", "/__requests") => {
            shared.journal.clear();
            StatusCode::NO_CONTENT.into_response()
        }
        ("POST", "/__release") => {
            shared.release();
            StatusCode::NO_CONTENT.into_response()
        }
        (method, path) => {
            let error = format!(
                "unknown control endpoint `{method} {path}`; \
                 the endpoints are /__faults, /__requests and /__release"
            );
            (StatusCode::NOT_FOUND, Json(json!({ "error": error }))).into_response()
        }
    }
}

fn add_fault(shared: &Shared, call: &Call) -> Response {
    match serde_json::from_slice::<FaultRule>(&call.body) {
        Ok(rule) => {
            shared.orders.add(rule);
            StatusCode::NO_CONTENT.into_response()
        }
        Err(failure) => {
            let error = format!("cannot read the fault rule: {failure}");
            (StatusCode::BAD_REQUEST, Json(json!({ "error": error }))).into_response()
        }
    }
}
