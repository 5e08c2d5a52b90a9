//! What the applications have in common: requests of the manifest, and the time between sessions.

use serde_json::Value;
use wattle_suite::server::TestServer;

/// Time between two sessions, in milliseconds, so that lists have an order.
const PAUSE_MS: u32 = 60_000;

/// The requests of an application's manifest.
pub(crate) struct Requests {
    /// Requests that read, in order.
    pub(crate) stored: Vec<Value>,
    /// Requests that continue sessions, in order.
    pub(crate) continued: Vec<Value>,
}

/// Advances the clock between two sessions.
pub(crate) fn pause(server: &TestServer) {
    server.clock().advance_ms(PAUSE_MS);
}
