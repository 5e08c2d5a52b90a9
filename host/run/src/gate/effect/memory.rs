//! Reads and writes documents of the long-term memory of the caller's tenant.

use crate::gate::effect::{Effect, Site};
use crate::gate::unwind::Stop;
use crate::hostcall::memory::{Delete, Get, Namespaces, Put, Search};
use crate::ports::memory::{Item, MemoryScope, check_place};

impl Effect for Get {
    async fn perform(&self, site: &Site<'_>) -> Result<Option<Item>, Stop> {
        check_place(&self.namespace, &self.key)?;
        let memory = &site.ports.memory;
        Ok(memory.get(&scope(site), &self.namespace, &self.key, now_ms(site)).await?)
    }
}

impl Effect for Put {
    async fn perform(&self, site: &Site<'_>) -> Result<(), Stop> {
        self.0.check()?;
        Ok(site.ports.memory.put(&scope(site), self.0.clone(), now_ms(site)).await?)
    }
}

impl Effect for Delete {
    async fn perform(&self, site: &Site<'_>) -> Result<(), Stop> {
        check_place(&self.namespace, &self.key)?;
        Ok(site.ports.memory.delete(&scope(site), &self.namespace, &self.key).await?)
    }
}

impl Effect for Search {
    async fn perform(&self, site: &Site<'_>) -> Result<Vec<Item>, Stop> {
        self.0.check()?;
        Ok(site.ports.memory.search(&scope(site), &self.0, now_ms(site)).await?)
    }
}

impl Effect for Namespaces {
    async fn perform(&self, site: &Site<'_>) -> Result<Vec<Vec<String>>, Stop> {
        self.0.check()?;
        Ok(site.ports.memory.namespaces(&scope(site), &self.0, now_ms(site)).await?)
    }
}

/// Returns the memory that a guest can access: that of its tenant.
fn scope(site: &Site<'_>) -> MemoryScope {
    MemoryScope::Agents(site.caller.tenant.clone())
}

fn now_ms(site: &Site<'_>) -> i64 {
    site.ports.clock.now_ms()
}
