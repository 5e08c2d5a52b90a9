//! Calls of `tenants`.

use serde_json::Value;

use crate::bindings::imports::wattle::plugin::tenants as raw;
use crate::failure::Failure;
use crate::wire::convert::value;

pub(crate) fn set_route(route: &str, config: Value) -> Result<(), Failure> {
    Ok(raw::set_route(route, &config.to_string())?)
}

pub(crate) fn get_route(route: &str) -> Result<Option<Value>, Failure> {
    Ok(raw::get_route(route)?.as_deref().map(value))
}

pub(crate) fn remove_route(route: &str) -> Result<(), Failure> {
    Ok(raw::remove_route(route)?)
}
