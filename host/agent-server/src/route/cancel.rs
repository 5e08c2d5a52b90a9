//! Runs that are to be cancelled.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use wattle_graph::id::{RunId, ThreadId};
use wattle_run::ports::store::{ThreadQuery, ThreadStatus};

use crate::agents::Agents;
use crate::answer;
use crate::caller::{Body, Caller, Place};
use crate::fault::Fault;
use crate::query::Query;
use crate::queue::cancel;
use crate::run::KnownRun;
use crate::wire::request::CancelRuns;

/// Cancels one run.
pub(super) async fn one(
    State(agents): State<Agents>,
    caller: Caller,
    Place((id, run)): Place<(String, String)>,
    query: Query,
) -> Result<Response, Fault> {
    let thread = caller.thread(&agents, &id).await?;
    let run = KnownRun::find(&agents, &thread, &run).await?;
    cancelled(&agents, run, &query).await
}

/// Cancels a run, and answers with its values if they are waited for.
pub(super) async fn cancelled(
    agents: &Agents,
    run: KnownRun,
    query: &Query,
) -> Result<Response, Fault> {
    let forget = forgets(query)?;
    let wait = query.flag("wait")?;
    cancel(agents, &run.doc.thread, &run.doc.run, forget).await?;
    if wait {
        return Ok(answer::wait(agents, run.doc, None));
    }
    Ok(StatusCode::ACCEPTED.into_response())
}

fn forgets(query: &Query) -> Result<bool, Fault> {
    match query.text("action") {
        None | Some("interrupt") => Ok(false),
        Some("rollback") => Ok(true),
        Some(other) => {
            let text = format!("`action` is `interrupt` or `rollback`, not `{other}`");
            Err(Fault::unprocessable(text))
        }
    }
}

/// Cancels several runs: some of a thread, or all in a status.
pub(super) async fn several(
    State(agents): State<Agents>,
    caller: Caller,
    query: Query,
    Body(request): Body<CancelRuns>,
) -> Result<StatusCode, Fault> {
    request.check()?;
    let forget = forgets(&query)?;
    let meant = match (&request.thread_id, &request.run_ids) {
        (Some(thread), Some(runs)) => of_thread(&agents, &caller, thread, runs).await?,
        _ => in_status(&agents, &caller, request.status.as_deref()).await?,
    };
    if meant.is_empty() {
        return Err(Fault::missing(
            "run to cancel",
            request.status.as_deref().unwrap_or("of these"),
        ));
    }
    for (thread, run) in meant {
        match cancel(&agents, &thread, &run, forget).await {
            // It has ended meanwhile.
            Err(fault) if fault.status() == StatusCode::NOT_FOUND => {}
            done => done?,
        }
    }
    Ok(StatusCode::NO_CONTENT)
}

async fn of_thread(
    agents: &Agents,
    caller: &Caller,
    thread: &str,
    runs: &[String],
) -> Result<Vec<(ThreadId, RunId)>, Fault> {
    let thread = caller.thread(agents, thread).await?;
    let mut meant = Vec::with_capacity(runs.len());
    for run in runs {
        let run = KnownRun::find(agents, &thread, run).await?;
        if !run.is_over() {
            meant.push((thread.id.clone(), run.doc.run));
        }
    }
    Ok(meant)
}

async fn in_status(
    agents: &Agents,
    caller: &Caller,
    status: Option<&str>,
) -> Result<Vec<(ThreadId, RunId)>, Fault> {
    let mut meant = Vec::new();
    if status != Some("running") {
        meant.extend(agents.queue().waiting(caller.tenant.as_ref()));
    }
    if status != Some("pending") {
        let query = ThreadQuery {
            tenant: caller.tenant.clone(),
            status: Some(ThreadStatus::Running),
            ..ThreadQuery::default()
        };
        let threads = agents.ports().store.threads(&query).await?;
        meant.extend(threads.into_iter().filter_map(|thread| Some((thread.id, thread.run?))));
    }
    Ok(meant)
}
