//! Calls of `log`.

use serde_json::Value;

use crate::bindings::imports::wattle::plugin::log as raw;
use crate::log::Level;

pub(crate) fn write(level: Level, message: &str, fields: &[(&str, Value)]) {
    let level = match level {
        Level::Trace => raw::Level::Trace,
        Level::Debug => raw::Level::Debug,
        Level::Info => raw::Level::Info,
        Level::Warn => raw::Level::Warn,
        Level::Error => raw::Level::Error,
    };
    let fields: Vec<_> =
        fields.iter().map(|(name, value)| ((*name).to_owned(), value.to_string())).collect();
    raw::write(&level, message, &fields);
}
