//! Runs: start, resume, read, wait, cancel, drain, delete.

use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::Value;
use utoipa::IntoParams;
use wattle_graph::event::{self, Write};
use wattle_graph::failure::code;
use wattle_graph::id::{ChannelName, GraphName, NodeName, RunId, ThreadId};
use wattle_graph::step::Command;
use wattle_run::engine::Engine;
use wattle_run::hostcall::runs::{CreateRun, ResumeRun, RunRef, RunService, ThreadCreation};
use wattle_run::ports::store::{RunKind, RunSpec, RunSummary, StaleAnswers};

use crate::body::JsonBody;
use crate::document::run::{GotoDocument, ResumeDocument, RunDocument, StartDocument};
use crate::native::apps;
use crate::native::request_principal::RequestPrincipal;
use crate::native::tenant_scope::TenantScope;
use crate::native::threads::{MAX_PAGE_SIZE, invalid_id, invalid_query, page_size};
use crate::problem::{Problem, ProblemDocument};
use crate::response::Json;
use crate::state::ConfiguredModels;

/// Starts a run of one of the app's graphs, on a new or an existing thread. A thread has one
/// running run at a time; further runs are pending.
#[utoipa::path(post, path = "/api/v1/apps/{app}/runs", tag = "runs",
    params(("app" = String, Path, description = "name of the app")),
    request_body = StartDocument,
    responses(
        (status = 202, body = RunDocument, description = "started, or pending"),
        (status = 200, body = RunDocument,
            description = "with `wait`: the run has ended or is interrupted"),
        (status = 400, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 409, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn start_run(
    State(engine): State<Engine>,
    scope: TenantScope,
    RequestPrincipal(principal): RequestPrincipal,
    Path(app): Path<String>,
    JsonBody(request): JsonBody<StartDocument>,
) -> Result<Response, Problem> {
    let app = apps::find(&engine, &app)?.name.clone();
    let thread = request.thread_id.map(ThreadId::new).transpose().map_err(invalid_id)?;
    if let Some(thread) = &thread {
        check_unused_or_accessible(&engine, &scope, thread).await?;
    }
    let delay_ms = delay_ms(request.after_seconds)?;
    let run = CreateRun {
        thread,
        creation: ThreadCreation::IfMissing,
        run: None,
        tenant: scope.tenant,
        strategy: request.multitask_strategy,
        options: request.options.into(),
        may_stay_pending: false,
        spec: RunSpec {
            kind: run_kind(request.input, request.goto)?,
            stale_answers: StaleAnswers::Reject,
            app,
            graph: request.graph.map(GraphName::new).transpose().map_err(invalid_id)?,
            context: request.context,
            metadata: request.metadata,
            due_ms: engine.ports().clock.now_ms().saturating_add(delay_ms),
            ttl: None,
            client: Value::Null,
            principal,
        },
    };
    let record = engine.create_run(run).await?;
    if request.wait {
        let run = RunRef { thread: record.thread, run: record.id };
        return run_response(&engine, run, true).await;
    }
    Ok(accepted(record.into()))
}

/// Returns the kind of a run that begins with an input or with named nodes.
fn run_kind(input: Value, goto: Vec<GotoDocument>) -> Result<RunKind, Problem> {
    if goto.is_empty() {
        return Ok(RunKind::Start { input });
    }
    let Value::Object(values) = input else {
        let text = "`input` must be an object of channel values, which may be empty";
        return Err(Problem::new(code::INVALID, text));
    };
    let mut command = Command { skips_entry: true, ..Command::default() };
    for (channel, value) in values {
        let channel = ChannelName::new(channel).map_err(invalid_id)?;
        command.writes.push(Write { channel, value, overwrite: false });
    }
    for GotoDocument { node, input } in goto {
        let node = NodeName::new(node).map_err(invalid_id)?;
        match input {
            Some(input) => command.sends.push(event::Send { node, input, timeout_ms: None }),
            None => command.goto.push(node),
        }
    }
    Ok(RunKind::Command { command, answer: None, checkpoint: None })
}

/// Converts a delay from seconds to milliseconds.
fn delay_ms(after_seconds: Option<f64>) -> Result<i64, Problem> {
    let seconds = after_seconds.unwrap_or(0.0);
    if !seconds.is_finite() || seconds < 0.0 {
        let text = format!("`after_seconds` must be a number of at least 0, not {seconds}");
        return Err(Problem::new(code::INVALID, text));
    }
    Ok((seconds * 1000.0) as i64)
}

/// Answers pending interrupts of a thread and continues it.
#[utoipa::path(post, path = "/api/v1/threads/{thread}/resume", tag = "runs",
    params(("thread" = String, Path, description = "id of the thread")),
    request_body = ResumeDocument,
    responses(
        (status = 202, body = RunDocument, description = "resumed"),
        (status = 200, body = RunDocument,
            description = "with `wait`: the run has ended or is interrupted"),
        (status = 400, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 409, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 410, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn resume_thread(
    State(engine): State<Engine>,
    scope: TenantScope,
    RequestPrincipal(principal): RequestPrincipal,
    Path(id): Path<String>,
    JsonBody(request): JsonBody<ResumeDocument>,
) -> Result<Response, Problem> {
    let record = scope.thread(&engine, &id).await?;
    let resume = ResumeRun {
        run: None,
        thread: record.id,
        answers: request.answers,
        on_failure: request.on_failure,
        app: None,
        tenant: scope.tenant,
        options: request.options.into(),
        principal,
    };
    let run = engine.resume(resume).await?;
    run_response(&engine, run, request.wait).await
}

/// Selects the runs to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct RunFilter {
    /// Maximum number of runs, up to 500, which is the default. More runs can follow a shorter
    /// page; only an empty page marks the end of the list.
    limit: Option<usize>,
    /// Number of runs to skip.
    offset: usize,
    /// `oldest` (default) or `newest`: the run that is listed first.
    #[param(value_type = Option<String>)]
    order: RunOrder,
}

/// The order of a list of runs.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RunOrder {
    /// Oldest first.
    #[default]
    Oldest,
    /// Newest first.
    Newest,
}

/// Lists the runs of a thread, oldest first unless `order` is `newest`.
#[utoipa::path(get, path = "/api/v1/threads/{thread}/runs",
    extensions(("x-wattle-access" = json!({ "share": "control" }))), tag = "runs",
    params(("thread" = String, Path, description = "id of the thread"), RunFilter),
    responses(
        (status = 200, body = Vec<RunDocument>),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn list_runs(
    State(engine): State<Engine>,
    State(models): State<Arc<ConfiguredModels>>,
    scope: TenantScope,
    Path(id): Path<String>,
    filter: Result<Query<RunFilter>, axum::extract::rejection::QueryRejection>,
) -> Result<Json<Vec<RunDocument>>, Problem> {
    let Query(filter) = filter.map_err(invalid_query)?;
    let record = scope.thread(&engine, &id).await?;
    let limit = page_size(filter.limit.or(Some(MAX_PAGE_SIZE)));
    let (store, thread) = (&engine.ports().store, &record.id);
    let runs: Vec<RunSummary> = match filter.order {
        RunOrder::Oldest => store.runs(thread, filter.offset, limit).await?.items,
        RunOrder::Newest => {
            let page = store.newest_runs(thread, filter.offset, limit).await?;
            page.items.iter().map(Into::into).collect()
        }
    };
    let runs = runs.into_iter();
    let runs = runs.map(|run| RunDocument::with_cost(run, &record.app, &models.prices));
    Ok(Json(runs.collect()))
}

/// Describes a run.
#[utoipa::path(get, path = "/api/v1/runs/{run}",
    extensions(("x-wattle-access" = json!({ "share": "control" }))), tag = "runs",
    params(("run" = String, Path, description = "id of the run")),
    responses(
        (status = 200, body = RunDocument),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn get_run(
    State(engine): State<Engine>,
    State(models): State<Arc<ConfiguredModels>>,
    scope: TenantScope,
    Path(id): Path<String>,
) -> Result<Json<RunDocument>, Problem> {
    let (run, thread) = scope.run_and_thread(&engine, &id).await?;
    let run = RunSummary::from(&run);
    Ok(Json(RunDocument::with_cost(run, &thread.app, &models.prices)))
}

/// Waits until a run has ended or its status is `interrupted`.
#[utoipa::path(get, path = "/api/v1/runs/{run}/wait",
    extensions(("x-wattle-access" = json!({ "share": "lasting" }))), tag = "runs",
    params(("run" = String, Path, description = "id of the run")),
    responses(
        (status = 200, body = RunDocument),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn wait_run(
    State(engine): State<Engine>,
    scope: TenantScope,
    Path(id): Path<String>,
) -> Result<Json<RunDocument>, Problem> {
    let record = scope.run(&engine, &id).await?;
    let run = RunRef { thread: record.thread, run: record.id };
    Ok(Json(engine.wait(&run).await?.into()))
}

/// Cancels a run. Also succeeds if the run has already ended.
#[utoipa::path(post, path = "/api/v1/runs/{run}/cancel",
    extensions(("x-wattle-access" = json!({ "share": "control" }))), tag = "runs",
    params(("run" = String, Path, description = "id of the run")),
    responses(
        (status = 202, body = RunDocument),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn cancel_run(
    State(engine): State<Engine>,
    scope: TenantScope,
    RequestPrincipal(principal): RequestPrincipal,
    Path(id): Path<String>,
) -> Result<(StatusCode, Json<RunDocument>), Problem> {
    let record = scope.run(&engine, &id).await?;
    let run = RunRef { thread: record.thread, run: record.id };
    engine.cancel_for(&run, principal.as_ref()).await?;
    let record = scope.run(&engine, &id).await?;
    Ok((StatusCode::ACCEPTED, Json(record.into())))
}

/// Requests that a run pauses before its next superstep. Resuming the thread without answers
/// continues the run. Also succeeds if the run has already ended.
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
    State(engine): State<Engine>,
    scope: TenantScope,
    Path((thread, run)): Path<(String, String)>,
) -> Result<(StatusCode, Json<RunDocument>), Problem> {
    let record = scope.run(&engine, &run).await?;
    if record.thread.as_str() != thread {
        let hint = format!("thread `{thread}` has no such run");
        return Err(Problem::not_found("run", &run, &hint));
    }
    let run = RunRef { thread: record.thread.clone(), run: record.id.clone() };
    engine.drain(&run).await?;
    Ok((StatusCode::ACCEPTED, Json(record.into())))
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
    State(engine): State<Engine>,
    scope: TenantScope,
    Path((id, run)): Path<(String, String)>,
) -> Result<StatusCode, Problem> {
    let record = scope.thread(&engine, &id).await?;
    let run = RunId::new(run).map_err(invalid_id)?;
    engine.delete_runs(&record.id, &[run]).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Checks that a thread id from a client is unused, or that the client can access the thread.
pub(crate) async fn check_unused_or_accessible(
    engine: &Engine,
    scope: &TenantScope,
    thread: &ThreadId,
) -> Result<(), Problem> {
    if engine.ports().store.thread(thread).await?.is_none() {
        return Ok(());
    }
    scope.thread(engine, thread.as_str()).await.map(|_| ()).map_err(|_| {
        Problem::new(code::CONFLICT, format!("the thread id `{thread}` is taken; choose another"))
    })
}

/// Responds to a request that started a run.
pub(crate) async fn run_response(
    engine: &Engine,
    run: RunRef,
    wait: bool,
) -> Result<Response, Problem> {
    if wait {
        let ended = engine.wait(&run).await?;
        return Ok(Json(RunDocument::from(ended)).into_response());
    }
    Ok(accepted(RunDocument::started(run)))
}

fn accepted(run: RunDocument) -> Response {
    let location = HeaderValue::from_str(&format!("/api/v1/runs/{}", run.run)).ok();
    let mut response = (StatusCode::ACCEPTED, Json(run)).into_response();
    if let Some(location) = location {
        response.headers_mut().insert(header::LOCATION, location);
    }
    response
}
