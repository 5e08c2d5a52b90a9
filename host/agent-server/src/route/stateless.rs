//! Stateless runs. Each run has a thread of its own, whose id is the run id. The thread is deleted
//! after the run unless the request has `on_completion` = `keep`.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse as _, Response};
use futures::FutureExt as _;
use serde::Deserialize;
use tokio::sync::watch;
use wattle_api::detached;
use wattle_api::response::Json;
use wattle_graph::id::RunId;
use wattle_project::agent_server::mode::Mode;
use wattle_run::engine::Engine;
use wattle_run::ports::store::ThreadRecord;

use crate::create_run::{CreatedRun, RunCreator};
use crate::error::ApiError;
use crate::extractors::{Caller, JsonBody, PathParams, parse_uuid};
use crate::query::QueryParams;
use crate::resolve;
use crate::resolve::run::RequestedRun;
use crate::route::cancel::cancel_and_respond;
use crate::route::runs::{
    GuardedRun, encode_path_segment, join_response, join_stream_response, stream_response,
};
use crate::run::StoredRun;
use crate::wait_response::{self, with_location_headers};
use crate::wire::request::{RunCreate, at_most};
use crate::wire::response::Run;
use crate::wire::schemas::{ErrorDocument, StreamedEvent};

/// Maximum number of runs in a batch.
const MAX_BATCH: usize = 100;

/// A batch of run requests.
#[derive(Deserialize)]
#[serde(transparent)]
pub(super) struct Batch(#[serde(deserialize_with = "at_most::<MAX_BATCH, _, _>")] Vec<RunCreate>);

/// Creates a stateless run and responds immediately.
#[utoipa::path(post, path = "/runs", operation_id = "agent_create_lone_run", tag = "agent-runs",
    request_body = RunCreate,
    responses(
        (status = 200, body = Run,
            headers(("Content-Location" = String, description = "path of the run"))),
        (status = 400, body = ErrorDocument),
        (status = 404, body = ErrorDocument),
        (status = 409, body = ErrorDocument)))]
pub(super) async fn create(
    State(engine): State<Engine>,
    State(stopping): State<watch::Receiver<bool>>,
    State(creator): State<RunCreator>,
    caller: Caller,
    JsonBody(request): JsonBody<RunCreate>,
) -> Result<Response, ApiError> {
    let run = resolve::new_run_id()?;
    let future = async move { creator.create_stateless(&caller, run, &request).await };
    let CreatedRun { thread, record, .. } =
        detached::run(stopping, future.boxed()).await.unwrap_or_else(ApiError::panicked)?;
    let run = StoredRun::load(&engine, &thread, record).await?;
    Ok(with_location_headers(Json(run.to_body()).into_response(), &run_path(&run.requested), None))
}

/// Creates several stateless runs. All of them are created even if the client disconnects.
#[utoipa::path(post, path = "/runs/batch",
    operation_id = "agent_create_lone_runs", tag = "agent-runs",
    request_body = Vec<RunCreate>,
    responses(
        (status = 200, body = Vec<Run>),
        (status = 400, body = ErrorDocument),
        (status = 404, body = ErrorDocument),
        (status = 409, body = ErrorDocument)))]
pub(super) async fn batch(
    State(stopping): State<watch::Receiver<bool>>,
    State(creator): State<RunCreator>,
    caller: Caller,
    JsonBody(Batch(requests)): JsonBody<Batch>,
) -> Result<Json<Vec<Run>>, ApiError> {
    for request in &requests {
        creator.check_stateless(&caller, request).await?;
    }
    let own = creator.clone();
    let future = async move {
        let mut runs = Vec::with_capacity(requests.len());
        for request in &requests {
            let created = own.create_stateless(&caller, resolve::new_run_id()?, request).await?;
            let CreatedRun { thread, record, .. } = created;
            runs.push(StoredRun::load(own.engine(), &thread, record).await?.to_body());
        }
        Ok(runs)
    };
    Ok(Json(detached::run(stopping, future.boxed()).await.unwrap_or_else(ApiError::panicked)?))
}

