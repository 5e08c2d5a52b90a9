//! `wattle:plugin/log`: messages for the operator.

use serde_json::{Map, Value};

use crate::bindings::wattle::plugin::log;
use crate::host_state::HostState;

impl log::Host for HostState {
    fn write(
        &mut self,
        level: log::Level,
        message: String,
        fields: Vec<(String, String)>,
    ) -> wasmtime::Result<()> {
        let level = match &level {
            log::Level::Trace => "trace",
            log::Level::Debug => "debug",
            log::Level::Info => "info",
            log::Level::Warn => "warn",
            log::Level::Error => "error",
            log::Level::Other(name) => name,
        };
        self.gate("log.write")?.log(level, &message, into_fields(fields));
        Ok(())
    }
}

/// Converts the fields of a message. A log call cannot fail, so a field that is not valid JSON is
/// kept as text.
fn into_fields(fields: Vec<(String, String)>) -> Value {
    let parse = |text: String| serde_json::from_str(&text).unwrap_or(Value::String(text));
    let fields: Map<String, Value> =
        fields.into_iter().map(|(name, text)| (name, parse(text))).collect();
    Value::Object(fields)
}
