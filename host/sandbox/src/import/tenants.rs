//! `wattle:plugin/tenants`: model routes of the request's tenant.

use wattle_run::limit;

use crate::bindings::wattle::plugin::tenants;
use crate::host_state::HostState;
use crate::import_error::ImportError;
use crate::json::{CallJson, to_text};

const SET: &str = "tenants.set-route";

impl tenants::Host for HostState {
    async fn set_route(&mut self, route: String, config: String) -> Result<(), ImportError> {
        let gate = self.gate(SET)?;
        let (bytes, allowed) = (config.len(), limit::CALL_JSON_BYTES);
        let convert = |json: CallJson<'_>| json.parse(&config, "config", allowed);
        let config = self.convert(&gate, SET, bytes, convert).await?;
        Ok(self.off_cpu(gate.set_route(&route, config)).await?)
    }

    async fn get_route(&mut self, route: String) -> Result<Option<String>, ImportError> {
        let gate = self.gate("tenants.get-route")?;
        let config = self.off_cpu(gate.get_route(&route)).await?;
        Ok(config.as_ref().map(to_text))
    }

    async fn remove_route(&mut self, route: String) -> Result<(), ImportError> {
        let gate = self.gate("tenants.remove-route")?;
        Ok(self.off_cpu(gate.remove_route(&route)).await?)
    }
}
