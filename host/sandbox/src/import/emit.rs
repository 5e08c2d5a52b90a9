//! `wattle:plugin/emit`: custom events and progress.

use wattle_run::hostcall::emit::Emission;

use crate::bindings::wattle::plugin::emit;
use crate::guest::Guest;
use crate::halt::Halt;
use crate::json;

impl emit::Host for Guest {
    async fn custom(&mut self, name: String, data: String) -> Result<(), Halt> {
        let gate = self.gate("emit.custom")?;
        let data = json::parse(&data, "emit.custom", "data")?;
        Ok(self.outside(gate.emit(Emission::Custom { name, data })).await?)
    }

    async fn progress(&mut self, message: String, fraction: Option<f64>) -> Result<(), Halt> {
        let gate = self.gate("emit.progress")?;
        Ok(self.outside(gate.emit(Emission::Progress { message, fraction })).await?)
    }
}
