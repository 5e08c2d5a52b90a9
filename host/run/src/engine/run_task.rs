//! The task that executes a run on this host, from its start until its thread is free again.
//!
//! The first batch of a run starts the run. The run may proceed before this batch is durable: the
//! effects of the run wait for the log, and the caller of [`Engine::execute_run`] waits for the
//! batch. If the store rejects the batch, the run is dropped. The store then rejects the later
//! batches of the run as well, because they do not continue from the newest event.

use futures::future::Shared;
use wattle_graph::event::RunReason;
use wattle_graph::failure::Failure;

use super::{Engine, ThreadClaim};
use crate::driver::{DriveOutcome, Driver};
use crate::hostcall::runs::RunRef;
use crate::ports::store::{Durability, StoreError, Ticket};

/// Returns true if a run may proceed before its first batch is durable.
///
/// With durability `async`, no effect waits for the log. With durability `sync`, every superstep
/// waits for the checkpoint before it. A recovery gives up a run whose first batch takes too long,
/// so the run must not have proceeded by then. The start of a fork is already durable.
fn may_run_ahead(durability: Durability, reason: RunReason) -> bool {
    let has_new_start = match reason {
        RunReason::Input | RunReason::Resume | RunReason::Retry => true,
        RunReason::Recovery | RunReason::Fork => false,
    };
    has_new_start && matches!(durability, Durability::Commit | Durability::Exit)
}

impl Engine {
    /// Executes a run in the background. Returns when `first`, the first batch of the run, is
    /// durable.
    ///
    /// # Errors
    ///
    /// The error of the first batch. The thread is then free, and unchanged.
    pub(super) async fn execute_run(
        &self,
        slot: ThreadClaim,
        driver: Driver,
        reason: RunReason,
        first: Shared<Ticket>,
    ) -> Result<RunRef, Failure> {
        if !may_run_ahead(driver.durability(), reason) {
            first.clone().await.map_err(|error| self.write_failure(error))?;
        }
        let run = RunRef { thread: slot.thread.clone(), run: slot.run.clone() };
        let mut done = slot.done.subscribe();
        self.0.runtime.spawn(run_to_end(slot, driver, first.clone()));
        let Err(error) = first.await else { return Ok(run) };
        // The channel closes when the task has dropped the claim of the thread.
        let _ = done.wait_for(|_| false).await;
        Err(self.write_failure(error))
    }
}

/// Drives a run and announces its start and its end.
async fn run_to_end(mut slot: ThreadClaim, driver: Driver, first: Shared<Ticket>) {
    let engine = slot.engine.clone();
    let (closing, observer) = (engine.0.abort.clone(), engine.0.ports.observer.clone());
    let (app, graph) = (driver.record().app.clone(), driver.record().graph.clone());
    // Calls that are held for the thread before the run. An input or a fork may have discarded
    // their interrupts. The run may hold further calls as soon as its start is durable.
    let held = engine.0.ports.tools.held_calls(Some(&slot.thread));
    let log = driver.log().clone();
    let start = async {
        first.await?;
        observer.run_started(&app, &graph);
        engine.release_held(held);
        Ok::<_, StoreError>(())
    };
    let drive = async { Ok::<_, StoreError>(Box::pin(driver.drive()).await) };
    let both = async { tokio::try_join!(biased; start, drive) };
    let left = tokio::select! {
        biased;
        () = closing.wait() => DriveOutcome::HandOver,
        driven = both => match driven {
            Ok(((), left)) => left,
            // The run has not started, and its caller receives the error.
            Err(_refused) => return,
        },
    };
    if matches!(left, DriveOutcome::HandOver) {
        // Boxed, because the future of every run would otherwise contain that of a handover.
        Box::pin(slot.mark_handed_over(&log)).await;
    }
    // The thread has an active run as long as the log exists.
    drop(log);
    let (end, summary, has_released_lease) = match left {
        DriveOutcome::Ended { end, summary, has_released_lease } => {
            (end, summary, has_released_lease)
        }
        DriveOutcome::HandOver => return slot.hand_over().await,
        DriveOutcome::LogLost(failure) => return slot.hand_over_lost(failure).await,
    };
    observer.run_ended(summary);
    let done = slot.done.clone();
    if has_released_lease {
        slot.lease_ended();
    } else {
        slot.release().await;
    }
    // The thread is free before the end of the run is announced, so that receivers can start the
    // next run.
    let thread = slot.thread.clone();
    drop(slot);
    engine.0.dispatch.run_ended(&thread, engine.now_ms());
    done.send_replace(Some(end));
}
