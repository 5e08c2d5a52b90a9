//! Cancels runs, and deletes runs and threads together with their webhooks. A cancel or a deletion
//! of a run completes even if the client disconnects.

use futures::FutureExt as _;
use tokio::sync::watch;
use wattle_api::detached;
use wattle_graph::failure::code;
use wattle_graph::id::{RunId, ThreadId};
use wattle_graph::principal::Principal;
use wattle_run::engine::Engine;
use wattle_run::hostcall::runs::RunRef;

use crate::error::ApiError;
use crate::webhooks::{unregister, unregister_thread};
use crate::wire::response::RunStatus;

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
        // A run that has ended is not deleted, so its webhook is still delivered.
        if rollback && !has_ended(&own, &run.run).await? {
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
    detached::run(stopping.clone(), future.boxed()).await.unwrap_or_else(ApiError::panicked)
}

/// Returns whether a run has ended. Returns `false` if it does not exist.
async fn has_ended(engine: &Engine, run: &RunId) -> Result<bool, ApiError> {
    let record = engine.ports().store.run(run).await?;
    Ok(record.is_some_and(|record| RunStatus::from_record(&record).has_ended()))
}

/// Deletes a run and what it wrote. An active run is cancelled first.
///
/// # Errors
///
/// The errors of the engine.
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
    detached::run(stopping.clone(), future.boxed()).await.unwrap_or_else(ApiError::panicked)
}

/// Deletes a thread with its runs. Pending and running runs are cancelled.
///
/// # Errors
///
/// The errors of the engine.
pub(crate) async fn delete_thread(engine: &Engine, thread: &ThreadId) -> Result<(), ApiError> {
    unregister_thread(engine, thread).await?;
    Ok(engine.remove_thread(thread).await?)
}
