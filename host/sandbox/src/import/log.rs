//! `wattle:plugin/log`: messages for the operator.

use wattle_run::hostcall::log::LogMessage;

use crate::bindings::wattle::plugin::log;
use crate::host_state::HostState;
use crate::import_error::TrapReason;

impl log::Host for HostState {
    async fn write(
        &mut self,
        level: log::Level,
        message: String,
        fields: Vec<(String, String)>,
    ) -> wasmtime::Result<()> {
        let level = match level {
            log::Level::Trace => "trace".to_owned(),
            log::Level::Debug => "debug".to_owned(),
            log::Level::Info => "info".to_owned(),
            log::Level::Warn => "warn".to_owned(),
            log::Level::Error => "error".to_owned(),
            log::Level::Other(name) => name,
        };
        let gate = self.gate("log.write")?;
        let written = self.off_cpu(gate.log(LogMessage { level, message, fields })).await;
        written.map_err(TrapReason::Unwind)?;
        Ok(())
    }
}
