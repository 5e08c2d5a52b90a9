//! `wattle:plugin/emit`: custom events and progress.

use wattle_run::hostcall::emit::Emission;

use crate::bindings::wattle::plugin::emit;
use crate::host_state::HostState;
use crate::import_error::ImportError;
use crate::json;

impl emit::Host for HostState {
    async fn custom(&mut self, name: String, data: String) -> Result<(), ImportError> {
        let gate = self.gate("emit.custom")?;
        let data = json::parse(&data, "emit.custom", "data")?;
        Ok(self.off_cpu(gate.emit(Emission::Custom { name, data })).await?)
    }

    async fn progress(
        &mut self,
        message: String,
        fraction: Option<f64>,
    ) -> Result<(), ImportError> {
        let gate = self.gate("emit.progress")?;
        Ok(self.off_cpu(gate.emit(Emission::Progress { message, fraction })).await?)
    }
}
