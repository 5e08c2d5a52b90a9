//! Cancels a run when its client disconnects.

use tokio::runtime::Handle;
use wattle_run::hostcall::runs::RunRef;

use crate::agents::Agents;
use crate::asked::run::AskedRun;
use crate::submit::cancel;
use crate::wire::request::{Disconnect, RunCreate};

/// A connected client. Dropping this guard cancels the run, unless the response has ended.
pub(crate) struct Presence {
    agents: Agents,
    run: RunRef,
    /// The runtime that executes the cancel: a connection may be dropped outside of it.
    runtime: Handle,
    is_over: bool,
}

impl Presence {
    pub(crate) fn new(agents: &Agents, run: RunRef) -> Self {
        Self { agents: agents.clone(), run, runtime: Handle::current(), is_over: false }
    }

    /// Creates the guard of the client that requests a run, if a disconnect is to cancel the run.
    pub(crate) fn of(agents: &Agents, asked: &AskedRun, request: &RunCreate) -> Option<Self> {
        let cancels = request.on_disconnect.unwrap_or_default() == Disconnect::Cancel;
        cancels.then(|| Self::new(agents, asked.reference()))
    }

    /// Disarms the guard, because the response ends without a disconnect.
    pub(crate) fn end(&mut self) {
        self.is_over = true;
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        // Runs that a shutdown of the host stops continue after the next start.
        if self.is_over || *self.agents.api().stopping.borrow() {
            return;
        }
        let (agents, run) = (self.agents.clone(), self.run.clone());
        self.runtime.spawn(async move {
            let RunRef { thread, run: id } = &run;
            tracing::info!(%thread, run = %id, "cancelling a run: its client disconnected");
            // The run may have ended at the same moment.
            if let Err(fault) = cancel(&agents, &run, false, None).await {
                let why = fault.detail();
                tracing::debug!(run = %id, why, "failed to cancel a run of a disconnected client");
            }
        });
    }
}
