//! Charges documents of the long-term memory to the caps.

use std::sync::Arc;

use wattle_graph::failure::Failure;
use wattle_graph::id::AppName;

use super::usage_meter::{RequestTime, UsageMeter};
use super::{DocumentOwner, Quotas, meter_of};
use crate::caps;
use crate::free_disk::DiskUse;
use crate::ports::Ports;
use crate::ports::memory::{MemoryScope, PutItem};

impl Quotas {
    /// Writes a document of a guest or of a client. A document that replaces another one counts in
    /// full until the next measurement.
    ///
    /// # Errors
    ///
    /// `limit` if the documents of the tenant have reached their cap; `unavailable` below the floor
    /// of free disk space; errors of the memory.
    pub(crate) async fn put_document(
        &self,
        ports: &Ports,
        scope: &MemoryScope,
        item: PutItem,
    ) -> Result<(), Failure> {
        let tenant = scope.tenant().map(String::as_str);
        let allowed = self.caps.memory_bytes_of(tenant);
        let owner = DocumentOwner { scope: scope.clone(), prefix: Vec::new() };
        let put = self.put_within(ports, &owner, allowed, item).await?;
        put.map_err(|used| caps::memory_full(tenant, used, allowed))
    }

    /// Writes an outcome to the cache of an app. The documents under `prefix` are those of the app.
    ///
    /// # Errors
    ///
    /// `limit` if the cache of the app has reached its cap; `unavailable` below the floor of free
    /// disk space; errors of the memory.
    pub(crate) async fn put_cached(
        &self,
        ports: &Ports,
        app: &AppName,
        (scope, prefix): (MemoryScope, Vec<String>),
        item: PutItem,
    ) -> Result<(), Failure> {
        let allowed = self.caps.app_cache_bytes;
        let owner = DocumentOwner { scope, prefix };
        let put = self.put_within(ports, &owner, allowed, item).await?;
        put.map_err(|used| caps::app_cache_full(app, used, allowed))
    }

    /// Writes a document unless its owner has reached a cap. Returns the current usage as the inner
    /// error. Fails if the free space of the disk is below its floor.
    async fn put_within(
        &self,
        ports: &Ports,
        owner: &DocumentOwner,
        allowed: u64,
        item: PutItem,
    ) -> Result<Result<(), u64>, Failure> {
        self.check_free_disk(ports, DiskUse::New).await?;
        let bytes = item.stored_bytes();
        let meter: Arc<UsageMeter> = meter_of(&self.document_meters, owner.clone());
        let measure = || async { ports.memory.usage(&owner.scope, &owner.prefix).await };
        let times = RequestTime::of_memory(ports);
        if let Err(used) = meter.charge(bytes, allowed, times, true, measure).await? {
            return Ok(Err(used));
        }
        let put = ports.memory.put(&owner.scope, item, ports.clock.now_ms()).await;
        if put.is_err() {
            meter.refund(bytes, true).await;
        }
        put.map(Ok)
    }
}
