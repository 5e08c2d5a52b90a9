//! Runs of a thread: create, stream, wait, read, list and delete.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use futures::FutureExt as _;
use serde_json::Value;
use tokio::sync::watch;
use wattle_api::detached;
use wattle_api::response::{Json, sse_response};
use wattle_project::agent_server::id::EventId;
use wattle_project::agent_server::mode::Mode;
use wattle_run::engine::Engine;
use wattle_run::ports::store::ThreadRecord;
use wattle_run::run_walk::RunWalk;

use crate::cancel_run::delete_run;
use crate::create_run::{CreatedRun, RunCreator};
use crate::disconnect::DisconnectGuard;
use crate::error::ApiError;
use crate::extractors::{Caller, JsonBody, PathParams};
use crate::page::Page;
use crate::query::QueryParams;
use crate::resolve;
use crate::resolve::run::RequestedRun;
use crate::route::search::DEFAULT_PAGE_SIZE;
use crate::run::StoredRun;
use crate::run_stream::{self, RunStreamOptions};
use crate::view;
use crate::wait_response::{self, with_location_headers};
use crate::wire::request::{Modes, RunCreate};
use crate::wire::response::{Run, RunStatus};
use crate::wire::schemas::{ErrorDocument, RunPart, StreamedEvent};

/// Maximum number of runs in a response.
const MAX_PAGE_SIZE: usize = 1_000;

/// Fields that `select` accepts.
const FIELDS: &[&str] = &[
    "run_id",
    "thread_id",
    "assistant_id",
    "created_at",
    "updated_at",
    "status",
    "metadata",
    "kwargs",
    "multitask_strategy",
];

/// Query parameter that cancels the run when its client disconnects.
const CANCEL_ON_DISCONNECT: &str = "cancel_on_disconnect";

/// A run that a request created.
pub(super) struct GuardedRun {
    pub(super) run: StoredRun,
    /// Guard that cancels the run when its client disconnects, if the request asks for this.
    pub(super) disconnect_guard: Option<DisconnectGuard>,
}

impl GuardedRun {
    pub(super) fn new(
        engine: &Engine,
        stopping: &watch::Receiver<bool>,
        created: CreatedRun,
        request: &RunCreate,
    ) -> Self {
        let CreatedRun { requested, record, .. } = created;
        let disconnect_guard = DisconnectGuard::from_request(engine, stopping, &requested, request);
        Self { run: StoredRun { requested, record }, disconnect_guard }
    }
}

/// Creates a run and responds immediately.
#[utoipa::path(post, path = "/threads/{id}/runs",
    operation_id = "agent_create_run", tag = "agent-runs",
    params(("id" = String, Path, description = "id of the thread")),
    request_body = RunCreate,
    responses(
        (status = 200, body = Run,
            headers(("Content-Location" = String, description = "path of the run"))),
        (status = 400, body = ErrorDocument),
        (status = 409, body = ErrorDocument)))]
pub(super) async fn create(
    State(engine): State<Engine>,
    State(stopping): State<watch::Receiver<bool>>,
    State(creator): State<RunCreator>,
    caller: Caller,
    PathParams(id): PathParams<String>,
    JsonBody(request): JsonBody<RunCreate>,
) -> Result<Response, ApiError> {
    let run = resolve::new_run_id()?;
    let future = async move { creator.create_on_thread(&caller, &id, run, &request).await };
    let CreatedRun { thread, record, .. } =
        detached::run(stopping, future.boxed()).await.unwrap_or_else(ApiError::panicked)?;
    let run = StoredRun::load(&engine, &thread, record).await?;
    Ok(with_location_headers(Json(run.to_body()).into_response(), &run_path(&run.requested), None))
}

/// Creates a run and waits for its result.
#[utoipa::path(post, path = "/threads/{id}/runs/wait",
    extensions(("x-wattle-access" = json!({ "share": "lasting" }))),
    operation_id = "agent_wait_for_new_run", tag = "agent-runs",
    params(("id" = String, Path, description = "id of the thread")),
    request_body = RunCreate,
    responses(
        (status = 200, body = Value,
            headers(("Content-Location" = String, description = "path of the run"),
                ("Location" = String, description = "path that resumes the response after a lost connection"))),
        (status = 400, body = ErrorDocument),
        (status = 409, body = ErrorDocument)))]
