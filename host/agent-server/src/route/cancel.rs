//! Cancels runs.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use futures::FutureExt as _;
use tokio::sync::watch;
use wattle_api::detached;
use wattle_run::engine::Engine;
use wattle_run::hostcall::runs::RunRef;
use wattle_run::ports::store::{PendingQuery, PendingRun, ThreadQuery, ThreadStatus};
use wattle_run::thread_walk::ThreadWalk;

use crate::cancel_run::cancel;
use crate::error::ApiError;
use crate::extractors::{Caller, JsonBody, PathParams};
use crate::query::QueryParams;
use crate::run::StoredRun;
use crate::wait_response;
use crate::wire::request::CancelRuns;
use crate::wire::schemas::ErrorDocument;

/// Maximum number of runs that a request may name. The server looks up each run.
const MAX_RUN_IDS: usize = 1_000;

/// Number of pending runs in one read of the store.
const PENDING_PAGE_SIZE: usize = 1_000;

/// Cancels a run.
#[utoipa::path(post, path = "/threads/{id}/runs/{run}/cancel",
    extensions(("x-wattle-access" = json!({ "share": "control" }))),
    operation_id = "agent_cancel_run", tag = "agent-runs",
    params(
        ("id" = String, Path, description = "id of the thread"),
        ("run" = String, Path, description = "id of the run"),
        ("wait" = Option<bool>, Query, description = "true to wait until the run has ended"),
        ("action" = Option<String>, Query, description = "`interrupt`, or `rollback` to also delete the run and what it wrote")),
    responses(
        (status = 200, body = Value),
        (status = 202),
        (status = 409, body = ErrorDocument)))]
pub(super) async fn cancel_run(
    State(engine): State<Engine>,
    State(stopping): State<watch::Receiver<bool>>,
    caller: Caller,
    PathParams((id, run)): PathParams<(String, String)>,
    query: QueryParams,
) -> Result<Response, ApiError> {
    let thread = caller.thread(&engine, &id).await?;
    let run = StoredRun::find(&engine, &thread, &run).await?;
    cancel_and_respond(&engine, &stopping, &caller, run, &query).await
}

/// Cancels a run. If the request waits for the end of the run, the response contains the values of
/// the run.
pub(super) async fn cancel_and_respond(
    engine: &Engine,
    stopping: &watch::Receiver<bool>,
    caller: &Caller,
    run: StoredRun,
    query: &QueryParams,
) -> Result<Response, ApiError> {
    let rollback = parse_rollback(query)?;
    let wait = query.get_bool("wait")?;
    cancel(engine, stopping, &run.requested.run_ref(), rollback, caller.principal.as_ref()).await?;
    if wait {
        return Ok(wait_response::wait_response(
            engine,
            stopping,
            run.requested.run_ref(),
            None,
            caller.response.clone(),
        ));
    }
    Ok(StatusCode::ACCEPTED.into_response())
}

fn parse_rollback(query: &QueryParams) -> Result<bool, ApiError> {
    match query.get("action") {
        None | Some("interrupt") => Ok(false),
        Some("rollback") => Ok(true),
        Some(other) => {
            let text = format!("`action` must be `interrupt` or `rollback`, not `{other}`");
            Err(ApiError::unprocessable(text))
        }
    }
}

/// Cancels several runs: the named runs of a thread, or all runs with a status.
#[utoipa::path(post, path = "/runs/cancel",
    extensions(("x-wattle-access" = json!({ "share": "control" }))), operation_id = "agent_cancel_runs", tag = "agent-runs",
    params(("action" = Option<String>, Query, description = "`interrupt`, or `rollback` to also delete the runs and what they wrote")),
    request_body = CancelRuns,
    responses(
        (status = 204),
        (status = 404, body = ErrorDocument),
        (status = 409, body = ErrorDocument)))]
pub(super) async fn cancel_runs(
    State(engine): State<Engine>,
    State(stopping): State<watch::Receiver<bool>>,
    caller: Caller,
    query: QueryParams,
    JsonBody(request): JsonBody<CancelRuns>,
) -> Result<StatusCode, ApiError> {
    request.check()?;
    let rollback = parse_rollback(&query)?;
    let selected = match (&request.thread_id, &request.run_ids) {
        (Some(thread), Some(runs)) => named_runs(&engine, &caller, thread, runs).await?,
        _ => runs_with_status(&engine, &caller, request.status.as_deref()).await?,
    };
    if selected.is_empty() {
        let text = match &request.status {
            Some(status) => format!("there is no run to cancel with status `{status}`"),
            None => "none of the named runs is pending or running".to_owned(),
        };
        return Err(ApiError::not_found(text));
    }
    let until = stopping.clone();
    let future = async move {
        for run in selected {
            match cancel(&engine, &until, &run, rollback, caller.principal.as_ref()).await {
                // The run has ended meanwhile.
                Err(error) if error.status() == StatusCode::NOT_FOUND => {}
                done => done?,
            }
        }
        Ok(StatusCode::NO_CONTENT)
    };
    detached::run(stopping, future.boxed()).await.unwrap_or_else(ApiError::panicked)
}

async fn named_runs(
    engine: &Engine,
    caller: &Caller,
    thread: &str,
    runs: &[String],
) -> Result<Vec<RunRef>, ApiError> {
    if runs.len() > MAX_RUN_IDS {
        let count = runs.len();
        let text = format!("a request may name at most {MAX_RUN_IDS} runs, not {count}");
        return Err(ApiError::unprocessable(text));
    }
    let thread = caller.thread(engine, thread).await?;
    let mut selected = Vec::with_capacity(runs.len());
    for run in runs {
        let run = StoredRun::find(engine, &thread, run).await?;
        if !run.has_ended() {
            selected.push(run.requested.run_ref());
        }
    }
    Ok(selected)
}

async fn runs_with_status(
    engine: &Engine,
    caller: &Caller,
    status: Option<&str>,
) -> Result<Vec<RunRef>, ApiError> {
    let mut selected = Vec::new();
    if status != Some("running") {
        selected.extend(pending_runs(engine, caller).await?);
    }
    if status != Some("pending") {
        let query = ThreadQuery {
            tenant: caller.tenant.clone(),
            status: Some(ThreadStatus::Running),
            ..ThreadQuery::default()
        };
        let mut walk = ThreadWalk::new(engine.ports().store.as_ref(), query);
        while let Some(threads) = walk.next().await? {
            let runs = threads.into_iter();
            selected.extend(
                runs.filter_map(|thread| Some(RunRef { thread: thread.id, run: thread.run? })),
            );
        }
    }
    Ok(selected)
}

/// Returns the pending runs of all threads that the caller may access.
async fn pending_runs(engine: &Engine, caller: &Caller) -> Result<Vec<RunRef>, ApiError> {
    let store = &engine.ports().store;
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let query = PendingQuery { after, limit: PENDING_PAGE_SIZE, ..PendingQuery::default() };
        let page = store.pending(&query).await?;
        let Some(last) = page.last() else { return Ok(found) };
        after = Some(last.position);
        for PendingRun { thread, run, .. } in page {
            let is_own = match &caller.tenant {
                None => true,
                Some(tenant) => {
                    let head = store.thread(&thread).await?;
                    head.is_some_and(|head| head.record.tenant.as_ref() == Some(tenant))
                }
            };
            if is_own {
                found.push(RunRef { thread, run });
            }
        }
    }
}
