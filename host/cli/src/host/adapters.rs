//! Opens the configured adapters.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use secrecy::SecretString;
use tokio::task::spawn_blocking;
use wattle_mcp::McpServers;
use wattle_model::TenantRoutesConfig;
use wattle_net::{NetConfig, OutboundHttp, Secrets};
use wattle_run::ports::observer::Observers;
use wattle_run::ports::{BlobLinks, BlobStore, Clock, Memory, Model, Net, Ports, Sandbox, Store};
use wattle_run::service_memory::ServiceMemory;
use wattle_sandbox::config::DEFAULT_MAX_INSTANCES;
use wattle_sandbox::{CodeCacheConfig, SandboxConfig};
use wattle_sql::Databases;
use wattle_store::sweep::{Mentions, Sweepable};
use wattle_store::{
    EssentialDocuments, FileBlobs, InMemoryBlobs, InMemoryStore, PostgresConfig, PostgresStore,
    RedbConfig, RedbMemory, RedbStore, VolatileMemory,
};
use wattle_telemetry::{RunStatistics, Telemetry};

use crate::config::{Config, Secret, StoreKind};
use crate::data_folder::{CACHE_FOLDER, make_private_dir};
use crate::env::ReadEnv;
use crate::error::Error;
use crate::host::Overrides;
use crate::host::clock::HostClock;
use crate::host::generated_secret::{cache_key, link_secret};
use crate::host::mcp::open_mcp_servers;
use crate::host::models::open_routes;
use crate::host::telemetry::{open_statistics, open_telemetry};
use crate::load::compiler;

/// The opened adapters.
pub(super) struct Adapters {
    /// Ports of the engine.
    pub(super) ports: Ports,
    /// Sandbox that loads components.
    pub(super) sandbox: Arc<dyn Sandbox>,
    /// Databases of plugins, for migrations.
    pub(super) databases: Databases,
    /// Connections to MCP servers.
    pub(super) tools: Arc<McpServers>,
    /// Metrics and traces.
    pub(super) telemetry: Arc<Telemetry>,
    /// Statistics of runs.
    pub(super) statistics: RunStatistics,
    /// Deletes unreferenced blobs; `None` if the store or the blobs are overridden.
    pub(super) sweeper: Option<Sweeper>,
    /// Warnings for the operator, one sentence each.
    pub(super) warnings: Vec<String>,
}

/// Deletes blobs to which no thread refers.
#[derive(Clone)]
pub struct Sweeper {
    mentions: Arc<dyn Mentions>,
    blobs: Arc<dyn Sweepable>,
}

impl Sweeper {
    /// Deletes unreferenced blobs that are older than the grace period. A failure is logged, and
    /// the next sweep retries.
    pub async fn sweep(&self) {
        let age = wattle_store::sweep::GRACE_PERIOD;
        let swept =
            wattle_store::sweep::sweep_blobs(self.mentions.as_ref(), self.blobs.as_ref(), age);
        match swept.await {
            Ok(0) => {}
            Ok(blobs) => tracing::info!(blobs, "deleted unreferenced blobs"),
            Err(error) => tracing::warn!(%error, "cannot sweep blobs"),
        }
    }
}

