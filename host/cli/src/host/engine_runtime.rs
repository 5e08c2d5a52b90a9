//! The runtime that executes runs and guests.

use std::time::Duration;

use tokio::runtime::{Builder, Handle, Runtime};

use crate::error::Error;

/// Minimum number of worker threads, so that a guest that computes does not block all other guests.
const MIN_WORKERS: usize = 2;

/// Number of polls between two checks of the network and timers. A guest can compute for up to one
/// epoch in one poll, so a worker checks after each poll.
const EVENT_INTERVAL: u32 = 1;

/// Timeout for guests to end when the host stops. Guests need a few epochs to end.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// A runtime that can be dropped in any context.
pub(super) struct EngineRuntime(Option<Runtime>);

impl EngineRuntime {
    pub(super) fn start() -> Result<Self, Error> {
        let cores = std::thread::available_parallelism().map_or(MIN_WORKERS, usize::from);
        let runtime = Builder::new_multi_thread()
            .worker_threads(cores.max(MIN_WORKERS))
            .event_interval(EVENT_INTERVAL)
            .thread_name("wattle-engine")
            .enable_all()
            .build();
        let runtime = runtime.map_err(|error| Error::Unusable {
            what: "the engine runtime",
            message: error.to_string(),
        })?;
        Ok(Self(Some(runtime)))
    }

    pub(super) fn handle(&self) -> Handle {
        self.0.as_ref().map_or_else(Handle::current, |runtime| runtime.handle().clone())
    }
}

impl EngineRuntime {
    /// Aborts the remaining tasks, and waits until they have released their resources, such as the
    /// store.
    pub(super) async fn stop(mut self) {
        let Some(runtime) = self.0.take() else { return };
        let stopping =
            tokio::task::spawn_blocking(move || runtime.shutdown_timeout(SHUTDOWN_TIMEOUT)).await;
        if let Err(error) = stopping {
            tracing::debug!(%error, "cannot stop the engine runtime");
        }
    }
}

impl Drop for EngineRuntime {
    /// The drop of a tokio runtime blocks, and panics inside of another runtime, so the runtime is
    /// shut down in the background instead.
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
