//! Metrics, as a collector reads them.

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};

use crate::state::ApiState;

/// All metrics as text. Behind the same guards as the API: names of apps and routes are in there.
pub async fn metrics(State(state): State<ApiState>) -> Response {
    match &state.metrics {
        Some(metrics) => {
            ([(header::CONTENT_TYPE, metrics.content_type)], (metrics.text)()).into_response()
        }
        None => StatusCode::NOT_FOUND.into_response(),
    }
}
