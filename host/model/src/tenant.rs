//! Routes that tenants bring along.
//!
//! A tenant's route stands in front of the operator's of the same name. It is set by a web handler
//! or an operator's request, kept in a file that only the host's user can read, and shown without
//! its key. What it may not do: send the operator's key to another address, or lead the host to
//! addresses that only the host can reach.

mod document;
mod file;
mod guard;

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use serde_json::{Value, json};
use wattle_graph::failure::{Failure, code};
use wattle_run::ports::Caller;

use crate::config::ModelConfig;
use crate::error::ConfigError;
use crate::provider::{self, Providers};
use crate::route::Route;
use crate::tenant::document::{Builder, Document};
use crate::tenant::file::Kept;
use crate::tenant::guard::Guarded;

/// The tenant of requests that name none.
pub const DEFAULT_TENANT: &str = "default";

/// Routes of all tenants together: they are kept in memory and written as a whole.
pub const MAX_ROUTES: usize = 1_000;

/// Bytes of one route's document.
const DOCUMENT_BYTES: usize = 16 << 10;

/// Characters of a route's name.
const NAME_CHARS: usize = 64;

/// Where tenants' routes are kept and where they may lead.
#[derive(Clone, Debug)]
pub struct Tenants {
    /// The file that keeps them; without one they are forgotten at the end.
    pub file: Option<PathBuf>,
    /// Whether a route that a tenant gives the address of may lead to a network address.
    pub reachable: fn(IpAddr) -> bool,
}

/// The routes of all tenants.
pub(crate) struct TenantRoutes {
    settings: Tenants,
    /// The client for addresses that tenants give.
    http: reqwest::Client,
    entries: RwLock<Entries>,
    /// Held while a change is written, so that the file never goes back.
    writing: tokio::sync::Mutex<()>,
}

/// Tenant -> route -> what was set.
type Entries = BTreeMap<String, BTreeMap<String, Entry>>;

#[derive(Clone)]
struct Entry {
    document: Document,
    /// `None` if it is switched off; what is wrong if the configuration has changed under it.
    route: Result<Option<Arc<Route>>, String>,
}

/// What a tenant has behind a name.
pub(crate) enum Own {
    /// Nothing: the operator's holds.
    None,
    /// This.
    Route(Arc<Route>),
    /// Something that cannot be used, and why.
    Broken(String),
}

impl TenantRoutes {
    pub(crate) fn open(
        settings: Tenants,
        config: &ModelConfig,
        providers: &Providers,
    ) -> Result<Self, ConfigError> {
        let resolver = Arc::new(Guarded { reachable: settings.reachable });
        let http =
            provider::http(Some(resolver)).map_err(|reason| ConfigError::Client { reason })?;
        let builder = Builder { config, providers, http: &http, reachable: settings.reachable };
        let mut entries = Entries::new();
        for kept in settings.file.as_deref().map(file::read).transpose()?.unwrap_or_default() {
            let route = builder.build(&kept.route, &kept.config);
            let entry = Entry { document: kept.config, route };
            entries.entry(kept.tenant).or_default().insert(kept.route, entry);
        }
        let entries = RwLock::new(entries);
        Ok(Self { settings, http, entries, writing: tokio::sync::Mutex::new(()) })
    }

    pub(crate) fn find(&self, caller: &Caller, route: &str) -> Own {
        self.with(caller, route, |entry| match entry.map(|entry| &entry.route) {
            Some(Ok(Some(own))) => Own::Route(Arc::clone(own)),
            Some(Err(problem)) => Own::Broken(broken(tenant(caller), route, problem)),
            Some(Ok(None)) | None => Own::None,
        })
    }

    pub(crate) fn problems(&self) -> Vec<String> {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        let all = entries.iter().flat_map(|(tenant, routes)| {
            routes.iter().map(move |(name, entry)| (tenant, name, entry))
        });
        all.filter_map(|(tenant, name, entry)| {
            Some(broken(tenant, name, entry.route.as_ref().err()?))
        })
        .collect()
    }

    /// The document without its key.
    pub(crate) fn get(&self, caller: &Caller, route: &str) -> Option<Value> {
        self.with(caller, route, |entry| entry.map(|entry| entry.document.shown()))
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
        if document.to_string().len() > DOCUMENT_BYTES {
            return Err(refused(format!("it has more than {DOCUMENT_BYTES} bytes")));
        }
        let mut document = Document::read(document).map_err(refused)?;
        let _writing = self.writing.lock().await;
        self.with(caller, name, |old| {
            if let Some(old) = old {
                document.keep_key_of(&old.document);
            }
        });
        let builder =
            Builder { config, providers, http: &self.http, reachable: self.settings.reachable };
        let route = builder.build(name, &document).map_err(refused)?;
        let mut entries = self.copy();
        let routes = entries.entry(tenant(caller).to_owned()).or_default();
        routes.insert(name.to_owned(), Entry { document, route: Ok(route) });
        if entries.values().map(BTreeMap::len).sum::<usize>() > MAX_ROUTES {
            let message = format!(
                "this host keeps {MAX_ROUTES} model routes of tenants; remove one that is not used"
            );
            let details = json!({ "limit": "tenant_routes", "allowed": MAX_ROUTES });
            return Err(Failure::new(code::LIMIT, message).with_details(details));
        }
        self.replace(entries).await
    }

    pub(crate) async fn remove(&self, caller: &Caller, name: &str) -> Result<(), Failure> {
        let _writing = self.writing.lock().await;
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

    /// Writes the new state first: what is answered with success survives a crash.
    async fn replace(&self, entries: Entries) -> Result<(), Failure> {
        if let Some(path) = self.settings.file.clone() {
            let kept: Vec<Kept> = kept(&entries);
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

    fn with<T>(&self, caller: &Caller, route: &str, look: impl FnOnce(Option<&Entry>) -> T) -> T {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        look(entries.get(tenant(caller)).and_then(|routes| routes.get(route)))
    }
}

impl fmt::Debug for TenantRoutes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Documents hold keys.
        f.debug_struct("TenantRoutes").field("settings", &self.settings).finish_non_exhaustive()
    }
}

fn tenant(caller: &Caller) -> &str {
    caller.tenant.as_deref().unwrap_or(DEFAULT_TENANT)
}

fn kept(entries: &Entries) -> Vec<Kept> {
    let all = entries.iter().flat_map(|(tenant, routes)| {
        routes.iter().map(|(route, entry)| Kept {
            tenant: tenant.clone(),
            route: route.clone(),
            config: entry.document.clone(),
        })
    });
    all.collect()
}

fn check_name(name: &str) -> Result<(), Failure> {
    let letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if (1..=NAME_CHARS).contains(&name.len()) && name.chars().all(letter) {
        return Ok(());
    }
    Err(invalid(&format!(
        "`{name}` cannot be the name of a model route; use 1 to {NAME_CHARS} letters, digits, `_`, \
         `-` and `.`"
    )))
}

fn broken(tenant: &str, route: &str, problem: &str) -> String {
    format!("the model route `{route}` of tenant `{tenant}` cannot be used: {problem}")
}

fn invalid(message: &str) -> Failure {
    Failure::new(code::INVALID, message)
}
