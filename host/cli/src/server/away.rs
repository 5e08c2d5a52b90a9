//! A start while the database of the store is away: the host says that it lives, and waits.

use std::sync::Arc;
use std::time::Duration;

use axum::routing::get;
use axum::{Json, Router};
use serde_json::json;
use tokio::sync::watch;
use tokio::task::JoinSet;
use wattle_store::PostgresStore;

use crate::config::Config;
use crate::error::Error;
use crate::server::listen::{self, Listening, Port};
use crate::wire::{ReadEnv, store_database};

/// Pause between two attempts, and between two lines of the log.
const PAUSE: Duration = Duration::from_secs(3);

/// How long requests may take to end once the database is there.
const END_GRACE: Duration = Duration::from_secs(1);

/// Waits until the database of the store lets the host in. Meanwhile `/healthz` answers 200, and
/// everything else 503. Answers with the port if it was opened for that.
///
/// # Errors
///
/// [`Error::Store`] if the database refuses the host, which no waiting changes; [`Error::Setup`] and
/// [`Error::Listen`].
pub(super) async fn wait_for_database(
    config: &Config,
    env: &ReadEnv,
) -> Result<Option<Port>, Error> {
    let Some(database) = store_database(config, env)? else { return Ok(None) };
    let mut answering: Option<Answering> = None;
    while let Some(error) = PostgresStore::away(&database).await.map_err(Error::Store)? {
        tracing::warn!(%error, "the host waits for the database of its store");
        if answering.is_none() {
            answering = Some(Answering::begin(config).await?);
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(match answering {
        Some(answering) => Some(answering.end().await),
        None => None,
    })
}

/// What answers meanwhile. It ends when this is dropped.
struct Answering {
    port: Port,
    tasks: JoinSet<()>,
    stop: watch::Sender<bool>,
}

impl Answering {
    async fn begin(config: &Config) -> Result<Self, Error> {
        let listening = Listening::new(config, Arc::default(), Arc::default())?;
        let port = Port::open(config.server.listen).await?;
        let (mut tasks, stop) = (JoinSet::new(), watch::channel(false).0);
        let router = router(config);
        listen::serve(&mut tasks, &listening, port.share()?, router, stop.subscribe())?;
        Ok(Self { port, tasks, stop })
    }

    /// Ends, but leaves the port open: who connects now waits for the server.
    async fn end(mut self) -> Port {
        self.stop.send_replace(true);
        let ended = async { while self.tasks.join_next().await.is_some() {} };
        // What does not end in time ends with the tasks.
        let _ = tokio::time::timeout(END_GRACE, ended).await;
        self.port
    }
}

fn router(config: &Config) -> Router {
    let router = wattle_api::waiting::router();
    if !config.server.agent_server {
        return router;
    }
    router.route("/ok", get(|| async { Json(json!({ "ok": true, "services": {} })) }))
}
