//! A running server: listeners, recovery, sweeps, reloading.

mod away;
mod listen;
pub mod place;
mod starting;
pub(crate) mod stop;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::future::Future;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use axum::Router;
use tokio::sync::watch;
use tokio::task::JoinSet;
use wattle_agent_server::Agents;
use wattle_api::{ApiState, app_router, router, router_with};
use wattle_graph::id::AppName;
use wattle_run::engine::Engine;
use wattle_run::engine::recover::Recovery;

use crate::config::Config;
use crate::error::Error;
use crate::load::{Change, watch as files};
use crate::server::listen::{Listening, Port};
use crate::server::place::Place;
use crate::server::starting::Starting;
use crate::wire::{Host, Overrides, environment};

/// Pause between looks for threads and documents that have expired.
const SWEEP_PERIOD: Duration = Duration::from_secs(30);

/// Pause between looks for blobs that no thread mentions: each reads every mention.
const BLOB_SWEEP_PERIOD: Duration = Duration::from_hours(1);

/// How long a start waits until webhooks and queues that other hosts left are taken on.
const QUEUE_GRACE: Duration = Duration::from_millis(500);

/// How long requests may go on after the runs that they wait for have stopped or are cut.
const REQUEST_GRACE: Duration = Duration::from_secs(1);

/// How long requests may take to let go when they are cut: one that computes does not.
const CUT_GRACE: Duration = Duration::from_secs(1);

/// How long adapters may take to be closed.
const CLOSE_GRACE: Duration = Duration::from_secs(9);

/// How long a stop takes at most beyond `server.stop_grace`, whatever is at work.
pub const STOP_LIMIT: Duration = Duration::from_secs(15);

/// Under which name the log tells what became of a changed file.
pub(crate) const RELOAD: &str = "wattle::reload";

/// Starts servers.
pub struct Server;

/// How a server is started.
#[derive(Clone, Default)]
pub struct ServerOptions {
    /// Adapters in place of the configured ones.
    pub overrides: Overrides,
    /// Load changed files while it runs.
    pub watch: bool,
}

impl Server {
    /// Listens, opens everything, loads apps. Returns when requests are answered, which are refused
    /// until then; runs that a crash cut are gone on with in the background. A database of the store
    /// that is away is waited for.
    ///
    /// # Errors
    ///
    /// [`Error::OpenAddress`] for a public address without keys, [`Error::Mount`] for apps that
    /// claim the same paths, [`Error::Listen`], and those of [`Host::open`].
    pub async fn start(config: Config, options: ServerOptions) -> Result<RunningServer, Error> {
        let env = options.overrides.env.clone().unwrap_or_else(environment);
        let starting = Starting::begin(&config).await?;
        away::wait_for_database(&config, &env, &starting).await?;
        let host = Box::pin(Host::open(config, options.overrides)).await?;
        let state = host.api_state()?;
        let ready = async {
            listen::refuse_open_address(&host.config, &*env, &state).await?;
            Listening::new(&host.config, state.traffic.clone(), state.access.clone())
        };
        let listening = match ready.await {
            Ok(listening) => listening,
            Err(error) => {
                drop(state);
                host.close().await;
                return Err(error);
            }
        };
        let changes = host.load_apps().await?;
        refuse_conflicts(&changes)?;
        // Whatever is wanted of a thread whose run was cut waits from here on until that goes on.
        host.engine.start_recovery();
        let mut tasks = JoinSet::new();
        let stop = watch::channel(false).0;
        let api = main_router(&host, &state).await?;
        let port = starting.end().await;
        let addr = listen::serve(&mut tasks, &listening, port, api, stop.subscribe())?;
        let mut app_addrs = BTreeMap::new();
        for (name, app) in &host.config.apps {
            let Some(address) = app.listen else { continue };
            let router = app_router(state.clone(), name.clone());
            let stop = stop.subscribe();
            let port = Port::open(address).await?;
            let addr = listen::serve(&mut tasks, &listening, port, router, stop)?;
            app_addrs.insert(name.clone(), addr);
        }
        until(&mut tasks, &stop, async move { listening.keep_certificates().await });
        spawn_sweeps(&mut tasks, &host, &stop);
        if options.watch {
            spawn_watch(&mut tasks, &host, &stop);
        }
        let place = Place::write(&host.config, addr, &host.instance)?;
        let engine = host.engine.clone();
        Ok(RunningServer { addr, app_addrs, engine, changes, host, tasks, stop, place })
    }
}

/// What answers on the main address.
async fn main_router(host: &Host, state: &ApiState) -> Result<Router, Error> {
    if !host.config.server.agent_server {
        return Ok(router(state.clone()));
    }
    let agents = Agents::with_webhooks(state, host.webhooks()?);
    // Before anybody can ask for a run that would come before those of an older host, unless these are many.
    let starting = agents.clone();
    let start = tokio::spawn(async move { starting.start().await });
    if tokio::time::timeout(QUEUE_GRACE, start).await.is_err() {
        tracing::info!("what other hosts left is taken on while requests are answered");
    }
    Ok(router_with(state.clone(), wattle_agent_server::router(agents)))
}

/// At the start two apps that claim one path are an error; later, the second is not installed.
fn refuse_conflicts(changes: &[Change]) -> Result<(), Error> {
    let conflicts: Vec<_> = changes
        .iter()
        .filter_map(|change| match change {
            Change::Conflict { error, .. } => Some(error.clone()),
            _ => None,
        })
        .collect();
    if conflicts.is_empty() { Ok(()) } else { Err(Error::Mount(conflicts)) }
}

