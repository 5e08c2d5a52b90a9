//! `wattle.toml`: the configuration of a host.
//!
//! Paths are relative to the folder of the file. The environment variable `WATTLE_SECTION__KEY`
//! takes precedence over the value in the file. Entry names within the variable name, such as the
//! name of an app, are in lower case.

mod apps;
mod auth;
mod collect;
mod connections;
mod eval;
mod grants;
mod limits;
mod mcp;
mod model;
mod network;
mod origins;
mod problem;
mod read;
mod secret_placeholder;
mod secrets;
mod sql;
mod sql_grant;
mod store;
mod telemetry;
mod webhooks;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use figment::value::Dict;
use serde::Deserialize;
use wattle_agent_server::UnknownKeys;
pub use wattle_graph::definition::ByteSize;
use wattle_graph::definition::HumanDuration;
use wattle_graph::id::AppName;
use wattle_model::ModelConfig;
use wattle_run::grant::GrantKey;
use wattle_run::ports::statistics::ModelPrices;
use wattle_run::ports::store::{PruneStrategy, ThreadTtl};
use wattle_sandbox::machine_memory;
use wattle_sql::DatabaseConfig;
use wattle_store::BLOBS_FOLDER;

pub use self::apps::{AppConfig, FilesConfig};
pub use self::auth::{AuthConfig, CallerLimits, TenantConfig};
pub(crate) use self::connections::duration;
pub use self::connections::{ConnectionsConfig, TlsConfig};
pub use self::eval::EvalConfig;
pub use self::grants::{GrantSpec, LimitTable};
pub use self::limits::{CompileConfig, LimitsConfig, TenantLimits};
pub use self::mcp::{McpContext, McpTable};
pub use self::network::Network;
pub use self::origins::Origins;
pub use self::problem::{ConfigProblem, LocatedProblem};
pub use self::read::{SECTIONS, parse, read};
pub use self::secret_placeholder::FindSecret;
pub(crate) use self::secret_placeholder::expand_secrets;
pub use self::secrets::{Secret, SecretSource};
pub use self::sql::{MigrateRule, SqlConfig};
pub use self::sql_grant::{SqlGrant, intersect_sql_rules};
pub use self::store::{StoreConfig, StoreDatabase, StoreKind};
pub use self::telemetry::TelemetryTable;
pub use self::webhooks::WebhooksConfig;
use crate::data_folder::{HostFiles, MEMORY_FILE, SERVER_FILE, STORE_FILE, TENANT_ROUTES_FILE};
use crate::files_folder::FilesFolder;
use crate::paths::{leads_through, path_entries, resolve_links};

/// Name of the configuration file that is read by default.
pub const DEFAULT_FILE: &str = "wattle.toml";

/// Default port.
pub const DEFAULT_PORT: u16 = 8700;

/// Default of `server.stop_grace`. Most model calls end within this time. Together with
/// [`STOP_LIMIT`](crate::server::STOP_LIMIT), this time is shorter than the 30 s after which
/// supervisors commonly kill a process.
const DEFAULT_STOP_GRACE: HumanDuration = HumanDuration::from_ms(10_000);

/// Default of `server.load_wait`. Apps whose code is in the cache are loaded within a second, and
/// new apps within a few seconds.
const DEFAULT_LOAD_WAIT: HumanDuration = HumanDuration::from_ms(10_000);

