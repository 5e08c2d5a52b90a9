//! Builds a host from its configuration: adapters, catalog and engine.
//!
//! This is the only module that names every adapter.

mod adapters;
pub mod clock;
mod engine_runtime;
pub(crate) mod free_disk;
mod generated_secret;
mod mcp;
mod models;
pub mod replay;
mod secrets;
mod telemetry;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderName;
use tokio::sync::watch;
use wattle_agent_server::WebhookSettings;
use wattle_api::guard::user::UserHeader;
use wattle_api::standalone::StandalonePlugins;
use wattle_api::state::{ConfiguredModels, MetricsExporter};
use wattle_api::studio::Studio;
use wattle_api::{ApiConfig, ApiState};
use wattle_graph::id::Digest;
use wattle_mcp::McpServers;
use wattle_run::catalog::Catalog;
use wattle_run::engine::{Engine, EngineConfig};
use wattle_run::free_disk::ReadDiskSpace;
use wattle_run::ports::observer::Observers;
use wattle_run::ports::sandbox::PluginInfo;
use wattle_run::ports::{
    BlobStore, Clock, Model, Net, PluginInstaller, Sandbox, Store, ToolServers,
};
use wattle_sql::Databases;
use wattle_store::PostgresConfig;
use wattle_telemetry::metrics::CONTENT_TYPE;
use wattle_telemetry::{RunStatistics, Telemetry};

use crate::config::{Config, StoreKind, duration};
use crate::env::{ReadEnv, environment};
use crate::error::Error;
use crate::file_projection::{self, FileProjector};
use crate::host::engine_runtime::EngineRuntime;
use crate::load::{Change, Changes, Loader};
use crate::studio;

pub use self::adapters::{Sweeper, open_sandbox};
pub(crate) use self::mcp::open_mcp_servers;
pub(crate) use self::models::open_routes;
pub(crate) use self::secrets::find_secret;

/// What a caller decides instead of the configuration: adapters that replace the configured ones
/// and the source of environment variables, for tests that run a server in their own process, and
/// how a command opens the store.
#[derive(Clone, Default)]
pub struct Overrides {
    /// Clock.
    pub clock: Option<Arc<dyn Clock>>,
    /// Threads, checkpoints and events.
    pub store: Option<Arc<dyn Store>>,
    /// Blobs.
    pub blobs: Option<Arc<dyn BlobStore>>,
    /// Models.
    pub model: Option<Arc<dyn Model>>,
    /// Outbound HTTP.
    pub net: Option<Arc<dyn Net>>,
    /// Tools of MCP servers.
    pub tools: Option<Arc<dyn ToolServers>>,
    /// Sandbox of guests.
    pub sandbox: Option<Arc<dyn Sandbox>>,
    /// Maximum time for which the start waits for another process that has the files of the store
    /// open. Default: zero.
    pub lock_wait: Duration,
    /// Space of the file system of the store. Default: that of the data folder.
    pub disk_space: Option<ReadDiskSpace>,
    /// Environment variables. Default: those of the process.
    pub env: Option<ReadEnv>,
    /// Folder of the studio, with the built files in `dist`. Default: that of the binary.
    pub studio: Option<PathBuf>,
}

/// A host without a server: the parts that are needed to execute runs.
pub struct Host {
    /// The configuration.
    pub config: Arc<Config>,
    /// Engine of runs and threads.
    pub engine: Engine,
    /// Loader of apps and plugins.
    pub loader: Loader,
    /// Warnings for the operator, one sentence each.
    pub warnings: Vec<String>,
    /// Deletes unreferenced blobs; `None` if the store or the blobs are overridden.
    pub sweeper: Option<Sweeper>,
    /// The studio, which a server serves.
    pub studio: Studio,
    /// Instance id of the host. Each start generates a new id.
    pub instance: String,
    standalone_plugins: StandalonePlugins,
    databases: Databases,
    tools: Arc<McpServers>,
    telemetry: Arc<Telemetry>,
    statistics: RunStatistics,
    files: Arc<FileProjector>,
    env: ReadEnv,
    stop: watch::Sender<bool>,
    runtime: EngineRuntime,
}

