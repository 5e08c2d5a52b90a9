//! The listener of a starting host. The listener opens the port before the store is opened and apps
//! are compiled, and reports that the host is alive.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use tokio::sync::watch;
use tokio::task::JoinSet;
use wattle_agent_server::starting_router;
use wattle_api::starting;

use crate::config::Config;
use crate::error::Error;
use crate::server::listen::{self, ListenState, Port};

/// Initial reason with which requests are rejected.
pub(super) const STARTING_REASON: &str = "the host is starting; try again";

/// Maximum time for requests to this listener to end after the host has started.
const END_GRACE: Duration = Duration::from_secs(1);

/// The listener of a starting host: the health endpoint responds with 200, everything else with
/// 503. Dropping the value stops the listener.
pub(super) struct Starting {
    port: Port,
    tasks: JoinSet<()>,
    stop: watch::Sender<bool>,
    reason: watch::Sender<&'static str>,
}

impl Starting {
    /// Opens the port.
    ///
    /// # Errors
    ///
    /// [`Error::Setup`] for certificates that cannot be used, and [`Error::Listen`].
    pub(super) async fn begin(config: &Config) -> Result<Self, Error> {
        let listen_state = ListenState::new(config, Arc::default(), Arc::default())?;
        let port = Port::open(config.server.listen).await?;
        let (mut tasks, stop) = (JoinSet::new(), watch::channel(false).0);
        let reason = watch::channel(STARTING_REASON).0;
        let router = router(config, reason.subscribe());
        listen::serve(&mut tasks, &listen_state, port.share()?, router, stop.subscribe())?;
        Ok(Self { port, tasks, stop, reason })
    }

    /// Sets the reason with which requests are rejected.
    pub(super) fn set_reason(&self, reason: &'static str) {
        self.reason.send_replace(reason);
    }

    /// Stops the listener and returns the open port. New connections wait in the backlog until the
    /// server accepts them.
    pub(super) async fn end(mut self) -> Port {
        self.stop.send_replace(true);
        let ended = async { while self.tasks.join_next().await.is_some() {} };
        // Requests that do not end in time are aborted.
        let _ = tokio::time::timeout(END_GRACE, ended).await;
        self.port
    }
}

fn router(config: &Config, reason: watch::Receiver<&'static str>) -> Router {
    let router = starting::router(reason);
    if !config.server.agent_server {
        return router;
    }
    router.merge(starting_router())
}