/// Creates a stateless run and waits for its result.
#[utoipa::path(post, path = "/runs/wait",
    extensions(("x-wattle-access" = json!({ "share": "lasting" }))),
    operation_id = "agent_wait_for_new_lone_run", tag = "agent-runs",
    request_body = RunCreate,
    responses(
        (status = 200, body = Value,
            headers(("Content-Location" = String, description = "path of the run"),
                ("Location" = String, description = "path that resumes the response after a lost connection"))),
        (status = 400, body = ErrorDocument),
        (status = 404, body = ErrorDocument),
        (status = 409, body = ErrorDocument)))]
pub(super) async fn wait(
    State(engine): State<Engine>,
    State(stopping): State<watch::Receiver<bool>>,
    State(creator): State<RunCreator>,
    caller: Caller,
    JsonBody(request): JsonBody<RunCreate>,
) -> Result<Response, ApiError> {
    let lease = caller.response.clone();
    let GuardedRun { run, disconnect_guard } =
        create_guarded(&creator, caller, Arc::new(request)).await?;
    let path = run_path(&run.requested);
    Ok(with_location_headers(
        wait_response::wait_response(
            &engine,
            &stopping,
            run.requested.run_ref(),
            disconnect_guard,
            lease,
        ),
        &path,
        Some("join"),
    ))
}

/// Creates a stateless run and streams its events.
#[utoipa::path(post, path = "/runs/stream",
    extensions(("x-wattle-access" = json!({ "share": "lasting" }))),
    operation_id = "agent_stream_new_lone_run", tag = "agent-runs",
    request_body = RunCreate,
    responses(
        (status = 200, body = StreamedEvent, content_type = "text/event-stream",
            headers(("Content-Location" = String, description = "path of the run"),
                ("Location" = String, description = "path that resumes the response after a lost connection"))),
        (status = 400, body = ErrorDocument),
        (status = 404, body = ErrorDocument),
        (status = 409, body = ErrorDocument)))]
pub(super) async fn stream(
    State(engine): State<Engine>,
    State(stopping): State<watch::Receiver<bool>>,
    State(creator): State<RunCreator>,
    caller: Caller,
    JsonBody(request): JsonBody<RunCreate>,
) -> Result<Response, ApiError> {
    let request = Arc::new(request);
    let guarded = create_guarded(&creator, caller, request.clone()).await?;
    let path = run_path(&guarded.run.requested);
    Ok(with_location_headers(
        stream_response(&engine, &stopping, guarded, &request).await?,
        &path,
        Some("stream"),
    ))
}

/// Creates a stateless run. The creation completes even if the client disconnects.
async fn create_guarded(
    creator: &RunCreator,
    caller: Caller,
    request: Arc<RunCreate>,
) -> Result<GuardedRun, ApiError> {
    let own = creator.clone();
    let future = async move {
        let created = own.create_stateless(&caller, resolve::new_run_id()?, &request).await?;
        Ok(GuardedRun::new(own.engine(), own.stopping(), created, &request))
    };
    detached::run(creator.stopping().clone(), future.boxed())
        .await
        .unwrap_or_else(ApiError::panicked)
}

fn run_path(run: &RequestedRun) -> String {
    format!("/runs/{}", encode_path_segment(run.run.as_str()))
}

/// Finds a run and its thread by the id of the run.
async fn find(
    engine: &Engine,
    caller: &Caller,
    id: &str,
) -> Result<(ThreadRecord, StoredRun), ApiError> {
    // The error must not reveal that the run belongs to another tenant.
    let missing = |error: ApiError| {
        if error.status().is_client_error() { ApiError::missing("run", id) } else { error }
    };
    let run = RunId::new(id).map_err(|error| ApiError::unprocessable(error.to_string()))?;
    let stored = engine.ports().store.run(&run).await?;
    if stored.is_none() {
        parse_uuid("run", id)?;
    }
    let thread = stored.map_or_else(|| id.to_owned(), |record| record.thread.to_string());
    let thread = caller.thread(engine, &thread).await.map_err(missing)?;
    let run = StoredRun::find(engine, &thread, id).await?;
    Ok((thread, run))
}