fn stopped(stop: &watch::Sender<bool>) -> impl Future<Output = ()> + Send + use<> {
    let mut stop = stop.subscribe();
    async move {
        // An error means that the server itself is gone.
        let _ = stop.wait_for(|stop| *stop).await;
    }
}

fn spawn_sweeps(tasks: &mut JoinSet<()>, host: &Host, stop: &watch::Sender<bool>) {
    let engine = host.engine.clone();
    until(tasks, stop, async move {
        loop {
            tokio::time::sleep(SWEEP_PERIOD).await;
            engine.sweep().await;
            engine.retry_set_aside().await;
            sweep_memory(&engine).await;
        }
    });
    if host.engine.is_shared() {
        let engine = host.engine.clone();
        until(tasks, stop, async move { engine.keep_recovering().await });
    }
    if let Some(sweeper) = host.sweeper.clone() {
        until(tasks, stop, async move {
            loop {
                tokio::time::sleep(BLOB_SWEEP_PERIOD).await;
                sweeper.sweep().await;
            }
        });
    }
}

/// Deletes documents of the long-term memory that have expired. A failure is logged; the next sweep
/// does the rest.
async fn sweep_memory(engine: &Engine) {
    let ports = engine.ports();
    match ports.memory.sweep(ports.clock.now_ms()).await {
        Ok(0) => {}
        Ok(documents) => tracing::info!(documents, "swept documents that have expired"),
        Err(failure) => tracing::warn!(%failure, "cannot sweep the long-term memory"),
    }
}

fn spawn_watch(tasks: &mut JoinSet<()>, host: &Host, stop: &watch::Sender<bool>) {
    let loader = host.loader.clone();
    until(tasks, stop, async move {
        if let Err(error) = files::watch(loader, log_change).await {
            tracing::warn!(%error, "changed files are not loaded");
        }
    });
}

fn until(
    tasks: &mut JoinSet<()>,
    stop: &watch::Sender<bool>,
    work: impl Future<Output = ()> + Send + 'static,
) {
    let stopped = stopped(stop);
    tasks.spawn(async move {
        tokio::select! {
            () = work => {}
            () = stopped => {}
        }
    });
}

fn log_change(change: &Change) {
    match change {
        Change::App { name, notes } => {
            tracing::info!(target: RELOAD, app = %name, "app loaded: new threads use it");
            for note in notes {
                tracing::warn!(target: RELOAD, app = %name, "{note}");
            }
        }
        Change::Plugin { name } => tracing::info!(target: RELOAD, plugin = %name, "plugin loaded"),
        Change::Removed { path } => {
            tracing::info!(target: RELOAD, path = %path.display(), "removed");
        }
        Change::Conflict { path, error } => log_refusal(path, error),
        Change::Problem { path, message } => log_refusal(path, message),
    }
}

fn log_refusal(path: &Path, reason: &dyn Display) {
    let path = path.display();
    tracing::error!(target: RELOAD, %path, "not loaded, the old version stays: {reason}");
}

/// A server that answers requests.
pub struct RunningServer {
    /// Its main address.
    pub addr: SocketAddr,
    /// Addresses of apps that have one of their own.
    pub app_addrs: BTreeMap<AppName, SocketAddr>,
    /// Its engine.
    pub engine: Engine,
    /// What was loaded at the start, and what could not be.
    pub changes: Vec<Change>,
    host: Host,
    tasks: JoinSet<()>,
    stop: watch::Sender<bool>,
    place: Place,
}

impl RunningServer {
    /// Its main address as a URL.
    pub fn url(&self) -> String {
        let scheme = if self.config().server.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.addr)
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        &self.host.config
    }

    /// What an operator should know, one sentence each.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = self.host.warnings.clone();
        let has_problems = self.changes.iter().any(|it| matches!(it, Change::Problem { .. }));
        let catalog = self.engine.catalog();
        for name in self.config().apps.keys().filter(|name| catalog.app(name).is_none()) {
            // An app that cannot be loaded has said so itself.
            if !has_problems {
                let file = self.config().file_name();
                warnings.push(format!("`{file}` has `[apps.{name}]`, but there is no such app"));
            }
        }
        warnings
    }

    /// Loads changed files now instead of when the watcher sees them.
    pub async fn reload(&self) -> Vec<Change> {
        self.host.loader.refresh().await
    }

    /// Waits until all runs that were cut before the start go on or are set aside.
    pub async fn recovery(&self) -> Recovery {
        self.engine.recovered().await
    }

    /// Stops. Streams end, no request is accepted, and runs stop before their next superstep. Host
    /// calls under way, and requests that wait for them, get `server.stop_grace`. Hosts that share
    /// the store recover the runs at once; without one, the next start does. What does not let go
    /// in time ends with the process.
    pub async fn shutdown(mut self) {
        let grace = self.config().server.stop_grace();
        self.host.begin_stop();
        self.engine.halt();
        self.stop.send_replace(true);
        self.place.remove();
        let runs = self.engine.shutdown(grace);
        let requests = async { while self.tasks.join_next().await.is_some() {} };
        let requests = tokio::time::timeout(grace + REQUEST_GRACE, requests);
        let ((), ended) = tokio::join!(runs, requests);
        if ended.is_err() {
            tracing::warn!("some requests did not end in time and are cut");
            // One that is still at work then ends with the process.
            let _ = tokio::time::timeout(CUT_GRACE, self.tasks.shutdown()).await;
        }
        if tokio::time::timeout(CLOSE_GRACE, self.host.close()).await.is_err() {
            tracing::warn!("not everything could be closed in time");
        }
    }
}
