//! `wattle:plugin/log`: messages for the operator.

use wattle_run::hostcall::log::LogMessage;

use crate::bindings::wattle::plugin::log;
use crate::guest_output::{Cause, StandardStream};
use crate::host_state::HostState;
use crate::import_error::TrapReason;

/// The level of the message that a guest writes before it traps. The text of this message and its
/// fields `file`, `line` and `column` become the cause of the failure.
const PANIC: &str = "panic";

impl log::Host for HostState {
    /// Writes a message. Without a gate, the message is kept for the failure of the guest: a plugin
    /// that panics while it describes itself has no other way to report the reason.
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
            log::Level::Other(name) if name == PANIC => {
                self.output.set_panic(Cause::from_fields(&message, &fields));
                "error".to_owned()
            }
            log::Level::Other(name) => name,
        };
        let Ok(gate) = self.gate("log.write") else {
            self.output.write(StandardStream::Err, message.as_bytes());
            self.output.write(StandardStream::Err, b"\n");
            return Ok(());
        };
        let written = self.off_cpu(gate.log(LogMessage { level, message, fields })).await;
        written.map_err(TrapReason::Unwind)?;
        Ok(())
    }
}