pub(super) async fn wait(
    State(engine): State<Engine>,
    State(stopping): State<watch::Receiver<bool>>,
    State(creator): State<RunCreator>,
    caller: Caller,
    PathParams(id): PathParams<String>,
    JsonBody(request): JsonBody<RunCreate>,
) -> Result<Response, ApiError> {
    let lease = caller.response.clone();
    let GuardedRun { run, disconnect_guard } =
        create_guarded(&creator, caller, id, Arc::new(request)).await?;
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

/// Creates a run and streams its events.
#[utoipa::path(post, path = "/threads/{id}/runs/stream",
    extensions(("x-wattle-access" = json!({ "share": "lasting" }))),
    operation_id = "agent_stream_new_run", tag = "agent-runs",
    params(("id" = String, Path, description = "id of the thread")),
    request_body = RunCreate,
    responses(
        (status = 200, body = StreamedEvent, content_type = "text/event-stream",
            headers(("Content-Location" = String, description = "path of the run"),
                ("Location" = String, description = "path that resumes the response after a lost connection"))),
        (status = 400, body = ErrorDocument),
        (status = 409, body = ErrorDocument)))]
pub(super) async fn stream(
    State(engine): State<Engine>,
    State(stopping): State<watch::Receiver<bool>>,
    State(creator): State<RunCreator>,
    caller: Caller,
    PathParams(id): PathParams<String>,
    JsonBody(request): JsonBody<RunCreate>,
) -> Result<Response, ApiError> {
    let request = Arc::new(request);
    let guarded = create_guarded(&creator, caller, id, request.clone()).await?;
    let path = run_path(&guarded.run.requested);
    let response = stream_response(&engine, &stopping, guarded, &request).await?;
    Ok(with_location_headers(response, &path, Some("stream")))
}

/// Returns the stream of a run that the request created.
pub(super) async fn stream_response(
    engine: &Engine,
    stopping: &watch::Receiver<bool>,
    guarded: GuardedRun,
    request: &RunCreate,
) -> Result<Response, ApiError> {
    let GuardedRun { run, disconnect_guard } = guarded;
    let thread = load_thread(engine, &run.requested).await?;
    let options = RunStreamOptions {
        modes: Modes::parse(request.stream_mode.as_ref())?,
        subgraphs: request.stream_subgraphs.unwrap_or(false),
        after: 0,
    };
    Ok(run_stream::response(engine, stopping, &thread, run, options, disconnect_guard))
}

/// Creates a run. The creation completes even if the client disconnects. The disconnect guard is
/// then dropped, which cancels the run if the request asks for this.
async fn create_guarded(
    creator: &RunCreator,
    caller: Caller,
    id: String,
    request: Arc<RunCreate>,
) -> Result<GuardedRun, ApiError> {
    let own = creator.clone();
    let future = async move {
        let run = resolve::new_run_id()?;
        let created = own.create_on_thread(&caller, &id, run, &request).await?;
        Ok(GuardedRun::new(own.engine(), own.stopping(), created, &request))
    };
    detached::run(creator.stopping().clone(), future.boxed())
        .await
        .unwrap_or_else(ApiError::panicked)
}

/// Returns the thread of a run after the run was created.
pub(super) async fn load_thread(
    engine: &Engine,
    run: &RequestedRun,
) -> Result<ThreadRecord, ApiError> {
    let head = engine.ports().store.thread(&run.thread).await?;
    let head = head.ok_or_else(|| ApiError::missing("thread", run.thread.as_str()))?;
    Ok(head.record)
}

fn run_path(run: &RequestedRun) -> String {
    format!(
        "/threads/{}/runs/{}",
        encode_path_segment(run.thread.as_str()),
        encode_path_segment(run.run.as_str())
    )
}

/// Encodes an id as one segment of a path, because ids of the native API can contain any
/// characters.
pub(super) fn encode_path_segment(id: &str) -> String {
    let mut text = String::with_capacity(id.len());
    for byte in id.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}