pub(super) async fn open(
    config: &Config,
    overrides: Overrides,
    env: &ReadEnv,
) -> Result<Adapters, Error> {
    make_private_dir(&config.data).map_err(Error::file("create", &config.data))?;
    let mut warnings = Vec::new();
    let own = open_stores(config, overrides.lock_wait, env, &mut warnings).await?;
    let sweeper = (overrides.store.is_none() && overrides.blobs.is_none())
        .then(|| Sweeper { mentions: own.mentions, blobs: own.sweepable });
    let databases = open_databases(config, env, &mut warnings).await?;
    let memory = ServiceMemory::new(config.memory_budget().services_bytes);
    let model = match overrides.model {
        Some(model) => model,
        None => open_model(config, env, memory.clone(), &mut warnings)?,
    };
    let clock = match overrides.clock {
        Some(clock) => clock,
        None => Arc::new(HostClock::new(&config.clock)?),
    };
    let net = match overrides.net {
        Some(net) => net,
        None => open_net(config, env, &clock, memory.clone(), &mut warnings)?,
    };
    let sandbox = match overrides.sandbox {
        Some(sandbox) => sandbox,
        None => open_sandbox(config)?,
    };
    let mut tool_warnings = Vec::new();
    let tools = open_mcp_servers(config, env, &memory, &mut tool_warnings)?;
    if overrides.tools.is_none() {
        warnings.extend(tool_warnings);
    }
    let store = overrides.store.unwrap_or(own.store);
    let statistics = open_statistics(config, &own.memory, &clock);
    let telemetry = open_telemetry(config, env, &store, &model, &statistics, &mut warnings)?;
    let ports = Ports {
        store,
        blobs: overrides.blobs.unwrap_or(own.blobs),
        links: BlobLinks::new(&link_secret(config)?),
        memory: own.memory,
        model,
        net,
        sql: Arc::new(databases.clone()),
        tools: overrides.tools.unwrap_or_else(|| tools.clone()),
        clock,
        observer: Arc::new(Observers(vec![telemetry.clone()])),
    };
    Ok(Adapters { ports, sandbox, databases, tools, telemetry, statistics, sweeper, warnings })
}

struct Stores {
    store: Arc<dyn Store>,
    blobs: Arc<dyn BlobStore>,
    memory: Arc<dyn Memory>,
    mentions: Arc<dyn Mentions>,
    sweepable: Arc<dyn Sweepable>,
}

async fn open_stores(
    config: &Config,
    lock_wait: Duration,
    env: &ReadEnv,
    warnings: &mut Vec<String>,
) -> Result<Stores, Error> {
    match config.store.kind {
        StoreKind::Memory => {
            let (store, blobs) = (Arc::new(InMemoryStore::new()), Arc::new(InMemoryBlobs::new()));
            Ok(Stores {
                store: store.clone(),
                blobs: blobs.clone(),
                memory: Arc::new(VolatileMemory::new()),
                mentions: store,
                sweepable: blobs,
            })
        }
        StoreKind::Redb => {
            let config = config.clone();
            // Opening the files verifies checksums and may repair the files, which can take long.
            let opened = spawn_blocking(move || open_files(&config, lock_wait)).await;
            opened.map_err(|error| Error::Unusable {
                what: "the store",
                message: error.to_string(),
            })?
        }
        StoreKind::Postgres => {
            let (database, warning) = postgres_config(config, env)?;
            warnings.extend(warning);
            let store = Arc::new(PostgresStore::open(&database).await.map_err(Error::Store)?);
            let blobs = Arc::new(store.blobs());
            Ok(Stores {
                store: store.clone(),
                blobs: blobs.clone(),
                memory: Arc::new(store.memory()),
                mentions: store,
                sweepable: blobs,
            })
        }
    }
}

/// Opens the store in its files. Waits at most `lock_wait` for each file that another process has
/// open. Blocks the calling thread.
fn open_files(config: &Config, lock_wait: Duration) -> Result<Stores, Error> {
    let caches = config.memory_budget().caches;
    let redb = RedbConfig {
        commit_delay: config.store.commit_delay(),
        file_pages_bytes: caches.file_pages_bytes,
        fields_bytes: caches.fields_bytes,
        lock_wait,
    };
    let opened = RedbStore::open_with(config.store_file(), redb);
    let store = Arc::new(opened.map_err(Error::Store)?);
    let blobs = Arc::new(FileBlobs::open(config.blobs_folder()).map_err(Error::Store)?);
    Ok(Stores {
        store: store.clone(),
        blobs: blobs.clone(),
        memory: open_memory(config, lock_wait)?,
        mentions: store,
        sweepable: blobs,
    })
}

/// Returns the settings of the store's database, and a warning for the operator if there is one.
pub(super) fn postgres_config(
    config: &Config,
    env: &ReadEnv,
) -> Result<(PostgresConfig, Option<String>), Error> {
    let setup = |message| Error::Setup { what: "the store", message };
    let database = config.store.database.as_ref();
    let database = database.ok_or_else(|| setup("it has no address".to_owned()))?;
    let (database, warning) = database.connection(&**env).map_err(setup)?;
    Ok((database.with_commit_delay(config.store.commit_delay()), warning))
}

