//! The metrics endpoint.

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};

use crate::native::tenant_scope::OperatorOnly;
use crate::state::ApiState;

/// Responds with all metrics as text. Only for the operator: the labels contain names of apps and
/// routes, and the values are sums over all tenants.
pub async fn metrics(State(state): State<ApiState>, _: OperatorOnly) -> Response {
    match &state.metrics {
        Some(metrics) => {
            let text = state.traffic.append_to(&(metrics.text)());
            ([(header::CONTENT_TYPE, metrics.content_type)], text).into_response()
        }
        None => StatusCode::NOT_FOUND.into_response(),
    }
}
