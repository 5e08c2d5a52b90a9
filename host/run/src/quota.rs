//! Measures the usage of apps and tenants, and refuses requests that would exceed their caps.
//!
//! The host measures the stored usage at the first request. Later it measures again only if a
//! request would exceed the cap, or if hosts share the store and the measurement is older than
//! [`limit::MEASURE_AGE_MS`]. In between, the host adds its own usage. A request therefore usually
//! costs an addition, and other hosts may exceed a cap by what they add within
//! [`limit::MEASURE_AGE_MS`].
//!
//! A [`UsageMeter`] also counts usage that is not in the store, such as the files of an app.

mod blobs;
mod documents;
mod usage_meter;

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use wattle_graph::failure::Failure;
use wattle_graph::id::AppName;

pub use self::blobs::charged_bytes;
pub(crate) use self::blobs::{ChargedBlobStore, ThreadBlobs};
pub use self::usage_meter::{RequestTime, UsageMeter};
use crate::caps::{self, Caps};
use crate::free_disk::{DiskStatus, DiskUse, FreeDisk};
use crate::limit;
use crate::ports::Ports;
use crate::ports::memory::MemoryScope;
use crate::ports::store::{Owner, OwnerUsage};

/// What is measured for an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Measure {
    /// Bytes of blobs.
    Blobs,
    /// Bytes of blobs that web handlers stored and that no thread mentions yet.
    Handlers,
    /// Number of threads.
    Threads,
    /// Bytes of threads.
    Bytes,
}

/// Documents that share a cap: the documents of a scope under a prefix.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct DocumentOwner {
    scope: MemoryScope,
    prefix: Vec<String>,
}

/// The caps of a host and their usage.
#[derive(Default)]
pub struct Quotas {
    caps: Caps,
    meters: Mutex<HashMap<(Measure, Owner), Arc<UsageMeter>>>,
    /// Usage of documents in the long-term memory.
    document_meters: Mutex<HashMap<DocumentOwner, Arc<UsageMeter>>>,
    /// The free space of the disk, with its floor.
    free_disk: FreeDisk,
}

impl Quotas {
    /// Creates the quotas of `caps`. No usage is measured yet.
    pub fn new(caps: Caps) -> Self {
        Self { caps, ..Self::default() }
    }

    /// Sets the free space of the disk. Default: no floor.
    pub fn with_free_disk(self, free_disk: FreeDisk) -> Self {
        Self { free_disk, ..self }
    }

    /// Returns the free space of the disk and its floor. Returns `None` without a floor, or if the
    /// space cannot be read.
    pub(crate) async fn disk_status(&self, ports: &Ports) -> Option<DiskStatus> {
        self.free_disk.status(ports.clock.monotonic_ns()).await
    }

    /// Rejects work of any caller that takes more of the disk while its free space is below the
    /// floor of this work.
    ///
    /// # Errors
    ///
    /// `unavailable` if the free space is below the floor.
    pub(crate) async fn check_free_disk(
        &self,
        ports: &Ports,
        disk_use: DiskUse,
    ) -> Result<(), Failure> {
        self.free_disk.check(ports.clock.monotonic_ns(), disk_use).await
    }

    /// Returns the caps.
    pub(crate) fn caps(&self) -> &Caps {
        &self.caps
    }

    fn meter(&self, measure: Measure, owner: &Owner) -> Arc<UsageMeter> {
        meter_of(&self.meters, (measure, owner.clone()))
    }

    /// Returns the meter for the bytes that a run of a tenant writes, or `None` if these bytes are
    /// not capped.
    pub(crate) fn byte_meter(&self, tenant: Option<&str>) -> Option<Arc<UsageMeter>> {
        let tenant = tenant.filter(|tenant| self.caps.of_tenant(tenant).bytes.is_some())?;
        Some(self.meter(Measure::Bytes, &Owner::Tenant(tenant.to_owned())))
    }

    /// Counts a thread that is about to be created for a tenant.
    ///
    /// # Errors
    ///
    /// `limit` if the tenant has as many threads as its cap allows; errors of the store.
    pub(crate) async fn charge_thread(&self, ports: &Ports, tenant: &str) -> Result<(), Failure> {
        let Some(allowed) = self.caps.of_tenant(tenant).threads else { return Ok(()) };
        let owner = Owner::Tenant(tenant.to_owned());
        let meter = self.meter(Measure::Threads, &owner);
        let measure = || async { Ok(usage_of(ports, &owner).await?.threads) };
        let taken = meter.charge(1, allowed, RequestTime::of(ports), true, measure).await?;
        taken.map_err(|used| caps::tenant_threads_full(tenant, used, allowed))
    }

