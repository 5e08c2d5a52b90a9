//! Clients for whom a run works: when one leaves that asked for it, the run is cancelled.

use tokio::runtime::Handle;
use wattle_run::hostcall::runs::RunRef;

use crate::agents::Agents;
use crate::asked::run::AskedRun;
use crate::submit::cancel;
use crate::wire::request::{Disconnect, RunCreate};

/// A client that is there, for as long as this lives.
pub(crate) struct Presence {
    agents: Agents,
    run: RunRef,
    /// Where the run is cancelled: a connection may be dropped anywhere.
    runtime: Handle,
    is_over: bool,
}

impl Presence {
    pub(crate) fn new(agents: &Agents, run: RunRef) -> Self {
        Self { agents: agents.clone(), run, runtime: Handle::current(), is_over: false }
    }

    /// The client that asks for a run, if its leaving ends that.
    pub(crate) fn of(agents: &Agents, asked: &AskedRun, request: &RunCreate) -> Option<Self> {
        let cancels = request.on_disconnect.unwrap_or_default() == Disconnect::Cancel;
        cancels.then(|| Self::new(agents, asked.reference()))
    }

    /// The answer ends by itself: it was not the client who left.
    pub(crate) fn end(&mut self) {
        self.is_over = true;
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        // Runs that a stop of the host cuts go on after the next start.
        if self.is_over || *self.agents.api().stopping.borrow() {
            return;
        }
        let (agents, run) = (self.agents.clone(), self.run.clone());
        self.runtime.spawn(async move {
            tracing::info!(thread = %run.thread, run = %run.run, "the client of the run has left");
            // It may have ended in the same moment.
            if let Err(fault) = cancel(&agents, &run, false, None).await {
                tracing::debug!(run = %run.run, fault = fault.detail(), "the run is not cancelled");
            }
        });
    }
}
