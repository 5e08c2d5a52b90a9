//! The parts of the API that streams use.

use tokio::sync::watch;
use wattle_run::engine::Engine;

use crate::stream::disconnect::RunClients;

/// The parts of the API that streams use.
#[derive(Clone)]
pub struct StreamParts {
    /// The engine, whose logs streams read.
    pub(crate) engine: Engine,
    /// Becomes true when the server shuts down, which ends open streams.
    pub(crate) stopping: watch::Receiver<bool>,
    /// Clients that follow runs.
    pub(crate) run_clients: RunClients,
}
