//! What handlers work with.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use axum::http::HeaderName;
use tokio::sync::watch;
use wattle_graph::failure::Failure;
use wattle_graph::id::{Digest, PluginName};
use wattle_run::engine::Engine;
use wattle_run::ports::Plugin;

use crate::guard::Ledger;
use crate::guard::access::Access;
use crate::guard::limits::Limits;
use crate::guard::user::UserHeader;
use crate::stream::presence::Presence;
use crate::traffic::Traffic;

/// Bytes of a request body unless configured: a picture of some 10 MiB as base64 in JSON.
pub const BODY_LIMIT_BYTES: usize = 16 << 20;

/// How long a client may take to read what it is sent at once, unless configured: slow networks need
/// seconds.
pub const STALL: Duration = Duration::from_secs(30);

/// Who may call, and how large a request may be.
#[derive(Clone, Debug)]
pub struct ApiConfig {
    /// Host names that requests may be addressed to, beside `localhost` and literal addresses.
    pub hosts: BTreeSet<String>,
    /// Origins of browser pages that may call. None by default: no CORS.
    pub origins: BTreeSet<String>,
    /// Accepted keys, as [`ApiConfig::key`] makes them. Without any, and without keys that were
    /// made by a command, everybody who can connect may call, which is only sound on a loopback
    /// address.
    pub keys: BTreeSet<Digest>,
    /// Whether requests need a key even if there is none at all, as on an address that others can
    /// reach: the last key may be revoked while the host runs.
    pub needs_keys: bool,
    /// How often callers may ask, and how much at once.
    pub limits: Limits,
    /// Bytes of a request body; see [`BODY_LIMIT_BYTES`].
    pub body_limit_bytes: usize,
    /// How long a client may take to read what it is sent at once; see [`STALL`].
    pub stall: Duration,
    /// Keys that stand for a tenant, in the same form. They are accepted too, and their requests
    /// are the tenant's.
    pub tenant_keys: BTreeMap<Digest, String>,
    /// Header that names the tenant of a request, set by a proxy in front. With it, threads
    /// belong to tenants. Without it (the default) the header of a client means nothing.
    pub tenant_header: Option<HeaderName>,
    /// The tenant of requests that name none by key or header. Without it such a request is
    /// refused if there is a header, and the operator's otherwise.
    pub default_tenant: Option<String>,
    /// Header that names the user of a request, for the events of what the request does. Without it
    /// (the default) the header of a client means nothing.
    pub user_header: Option<UserHeader>,
}

impl Default for ApiConfig {
    fn default() -> Self {
        Self {
            hosts: BTreeSet::new(),
            origins: BTreeSet::new(),
            keys: BTreeSet::new(),
            needs_keys: false,
            limits: Limits::default(),
            body_limit_bytes: BODY_LIMIT_BYTES,
            stall: STALL,
            tenant_keys: BTreeMap::new(),
            tenant_header: None,
            default_tenant: None,
            user_header: None,
        }
    }
}

impl ApiConfig {
    /// A key in the form in which it is kept: digests compare in a time that says nothing of the
    /// key.
    pub fn key(secret: &str) -> Digest {
        Digest::of(secret.as_bytes())
    }
}

/// Metrics as text.
#[derive(Clone)]
pub struct MetricsText {
    /// The form of the text.
    pub content_type: &'static str,
    /// Writes it; called for every request.
    pub text: Arc<dyn Fn() -> String + Send + Sync>,
}

/// What handlers work with. Cheap to clone.
#[derive(Clone)]
pub struct ApiState {
    /// Runs, threads, apps.
    pub engine: Engine,
    /// Who may call.
    pub config: Arc<ApiConfig>,
    /// What guards remember.
    pub(crate) ledger: Arc<Ledger>,
    /// What requests need and are counted as, once there is a router.
    pub access: Arc<OnceLock<Arc<Access>>>,
    /// Counts of connections, and of what was refused.
    pub traffic: Arc<Traffic>,
    /// Becomes true when the server stops: open streams end then.
    pub stopping: watch::Receiver<bool>,
    /// Plugins that belong to no app.
    pub loose: LoosePlugins,
    /// What `/metrics` answers; there is no such path without it.
    pub metrics: Option<MetricsText>,
    /// Runs that clients of apps follow.
    pub presence: Presence,
    /// Which server this is, so that a command knows whether it talks to the right one.
    pub instance: Arc<str>,
}

impl ApiState {
    /// State for a server that runs until `stopping` becomes true.
    pub fn new(engine: Engine, config: ApiConfig, stopping: watch::Receiver<bool>) -> Self {
        let loose = LoosePlugins::default();
        let ledger = Arc::new(Ledger::new(&config));
        Self {
            engine,
            config: Arc::new(config),
            ledger,
            access: Arc::default(),
            traffic: Arc::default(),
            stopping,
            loose,
            metrics: None,
            presence: Presence::default(),
            instance: "".into(),
        }
    }

    /// Whether there is a key that was made by a command and opens something.
    ///
    /// # Errors
    ///
    /// Those of the memory in which they are kept.
    pub async fn has_kept_keys(&self) -> Result<bool, Failure> {
        let ports = self.engine.ports();
        let kept = self.ledger.keyring.kept(ports).await?;
        Ok(kept.opens_any(ports.clock.now_ms()))
    }

    /// The same with plugins that belong to no app.
    pub fn with_loose_plugins(self, loose: LoosePlugins) -> Self {
        Self { loose, ..self }
    }

    /// The same with metrics.
    pub fn with_metrics(self, metrics: MetricsText) -> Self {
        Self { metrics: Some(metrics), ..self }
    }

    /// The same with a word for which server this is.
    pub fn with_instance(self, instance: &str) -> Self {
        Self { instance: instance.into(), ..self }
    }
}

/// Plugins by name.
type Plugins = BTreeMap<PluginName, Arc<dyn Plugin>>;

/// Plugins of the plugins folder, which belong to no app until a graph names them. A clone is the
/// same set.
#[derive(Clone, Default)]
pub struct LoosePlugins(Arc<Mutex<Plugins>>);

impl LoosePlugins {
    /// No code runs under this lock, so a poisoned one still holds whole data.
    fn lock(&self) -> MutexGuard<'_, Plugins> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a plugin in place of the one with its name.
    pub fn insert(&self, plugin: Arc<dyn Plugin>) {
        self.lock().insert(plugin.info().name.clone(), plugin);
    }

    /// Takes a plugin away.
    pub fn remove(&self, name: &PluginName) {
        self.lock().remove(name);
    }

    /// All of them.
    pub fn all(&self) -> BTreeMap<PluginName, Arc<dyn Plugin>> {
        self.lock().clone()
    }
}
