//! `wattle.toml`: everything an operator decides.
//!
//! Paths are relative to the file's folder. Every value can also come from the environment, as
//! `WATTLE_SECTION__KEY` (names in lower case then); the environment goes first.

mod apps;
mod auth;
mod connections;
mod eval;
mod fill;
mod grants;
mod limits;
mod mcp;
mod network;
mod read;
mod secrets;
mod size;
mod sql_grant;
mod store;
mod telemetry;
mod webhooks;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use wattle_graph::definition::Span;
use wattle_graph::id::{AppName, PluginName};
use wattle_model::ModelConfig;
use wattle_run::ports::store::{PruneStrategy, ThreadTtl};

pub use self::apps::{AppConfig, FilesConfig};
pub use self::auth::{AuthConfig, CallerLimits, TenantConfig};
pub(crate) use self::connections::duration;
pub use self::connections::{ConnectionsConfig, TlsConfig};
pub use self::eval::{EvalConfig, Price};
pub use self::fill::FindSecret;
pub(crate) use self::fill::filled;
pub use self::grants::{LimitTable, Needs};
pub use self::limits::{CompileConfig, LimitsConfig, TenantLimits};
pub use self::mcp::{McpTable, Surroundings};
pub use self::network::Network;
pub use self::read::{ConfigProblem, SECTIONS, parse, read};
pub use self::secrets::{Secret, SecretSource, SqlConfig};
pub use self::size::ByteSize;
pub use self::sql_grant::{SqlGrant, narrower};
pub use self::store::{StoreConfig, StoreDatabase, StoreKind};
pub use self::telemetry::TelemetryTable;
pub use self::webhooks::WebhooksConfig;

/// The name of the file that is read without `--config`.
pub const DEFAULT_FILE: &str = "wattle.toml";

/// The port without a setting.
pub const DEFAULT_PORT: u16 = 8700;

/// How long host calls under way may take when the host stops: most calls of a model end in it, and
/// with [`STOP_LIMIT`](crate::server::STOP_LIMIT) it is less than the 30 s after which supervisors
/// commonly kill a process.
const STOP_GRACE: Span = Span::from_ms(10_000);

/// The whole configuration.
#[derive(Clone, Debug)]
pub struct Config {
    /// The file it was read from; `None` if there is none and defaults hold.
    pub file: Option<PathBuf>,
    /// The folder that relative paths start from.
    pub base: PathBuf,
    /// Folder of store, blobs, compiled code and SQLite files.
    pub data: PathBuf,
    /// Folder with apps and plugins, which is watched.
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
    /// `[grants.<plugin>]`.
    pub grants: BTreeMap<PluginName, Needs>,
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
    /// Where it listens; `127.0.0.1:8700` without it. Port 0 takes a free one. Any address that
    /// is not loopback needs keys, see [`AuthConfig`].
    pub listen: SocketAddr,
    /// Further accepted host names.
    pub hosts: BTreeSet<String>,
    /// Origins of browser pages that may call.
    pub origins: BTreeSet<String>,
    /// Largest request body; 16 MiB without it.
    pub body_limit: ByteSize,
    /// `[server.connections]`.
    pub connections: ConnectionsConfig,
    /// `[server.tls]`: HTTPS in place of HTTP.
    pub tls: Option<TlsConfig>,
    /// `[server.limits]`.
    pub limits: CallerLimits,
    /// Header that names the tenant of a request; a header means nothing without it.
    pub tenant_header: Option<String>,
    /// The tenant of requests that name none.
    pub default_tenant: Option<String>,
    /// Header that names the user of a request, for the events of what the request does; a header
    /// means nothing without it.
    pub user_header: Option<String>,
    /// Addresses of the proxies that may send that header.
    pub trusted_proxies: Vec<Network>,
    /// Whether it also answers as an Agent Server, for the clients of that: on without it.
    pub agent_server: bool,
    /// `[server.webhooks]`.
    pub webhooks: WebhooksConfig,
    /// How long host calls under way may take when the host stops; see `STOP_GRACE`.
    pub stop_grace: Span,
}

impl ServerConfig {
    /// How long host calls under way may take when the host stops.
    pub fn stop_grace(&self) -> Duration {
        duration(self.stop_grace)
    }
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), DEFAULT_PORT),
            hosts: BTreeSet::new(),
            origins: BTreeSet::new(),
            body_limit: ByteSize(wattle_api::state::BODY_LIMIT_BYTES as u64),
            connections: ConnectionsConfig::default(),
            tls: None,
            limits: CallerLimits::default(),
            tenant_header: None,
            default_tenant: None,
            user_header: None,
            trusted_proxies: Vec::new(),
            agent_server: true,
            webhooks: WebhooksConfig::default(),
            stop_grace: STOP_GRACE,
        }
    }
}

/// `[retention]`: how long threads are kept that do not say so themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RetentionConfig {
    /// Time since the last change of a thread; for ever without it.
    pub ttl: Option<Span>,
    /// What happens then: `delete` without it, or `keep_latest`.
    pub strategy: PruneStrategy,
}

impl RetentionConfig {
    /// The same for the engine.
    pub fn thread_ttl(self) -> Option<ThreadTtl> {
        self.ttl.map(|ttl| ThreadTtl { after_ms: ttl.as_ms(), strategy: self.strategy })
    }
}

/// `[clock]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ClockConfig {
    /// IANA name; the zone of the machine without it.
    pub time_zone: Option<String>,
    /// A time to stand still at, with offset, for tests and demos.
    pub fixed: Option<String>,
}

impl Config {
    /// Defaults for a folder, without a file.
    pub fn in_folder(base: &Path) -> Self {
        Self {
            file: None,
            base: base.to_owned(),
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

    /// The file that keeps threads.
    pub fn store_file(&self) -> PathBuf {
        self.data.join("wattle.redb")
    }

    /// The file of the long-term memory.
    pub fn memory_file(&self) -> PathBuf {
        self.data.join("memory.redb")
    }

    /// The file that keeps the model routes that tenants set.
    pub fn tenant_routes_file(&self) -> PathBuf {
        self.data.join("tenant-routes.json")
    }

    /// The file in which a running server says where it is.
    pub fn server_file(&self) -> PathBuf {
        self.data.join("server.json")
    }

    /// An address that others can reach, if it is to listen on one.
    pub fn public_address(&self) -> Option<SocketAddr> {
        let apps = self.apps.values().filter_map(|app| app.listen);
        let mut all = std::iter::once(self.server.listen).chain(apps);
        all.find(|address| !address.ip().is_loopback())
    }

    /// Whether requests need a key whatever was made by `wattle key create`.
    pub fn has_keys(&self, env: &dyn Fn(&str) -> Option<String>) -> bool {
        let tenants = self.tenants.values().any(|tenant| !tenant.keys(env).is_empty());
        tenants || !self.auth.keys(env).is_empty()
    }

    /// The name of the file for messages.
    pub fn file_name(&self) -> String {
        self.file.as_ref().map_or_else(|| DEFAULT_FILE.to_owned(), |it| it.display().to_string())
    }
}