/// Reads a run.
#[utoipa::path(get, path = "/runs/{run}", operation_id = "agent_get_run_by_id", tag = "agent-runs",
    params(("run" = String, Path, description = "id of the run")),
    responses((status = 200, body = Run)))]
pub(super) async fn get(
    State(engine): State<Engine>,
    caller: Caller,
    PathParams(id): PathParams<String>,
) -> Result<Json<Run>, ApiError> {
    let (_, run) = find(&engine, &caller, &id).await?;
    Ok(Json(run.to_body()))
}

/// Waits for the result of a run.
#[utoipa::path(get, path = "/runs/{run}/join",
    extensions(("x-wattle-access" = json!({ "share": "lasting" }))),
    operation_id = "agent_join_run_by_id", tag = "agent-runs",
    params(
        ("run" = String, Path, description = "id of the run"),
        ("cancel_on_disconnect" = Option<bool>, Query, description = "true to cancel the run when the client disconnects")),
    responses(
        (status = 200, body = Value,
            headers(("Content-Location" = String, description = "path of the run"),
                ("Location" = String, description = "path that resumes the response after a lost connection")))))]
pub(super) async fn join(
    State(engine): State<Engine>,
    State(stopping): State<watch::Receiver<bool>>,
    caller: Caller,
    PathParams(id): PathParams<String>,
    query: QueryParams,
) -> Result<Response, ApiError> {
    let (_, run) = find(&engine, &caller, &id).await?;
    join_response(&engine, &stopping, &caller, run, &query)
}

/// Streams the events of a run.
#[utoipa::path(get, path = "/runs/{run}/stream",
    extensions(("x-wattle-access" = json!({ "share": "lasting" }))),
    operation_id = "agent_join_run_stream_by_id", tag = "agent-runs",
    params(
        ("run" = String, Path, description = "id of the run"),
        ("stream_mode" = Option<Vec<Mode>>, Query, description = "stream modes; by default those that the run was created with"),
        ("cancel_on_disconnect" = Option<bool>, Query, description = "true to cancel the run when the client disconnects"),
        ("Last-Event-ID" = Option<String>, Header, description = "id of the last event that the client has received")),
    responses(
        (status = 200, body = StreamedEvent, content_type = "text/event-stream",
            headers(("Content-Location" = String, description = "path of the run"),
                ("Location" = String, description = "path that resumes the response after a lost connection")))))]
pub(super) async fn join_stream(
    State(engine): State<Engine>,
    State(stopping): State<watch::Receiver<bool>>,
    caller: Caller,
    PathParams(id): PathParams<String>,
    query: QueryParams,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let (thread, run) = find(&engine, &caller, &id).await?;
    let path = run_path(&run.requested);
    let response = join_stream_response(&engine, &stopping, &thread, run, &query, &headers)?;
    Ok(with_location_headers(response, &path, Some(&query.path_with_query("stream"))))
}

/// Cancels a run.
#[utoipa::path(post, path = "/runs/{run}/cancel",
    extensions(("x-wattle-access" = json!({ "share": "control" }))),
    operation_id = "agent_cancel_run_by_id", tag = "agent-runs",
    params(
        ("run" = String, Path, description = "id of the run"),
        ("wait" = Option<bool>, Query, description = "true to wait until the run has ended"),
        ("action" = Option<String>, Query, description = "`interrupt`, or `rollback` to also delete the run and what it wrote")),
    responses(
        (status = 200, body = Value),
        (status = 202),
        (status = 409, body = ErrorDocument)))]
pub(super) async fn cancel(
    State(engine): State<Engine>,
    State(stopping): State<watch::Receiver<bool>>,
    caller: Caller,
    PathParams(id): PathParams<String>,
    query: QueryParams,
) -> Result<Response, ApiError> {
    let (_, run) = find(&engine, &caller, &id).await?;
    cancel_and_respond(&engine, &stopping, &caller, run, &query).await
}
