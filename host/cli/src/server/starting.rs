//! The port of a host that starts: it opens first, and says that the host lives, while files are
//! compared and repaired and apps are compiled.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use tokio::sync::watch;
use tokio::task::JoinSet;
use wattle_agent_server::starting_router;
use wattle_api::waiting;

use crate::config::Config;
use crate::error::Error;
use crate::server::listen::{self, Listening, Port};

/// Why a host that starts refuses requests, unless it says something else.
pub(super) const STARTS: &str = "the host is starting; try again";

/// How long requests may take to end once the host has started.
const END_GRACE: Duration = Duration::from_secs(1);

/// What answers at the port of a host that starts: 200 at `/healthz`, and 503 everywhere else. It
/// ends when this is dropped.
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
        let listening = Listening::new(config, Arc::default(), Arc::default())?;
        let port = Port::open(config.server.listen).await?;
        let (mut tasks, stop) = (JoinSet::new(), watch::channel(false).0);
        let reason = watch::channel(STARTS).0;
        let router = router(config, reason.subscribe());
        listen::serve(&mut tasks, &listening, port.share()?, router, stop.subscribe())?;
        Ok(Self { port, tasks, stop, reason })
    }

    /// Has requests be refused with another reason from now on.
    pub(super) fn say(&self, reason: &'static str) {
        self.reason.send_replace(reason);
    }

    /// Ends, but leaves the port open: who connects now waits for the server.
    pub(super) async fn end(mut self) -> Port {
        self.stop.send_replace(true);
        let ended = async { while self.tasks.join_next().await.is_some() {} };
        // What does not end in time ends with the tasks.
        let _ = tokio::time::timeout(END_GRACE, ended).await;
        self.port
    }
}

fn router(config: &Config, reason: watch::Receiver<&'static str>) -> Router {
    let router = waiting::router(reason);
    if !config.server.agent_server {
        return router;
    }
    router.merge(starting_router())
}
