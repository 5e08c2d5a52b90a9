//! Blobs by digest.

use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Serialize;
use wattle_graph::failure::code;
use wattle_graph::id::ThreadId;
use wattle_run::call::runs::Runs as _;
use wattle_run::ports::blob::BlobRef;

use crate::blob_body;
use crate::native::scope::Scope;
use crate::problem::{Problem, ProblemDocument};
use crate::state::ApiState;

/// Events of a log that are looked through at a time.
const PAGE_EVENTS: usize = 1_000;

/// Reads a blob, whole or one byte range. Only for the operator if there are tenants: a digest does
/// not say whose blob it is.
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
    scope: Scope,
    Path(digest): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let blob = parse(&digest)?;
    if scope.tenant.is_some() {
        let hint = "tenants read blobs with `GET /api/v1/threads/{thread}/blobs/{digest}`";
        return Err(Problem::not_found("blob", &digest, hint));
    }
    blob_body::answer(state.engine.ports().blobs.clone(), blob, &headers).await
}

/// Reads a blob that a thread mentions in its log or its state.
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
    State(state): State<ApiState>,
    scope: Scope,
    Path((thread, digest)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let blob = parse(&digest)?;
    let thread = scope.thread(&state, &thread).await?.id;
    if !is_mentioned(&state, &thread, blob).await? {
        let hint = format!("thread `{thread}` mentions none of that digest");
        return Err(Problem::not_found("blob", &digest, &hint));
    }
    blob_body::answer(state.engine.ports().blobs.clone(), blob, &headers).await
}

fn parse(digest: &str) -> Result<BlobRef, Problem> {
    let digest = digest.strip_prefix("blob:").unwrap_or(digest).parse();
    let digest = digest
        .map_err(|error| Problem::new(code::INVALID, format!("{error}; send the hex digits")))?;
    Ok(BlobRef(digest))
}

/// Whether a blob stands in a thread's newest state or anywhere in its log. Inputs are in the state
/// alone, so one that was written over counts no more.
async fn is_mentioned(state: &ApiState, thread: &ThreadId, blob: BlobRef) -> Result<bool, Problem> {
    let view = state.engine.thread(thread).await?;
    if view.is_some_and(|view| mentions(&view.state, blob)) {
        return Ok(true);
    }
    let mut after = 0;
    loop {
        let page = state.engine.events(thread, after, PAGE_EVENTS).await?;
        if page.iter().any(|event| mentions(event, blob)) {
            return Ok(true);
        }
        match page.last() {
            Some(last) if page.len() == PAGE_EVENTS => after = last.seq,
            _ => return Ok(false),
        }
    }
}

/// JSON escapes no character of a reference, so it stands in the text as it is.
fn mentions(value: &impl Serialize, blob: BlobRef) -> bool {
    serde_json::to_string(value).is_ok_and(|text| text.contains(&blob.to_string()))
}