/// The whole configuration.
#[derive(Clone, Debug)]
pub struct Config {
    /// The configuration file; `None` if there is no file and the defaults apply.
    pub file: Option<PathBuf>,
    /// The values of the file and of the environment variables as they were read, by section.
    pub sections: Dict,
    /// The lines and the environment variables of the values.
    pub origins: Origins,
    /// Folder to which paths are relative.
    pub base: PathBuf,
    /// Memory that this process may use, in bytes; `None` if the system does not report it. It was
    /// read together with the file, so that all pools of memory are parts of the same budget.
    pub machine_bytes: Option<u64>,
    /// Folder of the store, blobs, compiled code and SQLite files.
    pub data: PathBuf,
    /// Folder with apps and plugins, which the server watches for changes.
    pub plugins: PathBuf,
    /// `[server]`.
    pub server: ServerConfig,
    /// `[store]`.
    pub store: StoreConfig,
    /// `[retention]`.
    pub retention: RetentionConfig,
    /// `[limits]`.
    pub limits: LimitsConfig,
    /// `[clock]`.
    pub clock: ClockConfig,
    /// `[model]`.
    pub model: ModelConfig,
    /// `[sql.<name>]`.
    pub sql: BTreeMap<String, SqlConfig>,
    /// `[secrets]`.
    pub secrets: BTreeMap<String, SecretSource>,
    /// `[mcp.<name>]`.
    pub mcp: BTreeMap<String, McpTable>,
    /// `[apps.<name>]`.
    pub apps: BTreeMap<AppName, AppConfig>,
    /// `[grants.<plugin>]` and `[grants."<app>/<plugin>"]`.
    pub grants: BTreeMap<GrantKey, GrantSpec>,
    /// `[auth]`.
    pub auth: AuthConfig,
    /// `[tenants.<name>]`.
    pub tenants: BTreeMap<String, TenantConfig>,
    /// `[telemetry]`.
    pub telemetry: TelemetryTable,
    /// `[eval]`.
    pub eval: EvalConfig,
}

/// `[server]`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerConfig {
    /// Main address. Default: `127.0.0.1:8700`. Port 0 selects a free port. An address that is not
    /// loopback requires API keys, see [`AuthConfig`].
    pub listen: SocketAddr,
    /// Whether the server serves the studio. Default: true.
    pub studio: bool,
    /// Separate address for the studio, which serves the API and no apps. Default: none, and the
    /// main address serves the studio.
    pub studio_listen: Option<SocketAddr>,
    /// Whether the operator can install plugins over the API. Default: false.
    pub install: bool,
    /// Additional accepted host names.
    pub hosts: BTreeSet<String>,
    /// Origins of browser pages that may send requests.
    pub origins: BTreeSet<String>,
    /// Maximum size of a request body. Default: 16 MiB.
    pub body_limit: ByteSize,
    /// `[server.connections]`.
    pub connections: ConnectionsConfig,
    /// `[server.tls]`: HTTPS instead of HTTP.
    pub tls: Option<TlsConfig>,
    /// `[server.limits]`.
    pub limits: CallerLimits,
    /// Header that contains the tenant of a request. Default: none.
    pub tenant_header: Option<String>,
    /// Tenant of requests that name no tenant.
    pub default_tenant: Option<String>,
    /// Header that contains the user of a request, whom events record. Default: none.
    pub user_header: Option<String>,
    /// Addresses of the proxies that may send `user_header`.
    pub trusted_proxies: Vec<Network>,
    /// Whether the server serves the Agent Server API. Default: true.
    pub agent_server: bool,
    /// How the Agent Server API treats keys of inputs and updates that name no channel: `ignore`
    /// (default) or `reject`.
    pub unknown_keys: UnknownKeys,
    /// `[server.webhooks]`.
    pub webhooks: WebhooksConfig,
    /// Time that host calls in progress have to complete when the host stops. Default:
    /// `DEFAULT_STOP_GRACE`.
    pub stop_grace: HumanDuration,
    /// Time that a start waits for apps before the server serves requests. Default:
    /// `DEFAULT_LOAD_WAIT`.
    pub load_wait: HumanDuration,
}

impl ServerConfig {
    /// Returns true if the main address serves the studio.
    pub fn has_studio_on_main_address(&self) -> bool {
        self.studio && self.studio_listen.is_none()
    }

    /// Returns the time that host calls in progress have to complete when the host stops.
    pub fn stop_grace(&self) -> Duration {
        duration(self.stop_grace)
    }

