//! `wattle:plugin/settings`: the app's non-secret settings.

use crate::bindings::wattle::plugin::settings;
use crate::host_state::HostState;
use crate::json;

impl settings::Host for HostState {
    fn get(&mut self, name: String) -> wasmtime::Result<Option<String>> {
        Ok(self.gate("settings.get")?.settings().get(&name).map(json::to_text))
    }

    fn all(&mut self) -> wasmtime::Result<String> {
        Ok(json::to_text(self.gate("settings.all")?.settings()))
    }
}
