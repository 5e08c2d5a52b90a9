//! Maintenance of threads: calls in doubt, migrations, copies, prunes, exports.

use axum::body::Body;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use futures::TryStreamExt as _;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};
use wattle_graph::event::Decision;
use wattle_graph::failure::code;
use wattle_graph::id::{IdError, RunId, TaskId, ThreadId};
use wattle_graph::migrate::MigrateOptions;
use wattle_run::engine::migrate::{MigrateThread, MigrationReport};
use wattle_run::engine::settle::{PendingCall, SettleCall};
use wattle_run::export::ExportParts;
use wattle_run::ports::store::{CompactionReport, PruneStrategy, SealReport};

use crate::body::JsonBody;
use crate::native::request_principal::RequestPrincipal;
use crate::native::tenant_scope::{RequestRole, TenantScope, operator_only_problem};
use crate::native::threads::invalid_query;
use crate::problem::{Problem, ProblemDocument};
use crate::response::Json;
use crate::state::ApiState;

/// Lists the pending calls of a thread: calls that were started and have no result. They are in
/// progress while a run is running. If its host stopped, they are in doubt.
#[utoipa::path(get, path = "/api/v1/threads/{thread}/open-calls", tag = "threads",
    params(("thread" = String, Path, description = "id of the thread")),
    responses(
        (status = 200, body = Vec<Value>, description = "task, node, scope, call, function, \
            summary, at_ms, and the decision if the call was settled"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn list_open_calls(
    State(state): State<ApiState>,
    scope: TenantScope,
    Path(id): Path<String>,
) -> Result<Json<Vec<PendingCall>>, Problem> {
    let record = scope.thread(&state, &id).await?;
    Ok(Json(state.engine.pending_calls(&record.id).await?))
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
    /// `{"kind": "retry"}`, `{"kind": "answer", "answer": ...}` or `{"kind": "fail"}`.
    #[schema(value_type = Value)]
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
    State(state): State<ApiState>,
    scope: TenantScope,
    RequestPrincipal(principal): RequestPrincipal,
    Path(id): Path<String>,
    JsonBody(request): JsonBody<SettleDocument>,
) -> Result<StatusCode, Problem> {
    let record = scope.thread(&state, &id).await?;
    let settle = SettleCall {
        thread: record.id,
        task: TaskId::new(request.task).map_err(invalid_id)?,
        scope: request.scope,
        call: request.call,
        decision: request.decision,
        by: request.by,
        app: None,
        tenant: record.tenant,
        principal,
    };
    state.engine.settle(settle).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Options of a migration.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MigrateDocument {
    /// True to report the changes without applying them.
    dry_run: bool,
    /// True to permit that the values of channels that the new graph lacks are dropped.
    drop: bool,
    /// New values of channels, by channel name.
    #[schema(value_type = Value)]
    set: std::collections::BTreeMap<wattle_graph::id::ChannelName, Value>,
}

/// Migrates a thread to the loaded version of its graph.
#[utoipa::path(post, path = "/api/v1/threads/{thread}/migrate", tag = "threads",
    params(("thread" = String, Path, description = "id of the thread")),
    request_body = MigrateDocument,
    responses(
        (status = 200, body = Value, description = "from, to, changes, obstacles, applied"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 409, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn migrate_thread(
    State(state): State<ApiState>,
    scope: TenantScope,
    RequestPrincipal(principal): RequestPrincipal,
    Path(id): Path<String>,
    JsonBody(request): JsonBody<MigrateDocument>,
) -> Result<Json<MigrationReport>, Problem> {
    let record = scope.thread(&state, &id).await?;
    let migrate = MigrateThread {
        thread: record.id,
        app: None,
        tenant: record.tenant,
        options: MigrateOptions { drop: request.drop, set: request.set },
        dry_run: request.dry_run,
        principal,
    };
    Ok(Json(state.engine.migrate(&migrate).await?))
}

/// Request to copy a thread.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CopyDocument {
    /// Id of the copy; generated by default.
    thread_id: Option<String>,
}

/// A copy of a thread.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct CopiedDocument {
    /// Id of the copy.
    pub thread_id: String,
}

/// Copies a thread with its history. Pending interrupts are pending in the copy as well.
#[utoipa::path(post, path = "/api/v1/threads/{thread}/copy", tag = "threads",
    params(("thread" = String, Path, description = "id of the thread")),
    request_body = CopyDocument,
    responses(
        (status = 201, body = CopiedDocument),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 409, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn copy_thread(
    State(state): State<ApiState>,
    scope: TenantScope,
    Path(id): Path<String>,
    JsonBody(request): JsonBody<CopyDocument>,
) -> Result<(StatusCode, Json<CopiedDocument>), Problem> {
    let record = scope.thread(&state, &id).await?;
    let to = request.thread_id.map(ThreadId::new).transpose().map_err(invalid_id)?;
    let copy = state.engine.copy_thread(&record.id, to).await?;
    Ok((StatusCode::CREATED, Json(CopiedDocument { thread_id: copy.to_string() })))
}

/// Request to prune a thread.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PruneDocument {
    /// `keep_latest` keeps the newest checkpoints, `delete` deletes the thread.
    #[schema(value_type = String)]
    strategy: PruneStrategy,
}

/// Prunes a thread: deletes all but its newest checkpoints, or the whole thread.
#[utoipa::path(post, path = "/api/v1/threads/{thread}/prune", tag = "threads",
    params(("thread" = String, Path, description = "id of the thread")),
    request_body = PruneDocument,
    responses(
        (status = 204),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 409, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn prune_thread(
    State(state): State<ApiState>,
    scope: TenantScope,
    Path(id): Path<String>,
    JsonBody(request): JsonBody<PruneDocument>,
) -> Result<StatusCode, Problem> {
    let record = scope.thread(&state, &id).await?;
    state.engine.prune(&record.id, request.strategy).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Deletes a run with the checkpoints that it wrote.
#[utoipa::path(delete, path = "/api/v1/threads/{thread}/runs/{run}",
    extensions(("x-wattle-access" = json!({ "share": "control" }))), tag = "runs",
    params(
        ("thread" = String, Path, description = "id of the thread"),
        ("run" = String, Path, description = "id of the run")),
    responses(
        (status = 204),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 409, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn delete_run(
    State(state): State<ApiState>,
    scope: TenantScope,
    Path((id, run)): Path<(String, String)>,
) -> Result<StatusCode, Problem> {
    let record = scope.thread(&state, &id).await?;
    let run = RunId::new(run).map_err(invalid_id)?;
    state.engine.delete_runs(&record.id, &[run]).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Verifies the seals of a thread's log.
#[utoipa::path(get, path = "/api/v1/threads/{thread}/verify", tag = "threads",
    params(("thread" = String, Path, description = "id of the thread")),
    responses(
        (status = 200, body = Value, description = "sealed_after, last_seq, seal"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 500, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn verify_thread(
    State(state): State<ApiState>,
    scope: TenantScope,
    Path(id): Path<String>,
) -> Result<Json<SealReport>, Problem> {
    let record = scope.thread(&state, &id).await?;
    Ok(Json(state.engine.verify(&record.id).await?))
}

/// Selects the contents of an export.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ExportQuery {
    /// True to include the code, its grants and its settings; operator only. Default: true for the
    /// operator if the code is available.
    code: Option<bool>,
    /// True to include the blobs that the thread refers to. Default: true.
    blobs: Option<bool>,
}

/// Exports a thread as one file of JSON lines, which `wattle replay` reads.
#[utoipa::path(get, path = "/api/v1/threads/{thread}/export", tag = "threads",
    params(("thread" = String, Path, description = "id of the thread"), ExportQuery),
    responses(
        (status = 200, body = String, content_type = "application/x-ndjson"),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 409, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 503, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn export_thread(
    State(state): State<ApiState>,
    scope: TenantScope,
    role: RequestRole,
    Path(id): Path<String>,
    query: Result<Query<ExportQuery>, QueryRejection>,
) -> Result<Response, Problem> {
    let Query(query) = query.map_err(invalid_query)?;
    let is_operator = role.is_operator;
    if query.code == Some(true) && !is_operator {
        let tenant = role.tenant.unwrap_or_default();
        return Err(operator_only_problem("the code of apps", &tenant));
    }
    let record = scope.thread(&state, &id).await?;
    let parts = ExportParts {
        // A thread that has never run has no code.
        code: query.code.unwrap_or(is_operator) && !record.is_unbound(),
        blobs: query.blobs.unwrap_or(true),
    };
    let lines = match state.engine.export(&record.id, parts).await {
        Err(failure) if query.code.is_none() && failure.code == code::UNAVAILABLE => {
            state.engine.export(&record.id, ExportParts { code: false, ..parts }).await
        }
        lines => lines,
    };
    let lines = lines?.map_err(|failure| std::io::Error::other(failure.message));
    let headers = [(header::CONTENT_TYPE, "application/x-ndjson")];
    Ok((headers, Body::from_stream(lines)).into_response())
}

/// Returns unused space of the store to the file system. Only for the operator.
#[utoipa::path(post, path = "/api/v1/store/compact",
    extensions(("x-wattle-access" = json!({ "scope": "admin" }))), tag = "store",
    responses(
        (status = 200, body = Value, description = "before_bytes, after_bytes"),
        (status = 403, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn compact_store(
    State(state): State<ApiState>,
    role: RequestRole,
) -> Result<Json<CompactionReport>, Problem> {
    if !role.is_operator {
        let tenant = role.tenant.unwrap_or_default();
        return Err(operator_only_problem("the store", &tenant));
    }
    Ok(Json(state.engine.compact().await?))
}

#[expect(clippy::needless_pass_by_value, reason = "handed to `map_err`")]
fn invalid_id(error: IdError) -> Problem {
    Problem::new(code::INVALID, error.to_string())
}