    /// Returns the time that a start waits for apps before the server serves requests.
    pub fn load_wait(&self) -> Duration {
        duration(self.load_wait)
    }
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), DEFAULT_PORT),
            studio: true,
            studio_listen: None,
            install: false,
            hosts: BTreeSet::new(),
            origins: BTreeSet::new(),
            body_limit: ByteSize(wattle_api::config::DEFAULT_BODY_LIMIT_BYTES as u64),
            connections: ConnectionsConfig::default(),
            tls: None,
            limits: CallerLimits::default(),
            tenant_header: None,
            default_tenant: None,
            user_header: None,
            trusted_proxies: Vec::new(),
            agent_server: true,
            unknown_keys: UnknownKeys::default(),
            webhooks: WebhooksConfig::default(),
            stop_grace: DEFAULT_STOP_GRACE,
            load_wait: DEFAULT_LOAD_WAIT,
        }
    }
}

/// `[retention]`: the retention of threads without their own setting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RetentionConfig {
    /// Time from the last change of a thread to its expiry. Default: unlimited.
    pub ttl: Option<HumanDuration>,
    /// Action on an expired thread: `delete` (default) or `keep_latest`.
    pub strategy: PruneStrategy,
}

impl RetentionConfig {
    /// Converts the section to the setting of the engine.
    pub fn thread_ttl(self) -> Option<ThreadTtl> {
        self.ttl.map(|ttl| ThreadTtl { after_ms: ttl.as_ms(), strategy: self.strategy })
    }
}

/// `[clock]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ClockConfig {
    /// IANA name of the time zone. Default: the time zone of the machine.
    pub time_zone: Option<String>,
    /// A fixed time with an offset from UTC, for tests and demos.
    pub fixed: Option<String>,
}

impl Config {
    /// Returns the defaults for a folder without a configuration file.
    pub fn in_folder(base: &Path) -> Self {
        Self {
            file: None,
            sections: Dict::new(),
            origins: Origins::default(),
            base: base.to_owned(),
            machine_bytes: machine_memory::usable_bytes(),
            data: base.join("data"),
            plugins: base.join("plugins"),
            server: ServerConfig::default(),
            store: StoreConfig::default(),
            retention: RetentionConfig::default(),
            limits: LimitsConfig::default(),
            clock: ClockConfig::default(),
            model: ModelConfig::default(),
            sql: BTreeMap::new(),
            secrets: BTreeMap::new(),
            mcp: BTreeMap::new(),
            apps: BTreeMap::new(),
            grants: BTreeMap::new(),
            auth: AuthConfig::default(),
            tenants: BTreeMap::new(),
            telemetry: TelemetryTable::default(),
            eval: EvalConfig::default(),
        }
    }

    /// Returns the prices of `wattle eval`: the prices under `[model.prices]`, overridden by the
    /// prices under `[eval.prices]`.
    pub fn eval_prices(&self) -> ModelPrices {
        let mut prices = self.model.prices.clone();
        prices.extend(self.eval.prices.clone());
        prices
    }

    /// Returns the folder of the app in `[apps.<name>]`: its `path`, or else the folder with the
    /// name of the app in the plugins folder. Returns `None` for an app without this table.
    pub fn folder_of_app(&self, app: &AppName) -> Option<PathBuf> {
        let path = self.apps.get(app)?.path.as_ref().map(|path| self.base.join(path));
        Some(path.unwrap_or_else(|| self.plugins.join(app.as_str())))
    }

    /// Returns the file of the store.
    pub fn store_file(&self) -> PathBuf {
        self.data.join(STORE_FILE)
    }

    /// Returns the file of the long-term memory.
    pub fn memory_file(&self) -> PathBuf {
        self.data.join(MEMORY_FILE)
    }

    /// Returns the file with the model routes of tenants.
    pub fn tenant_routes_file(&self) -> PathBuf {
        self.data.join(TENANT_ROUTES_FILE)
    }

    /// Returns the path of the server file, which contains the address of the running server.
    pub fn server_file(&self) -> PathBuf {
        self.data.join(SERVER_FILE)
    }