/// Lists the runs of a thread, newest first.
#[utoipa::path(get, path = "/threads/{id}/runs",
    extensions(("x-wattle-access" = json!({ "share": "control" }))),
    operation_id = "agent_list_runs", tag = "agent-runs",
    params(
        ("id" = String, Path, description = "id of the thread"),
        ("limit" = Option<usize>, Query, description = "maximum number of runs"),
        ("offset" = Option<usize>, Query, description = "number of runs to skip"),
        ("status" = Option<RunStatus>, Query, description = "only runs in this status"),
        ("select" = Option<Vec<String>>, Query, description = "fields to return")),
    responses((status = 200, body = Vec<RunPart>)))]
pub(super) async fn list(
    State(engine): State<Engine>,
    caller: Caller,
    PathParams(id): PathParams<String>,
    query: QueryParams,
) -> Result<Page, ApiError> {
    let thread = caller.thread(&engine, &id).await?;
    let status = query.get("status").map(parse_status).transpose()?;
    let mut to_skip = query.get_usize("offset")?.unwrap_or(0);
    let limit = query.get_usize("limit")?.unwrap_or(DEFAULT_PAGE_SIZE).min(MAX_PAGE_SIZE);
    let fields = query.list("select");
    let mut runs = RunWalk::newest_first(engine.ports().store.as_ref(), &thread.id);
    if status.is_none() {
        runs = runs.skip(std::mem::take(&mut to_skip));
    }
    let mut page = Page::new(caller.response.clone());
    while page.len() < limit
        && let Some(record) = runs.next().await?
    {
        let run = StoredRun::load(&engine, &thread, record).await?.to_body();
        if status.is_some_and(|status| run.status != status) {
            continue;
        }
        if to_skip > 0 {
            to_skip -= 1;
            continue;
        }
        page.push(&view::select_fields(&run, Some(&fields), FIELDS)?)?;
    }
    Ok(page)
}

fn parse_status(word: &str) -> Result<RunStatus, ApiError> {
    serde_json::from_value(word.into())
        .map_err(|_| ApiError::unprocessable(format!("`{word}` is not a run status")))
}

/// Reads a run.
#[utoipa::path(get, path = "/threads/{id}/runs/{run}",
    extensions(("x-wattle-access" = json!({ "share": "control" }))),
    operation_id = "agent_get_run", tag = "agent-runs",
    params(
        ("id" = String, Path, description = "id of the thread"),
        ("run" = String, Path, description = "id of the run")),
    responses((status = 200, body = Run)))]
pub(super) async fn get(
    State(engine): State<Engine>,
    caller: Caller,
    PathParams((id, run)): PathParams<(String, String)>,
) -> Result<Json<Run>, ApiError> {
    let thread = caller.thread(&engine, &id).await?;
    let run = StoredRun::find(&engine, &thread, &run).await?;
    Ok(Json(run.to_body()))
}

/// Deletes a run with everything that it wrote.
#[utoipa::path(delete, path = "/threads/{id}/runs/{run}",
    extensions(("x-wattle-access" = json!({ "share": "control" }))),
    operation_id = "agent_delete_run", tag = "agent-runs",
    params(
        ("id" = String, Path, description = "id of the thread"),
        ("run" = String, Path, description = "id of the run")),
    responses(
        (status = 204),
        (status = 409, body = ErrorDocument)))]
