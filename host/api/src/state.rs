//! State of the handlers.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use axum::extract::FromRef;
use tokio::sync::watch;
use wattle_graph::failure::Failure;
use wattle_run::engine::Engine;
use wattle_run::ports::statistics::ModelPrices;
use wattle_run::ports::{ClientJobs, PluginInstaller, Statistics};

use crate::app_route::parts::AppParts;
use crate::config::ApiConfig;
use crate::guard::Admission;
use crate::guard::access::Access;
use crate::guard::keyring::Keyring;
use crate::standalone::StandalonePlugins;
use crate::store_sizes::StoreSizes;
use crate::stream::disconnect::RunClients;
use crate::stream::parts::StreamParts;
use crate::studio::Studio;
use crate::traffic::Traffic;

/// Exporter of metrics as text.
#[derive(Clone)]
pub struct MetricsExporter {
    /// Media type of the text.
    pub content_type: &'static str,
    /// Renders the metrics. Called for every request.
    pub text: Arc<dyn Fn() -> String + Send + Sync>,
}

/// The models that the operator configured.
#[derive(Clone, Debug, Default)]
pub struct ConfiguredModels {
    /// Names of the routes.
    pub routes: Vec<String>,
    /// Prices by model.
    pub prices: ModelPrices,
}

/// What the router of a state serves beside the native API.
#[derive(Clone, Copy, Debug, Default)]
pub struct ServedParts {
    /// The Agent Server API.
    pub agent_server: bool,
    /// The endpoints and pages of apps.
    pub apps: bool,
    /// The studio.
    pub studio: bool,
}

/// State of the handlers. Cheap to clone.
#[derive(Clone)]
pub struct ApiState {
    /// The engine.
    pub engine: Engine,
    /// Access to the API.
    pub config: Arc<ApiConfig>,
    /// The created keys.
    pub(crate) keyring: Arc<Keyring>,
    /// Admission of requests.
    pub(crate) admission: Arc<Admission>,
    /// Access requirements of the routes; empty until the router is built.
    pub access: Arc<OnceLock<Arc<Access>>>,
    /// Counts of connections and of rejected requests.
    pub traffic: Arc<Traffic>,
    /// Becomes true when the server shuts down, which ends open streams.
    pub stopping: watch::Receiver<bool>,
    /// Standalone plugins.
    pub standalone_plugins: StandalonePlugins,
    /// Exporter for `/metrics`. With `None`, the path responds with 404.
    pub metrics: Option<MetricsExporter>,
    /// Installer of plugins. With `None`, no request installs any.
    pub installer: Option<Arc<dyn PluginInstaller>>,
    /// Statistics of runs. With `None`, their path responds with 404.
    pub statistics: Option<Arc<dyn Statistics>>,
    /// The models that the operator configured.
    pub models: Arc<ConfiguredModels>,
    /// The webhooks and crons of clients. With `None`, their paths respond with 404.
    pub client_jobs: Option<Arc<dyn ClientJobs>>,
    /// Measures the store.
    pub(crate) store_sizes: Arc<StoreSizes>,
    /// The studio, if the router serves it.
    pub studio: Option<Studio>,
    /// What the router serves beside the native API.
    pub served: ServedParts,
    /// Clients that follow runs.
    pub run_clients: RunClients,
    /// Instance id of the server. Each start generates a new id. CLI commands use the id to check
    /// that they reached the right server.
    pub instance: Arc<str>,
}

impl ApiState {
    /// Creates the state of a server that runs until `stopping` becomes true.
    pub fn new(engine: Engine, config: ApiConfig, stopping: watch::Receiver<bool>) -> Self {
        let (config, traffic) = (Arc::new(config), Arc::<Traffic>::default());
        let keyring = Arc::<Keyring>::default();
        let admission =
            Admission::new(config.clone(), engine.clone(), traffic.clone(), keyring.clone());
        Self {
            engine,
            config,
            keyring,
            admission: Arc::new(admission),
            access: Arc::default(),
            traffic,
            stopping,
            standalone_plugins: StandalonePlugins::default(),
            metrics: None,
            installer: None,
            statistics: None,
            models: Arc::default(),
            client_jobs: None,
            store_sizes: Arc::default(),
            studio: None,
            served: ServedParts { apps: true, ..ServedParts::default() },
            run_clients: RunClients::default(),
            instance: "".into(),
        }
    }