fn open_memory(config: &Config, lock_wait: Duration) -> Result<Arc<dyn Memory>, Error> {
    let (scope, namespace) = wattle_api::guard::keys_namespace();
    let meaning = "all created keys may be lost, and a host without keys may be open to everyone \
                   who can reach it: after a repair, create a key before the host starts";
    let keys = EssentialDocuments { scope, namespace, meaning };
    let memory = RedbMemory::open_with(config.memory_file(), &keys, lock_wait)
        .map_err(|failure| Error::Unusable { what: "the memory", message: failure.message })?;
    Ok(Arc::new(memory))
}

async fn open_databases(
    config: &Config,
    env: &ReadEnv,
    warnings: &mut Vec<String>,
) -> Result<Databases, Error> {
    let mut databases = BTreeMap::new();
    for (name, sql) in &config.sql {
        let (database, warning) = sql.connection(name, &**env);
        warnings.extend(warning);
        databases.insert(name.clone(), database);
    }
    Databases::open_with(databases, &config.data, config.memory_budget().sqlite_bytes)
        .await
        .map_err(|error| Error::Setup { what: "databases", message: error.to_string() })
}

fn open_model(
    config: &Config,
    env: &ReadEnv,
    memory: ServiceMemory,
    warnings: &mut Vec<String>,
) -> Result<Arc<dyn Model>, Error> {
    let tenants = TenantRoutesConfig {
        file: Some(config.tenant_routes_file()),
        reachable: if config.model.tenant_private {
            |address| wattle_net::is_address_allowed(address, true)
        } else {
            |address| wattle_net::is_address_allowed(address, false)
        },
    };
    let routes = open_routes(config.model.clone(), config, env)
        .and_then(|routes| routes.with_tenants(tenants))
        .map_err(|error| Error::Setup { what: "model routes", message: error.to_string() })?;
    warnings.extend(routes.startup_warnings());
    let schemas_bytes = config.memory_budget().caches.schemas_bytes;
    Ok(Arc::new(routes.with_memory(memory).with_schema_cache_bytes(schemas_bytes)))
}

/// Opens the sandbox, which caches compiled code in the data folder.
///
/// # Errors
///
/// [`Error::File`] if the folder or the key of the cache cannot be used; [`Error::Setup`] if the
/// sandbox rejects its configuration.
pub fn open_sandbox(config: &Config) -> Result<Arc<dyn Sandbox>, Error> {
    let cache_dir = config.data.join(CACHE_FOLDER);
    make_private_dir(&cache_dir).map_err(Error::file("create", &cache_dir))?;
    let cache = Some(CodeCacheConfig { directory: cache_dir, key: cache_key(config)? });
    let compiler = compiler::selected(config.limits.compile.limits());
    let budget = config.memory_budget();
    let sandbox = SandboxConfig {
        cache,
        compiler,
        max_instances: DEFAULT_MAX_INSTANCES,
        guests_memory_bytes: budget.guests_bytes,
        code_bytes: budget.code_bytes,
    };
    let sandbox = wattle_sandbox::Sandbox::new(&sandbox)
        .map_err(|error| Error::Setup { what: "the sandbox", message: error.to_string() })?;
    Ok(sandbox)
}

fn open_net(
    config: &Config,
    env: &ReadEnv,
    clock: &Arc<dyn Clock>,
    memory: ServiceMemory,
    warnings: &mut Vec<String>,
) -> Result<Arc<dyn Net>, Error> {
    let (mut secrets, mut tokens) = (BTreeMap::new(), BTreeMap::new());
    for (name, source) in &config.secrets {
        match source.value(&config.base, &**env) {
            Ok(Secret::Value(value)) => {
                drop(secrets.insert(name.clone(), SecretString::from(value)));
            }
            Ok(Secret::Token(source)) => drop(tokens.insert(name.clone(), source)),
            Err(reason) => warnings.push(format!("secret `{name}` is missing: {reason}")),
        }
    }
    let net = Secrets::new(secrets)
        .and_then(|secrets| secrets.with_tokens(tokens, clock))
        .and_then(|secrets| OutboundHttp::new(&NetConfig::default(), secrets))
        .map_err(|error| Error::Setup { what: "outbound HTTP", message: error.to_string() })?;
    Ok(Arc::new(net.with_memory(memory)))
}
