//! The metrics endpoint.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};

use crate::native::tenant_scope::OperatorOnly;
use crate::state::MetricsExporter;
use crate::traffic::Traffic;

/// Responds with all metrics as text. Only for the operator: the labels contain names of apps and
/// routes, and the values are sums over all tenants.
pub async fn metrics(
    State(exporter): State<Option<MetricsExporter>>,
    State(traffic): State<Arc<Traffic>>,
    _: OperatorOnly,
) -> Response {
    match exporter {
        Some(exporter) => {
            let text = traffic.append_to(&(exporter.text)());
            ([(header::CONTENT_TYPE, exporter.content_type)], text).into_response()
        }
        None => StatusCode::NOT_FOUND.into_response(),
    }
}