    /// Returns true if an active created key exists.
    ///
    /// # Errors
    ///
    /// The errors of the memory that stores the keys.
    pub async fn has_active_keys(&self) -> Result<bool, Failure> {
        let ports = self.engine.ports();
        let keys = self.keyring.keys(ports).await?;
        Ok(keys.has_active(ports.clock.now_ms()))
    }

    /// Sets the standalone plugins.
    pub fn with_standalone_plugins(self, standalone_plugins: StandalonePlugins) -> Self {
        Self { standalone_plugins, ..self }
    }

    /// Sets the exporter of metrics.
    pub fn with_metrics(self, metrics: MetricsExporter) -> Self {
        Self { metrics: Some(metrics), ..self }
    }

    /// Sets the installer of plugins.
    pub fn with_installer(self, installer: Option<Arc<dyn PluginInstaller>>) -> Self {
        Self { installer, ..self }
    }

    /// Sets the statistics.
    pub fn with_statistics(self, statistics: Arc<dyn Statistics>) -> Self {
        Self { statistics: Some(statistics), ..self }
    }

    /// Sets the models that the operator configured.
    pub fn with_models(self, models: ConfiguredModels) -> Self {
        Self { models: Arc::new(models), ..self }
    }

    /// Sets the webhooks and crons of clients.
    pub fn with_client_jobs(self, client_jobs: Arc<dyn ClientJobs>) -> Self {
        Self { client_jobs: Some(client_jobs), ..self }
    }

    /// Sets the data folder of the host, whose files are measured.
    pub fn with_data_folder(self, folder: PathBuf) -> Self {
        Self { store_sizes: Arc::new(StoreSizes::with_folder(folder)), ..self }
    }

    /// Sets the studio.
    pub fn with_studio(self, studio: Option<Studio>) -> Self {
        let served = ServedParts { studio: studio.is_some(), ..self.served };
        Self { studio, served, ..self }
    }

    /// Sets whether the further routes of the router are the Agent Server API.
    pub fn with_agent_server(self, agent_server: bool) -> Self {
        Self { served: ServedParts { agent_server, ..self.served }, ..self }
    }

    /// Sets the id of the server.
    pub fn with_instance(self, instance: &str) -> Self {
        Self { instance: instance.into(), ..self }
    }
}

/// Implements [`FromRef`](axum::extract::FromRef) for parts of a state, so that a handler names the
/// parts that it uses. A part is a field of the state, or a field of a field: `api.engine: Engine`.
#[macro_export]
macro_rules! impl_from_ref {
    ($state:ty { $($($field:ident).+: $part:ty,)+ }) => {$(
        impl ::axum::extract::FromRef<$state> for $part {
            fn from_ref(state: &$state) -> Self {
                state.$($field).+.clone()
            }
        }
    )+};
}

impl_from_ref! {
    ApiState {
        engine: Engine,
        config: Arc<ApiConfig>,
        keyring: Arc<Keyring>,
        traffic: Arc<Traffic>,
        stopping: watch::Receiver<bool>,
        standalone_plugins: StandalonePlugins,
        metrics: Option<MetricsExporter>,
        installer: Option<Arc<dyn PluginInstaller>>,
        statistics: Option<Arc<dyn Statistics>>,
        models: Arc<ConfiguredModels>,
        client_jobs: Option<Arc<dyn ClientJobs>>,
        store_sizes: Arc<StoreSizes>,
        studio: Option<Studio>,
        served: ServedParts,
        instance: Arc<str>,
    }
}

impl FromRef<ApiState> for StreamParts {
    fn from_ref(state: &ApiState) -> Self {
        Self {
            engine: state.engine.clone(),
            stopping: state.stopping.clone(),
            run_clients: state.run_clients.clone(),
        }
    }
}

impl FromRef<ApiState> for AppParts {
    fn from_ref(state: &ApiState) -> Self {
        Self { config: state.config.clone(), streams: StreamParts::from_ref(state) }
    }
}