    /// Returns the folder of blobs.
    pub fn blobs_folder(&self) -> PathBuf {
        self.data.join(BLOBS_FOLDER)
    }

    /// Returns the host's own files and folders in the data folder.
    pub(crate) fn host_files(&self) -> HostFiles {
        let databases = self.sql.values().map(|sql| DatabaseConfig::new(&sql.url));
        let files = databases.filter_map(|database| database.sqlite_file(&self.data));
        HostFiles::new(&self.data, files, &self.plugins)
    }

    /// Checks that no folder of the grants is within a folder that a component may write to, and
    /// resolves the paths of the folders.
    fn resolve_folders(&mut self, problems: &mut Vec<ConfigProblem>) {
        let Self { grants, base, .. } = self;
        grants::check_nesting(grants, base, problems);
        for needs in grants.values_mut() {
            needs.resolve(base);
        }
    }

    /// Returns a configured folder of a file projection, if its path leads through the granted
    /// folder `granted`.
    fn files_folder_through(&self, granted: &Path) -> Option<PathBuf> {
        let files = self.apps.values().flat_map(|app| app.files.values());
        let dirs = files.filter(|files| files.enabled).filter_map(|files| files.dir.as_ref());
        let mut folders = dirs.map(|dir| FilesFolder::new(&self.data, dir));
        folders.find(|files| leads_through(files.root(), granted)).map(|files| files.path())
    }

    /// Returns a part of the host's configuration, data or code that overlaps a folder. A component
    /// that can write to such a part could extend its own grants. A folder with a symbolic link on
    /// the path to a part counts as containing the part.
    fn overlapping_host_part(&self, folder: &Path) -> Option<String> {
        let contains =
            |path: &Path| path_entries(path).iter().any(|place| place.starts_with(folder));
        let overlaps = |path: &Path| contains(path) || folder.starts_with(resolve_links(path));
        let file = self.file.as_ref().and_then(|file| file.file_name());
        if file.is_some_and(|name| contains(&self.base.join(name))) {
            return Some("the configuration file".to_owned());
        }
        if overlaps(&self.plugins) {
            return Some("the plugins folder".to_owned());
        }
        if contains(&self.data) {
            return Some("the data folder".to_owned());
        }
        let host_files = self.host_files();
        let inside = folder.strip_prefix(resolve_links(&self.data)).ok();
        let conflict =
            inside.and_then(|inside| host_files.conflicting(&self.data.join(inside), &[]));
        // Each path is checked separately, because a link in the data folder may lead to another
        // place.
        let conflict =
            conflict.or_else(|| host_files.paths().find(|path| overlaps(&self.data.join(path))));
        if let Some(host_file) = conflict {
            return Some(format!("`{}` in the data folder", host_file.display()));
        }
        let of_app = |(name, app): (&AppName, &AppConfig)| {
            let paths = app.path.iter().chain(app.components.values());
            let mut paths = paths.map(|path| self.base.join(path));
            paths.any(|path| overlaps(&path)).then(|| format!("app `{name}`"))
        };
        self.apps.iter().find_map(of_app)
    }

    /// Returns a configured address that is not a loopback address, if there is one.
    pub fn public_address(&self) -> Option<SocketAddr> {
        let apps = self.apps.values().filter_map(|app| app.listen);
        let mut all =
            std::iter::once(self.server.listen).chain(self.server.studio_listen).chain(apps);
        all.find(|address| !address.ip().is_loopback())
    }

    /// Returns true if the configuration has API keys. Requests then need a key, even if the store
    /// has no keys.
    pub fn has_keys(&self, env: &dyn Fn(&str) -> Option<String>) -> bool {
        let tenants = self.tenants.values().any(|tenant| !tenant.keys(env).is_empty());
        tenants || !self.auth.keys(env).is_empty()
    }

    /// Returns the name of the configuration file for messages.
    pub fn file_name(&self) -> String {
        self.file.as_ref().map_or_else(|| DEFAULT_FILE.to_owned(), |it| it.display().to_string())
    }
}
