//! Documents that the host stores for itself. The first byte selects the kind: the file of the
//! tenant routes, one tenant route, or the record of an API key. A rejected document has a message,
//! a route is never shown with its key, and a record is equal after a round trip.

use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;

use serde_json::{Value, json};
use wattle_api::guard::key_record::KeyRecord;
use wattle_graph::failure::code;
use wattle_model::{ConfigError, Routes, TenantRoutesConfig};
use wattle_run::ports::{Caller, Model as _};

use super::{caller, folder};

/// The kinds of documents.
const KINDS: &[fn(&[u8])] = &[file, route, key];

/// The tenant and the route of a single document.
const TENANT: &str = "acme";
const ROUTE: &str = "chat";

/// Reads a document.
pub fn run(bytes: &[u8]) {
    let Some((kind, document)) = bytes.split_first() else { return };
    KINDS[usize::from(*kind) % KINDS.len()](document);
}

/// Reads a file of tenant routes, as at the start of a host.
fn file(bytes: &[u8]) {
    // The HTTP clients of the routes take milliseconds to make, and only `serde_json` reads a file
    // that is not JSON.
    let Ok(contents) = serde_json::from_slice::<Value>(bytes) else { return };
    let folder = folder();
    let path = folder.path().join("tenant-routes.json");
    fs::write(&path, bytes).expect("there is room");
    let routes = match routes(Some(path)) {
        Ok(routes) => routes,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    assert!(routes.startup_warnings().iter().all(|problem| !problem.is_empty()));
    for kept in contents["routes"].as_array().into_iter().flatten() {
        if let (Some(tenant), Some(route)) = (kept["tenant"].as_str(), kept["route"].as_str()) {
            shown(&routes, tenant, route);
        }
    }
}

/// Sets a tenant route, as a client does.
fn route(bytes: &[u8]) {
    static ROUTES: OnceLock<Routes> = OnceLock::new();
    let Ok(document) = serde_json::from_slice::<Value>(bytes) else { return };
    let routes = ROUTES.get_or_init(|| routes(None).expect("the configuration is valid"));
    let caller = caller_of(TENANT);
    match crate::wait(routes.set_route(&caller, ROUTE, document)) {
        Ok(()) => {
            shown(routes, TENANT, ROUTE);
            crate::wait(routes.remove_route(&caller, ROUTE)).expect("the route is there");
        }
        Err(failure) => {
            assert_eq!(failure.code, code::INVALID, "{failure}");
            assert!(!failure.message.is_empty());
        }
    }
}

/// Checks that a route is shown without its key.
fn shown(routes: &Routes, tenant: &str, route: &str) {
    let shown = crate::wait(routes.get_route(&caller_of(tenant), route));
    let shown = shown.expect("tenant routes are enabled").expect("the route is set");
    assert!(shown.get("api_key").is_none(), "{shown}");
    assert!(shown["has_api_key"].is_boolean(), "{shown}");
}

fn caller_of(tenant: &str) -> Caller {
    Caller { tenant: Some(tenant.to_owned()), ..caller() }
}

/// Returns the routes of a host, with those of tenants.
fn routes(file: Option<PathBuf>) -> Result<Routes, ConfigError> {
    let config = json!({
        "providers": { "own": {
            "kind": "openai", "base_url": "https://models.example/v1/", "key_env": "KEY",
        } },
        "routes": { ROUTE: { "provider": "own", "model": "model" } },
    });
    let config = serde_json::from_value(config).expect("the table is valid");
    let tenants = TenantRoutesConfig { file, reachable: |address| !address.is_loopback() };
    Routes::new(config, &|_| Some("key".to_owned()))?.with_tenants(tenants)
}

fn key(bytes: &[u8]) {
    let Ok(record) = serde_json::from_slice::<KeyRecord>(bytes) else { return };
    let text = serde_json::to_vec(&record).expect("a record can be written");
    let again: KeyRecord = serde_json::from_slice(&text).expect("what was written can be read");
    assert_eq!(record, again);
    if record.is_expired(0) {
        assert!(record.is_expired(i64::MAX));
    }
}
