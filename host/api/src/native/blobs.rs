//! Blobs by digest.

use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::Response;
use wattle_graph::failure::code;
use wattle_run::engine::Engine;
use wattle_run::ports::blob::BlobRef;

use crate::blob_response;
use crate::native::tenant_scope::TenantScope;
use crate::problem::{Problem, ProblemDocument};

/// Reads a whole blob or one byte range. Only for the operator if there are tenants, because a
/// digest does not identify a tenant.
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
    State(engine): State<Engine>,
    scope: TenantScope,
    Path(digest): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let blob = parse(&digest)?;
    if scope.tenant.is_some() {
        let hint = "tenants read blobs with `GET /api/v1/threads/{thread}/blobs/{digest}`";
        return Err(Problem::not_found("blob", &digest, hint));
    }
    blob_response::respond(engine.ports().blobs.clone(), blob, &headers).await
}

/// Reads a whole blob or one byte range. The log or a state of the thread must refer to the blob.
#[utoipa::path(get, path = "/api/v1/threads/{thread}/blobs/{digest}", tag = "threads",
    params(
        ("thread" = String, Path, description = "id of a thread"),
        ("digest" = String, Path, description = "64 hex digits"),
        ("range" = Option<String>, Header, description = "one byte range, such as `bytes=0-99`")),
    responses(
        (status = 200, content_type = "application/octet-stream"),
        (status = 206, content_type = "application/octet-stream"),
        (status = 304),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 416, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn get_thread_blob(
    State(engine): State<Engine>,
    scope: TenantScope,
    Path((thread, digest)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let blob = parse(&digest)?;
    let thread = scope.thread(&engine, &thread).await?.id;
    if !engine.ports().store.mentions(&thread, blob).await? {
        let hint = format!("thread `{thread}` does not refer to it");
        return Err(Problem::not_found("blob", &digest, &hint));
    }
    blob_response::respond(engine.ports().blobs.clone(), blob, &headers).await
}

fn parse(digest: &str) -> Result<BlobRef, Problem> {
    let digest = digest.strip_prefix("blob:").unwrap_or(digest).parse();
    let digest = digest
        .map_err(|error| Problem::new(code::INVALID, format!("{error}; send the hex digits")))?;
    Ok(BlobRef(digest))
}
