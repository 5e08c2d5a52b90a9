//! Draining of runs, recovery of runs that were set aside, and the cache of nodes.

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use wattle_graph::failure::code;
use wattle_graph::id::{GraphName, IdError, NodeName};
use wattle_run::hostcall::runs::RunRef;

use crate::document::run::RunDocument;
use crate::native::apps;
use crate::native::tenant_scope::TenantScope;
use crate::native::threads::invalid_query;
use crate::problem::{Problem, ProblemDocument};
use crate::state::ApiState;

/// Requests that a run pauses before its next superstep. Resuming the thread without answers
/// continues the run. Not an error if the run has ended.
#[utoipa::path(post, path = "/api/v1/threads/{thread}/runs/{run}/drain",
    extensions(("x-wattle-access" = json!({ "share": "control" }))), tag = "runs",
    params(
        ("thread" = String, Path, description = "id of the thread"),
        ("run" = String, Path, description = "id of the run")),
    responses(
        (status = 202, body = RunDocument),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 409, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn drain_run(
    State(state): State<ApiState>,
    scope: TenantScope,
    Path((thread, run)): Path<(String, String)>,
) -> Result<(StatusCode, Json<RunDocument>), Problem> {
    let record = scope.run(&state, &run).await?;
    if record.thread.as_str() != thread {
        let hint = format!("it belongs to another thread than `{thread}`");
        return Err(Problem::not_found("run", &run, &hint));
    }
    let run = RunRef { thread: record.thread.clone(), run: record.id.clone() };
    state.engine.drain(&run).await?;
    Ok((StatusCode::ACCEPTED, Json(record.into())))
}

/// Retries the recovery of a thread's run that was set aside.
#[utoipa::path(post, path = "/api/v1/threads/{thread}/retry", tag = "threads",
    params(("thread" = String, Path, description = "id of the thread")),
    responses(
        (status = 202, body = RunDocument),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 409, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn retry_thread(
    State(state): State<ApiState>,
    scope: TenantScope,
    Path(thread): Path<String>,
) -> Result<(StatusCode, Json<RunDocument>), Problem> {
    let record = scope.thread(&state, &thread).await?;
    let run = state.engine.retry_recovery(&record.id).await?;
    let record = scope.run(&state, run.run.as_str()).await?;
    Ok((StatusCode::ACCEPTED, Json(record.into())))
}

/// Selects the cache entries to delete.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct CacheFilter {
    /// Only entries of this graph.
    graph: Option<String>,
    /// Only entries of this node of `graph`.
    node: Option<String>,
}

/// The number of deleted cache entries.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = ForgottenDocument)]
pub struct ClearedDocument {
    /// Number of deleted entries.
    pub cleared: usize,
}

/// Deletes the cache entries of the nodes of an app, for the tenant of the request.
#[utoipa::path(delete, path = "/api/v1/apps/{app}/cache", tag = "apps",
    params(("app" = String, Path, description = "name of the app"), CacheFilter),
    responses(
        (status = 200, body = ClearedDocument),
        (status = 400, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn clear_cache(
    State(state): State<ApiState>,
    scope: TenantScope,
    Path(app): Path<String>,
    filter: Result<Query<CacheFilter>, axum::extract::rejection::QueryRejection>,
) -> Result<Json<ClearedDocument>, Problem> {
    let Query(filter) = filter.map_err(invalid_query)?;
    let app = apps::find(&state, &app)?;
    let graph = filter.graph.map(GraphName::new).transpose().map_err(invalid_id)?;
    let node = filter.node.map(NodeName::new).transpose().map_err(invalid_id)?;
    if node.is_some() && graph.is_none() {
        return Err(Problem::new(code::INVALID, "`node` requires `graph`"));
    }
    if let Some(graph) = &graph {
        apps::find_graph(&app, graph.as_str())?;
    }
    let tenant = scope.tenant.as_deref();
    let cleared =
        state.engine.clear_cache(tenant, &app.name, graph.as_ref(), node.as_ref()).await?;
    Ok(Json(ClearedDocument { cleared }))
}

#[expect(clippy::needless_pass_by_value, reason = "handed to `map_err`")]
fn invalid_id(error: IdError) -> Problem {
    Problem::new(code::INVALID, error.to_string())
}