pub(super) async fn delete(
    State(engine): State<Engine>,
    State(stopping): State<watch::Receiver<bool>>,
    caller: Caller,
    PathParams((id, run)): PathParams<(String, String)>,
) -> Result<StatusCode, ApiError> {
    let thread = caller.thread(&engine, &id).await?;
    let run = StoredRun::find(&engine, &thread, &run).await?;
    delete_run(&engine, &stopping, &thread.id, &run.requested.run).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Waits for the result of a run.
#[utoipa::path(get, path = "/threads/{id}/runs/{run}/join",
    extensions(("x-wattle-access" = json!({ "share": "lasting" }))),
    operation_id = "agent_join_run", tag = "agent-runs",
    params(
        ("id" = String, Path, description = "id of the thread"),
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
    PathParams((id, run)): PathParams<(String, String)>,
    query: QueryParams,
) -> Result<Response, ApiError> {
    let thread = caller.thread(&engine, &id).await?;
    let run = StoredRun::find(&engine, &thread, &run).await?;
    join_response(&engine, &stopping, &caller, run, &query)
}

/// Returns a response that waits for the result of a run, with the path of the run.
pub(super) fn join_response(
    engine: &Engine,
    stopping: &watch::Receiver<bool>,
    caller: &Caller,
    run: StoredRun,
    query: &QueryParams,
) -> Result<Response, ApiError> {
    let (path, lease) = (run_path(&run.requested), caller.response.clone());
    let disconnect_guard = requested_guard(engine, stopping, &run, query)?;
    Ok(with_location_headers(
        wait_response::wait_response(
            engine,
            stopping,
            run.requested.run_ref(),
            disconnect_guard,
            lease,
        ),
        &path,
        Some("join"),
    ))
}

fn requested_guard(
    engine: &Engine,
    stopping: &watch::Receiver<bool>,
    run: &StoredRun,
    query: &QueryParams,
) -> Result<Option<DisconnectGuard>, ApiError> {
    let cancels = query.get_bool(CANCEL_ON_DISCONNECT)?;
    Ok(cancels.then(|| DisconnectGuard::new(engine, stopping, run.requested.run_ref())))
}

/// Streams the events of a run.
#[utoipa::path(get, path = "/threads/{id}/runs/{run}/stream",
    extensions(("x-wattle-access" = json!({ "share": "lasting" }))),
    operation_id = "agent_join_run_stream", tag = "agent-runs",
    params(
        ("id" = String, Path, description = "id of the thread"),
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
    PathParams((id, run)): PathParams<(String, String)>,
    query: QueryParams,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let thread = caller.thread(&engine, &id).await?;
    let run = StoredRun::find(&engine, &thread, &run).await?;
    let path = run_path(&run.requested);
    let response = join_stream_response(&engine, &stopping, &thread, run, &query, &headers)?;
    Ok(with_location_headers(response, &path, Some(&query.path_with_query("stream"))))
}

/// Returns the stream of the events of a run after the last event that the client has received. If
/// the run has ended and the request has no event id, the stream is empty.
pub(super) fn join_stream_response(
    engine: &Engine,
    stopping: &watch::Receiver<bool>,
    thread: &ThreadRecord,
    run: StoredRun,
    query: &QueryParams,
    headers: &HeaderMap,
) -> Result<Response, ApiError> {
    let after = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    let after = after.map(|id| {
        let number = EventId::number_of(id);
        number.ok_or_else(|| ApiError::unprocessable(format!("`{id}` is not an event id")))
    });
    let after = after.transpose()?;
    let options = RunStreamOptions {
        modes: stream_modes(&run.requested, query)?,
        subgraphs: includes_subgraphs(&run.requested),
        after: after.unwrap_or(0),
    };
    query.get_bool(CANCEL_ON_DISCONNECT)?;
    if after.is_none() && run.has_ended() {
        return Ok(sse_response(Body::empty()));
    }
    let disconnect_guard = requested_guard(engine, stopping, &run, query)?;
    Ok(run_stream::response(engine, stopping, thread, run, options, disconnect_guard))
}

/// Returns the stream modes of the request, or else the modes that the run was created with.
fn stream_modes(
    run: &RequestedRun,
    query: &QueryParams,
) -> Result<std::collections::BTreeSet<Mode>, ApiError> {
    let wanted = query.list("stream_mode");
    if !wanted.is_empty() {
        return Ok(Modes::parse(Some(&Modes::Many(wanted)))?);
    }
    let modes = run.client.kwargs.get("stream_mode").cloned();
    let modes = modes.and_then(|modes| serde_json::from_value::<Modes>(modes).ok());
    Ok(Modes::parse(modes.as_ref())?)
}

fn includes_subgraphs(run: &RequestedRun) -> bool {
    run.client.kwargs.get("subgraphs").and_then(Value::as_bool).unwrap_or(false)
}
