//! `wattle:plugin/tenants`: model routes of the request's tenant.

use crate::bindings::wattle::plugin::tenants;
use crate::guest::Guest;
use crate::halt::Halt;
use crate::json;

const SET: &str = "tenants.set-route";

impl tenants::Host for Guest {
    async fn set_route(&mut self, route: String, config: String) -> Result<(), Halt> {
        let gate = self.gate(SET)?;
        let config = json::parse(&config, SET, "config")?;
        Ok(self.outside(gate.set_route(&route, config)).await?)
    }

    async fn get_route(&mut self, route: String) -> Result<Option<String>, Halt> {
        let gate = self.gate("tenants.get-route")?;
        let config = self.outside(gate.get_route(&route)).await?;
        Ok(config.as_ref().map(json::text))
    }

    async fn remove_route(&mut self, route: String) -> Result<(), Halt> {
        let gate = self.gate("tenants.remove-route")?;
        Ok(self.outside(gate.remove_route(&route)).await?)
    }
}
