//! Threads, with their state and trace.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde_json::Value;
use wattle_graph::failure::code;
use wattle_graph::id::{IdError, ThreadId};
use wattle_project::trace::Trace;
use wattle_run::engine::Engine;
use wattle_run::hostcall::runs::{RunService, ThreadView};

use crate::document::run::RunDocument;
use crate::document::thread::ThreadDocument;
use crate::native::tenant_scope::{RequestRole, TenantScope, parse_thread_id};
use crate::problem::{Problem, ProblemDocument};
use crate::response::Json;
use crate::trace;

/// Default number of items in a page.
const DEFAULT_PAGE_SIZE: usize = 50;

/// Maximum number of items in a page. The limit is low, because states can be large.
pub(crate) const MAX_PAGE_SIZE: usize = 500;

/// Describes a thread: status, state, pending interrupts.
#[utoipa::path(get, path = "/api/v1/threads/{thread}",
    extensions(("x-wattle-access" = json!({ "share": "control" }))), tag = "threads",
    params(("thread" = String, Path, description = "id of the thread")),
    responses(
        (status = 200, body = ThreadDocument),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn get_thread(
    State(engine): State<Engine>,
    scope: TenantScope,
    Path(id): Path<String>,
) -> Result<Json<ThreadDocument>, Problem> {
    let record = scope.thread(&engine, &id).await?;
    if let Some(set_aside) = engine.set_aside(&record.id) {
        return Ok(Json(ThreadDocument::set_aside(&record, set_aside)));
    }
    let view = or_expired(engine.thread(&record.id).await?, &record.id)?;
    Ok(Json(ThreadDocument::new(view, &record)))
}

/// Deletes a thread with its runs, checkpoints and events. Pending and running runs are cancelled.
/// Only the operator can delete a damaged thread.
#[utoipa::path(delete, path = "/api/v1/threads/{thread}",
    extensions(("x-wattle-access" = json!({ "share": "control" }))), tag = "threads",
    params(("thread" = String, Path, description = "id of the thread")),
    responses(
        (status = 204),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn delete_thread(
    State(engine): State<Engine>,
    scope: Result<TenantScope, Problem>,
    role: RequestRole,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    if role.is_operator && engine.remove_damaged(&parse_thread_id(&id)?).await? {
        return Ok(StatusCode::NO_CONTENT);
    }
    let record = scope?.thread(&engine, &id).await?;
    engine.remove_thread(&record.id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Returns the state of a thread.
#[utoipa::path(get, path = "/api/v1/threads/{thread}/state", tag = "threads",
    params(("thread" = String, Path, description = "id of the thread")),
    responses(
        (status = 200, body = Value, description = "channel values by name"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn get_state(
    State(engine): State<Engine>,
    scope: TenantScope,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    Ok(Json(view(&engine, &scope, &id).await?.state))
}

/// Returns the trace of a thread as a tree: runs, supersteps, tasks, attempts, host calls.
#[utoipa::path(get, path = "/api/v1/threads/{thread}/trace", tag = "threads",
    params(("thread" = String, Path, description = "id of the thread")),
    responses(
        (status = 200, body = Trace),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn get_trace(
    State(engine): State<Engine>,
    scope: TenantScope,
    Path(id): Path<String>,
) -> Result<Json<Trace>, Problem> {
    let record = scope.thread(&engine, &id).await?;
    Ok(Json(trace::read(&engine, &record.id).await?))
}

/// Retries the recovery of the run of a thread that is set aside.
#[utoipa::path(post, path = "/api/v1/threads/{thread}/retry", tag = "threads",
    params(("thread" = String, Path, description = "id of the thread")),
    responses(
        (status = 202, body = RunDocument),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 409, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn retry_thread(
    State(engine): State<Engine>,
    scope: TenantScope,
    Path(thread): Path<String>,
) -> Result<(StatusCode, Json<RunDocument>), Problem> {
    let record = scope.thread(&engine, &thread).await?;
    let run = engine.retry_recovery(&record.id).await?;
    let record = scope.run(&engine, run.run.as_str()).await?;
    Ok((StatusCode::ACCEPTED, Json(record.into())))
}

async fn view(engine: &Engine, scope: &TenantScope, id: &str) -> Result<ThreadView, Problem> {
    let record = scope.thread(engine, id).await?;
    or_expired(engine.thread(&record.id).await?, &record.id)
}

fn or_expired(view: Option<ThreadView>, id: &ThreadId) -> Result<ThreadView, Problem> {
    view.ok_or_else(|| Problem::new(code::EXPIRED, format!("thread `{id}` has expired")))
}

/// Returns the number of items in a page for a requested limit.
pub(crate) fn page_size(limit: Option<usize>) -> usize {
    limit.unwrap_or(DEFAULT_PAGE_SIZE).clamp(1, MAX_PAGE_SIZE)
}

#[expect(clippy::needless_pass_by_value, reason = "passed to `map_err`")]
pub(crate) fn invalid_query(error: axum::extract::rejection::QueryRejection) -> Problem {
    Problem::new(code::INVALID, format!("the query is not valid: {}", error.body_text()))
}

#[expect(clippy::needless_pass_by_value, reason = "passed to `map_err`")]
pub(crate) fn invalid_id(error: IdError) -> Problem {
    Problem::new(code::INVALID, error.to_string())
}
