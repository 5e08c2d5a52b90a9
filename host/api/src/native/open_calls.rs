//! Pending calls of a thread, and decisions about calls in doubt.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::Deserialize;
use utoipa::ToSchema;
use wattle_graph::event::Decision;
use wattle_graph::id::TaskId;
use wattle_run::engine::Engine;
use wattle_run::engine::settle::SettleCall;

use crate::body::JsonBody;
use crate::document::pending_call::{DecisionDocument, PendingCallDocument};
use crate::native::request_principal::RequestPrincipal;
use crate::native::tenant_scope::TenantScope;
use crate::native::threads::invalid_id;
use crate::problem::{Problem, ProblemDocument};
use crate::response::Json;

/// Lists the pending calls of a thread: calls that were started and have no result. While a run is
/// running, its pending calls are in progress. After its host has stopped, they are in doubt.
#[utoipa::path(get, path = "/api/v1/threads/{thread}/open-calls", tag = "threads",
    params(("thread" = String, Path, description = "id of the thread")),
    responses(
        (status = 200, body = Vec<PendingCallDocument>),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn list_open_calls(
    State(engine): State<Engine>,
    scope: TenantScope,
    Path(id): Path<String>,
) -> Result<Json<Vec<PendingCallDocument>>, Problem> {
    let record = scope.thread(&engine, &id).await?;
    let calls = engine.pending_calls(&record.id).await?;
    Ok(Json(calls.into_iter().map(Into::into).collect()))
}

/// The decision about a call in doubt.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SettleDocument {
    /// Task of the call.
    task: String,
    /// Numbers of the enclosing tool calls; empty for a call of the node itself.
    #[serde(default)]
    scope: Vec<u32>,
    /// Number of the call in its scope.
    call: u32,
    /// Sequence number of the event with the start of the call. The decision is refused if the call
    /// has started again since then. By default, the decision is about the last start.
    #[serde(default)]
    seq: Option<u64>,
    /// `{"kind": "retry"}`, `{"kind": "answer", "answer": ...}` or `{"kind": "fail"}`.
    #[schema(value_type = DecisionDocument)]
    decision: Decision,
    /// The person who decides, as named by the client. The name is not verified; the event also
    /// records the principal of the request.
    #[serde(default)]
    by: String,
}

/// Settles a call in doubt. The decision takes effect when the thread is resumed.
#[utoipa::path(post, path = "/api/v1/threads/{thread}/settle", tag = "threads",
    params(("thread" = String, Path, description = "id of the thread")),
    request_body = SettleDocument,
    responses(
        (status = 204),
        (status = 400, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 409, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn settle_call(
    State(engine): State<Engine>,
    scope: TenantScope,
    RequestPrincipal(principal): RequestPrincipal,
    Path(id): Path<String>,
    JsonBody(request): JsonBody<SettleDocument>,
) -> Result<StatusCode, Problem> {
    let record = scope.thread(&engine, &id).await?;
    let settle = SettleCall {
        thread: record.id,
        task: TaskId::new(request.task).map_err(invalid_id)?,
        scope: request.scope,
        call: request.call,
        seq: request.seq,
        decision: request.decision,
        by: request.by,
        app: None,
        tenant: record.tenant,
        principal,
    };
    engine.settle(settle).await?;
    Ok(StatusCode::NO_CONTENT)
}