impl Host {
    /// Opens the adapters and creates an engine without apps.
    ///
    /// # Errors
    ///
    /// [`Error::Setup`] if an adapter rejects its section of the configuration, [`Error::Store`] if
    /// the store cannot be opened, [`Error::Unusable`] if the long-term memory cannot be opened,
    /// and [`Error::File`] if a file cannot be read or written.
    pub async fn open(config: Config, overrides: Overrides) -> Result<Self, Error> {
        let env = overrides.env.clone().unwrap_or_else(environment);
        let config = Arc::new(config);
        let studio = studio::open(overrides.studio.clone());
        let free_disk = free_disk::open(&config, overrides.disk_space.clone());
        let mut adapters = adapters::open(&config, overrides, &env).await?;
        let runtime = EngineRuntime::start()?;
        let catalog = Catalog::new();
        let standalone_plugins = StandalonePlugins::default();
        let loader = Loader::new(
            config.clone(),
            catalog.clone(),
            adapters.sandbox,
            adapters.databases.clone(),
            adapters.ports.clock.clone(),
            standalone_plugins.clone(),
        );
        catalog.set_source(Arc::new(loader.clone()));
        let files = file_projection::start(
            &runtime.handle(),
            &adapters.ports,
            &catalog,
            &loader,
            &env,
            free_disk.clone(),
        );
        adapters.ports.observer =
            Arc::new(Observers(vec![adapters.ports.observer.clone(), files.clone()]));
        let started_ms = adapters.ports.clock.now_ms();
        let budget = config.memory_budget();
        let engine_config = EngineConfig {
            runtime: Some(runtime.handle()),
            thread_ttl: config.retention.thread_ttl(),
            holder: None,
            caps: config.caps(),
            max_runs: Some(config.max_runs()),
            max_handlers: Some(config.max_handlers()),
            runs_memory_bytes: Some(budget.runs_bytes),
            caches: budget.caches,
            free_disk,
        };
        let engine = Engine::new(adapters.ports, catalog, engine_config);
        Ok(Self {
            config,
            engine,
            loader,
            warnings: adapters.warnings,
            sweeper: adapters.sweeper,
            studio,
            instance: new_instance(started_ms),
            standalone_plugins,
            databases: adapters.databases,
            tools: adapters.tools,
            telemetry: adapters.telemetry,
            statistics: adapters.statistics,
            files,
            env,
            stop: watch::channel(false).0,
            runtime,
        })
    }

    /// Returns the state of the HTTP API of the main address.
    ///
    /// # Errors
    ///
    /// [`Error::Setup`] for an invalid header name.
    pub fn api_state(&self) -> Result<ApiState, Error> {
        let server = &self.config.server;
        let keys = self.config.auth.keys(&*self.env);
        let (limits, memory) = (&self.config.limits, self.config.memory_budget());
        let api = ApiConfig {
            hosts: server.hosts.iter().map(|host| host.to_ascii_lowercase()).collect(),
            origins: server.origins.clone(),
            keys: keys.iter().map(|key| ApiConfig::key_digest(key)).collect(),
            requires_key: self.config.public_address().is_some(),
            limits: server.limits.to_limits(limits.graphs().state_bytes, &memory),
            tenant_keys: self.tenant_keys(),
            default_tenant: server.default_tenant.clone(),
            body_limit_bytes: usize::try_from(server.body_limit.0).unwrap_or(usize::MAX),
            stall_timeout: duration(server.connections.stall_timeout),
            tenant_header: header_name("server.tenant_header", server.tenant_header.as_deref())?,
            user_header: header_name("server.user_header", server.user_header.as_deref())?.map(
                |name| UserHeader {
                    name,
                    proxies: server.trusted_proxies.iter().map(|network| network.0).collect(),
                },
            ),
        };
        Ok(ApiState::new(self.engine.clone(), api, self.stop.subscribe())
            .with_standalone_plugins(self.standalone_plugins())
            .with_metrics(metrics_text(&self.telemetry))
            .with_installer(self.installer())
            .with_statistics(Arc::new(self.statistics.clone()))
            .with_models(self.models())
            .with_data_folder(self.config.data.clone())
            .with_agent_server(server.agent_server)
            .with_studio(server.has_studio_on_main_address().then(|| self.studio.clone()))
            .with_instance(&self.instance))
    }

