//! Attempts: calls of one candidate of a route, with their retries.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use wattle_run::caller_id::CallerId;
use wattle_run::service_memory::{ResponseMemory, ServiceMemory};

/// Whose work a call of a model is, and the memory that its responses take.
#[derive(Clone, Copy)]
pub(crate) struct CallScope<'a> {
    /// The owner for which the place of a request and the work on responses count.
    pub(crate) owner: CallerId,
    /// The memory of all responses that arrive.
    pub(crate) memory: &'a ServiceMemory,
}

/// Parameters of one attempt: the model, its timeout and retries, and the setting that messages
/// name.
#[derive(Clone, Copy)]
pub(crate) struct AttemptSpec<'a> {
    pub(crate) route: &'a str,
    /// The model that is called.
    pub(crate) model: &'a str,
    /// The model as the route names it.
    pub(crate) configured_model: &'a str,
    /// The setting that names the model, for messages.
    pub(crate) setting_text: &'a str,
    pub(crate) timeout: Duration,
    pub(crate) retries: u32,
    pub(crate) requests: &'a RequestCount,
    pub(crate) scope: CallScope<'a>,
}

impl AttemptSpec<'_> {
    /// Returns the owner of work to which the work on the response is counted.
    pub(crate) fn owner(&self) -> CallerId {
        self.scope.owner
    }

    /// Returns the memory of one response.
    pub(super) fn response_memory(&self) -> ResponseMemory {
        self.scope.memory.response(self.scope.owner)
    }
}

/// The number of HTTP requests of one attempt.
#[derive(Debug, Default)]
pub(crate) struct RequestCount(AtomicU32);

impl RequestCount {
    /// Returns the number of requests so far.
    pub(crate) fn count(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    /// Counts one more request.
    pub(super) fn increment(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}