    /// Checks that the threads of a tenant are below their cap of bytes.
    ///
    /// # Errors
    ///
    /// `limit` if the cap is reached; errors of the store.
    pub(crate) async fn check_bytes(&self, ports: &Ports, tenant: &str) -> Result<(), Failure> {
        let Some(allowed) = self.caps.of_tenant(tenant).bytes else { return Ok(()) };
        let owner = Owner::Tenant(tenant.to_owned());
        let meter = self.meter(Measure::Bytes, &owner);
        let measure = || async { Ok(usage_of(ports, &owner).await?.bytes) };
        let taken = meter.charge(1, allowed, RequestTime::of(ports), true, measure).await?;
        taken.map_err(|used| caps::tenant_bytes_full(tenant, used, allowed))
    }

    /// Charges the bytes of a blob to the caps of an app and a tenant. `is_mentioned` is true if a
    /// thread will mention the blob; otherwise, the blob is swept later. Returns the meters that
    /// were charged. Fails if the free space of the disk is below its floor.
    async fn charge_blob(
        &self,
        ports: &Ports,
        (app, tenant): (&AppName, Option<&str>),
        bytes: u64,
        is_mentioned: bool,
    ) -> Result<Vec<Arc<UsageMeter>>, Failure> {
        self.check_free_disk(ports, DiskUse::New).await?;
        let mut taken = Vec::new();
        for cap in self.blob_caps(app, tenant, is_mentioned) {
            let meter = self.meter(cap.measure, &cap.owner);
            let measure = || measure_blobs(ports, &cap);
            let came =
                meter.charge(bytes, cap.allowed, RequestTime::of(ports), is_mentioned, measure);
            match came.await {
                Ok(Ok(())) => taken.push(meter),
                refused => {
                    for meter in taken {
                        meter.refund(bytes, is_mentioned).await;
                    }
                    return Err(refused.map_or_else(
                        |failure| failure,
                        |used| cap.reached(used.err().unwrap_or_default()),
                    ));
                }
            }
        }
        Ok(taken)
    }

    /// Returns the caps against which a blob counts.
    fn blob_caps(&self, app: &AppName, tenant: Option<&str>, is_mentioned: bool) -> Vec<BlobCap> {
        let of_app =
            |measure, allowed| BlobCap { measure, owner: Owner::App(app.clone()), allowed };
        let handlers = of_app(Measure::Handlers, self.caps.handler_blob_bytes);
        let whole = self.caps.app_blob_bytes.map(|allowed| of_app(Measure::Blobs, allowed));
        let tenant = tenant.and_then(|tenant| {
            let allowed = self.caps.of_tenant(tenant).blob_bytes?;
            let owner = Owner::Tenant(tenant.to_owned());
            Some(BlobCap { measure: Measure::Blobs, owner, allowed })
        });
        let handlers = (!is_mentioned).then_some(handlers);
        handlers.into_iter().chain(whole).chain(tenant).collect()
    }
}

/// Returns the meter of a key. No code that can panic runs under the lock.
fn meter_of<K: Eq + Hash>(meters: &Mutex<HashMap<K, Arc<UsageMeter>>>, key: K) -> Arc<UsageMeter> {
    let mut meters = meters.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = meters.get(&key) {
        return known.clone();
    }
    // Requests can name any number of tenants, so the map is bounded. Discarded usage is measured
    // again.
    if meters.len() >= limit::METERED_OWNERS {
        meters.clear();
    }
    meters.entry(key).or_default().clone()
}

/// A cap on bytes of blobs.
struct BlobCap {
    measure: Measure,
    owner: Owner,
    allowed: u64,
}

impl BlobCap {
    fn reached(&self, used: u64) -> Failure {
        match (&self.owner, self.measure) {
            (Owner::App(app), Measure::Handlers) => {
                caps::handler_blobs_full(app, used, self.allowed)
            }
            (Owner::App(app), _) => caps::app_blobs_full(app, used, self.allowed),
            (Owner::Tenant(tenant), _) => caps::tenant_blobs_full(tenant, used, self.allowed),
            (Owner::Thread(thread), _) => caps::thread_blob_bytes_full(thread, used, self.allowed),
        }
    }
}

async fn usage_of(ports: &Ports, owner: &Owner) -> Result<OwnerUsage, Failure> {
    ports.store.usage(owner).await.map_err(Failure::from)
}

/// Returns the bytes of all blobs that the threads of an owner mention. A blob counts once for each
/// thread that mentions it. Returns 0 for blobs of web handlers, since the store has no record of
/// their owner.
async fn measure_blobs(ports: &Ports, cap: &BlobCap) -> Result<u64, Failure> {
    let (mut bytes, mut from) = (0_u64, None);
    if cap.measure == Measure::Handlers {
        return Ok(0);
    }
    loop {
        let page = ports
            .store
            .mentioned_blobs(&cap.owner, from.as_deref())
            .await
            .map_err(Failure::from)?;
        let sizes = ports.blobs.sizes(&page.blobs).await?;
        let there = page.blobs.iter().filter_map(|blob| sizes.get(blob));
        bytes = there.fold(bytes, |sum, size| sum.saturating_add(charged_bytes(*size)));
        from = page.next;
        if from.is_none() {
            return Ok(bytes);
        }
    }
}
