//! `wattle:plugin/settings`: the app's non-secret settings.

use crate::bindings::wattle::plugin::settings;
use crate::guest::Guest;
use crate::json;

impl settings::Host for Guest {
    fn get(&mut self, name: String) -> wasmtime::Result<Option<String>> {
        Ok(self.gate("settings.get")?.settings().get(&name).map(json::text))
    }

    fn all(&mut self) -> wasmtime::Result<String> {
        Ok(json::text(self.gate("settings.all")?.settings()))
    }
}