    /// Returns the settings of webhooks, with their secret.
    ///
    /// # Errors
    ///
    /// [`Error::Setup`] if the secret is missing.
    pub fn webhooks(&self) -> Result<WebhookSettings, Error> {
        let settings = self.config.server.webhooks.settings(&*self.env);
        settings.map_err(|message| Error::Setup { what: "webhooks", message })
    }

    fn standalone_plugins(&self) -> StandalonePlugins {
        let loader = self.loader.clone();
        let permissions = move |plugin: &PluginInfo| loader.standalone_permissions(plugin);
        self.standalone_plugins.clone().with_permissions(Arc::new(permissions))
    }

    fn installer(&self) -> Option<Arc<dyn PluginInstaller>> {
        let installer: Arc<dyn PluginInstaller> = Arc::new(self.loader.clone());
        self.config.server.install.then_some(installer)
    }

    fn models(&self) -> ConfiguredModels {
        let model = &self.config.model;
        let routes = model.routes.keys().cloned().collect();
        ConfiguredModels { routes, prices: model.prices.clone() }
    }

    fn tenant_keys(&self) -> BTreeMap<Digest, String> {
        let tenants = self.config.tenants.iter();
        let keys = tenants.flat_map(|(name, tenant)| {
            let keys = tenant.keys(&*self.env);
            keys.into_iter().map(move |key| (ApiConfig::key_digest(&key), name.clone()))
        });
        keys.collect()
    }

    /// Begins to load apps and plugins at the start, and waits until they are loaded or
    /// `server.load_wait` has passed. Returns the changes until then, and a source of the later
    /// changes. Passes texts about loads in progress to `report`.
    ///
    /// # Errors
    ///
    /// [`Error::Store`].
    pub async fn load_apps(&self, report: impl Fn(&str)) -> Result<(Vec<Change>, Changes), Error> {
        let store = self.engine.ports().store.as_ref();
        let mut coming = self.loader.start(store).await.map_err(Error::Store)?;
        let changes = coming.within(self.config.server.load_wait(), report).await;
        Ok((changes, coming))
    }

    /// Ends open streams, and stops migrations.
    pub fn begin_stop(&self) {
        self.stop.send_replace(true);
        self.loader.stop_migrations();
    }

    /// Stops the engine, and closes the adapters. Waits for a short time for the end of running
    /// supersteps, and then aborts the remaining runs. Another host or the next start recovers the
    /// aborted runs.
    pub async fn close(self) {
        self.begin_stop();
        self.loader.close().await;
        self.engine.shutdown(CLOSE_GRACE).await;
        self.files.flush().await;
        self.tools.close().await;
        self.telemetry.close(FLUSH_TIMEOUT).await;
        self.databases.close().await;
        let Self { runtime, .. } = self;
        runtime.stop().await;
    }
}

/// Returns the database of the store, or `None` for a store without a database.
///
/// # Errors
///
/// [`Error::Setup`] if the environment variable with the URL of the database is not set.
pub(crate) fn store_database(
    config: &Config,
    env: &ReadEnv,
) -> Result<Option<PostgresConfig>, Error> {
    match config.store.kind {
        StoreKind::Postgres => adapters::postgres_config(config, env).map(|(found, _)| Some(found)),
        StoreKind::Redb | StoreKind::Memory => Ok(None),
    }
}

/// Time that remaining supersteps have to end when a command ends. The runs of the command itself
/// have already ended.
const CLOSE_GRACE: Duration = Duration::from_secs(2);

/// Timeout for sending pending traces when the host stops, because the operator waits for the stop.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);

fn header_name(key: &str, text: Option<&str>) -> Result<Option<HeaderName>, Error> {
    text.map(str::parse).transpose().map_err(|_| Error::Setup {
        what: "the server",
        message: format!("`{key}` is not a header name"),
    })
}

fn metrics_text(telemetry: &Telemetry) -> MetricsExporter {
    let metrics = telemetry.metrics();
    MetricsExporter { content_type: CONTENT_TYPE, text: Arc::new(move || metrics.text()) }
}

/// Number of digits of an instance id. The number is large enough that two hosts on one machine
/// never have the same id.
const INSTANCE_DIGITS: usize = 16;

fn new_instance(started_ms: i64) -> String {
    let words = format!("{} {started_ms} {:?}", std::process::id(), std::time::Instant::now());
    Digest::of(words.as_bytes()).to_hex()[..INSTANCE_DIGITS].to_owned()
}
