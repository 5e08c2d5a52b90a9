//! Runs: start, resume, read, wait, cancel.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use wattle_graph::failure::code;
use wattle_graph::id::{GraphName, IdError, ThreadId};
use wattle_run::call::runs::{ResumeRun, RunRef, Runs, StartRun};

use crate::body::JsonBody;
use crate::document::run::{ResumeDocument, RunDocument, StartDocument};
use crate::native::apps;
use crate::native::scope::Scope;
use crate::problem::{Problem, ProblemDocument};
use crate::state::ApiState;

/// Starts a run of one of the app's graphs, on a new thread or on one that is there.
#[utoipa::path(post, path = "/api/v1/apps/{app}/runs", tag = "runs",
    params(("app" = String, Path, description = "name of the app")),
    request_body = StartDocument,
    responses(
        (status = 202, body = RunDocument, description = "started"),
        (status = 200, body = RunDocument, description = "ended or stands still, with `wait`"),
        (status = 400, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 409, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn start_run(
    State(state): State<ApiState>,
    scope: Scope,
    Path(app): Path<String>,
    JsonBody(request): JsonBody<StartDocument>,
) -> Result<Response, Problem> {
    let app = apps::find(&state, &app)?.name.clone();
    let thread = request.thread_id.map(ThreadId::new).transpose().map_err(invalid_id)?;
    if let Some(thread) = &thread {
        own_or_new(&state, &scope, thread).await?;
    }
    let run = StartRun {
        run: None,
        app,
        graph: request.graph.map(GraphName::new).transpose().map_err(invalid_id)?,
        input: request.input,
        thread,
        context: request.context,
        metadata: request.metadata,
        tenant: scope.tenant,
        options: request.options.into(),
        ttl: None,
    };
    let run = state.engine.start(run).await?;
    answer(&state, run, request.wait).await
}

/// Answers open questions of a thread and goes on.
#[utoipa::path(post, path = "/api/v1/threads/{thread}/resume", tag = "runs",
    params(("thread" = String, Path, description = "id of the thread")),
    request_body = ResumeDocument,
    responses(
        (status = 202, body = RunDocument, description = "goes on"),
        (status = 200, body = RunDocument, description = "ended or stands still, with `wait`"),
        (status = 400, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 409, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 410, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn resume_thread(
    State(state): State<ApiState>,
    scope: Scope,
    Path(id): Path<String>,
    JsonBody(request): JsonBody<ResumeDocument>,
) -> Result<Response, Problem> {
    let record = scope.thread(&state, &id).await?;
    let resume = ResumeRun {
        run: None,
        thread: record.id,
        answers: request.answers,
        on_failure: request.on_failure,
        app: None,
        tenant: scope.tenant,
        options: request.options.into(),
    };
    let run = state.engine.resume(resume).await?;
    answer(&state, run, request.wait).await
}

/// Lists the runs of a thread, oldest first.
#[utoipa::path(get, path = "/api/v1/threads/{thread}/runs", tag = "runs",
    params(("thread" = String, Path, description = "id of the thread")),
    responses(
        (status = 200, body = Vec<RunDocument>),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn list_runs(
    State(state): State<ApiState>,
    scope: Scope,
    Path(id): Path<String>,
) -> Result<Json<Vec<RunDocument>>, Problem> {
    let record = scope.thread(&state, &id).await?;
    let runs = state.engine.ports().store.runs(&record.id).await?;
    Ok(Json(runs.into_iter().map(Into::into).collect()))
}

/// Describes a run.
#[utoipa::path(get, path = "/api/v1/runs/{run}", tag = "runs",
    params(("run" = String, Path, description = "id of the run")),
    responses(
        (status = 200, body = RunDocument),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn get_run(
    State(state): State<ApiState>,
    scope: Scope,
    Path(id): Path<String>,
) -> Result<Json<RunDocument>, Problem> {
    Ok(Json(scope.run(&state, &id).await?.into()))
}

/// Waits until a run has ended or stands still.
#[utoipa::path(get, path = "/api/v1/runs/{run}/wait", tag = "runs",
    params(("run" = String, Path, description = "id of the run")),
    responses(
        (status = 200, body = RunDocument),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn wait_run(
    State(state): State<ApiState>,
    scope: Scope,
    Path(id): Path<String>,
) -> Result<Json<RunDocument>, Problem> {
    let record = scope.run(&state, &id).await?;
    let run = RunRef { thread: record.thread, run: record.id };
    Ok(Json(state.engine.wait(&run).await?.into()))
}

/// Cancels a run. Not an error if it has ended.
#[utoipa::path(post, path = "/api/v1/runs/{run}/cancel", tag = "runs",
    params(("run" = String, Path, description = "id of the run")),
    responses(
        (status = 202, body = RunDocument),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn cancel_run(
    State(state): State<ApiState>,
    scope: Scope,
    Path(id): Path<String>,
) -> Result<(StatusCode, Json<RunDocument>), Problem> {
    let record = scope.run(&state, &id).await?;
    let run = RunRef { thread: record.thread, run: record.id };
    state.engine.cancel(&run).await?;
    let record = scope.run(&state, &id).await?;
    Ok((StatusCode::ACCEPTED, Json(record.into())))
}

/// A thread id that the caller chose must be free or the caller's own.
pub(crate) async fn own_or_new(
    state: &ApiState,
    scope: &Scope,
    thread: &ThreadId,
) -> Result<(), Problem> {
    if state.engine.ports().store.thread(thread).await?.is_none() {
        return Ok(());
    }
    scope.thread(state, thread.as_str()).await.map(|_| ()).map_err(|_| {
        Problem::new(code::CONFLICT, format!("the thread id `{thread}` is taken; choose another"))
    })
}

/// What is answered to a request that started a run.
pub(crate) async fn answer(state: &ApiState, run: RunRef, wait: bool) -> Result<Response, Problem> {
    if wait {
        let ended = state.engine.wait(&run).await?;
        return Ok(Json(RunDocument::from(ended)).into_response());
    }
    let location = HeaderValue::from_str(&format!("/api/v1/runs/{}", run.run)).ok();
    let body = Json(RunDocument::started(run));
    let mut response = (StatusCode::ACCEPTED, body).into_response();
    if let Some(location) = location {
        response.headers_mut().insert(header::LOCATION, location);
    }
    Ok(response)
}

#[expect(clippy::needless_pass_by_value, reason = "handed to `map_err`")]
fn invalid_id(error: IdError) -> Problem {
    Problem::new(code::INVALID, error.to_string())
}
