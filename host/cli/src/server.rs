//! A running server: listeners, recovery, sweeps and reloads.

mod database_wait;
mod listen;
pub mod server_file;
mod starting;
pub(crate) mod stop;

use std::collections::BTreeMap;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use tokio::sync::watch;
use tokio::task::JoinSet;
use wattle_agent_server::{AgentServer, AgentServerConfig};
use wattle_api::{ApiState, OpenApiRouter, app_router, router_with, studio_router};
use wattle_graph::id::AppName;
use wattle_run::engine::Engine;
use wattle_run::engine::recover::Recovery;

use crate::config::Config;
use crate::env::{ReadEnv, environment};
use crate::error::Error;
use crate::host::{Host, Overrides};
use crate::load::{Change, Changes, RELOAD_TARGET, watch as files};
use crate::server::listen::{ListenState, Port};
use crate::server::server_file::ServerFile;
use crate::server::starting::Starting;

/// Pause between two sweeps of expired threads and memory documents.
const SWEEP_PERIOD: Duration = Duration::from_secs(30);

/// Pause between two sweeps of blobs. Each sweep reads the blob references of all threads.
const BLOB_SWEEP_PERIOD: Duration = Duration::from_hours(1);

/// Maximum time for which a start waits for the takeover of runs that an older version queued, and
/// of webhooks of other hosts.
const QUEUE_GRACE: Duration = Duration::from_millis(500);

/// Time that requests have to complete after the runs for which they wait have stopped.
const REQUEST_GRACE: Duration = Duration::from_secs(1);

/// Time that aborted requests have to end. A computation cannot be aborted.
const ABORT_GRACE: Duration = Duration::from_secs(1);

/// Timeout for closing the adapters.
const CLOSE_GRACE: Duration = Duration::from_secs(9);

/// Maximum duration of a stop in addition to `server.stop_grace`.
pub const STOP_LIMIT: Duration = Duration::from_secs(15);

/// Starts servers.
pub struct Server;

/// Options for the start of a server.
#[derive(Clone, Default)]
pub struct ServerOptions {
    /// Adapters that replace the configured adapters.
    pub overrides: Overrides,
    /// Whether the server reloads changed files.
    pub watch: bool,
}

impl Server {
    /// Starts a server. Returns when the server serves requests. The port opens first. Requests get
    /// status 503 until the store is open and either the apps are loaded or `server.load_wait` has
    /// passed. Apps that take longer are loaded while the server serves requests. If the database
    /// of the store is unavailable, the start waits for it. Orphaned runs are recovered in the
    /// background.
    ///
    /// # Errors
    ///
    /// [`Error::PublicAddressWithoutKeys`] for a public address without keys, [`Error::Mount`] for
    /// apps that claim the same path, [`Error::Listen`], and the errors of [`Host::open`].
    pub async fn start(config: Config, options: ServerOptions) -> Result<RunningServer, Error> {
        let env = options.overrides.env.clone().unwrap_or_else(environment);
        let starting = Starting::begin(&config).await?;
        database_wait::wait_for_database(&config, &env, &starting).await?;
        let host = Box::pin(Host::open(config, options.overrides)).await?;
        let state = host.api_state()?;
        let ready = async {
            listen::require_keys_on_public_address(&host.config, &*env, &state).await?;
            ListenState::new(&host.config, state.traffic.clone(), state.access.clone())
        };
        let listen_state = match ready.await {
            Ok(listen_state) => listen_state,
            Err(error) => {
                drop(state);
                host.close().await;
                return Err(error);
            }
        };
        let has_keys = has_keys(&host.config, &env, &state).await;
        let (changes, later_changes) = host.load_apps(log_progress).await?;
        if let Err(error) = require_no_conflicts(&changes) {
            drop(state);
            host.close().await;
            return Err(error);
        }
        // From now on, a request for a thread with an orphaned run waits until the run is
        // recovered.
        host.engine.start_recovery();
        let mut tasks = JoinSet::new();
        let stop = watch::channel(false).0;
        let Routers { main, studio } = routers(&host, &state).await?;
        let port = starting.end().await;
        let addr = listen::serve(&mut tasks, &listen_state, port, main, stop.subscribe())?;
        let mut studio_addr = None;
        if let Some((address, router)) = studio {
            let port = Port::open(address).await?;
            let stop = stop.subscribe();
            studio_addr = Some(listen::serve(&mut tasks, &listen_state, port, router, stop)?);
        }
        let mut app_addrs = BTreeMap::new();
        for (name, app) in &host.config.apps {
            let Some(address) = app.listen else { continue };
            let router = app_router(state.clone(), name.clone());
            let stop = stop.subscribe();
            let port = Port::open(address).await?;
            let addr = listen::serve(&mut tasks, &listen_state, port, router, stop)?;
            app_addrs.insert(name.clone(), addr);
        }
        spawn_until_stopped(
            &mut tasks,
            &stop,
            async move { listen_state.reload_certificates().await },
        );
        spawn_sweeps(&mut tasks, &host, &stop);
        spawn_until_stopped(&mut tasks, &stop, log_changes(later_changes));
        if options.watch {
            spawn_watch(&mut tasks, &host, &stop);
        }
        let server_file = ServerFile::write(&host.config, addr, &host.instance)?;
        let engine = host.engine.clone();
        Ok(RunningServer {
            addr,
            studio_addr,
            app_addrs,
            engine,
            changes,
            has_keys,
            host,
            tasks,
            stop,
            server_file,
        })
    }
}

