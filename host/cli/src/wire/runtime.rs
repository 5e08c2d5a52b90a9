//! The runtime on which runs and guests execute.

use std::time::Duration;

use tokio::runtime::{Builder, Handle, Runtime};

use crate::error::Error;

/// Fewest workers: one guest that computes must not hold up the others.
const LEAST_WORKERS: usize = 2;

/// Polls between looks at the network and timers. A guest computes for up to an epoch in one
/// poll, so a worker must look after each.
const EVENT_INTERVAL: u32 = 1;

/// How long guests may take to let go when the host stops: a few epochs are enough.
const LONGEST_STOP: Duration = Duration::from_secs(5);

/// A runtime that may be dropped anywhere.
pub(super) struct EngineRuntime(Option<Runtime>);

impl EngineRuntime {
    pub(super) fn start() -> Result<Self, Error> {
        let cores = std::thread::available_parallelism().map_or(LEAST_WORKERS, usize::from);
        let runtime = Builder::new_multi_thread()
            .worker_threads(cores.max(LEAST_WORKERS))
            .event_interval(EVENT_INTERVAL)
            .thread_name("wattle-engine")
            .enable_all()
            .build();
        let runtime = runtime.map_err(|error| Error::Setup {
            what: "the engine's threads",
            message: error.to_string(),
        })?;
        Ok(Self(Some(runtime)))
    }

    pub(super) fn handle(&self) -> Handle {
        self.0.as_ref().map_or_else(Handle::current, |runtime| runtime.handle().clone())
    }
}

impl EngineRuntime {
    /// Ends what still runs and waits until it has let go of everything, such as the store.
    pub(super) async fn stop(mut self) {
        let Some(runtime) = self.0.take() else { return };
        let stopping =
            tokio::task::spawn_blocking(move || runtime.shutdown_timeout(LONGEST_STOP)).await;
        if let Err(error) = stopping {
            tracing::debug!(%error, "the engine's threads did not stop");
        }
    }
}

impl Drop for EngineRuntime {
    /// An ordinary drop would block, which is a panic inside another runtime.
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
