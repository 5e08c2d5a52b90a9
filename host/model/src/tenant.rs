//! Tenant routes.
//!
//! A tenant route overrides the operator's route of the same name. A web handler or an operator
//! request sets the tenant route. The host stores tenant routes in a file with mode 0600, and
//! redacts the key when a client reads the route. A tenant route cannot send the operator's key to
//! another URL, and cannot reach private addresses unless the operator allows it.

mod file;
mod guarded_resolver;
mod route_document;

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use serde_json::{Value, json};
use wattle_graph::failure::{Failure, code};
use wattle_graph::json_text;
use wattle_run::lookups::{Lookups, SystemResolver};
use wattle_run::ports::Caller;

use crate::config::ModelConfig;
use crate::error::ConfigError;
use crate::provider::{self, Providers};
use crate::route::Route;
use crate::tenant::file::StoredRoute;
use crate::tenant::guarded_resolver::GuardedResolver;
use crate::tenant::route_document::{RouteBuilder, RouteDocument};

/// The tenant of requests that name no tenant.
pub const DEFAULT_TENANT: &str = "default";

/// Maximum routes of all tenants together. The host keeps them in memory and rewrites the whole
/// file on a change.
pub const MAX_ROUTES: usize = 1_000;

/// Maximum bytes of the JSON object of a tenant route.
const MAX_DOCUMENT_BYTES: u64 = 16 << 10;

/// Maximum characters of the name of a route.
const MAX_NAME_CHARS: usize = 64;

/// Settings of tenant routes.
#[derive(Clone, Debug)]
pub struct TenantRoutesConfig {
    /// The file that stores the routes. Without a file, the routes are lost when the process ends.
    pub file: Option<PathBuf>,
    /// Returns whether a base URL of a tenant may have, or resolve to, this address.
    pub reachable: fn(IpAddr) -> bool,
}

/// The routes of all tenants.
pub(crate) struct TenantRoutes {
    settings: TenantRoutesConfig,
    /// The client for base URLs of tenants.
    http: reqwest::Client,
    entries: RwLock<Entries>,
    /// Serializes changes, so that an older state never replaces a newer one in the file.
    write_lock: tokio::sync::Mutex<()>,
}

/// The entries by tenant and route.
type Entries = BTreeMap<String, BTreeMap<String, TenantEntry>>;

#[derive(Clone)]
struct TenantEntry {
    document: RouteDocument,
    /// `None` if the route is disabled; an error if the current configuration does not allow it.
    route: Result<Option<Arc<Route>>, String>,
}

/// The route of a tenant under a name.
pub(crate) enum TenantRoute {
    /// The tenant has no route under this name, so the operator's route applies.
    Unset,
    /// A usable route.
    Route(Arc<Route>),
    /// An unusable route, with the reason.
    Invalid(String),
}

impl TenantRoutes {
    pub(crate) fn open(
        settings: TenantRoutesConfig,
        config: &ModelConfig,
        providers: &Providers,
    ) -> Result<Self, ConfigError> {
        let (reachable, lookups) = (settings.reachable, Lookups::shared());
        let resolver = Arc::new(GuardedResolver { reachable, lookups, lookup: SystemResolver });
        let http = provider::http_client(Some(resolver))
            .map_err(|reason| ConfigError::Client { reason })?;
        let builder = RouteBuilder { config, providers, http: &http, reachable };
        let mut entries = Entries::new();
        for kept in settings.file.as_deref().map(file::read).transpose()?.unwrap_or_default() {
            let route = builder.build(&kept.route, &kept.config);
            let entry = TenantEntry { document: kept.config, route };
            entries.entry(kept.tenant).or_default().insert(kept.route, entry);
        }
        let entries = RwLock::new(entries);
        Ok(Self { settings, http, entries, write_lock: tokio::sync::Mutex::new(()) })
    }

    pub(crate) fn find(&self, caller: &Caller, route: &str) -> TenantRoute {
        self.with_entry(caller, route, |entry| match entry.map(|entry| &entry.route) {
            Some(Ok(Some(own))) => TenantRoute::Route(Arc::clone(own)),
            Some(Err(problem)) => {
                TenantRoute::Invalid(invalid_message(tenant(caller), route, problem))
            }
            Some(Ok(None)) | None => TenantRoute::Unset,
        })
    }

    pub(crate) fn startup_warnings(&self) -> Vec<String> {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        let all = entries.iter().flat_map(|(tenant, routes)| {
            routes.iter().map(move |(name, entry)| (tenant, name, entry))
        });
        all.filter_map(|(tenant, name, entry)| {
            Some(invalid_message(tenant, name, entry.route.as_ref().err()?))
        })
        .collect()
    }

