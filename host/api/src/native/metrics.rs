//! The metrics endpoint.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use wattle_run::engine::Engine;
use wattle_run::free_disk::DiskStatus;

use crate::native::tenant_scope::OperatorOnly;
use crate::state::MetricsExporter;
use crate::traffic::{Traffic, insert_before_end};

/// Responds with all metrics as text. Only for the operator: the labels contain names of apps and
/// routes, and the values are sums over all tenants.
pub async fn metrics(
    State(exporter): State<Option<MetricsExporter>>,
    State(traffic): State<Arc<Traffic>>,
    State(engine): State<Engine>,
    _: OperatorOnly,
) -> Response {
    match exporter {
        Some(exporter) => {
            let mut text = (exporter.text)();
            traffic.insert_into(&mut text);
            if let Some(disk) = engine.disk_status().await {
                insert_disk(&mut text, disk);
            }
            ([(header::CONTENT_TYPE, exporter.content_type)], text).into_response()
        }
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

/// Inserts the free space of the disk and its floor.
fn insert_disk(metrics: &mut String, disk: DiskStatus) {
    let DiskStatus { free_bytes, floor_bytes } = disk;
    let lines = format!(
        "# HELP wattle_disk_free_bytes Free space of the disk of the store.\n\
         # TYPE wattle_disk_free_bytes gauge\n\
         wattle_disk_free_bytes {free_bytes}\n\
         # HELP wattle_disk_floor_bytes Free space below which no run begins.\n\
         # TYPE wattle_disk_floor_bytes gauge\n\
         wattle_disk_floor_bytes {floor_bytes}\n"
    );
    insert_before_end(metrics, &lines);
}