/// The routers of the host's addresses, without those of apps.
struct Routers {
    main: Router,
    /// The separate address of the studio and its router, if the studio has a separate address.
    studio: Option<(SocketAddr, Router)>,
}

async fn routers(host: &Host, state: &ApiState) -> Result<Routers, Error> {
    let agent_server = start_agent_server(host, state).await?;
    let jobs = agent_server.clone().map(Arc::new);
    let state = jobs.map_or_else(|| state.clone(), |jobs| state.clone().with_client_jobs(jobs));
    let further = || match &agent_server {
        Some(agent_server) => wattle_agent_server::router(agent_server.clone()),
        None => OpenApiRouter::new(),
    };
    let main = router_with(state.clone(), further());
    let studio = host.config.server.studio_listen.map(|address| {
        let state = state.clone().with_studio(Some(host.studio.clone()));
        (address, studio_router(state, further()))
    });
    Ok(Routers { main, studio })
}

/// Starts the Agent Server; returns `None` if it is disabled.
async fn start_agent_server(host: &Host, state: &ApiState) -> Result<Option<AgentServer>, Error> {
    if !host.config.server.agent_server {
        return Ok(None);
    }
    let webhooks = host.webhooks()?;
    let settings = AgentServerConfig { webhooks, unknown_keys: host.config.server.unknown_keys };
    let agent_server = AgentServer::with_config(state, settings);
    // Runs that an older version queued must precede runs of new requests. If the takeover of the
    // queued runs is slow, requests are served before the takeover ends.
    let starting = agent_server.clone();
    let start = tokio::spawn(async move { starting.start().await });
    if tokio::time::timeout(QUEUE_GRACE, start).await.is_err() {
        tracing::info!("webhooks of other hosts are taken over while requests are served");
    }
    Ok(Some(agent_server))
}

/// Returns true if requests need an API key. If the keys in the store cannot be read, the result is
/// true, because requests may need a key.
async fn has_keys(config: &Config, env: &ReadEnv, state: &ApiState) -> bool {
    config.has_keys(&**env) || state.has_active_keys().await.unwrap_or(true)
}

/// Fails if two apps claim the same path at the start. After the start, an app with a conflict is
/// not installed, and the server continues.
fn require_no_conflicts(changes: &[Change]) -> Result<(), Error> {
    let conflicts: Vec<_> = changes
        .iter()
        .filter_map(|change| match change {
            Change::Conflict { error, .. } => Some(error.clone()),
            _ => None,
        })
        .collect();
    if conflicts.is_empty() { Ok(()) } else { Err(Error::Mount(conflicts)) }
}

fn wait_for_stop(stop: &watch::Sender<bool>) -> impl Future<Output = ()> + Send + use<> {
    let mut stop = stop.subscribe();
    async move {
        // An error means that the server no longer exists.
        let _ = stop.wait_for(|stop| *stop).await;
    }
}

fn spawn_sweeps(tasks: &mut JoinSet<()>, host: &Host, stop: &watch::Sender<bool>) {
    let engine = host.engine.clone();
    spawn_until_stopped(tasks, stop, async move {
        loop {
            tokio::time::sleep(SWEEP_PERIOD).await;
            engine.sweep().await;
            engine.retry_set_aside().await;
            sweep_memory(&engine).await;
        }
    });
    if host.engine.is_shared() {
        let engine = host.engine.clone();
        spawn_until_stopped(tasks, stop, async move { engine.share_runs().await });
    }
    if let Some(sweeper) = host.sweeper.clone() {
        spawn_until_stopped(tasks, stop, async move {
            loop {
                tokio::time::sleep(BLOB_SWEEP_PERIOD).await;
                sweeper.sweep().await;
            }
        });
    }
}

/// Deletes expired documents of the long-term memory. A failure is logged, and the next sweep
/// retries.
async fn sweep_memory(engine: &Engine) {
    let ports = engine.ports();
    match ports.memory.sweep(ports.clock.now_ms()).await {
        Ok(0) => {}
        Ok(documents) => tracing::info!(documents, "deleted expired documents"),
        Err(failure) => tracing::warn!(%failure, "cannot sweep the long-term memory"),
    }
}

fn spawn_watch(tasks: &mut JoinSet<()>, host: &Host, stop: &watch::Sender<bool>) {
    let loader = host.loader.clone();
    spawn_until_stopped(tasks, stop, async move {
        if let Err(error) = files::watch(loader, Change::log).await {
            tracing::warn!(%error, "changed files are not reloaded");
        }
    });
}