    /// Returns the JSON object of a route without its key.
    pub(crate) fn get(&self, caller: &Caller, route: &str) -> Option<Value> {
        self.with_entry(caller, route, |entry| entry.map(|entry| entry.document.redacted()))
    }

    pub(crate) async fn set(
        &self,
        caller: &Caller,
        name: &str,
        document: Value,
        config: &ModelConfig,
        providers: &Providers,
    ) -> Result<(), Failure> {
        check_name(name)?;
        let refused = |reason: String| invalid(&format!("the model route `{name}`: {reason}"));
        if !json_text::has_at_most(&document, MAX_DOCUMENT_BYTES) {
            return Err(refused(format!("it has more than {MAX_DOCUMENT_BYTES} bytes")));
        }
        let mut document = RouteDocument::parse(document).map_err(refused)?;
        let _writing = self.write_lock.lock().await;
        self.with_entry(caller, name, |old| {
            if let Some(old) = old {
                document.inherit_key(&old.document);
            }
        });
        let builder = RouteBuilder {
            config,
            providers,
            http: &self.http,
            reachable: self.settings.reachable,
        };
        let route = builder.build(name, &document).map_err(refused)?;
        let mut entries = self.copy();
        let routes = entries.entry(tenant(caller).to_owned()).or_default();
        routes.insert(name.to_owned(), TenantEntry { document, route: Ok(route) });
        if entries.values().map(BTreeMap::len).sum::<usize>() > MAX_ROUTES {
            let message = format!(
                "this host already has {MAX_ROUTES} tenant routes; remove one that is not used"
            );
            let details = json!({ "limit": "tenant_routes", "allowed": MAX_ROUTES });
            return Err(Failure::new(code::LIMIT, message).with_details(details));
        }
        self.replace(entries).await
    }

    pub(crate) async fn remove(&self, caller: &Caller, name: &str) -> Result<(), Failure> {
        let _writing = self.write_lock.lock().await;
        let mut entries = self.copy();
        let Some(routes) = entries.get_mut(tenant(caller)) else { return Ok(()) };
        if routes.remove(name).is_none() {
            return Ok(());
        }
        if routes.is_empty() {
            entries.remove(tenant(caller));
        }
        self.replace(entries).await
    }

    /// Writes the file before the new state becomes visible, so that a change whose success was
    /// reported survives a crash.
    async fn replace(&self, entries: Entries) -> Result<(), Failure> {
        if let Some(path) = self.settings.file.clone() {
            let kept: Vec<StoredRoute> = to_stored(&entries);
            let written = tokio::task::spawn_blocking(move || file::write(&path, kept)).await;
            written
                .map_err(|error| error.to_string())
                .and_then(|written| written.map_err(|error| error.to_string()))
                .map_err(Failure::internal)?;
        }
        *self.entries.write().unwrap_or_else(PoisonError::into_inner) = entries;
        Ok(())
    }

    fn copy(&self) -> Entries {
        self.entries.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn with_entry<T>(
        &self,
        caller: &Caller,
        route: &str,
        look: impl FnOnce(Option<&TenantEntry>) -> T,
    ) -> T {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        look(entries.get(tenant(caller)).and_then(|routes| routes.get(route)))
    }
}

impl fmt::Debug for TenantRoutes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The JSON objects of routes contain keys.
        f.debug_struct("TenantRoutes").field("settings", &self.settings).finish_non_exhaustive()
    }
}

fn tenant(caller: &Caller) -> &str {
    caller.tenant.as_deref().unwrap_or(DEFAULT_TENANT)
}

fn to_stored(entries: &Entries) -> Vec<StoredRoute> {
    let all = entries.iter().flat_map(|(tenant, routes)| {
        routes.iter().map(|(route, entry)| StoredRoute {
            tenant: tenant.clone(),
            route: route.clone(),
            config: entry.document.clone(),
        })
    });
    all.collect()
}

fn check_name(name: &str) -> Result<(), Failure> {
    let letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if (1..=MAX_NAME_CHARS).contains(&name.len()) && name.chars().all(letter) {
        return Ok(());
    }
    Err(invalid(&format!(
        "`{name}` cannot be the name of a model route; use 1 to {MAX_NAME_CHARS} letters, digits, `_`, \
         `-` and `.`"
    )))
}

fn invalid_message(tenant: &str, route: &str, problem: &str) -> String {
    format!("the model route `{route}` of tenant `{tenant}` cannot be used: {problem}")
}

fn invalid(message: &str) -> Failure {
    Failure::new(code::INVALID, message)
}
