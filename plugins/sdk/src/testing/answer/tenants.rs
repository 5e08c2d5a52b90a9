//! Implements `tenants`: stores routes of the tenant without their keys.

use serde_json::Value;

use crate::failure::Failure;
use crate::testing::state::with;

/// Fields of a route that the host never returns.
const KEYS: [&str; 2] = ["key", "api_key"];

pub(crate) fn set_route(route: &str, mut config: Value) -> Result<(), Failure> {
    with(|state| {
        state.notes.routes.push((route.to_owned(), config.clone()));
        if let Some(fields) = config.as_object_mut() {
            fields.retain(|name, _| !KEYS.contains(&name.as_str()));
        }
        state.tenant_routes.insert(route.to_owned(), config);
    })
}

pub(crate) fn get_route(route: &str) -> Result<Option<Value>, Failure> {
    with(|state| state.tenant_routes.get(route).cloned())
}

pub(crate) fn remove_route(route: &str) -> Result<(), Failure> {
    with(|state| {
        state.tenant_routes.remove(route);
    })
}