fn spawn_until_stopped(
    tasks: &mut JoinSet<()>,
    stop: &watch::Sender<bool>,
    work: impl Future<Output = ()> + Send + 'static,
) {
    let stopped = wait_for_stop(stop);
    tasks.spawn(async move {
        tokio::select! {
            () = work => {}
            () = stopped => {}
        }
    });
}

/// Logs the changes of apps and plugins that are loaded while the server serves.
async fn log_changes(mut later_changes: Changes) {
    while let Some(change) = later_changes.next().await {
        change.log();
    }
}

fn log_progress(text: &str) {
    tracing::info!(target: RELOAD_TARGET, "{text}");
}

/// A server that serves requests.
pub struct RunningServer {
    /// Main address.
    pub addr: SocketAddr,
    /// Listen address of the studio, if it has a separate address.
    pub studio_addr: Option<SocketAddr>,
    /// Listen addresses of the apps that have a separate address.
    pub app_addrs: BTreeMap<AppName, SocketAddr>,
    /// Engine of the server.
    pub engine: Engine,
    /// Apps and plugins that were loaded before the server served requests, and the problems of
    /// those that were not loaded.
    pub changes: Vec<Change>,
    /// Whether requests needed an API key when the server started.
    has_keys: bool,
    host: Host,
    tasks: JoinSet<()>,
    stop: watch::Sender<bool>,
    server_file: ServerFile,
}

impl RunningServer {
    /// Returns the URL of the main address.
    pub fn url(&self) -> String {
        self.url_of(self.addr)
    }

    /// Returns the URL of the studio, if the server serves it.
    pub fn studio_url(&self) -> Option<String> {
        let is_on_main = self.config().server.has_studio_on_main_address();
        let addr = self.studio_addr.or_else(|| is_on_main.then_some(self.addr))?;
        Some(format!("{}/studio/", self.url_of(addr)))
    }

    fn url_of(&self, addr: SocketAddr) -> String {
        let scheme = if self.config().server.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{addr}")
    }

    /// Returns the configuration.
    pub fn config(&self) -> &Config {
        &self.host.config
    }

    /// Returns warnings for the operator, one sentence each.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = self.host.warnings.clone();
        warnings.extend(self.shared_origin_warning());
        warnings
    }

    /// Returns a warning if the studio and pages of apps that the operator does not trust have the
    /// same origin, and people log in to the studio with keys.
    fn shared_origin_warning(&self) -> Option<String> {
        let config = self.config();
        if !self.has_keys || !config.server.has_studio_on_main_address() {
            return None;
        }
        let apps = self.engine.catalog().apps();
        let apps = apps.iter().filter(|app| app.page.is_some());
        let apps = apps.filter(|app| !config.apps.contains_key(&app.name));
        let names: Vec<String> = apps.map(|app| format!("`{}`", app.name)).collect();
        (!names.is_empty()).then(|| {
            format!(
                "pages of {} share the origin of the studio and can use the API key of a person \
                 who logs in there; give the studio an address of its own (`studio_listen` under \
                 `[server]`), or trust each app by adding a table `[apps.NAME]`",
                names.join(", ")
            )
        })
    }

    /// Loads changed files now, without waiting for the watcher. Returns when they are loaded.
    pub async fn reload(&self) -> Vec<Change> {
        self.host.loader.refresh().await.all(log_progress).await
    }

    /// Waits until each run that was orphaned before the start is recovered, waits for its app, or
    /// cannot be recovered, so that its thread is set aside. Returns the progress of the recovery.
    pub async fn recovery(&self) -> Recovery {
        self.engine.wait_recovered().await
    }

    /// Stops the server. Streams end, new requests are rejected, and runs pause before their next
    /// superstep. Host calls in progress, and requests that wait for them, have `server.stop_grace`
    /// to complete. Another host of the same store recovers the runs immediately. If there is no
    /// such host, the next start recovers them. The call returns even if some work is not complete.
    pub async fn shutdown(mut self) {
        let grace = self.config().server.stop_grace();
        self.host.begin_stop();
        self.engine.begin_shutdown();
        self.stop.send_replace(true);
        self.server_file.remove();
        let runs = self.engine.shutdown(grace);
        let requests = async { while self.tasks.join_next().await.is_some() {} };
        let requests = tokio::time::timeout(grace + REQUEST_GRACE, requests);
        let ((), ended) = tokio::join!(runs, requests);
        if ended.is_err() {
            tracing::warn!("some requests did not end in time and are aborted");
            // A request that is still computing ends only with the process.
            let _ = tokio::time::timeout(ABORT_GRACE, self.tasks.shutdown()).await;
        }
        if tokio::time::timeout(CLOSE_GRACE, self.host.close()).await.is_err() {
            tracing::warn!("some adapters were not closed in time");
        }
    }
}
