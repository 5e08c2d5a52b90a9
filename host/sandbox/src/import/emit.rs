//! `wattle:plugin/emit`: custom events and progress.

use wattle_run::hostcall::emit::{CUSTOM, Emission, PROGRESS};
use wattle_run::limit;

use crate::bindings::wattle::plugin::emit;
use crate::host_state::HostState;
use crate::import_error::ImportError;
use crate::json;

impl emit::Host for HostState {
    async fn custom(&mut self, name: String, data: String) -> Result<(), ImportError> {
        let gate = self.gate(CUSTOM)?;
        let data = json::of_call(CUSTOM, |json| json.parse(&data, "data", limit::EVENT_BYTES));
        let data = data.map_err(|failure| gate.refuse(failure))?;
        Ok(self.off_cpu(gate.emit(Emission::Custom { name, data })).await?)
    }

    async fn progress(
        &mut self,
        message: String,
        fraction: Option<f64>,
    ) -> Result<(), ImportError> {
        let gate = self.gate(PROGRESS)?;
        Ok(self.off_cpu(gate.emit(Emission::Progress { message, fraction })).await?)
    }
}
