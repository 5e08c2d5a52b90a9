//! Cancels a run when its client disconnects.

use tokio::runtime::Handle;
use tokio::sync::watch;
use wattle_run::engine::Engine;
use wattle_run::hostcall::runs::RunRef;

use crate::cancel_run::cancel;
use crate::resolve::run::RequestedRun;
use crate::wire::request::{OnDisconnect, RunCreate};

/// A connected client. Dropping the value cancels the run, unless the response was complete.
pub(crate) struct DisconnectGuard {
    engine: Engine,
    stopping: watch::Receiver<bool>,
    run: RunRef,
    /// The runtime on which the cancellation runs: a connection may be dropped outside of a
    /// runtime.
    runtime: Handle,
    is_disarmed: bool,
}

impl DisconnectGuard {
    pub(crate) fn new(engine: &Engine, stopping: &watch::Receiver<bool>, run: RunRef) -> Self {
        let (engine, stopping) = (engine.clone(), stopping.clone());
        Self { engine, stopping, run, runtime: Handle::current(), is_disarmed: false }
    }

    /// Creates the guard for the client of a run, if the request cancels the run on a disconnect.
    pub(crate) fn from_request(
        engine: &Engine,
        stopping: &watch::Receiver<bool>,
        requested: &RequestedRun,
        request: &RunCreate,
    ) -> Option<Self> {
        let cancels = request.on_disconnect.unwrap_or_default() == OnDisconnect::Cancel;
        cancels.then(|| Self::new(engine, stopping, requested.run_ref()))
    }

    /// Disarms the guard when the response ends without a disconnect.
    pub(crate) fn disarm(&mut self) {
        self.is_disarmed = true;
    }
}

impl Drop for DisconnectGuard {
    fn drop(&mut self) {
        // A run that a shutdown of the host interrupts continues after the next start, so it is not
        // cancelled.
        if self.is_disarmed || *self.stopping.borrow() {
            return;
        }
        let (engine, stopping) = (self.engine.clone(), self.stopping.clone());
        let run = self.run.clone();
        self.runtime.spawn(async move {
            let RunRef { thread, run: id } = &run;
            tracing::info!(%thread, run = %id, "cancelling a run: its client disconnected");
            // The cancel fails if the run has ended meanwhile.
            if let Err(error) = cancel(&engine, &stopping, &run, false, None).await {
                let why = error.detail();
                tracing::debug!(run = %id, why, "failed to cancel a run whose client disconnected");
            }
        });
    }
}
