//! Calls of `emit`.

use serde_json::Value;

use crate::bindings::imports::wattle::plugin::emit as raw;
use crate::failure::Failure;

pub(crate) fn custom(name: &str, data: Value) -> Result<(), Failure> {
    Ok(raw::custom(name, &data.to_string())?)
}

pub(crate) fn progress(message: &str, fraction: Option<f64>) -> Result<(), Failure> {
    Ok(raw::progress(message, fraction)?)
}
