//! Metrics, as a collector reads them.

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};

use crate::native::scope::OfHost;
use crate::state::ApiState;

/// All metrics as text. Behind the same guards as the API, and not for tenants: names of apps and
/// routes are in there, and what all tenants do.
pub async fn metrics(State(state): State<ApiState>, _: OfHost) -> Response {
    match &state.metrics {
        Some(metrics) => {
            let text = state.traffic.append_to(&(metrics.text)());
            ([(header::CONTENT_TYPE, metrics.content_type)], text).into_response()
        }
        None => StatusCode::NOT_FOUND.into_response(),
    }
}
