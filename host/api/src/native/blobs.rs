//! Blobs by digest.

use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::Response;
use wattle_graph::failure::code;
use wattle_run::ports::blob::BlobRef;

use crate::blob_body;
use crate::problem::{Problem, ProblemDocument};
use crate::state::ApiState;

/// Reads a blob, whole or one byte range.
#[utoipa::path(get, path = "/api/v1/blobs/{digest}", tag = "host",
    params(
        ("digest" = String, Path, description = "64 hex digits"),
        ("range" = Option<String>, Header, description = "one byte range, such as `bytes=0-99`")),
    responses(
        (status = 200, content_type = "application/octet-stream"),
        (status = 206, content_type = "application/octet-stream"),
        (status = 304),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 416, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn get_blob(
    State(state): State<ApiState>,
    Path(digest): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let digest = digest.strip_prefix("blob:").unwrap_or(&digest).parse();
    let digest = digest
        .map_err(|error| Problem::new(code::INVALID, format!("{error}; send the hex digits")))?;
    let blobs = state.engine.ports().blobs.clone();
    blob_body::answer(blobs, BlobRef(digest), &headers).await
}
