//! Creates, cancels and deletes runs together with their webhooks.
//!
//! The engine decides which run of a thread is next. A cancel or a deletion completes even if the
//! client disconnects. So does the creation of a run, of which the submission is a part.

use tokio::sync::watch;
use wattle_graph::failure::code;
use wattle_graph::id::{RunId, ThreadId};
use wattle_graph::principal::Principal;
use wattle_run::engine::Engine;
use wattle_run::hostcall::runs::{Multitask, RunRef};
use wattle_run::ports::store::{PendingQuery, RunRecord, ThreadStatus};

use crate::detached::run_detached;
use crate::error::ApiError;
use crate::resolve::run::{EngineFields, RequestedRun};
use crate::state::AgentServer;
use crate::webhooks::unregister;

/// Starts a run or enqueues it. Returns the record of the run when the record is durable. The
/// caller must not be dropped when the client disconnects.
///
/// # Errors
///
/// 409 for a thread with an active run and the strategy `reject`, 503 if too many runs are pending,
/// and those of the engine.
pub(crate) async fn submit(
    server: &AgentServer,
    requested: &mut RequestedRun,
    engine: EngineFields,
) -> Result<RunRecord, ApiError> {
    // The webhook is stored before the run can start. Dropping the registration starts the
    // delivery, at a time when it is known whether the run exists.
    let _registration = server.webhooks().register(requested).await?;
    if requested.client.strategy == Multitask::Rollback {
        unregister_all(server.engine(), &requested.thread).await?;
    }
    let is_cron_run = requested.is_cron_run();
    let failure = match server.engine().create_run(requested.request(engine, is_cron_run)).await {
        Ok(record) => return Ok(record),
        Err(failure) => failure,
    };
    // Another host may have created the same run of the cron.
    let known = if is_cron_run { server.ports().store.run(&requested.run).await? } else { None };
    known.ok_or_else(|| failure.into())
}

/// Deletes the webhooks of the pending and running runs of a thread.
async fn unregister_all(engine: &Engine, thread: &ThreadId) -> Result<(), ApiError> {
    let store = &engine.ports().store;
    let query =
        PendingQuery { thread: Some(thread.clone()), limit: usize::MAX, ..PendingQuery::default() };
    for pending in store.pending(&query).await? {
        unregister(engine, &pending.run).await?;
    }
    let record = store.thread(thread).await?.map(|head| head.record);
    let running = record.filter(|record| record.status == ThreadStatus::Running);
    if let Some(run) = running.and_then(|record| record.run) {
        unregister(engine, &run).await?;
    }
    Ok(())
}

/// Cancels a pending or running run on behalf of a principal. With `rollback`, also deletes the run
/// and what it wrote.
///
/// # Errors
///
/// 404 if the run is neither pending nor running.
pub(crate) async fn cancel(
    engine: &Engine,
    stopping: &watch::Receiver<bool>,
    run: &RunRef,
    rollback: bool,
    principal: Option<&Principal>,
) -> Result<(), ApiError> {
    let (own, run, principal) = (engine.clone(), run.clone(), principal.cloned());
    let future = async move {
        if rollback {
            unregister(&own, &run.run).await?;
        }
        let cancelled = own.cancel_run(&run, rollback, principal.as_ref()).await;
        cancelled.map_err(|failure| {
            if failure.code == code::NOT_FOUND {
                return ApiError::missing("run to cancel", run.run.as_str());
            }
            failure.into()
        })
    };
    run_detached(stopping, Box::pin(future)).await
}

/// Deletes a run and what it wrote. An active run is cancelled first.
///
/// # Errors
///
/// Those of the engine.
pub(crate) async fn delete_run(
    engine: &Engine,
    stopping: &watch::Receiver<bool>,
    thread: &ThreadId,
    run: &RunId,
) -> Result<(), ApiError> {
    let (own, run) = (engine.clone(), RunRef { thread: thread.clone(), run: run.clone() });
    let future = async move {
        unregister(&own, &run.run).await?;
        Ok(own.remove_run(&run).await?)
    };
    run_detached(stopping, Box::pin(future)).await
}

/// Deletes a thread with its runs. Pending and running runs are cancelled.
///
/// # Errors
///
/// Those of the engine.
pub(crate) async fn delete_thread(engine: &Engine, thread: &ThreadId) -> Result<(), ApiError> {
    unregister_all(engine, thread).await?;
    Ok(engine.remove_thread(thread).await?)
}
