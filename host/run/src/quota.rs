//! Counts what threads, apps and tenants take, and refuses what would exceed their caps.
//!
//! What the store has is measured when it is first asked for, and after that only when the cap would
//! be reached or, where other hosts share the store, when the measure is old. In between the host
//! counts what it adds itself. So a request costs no more than an addition, and a cap may be exceeded
//! by what other hosts add within [`limit::MEASURE_AGE_MS`].

mod blobs;
mod meter;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use wattle_graph::failure::Failure;
use wattle_graph::id::AppName;

pub(crate) use self::blobs::{Charged, Tally};
pub(crate) use self::meter::Meter;
use self::meter::Times;
use crate::caps::{self, Caps};
use crate::limit;
use crate::ports::Ports;
use crate::ports::store::{Owner, Taken};

/// What is counted of an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Measure {
    /// Bytes of blobs.
    Blobs,
    /// Bytes of blobs that web handlers put and no thread mentions yet.
    Handlers,
    /// Threads.
    Threads,
    /// Bytes of threads.
    Bytes,
}

/// The caps of a host, and what is taken of them.
#[derive(Default)]
pub struct Quotas {
    caps: Caps,
    meters: Mutex<HashMap<(Measure, Owner), Arc<Meter>>>,
}

impl Quotas {
    /// Nothing is counted yet.
    pub fn new(caps: Caps) -> Self {
        Self { caps, meters: Mutex::default() }
    }

    /// The caps.
    pub(crate) fn caps(&self) -> &Caps {
        &self.caps
    }

    /// No code that can panic runs under this lock.
    fn meter(&self, measure: Measure, owner: &Owner) -> Arc<Meter> {
        let mut meters = self.meters.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (measure, owner.clone());
        if let Some(known) = meters.get(&key) {
            return known.clone();
        }
        // A tenant may have any name. What is forgotten is measured again.
        if meters.len() >= limit::METERED_OWNERS {
            meters.clear();
        }
        meters.entry(key).or_default().clone()
    }

    /// Where a run counts the bytes that it hands over, if they are capped.
    pub(crate) fn bytes_of(&self, tenant: Option<&str>) -> Option<Arc<Meter>> {
        let tenant = tenant.filter(|tenant| self.caps.of_tenant(tenant).bytes.is_some())?;
        Some(self.meter(Measure::Bytes, &Owner::Tenant(tenant.to_owned())))
    }

    /// Counts a thread that is to be made for a tenant.
    ///
    /// # Errors
    ///
    /// `limit` if the tenant has as many as it may; those of the store.
    pub(crate) async fn take_thread(&self, ports: &Ports, tenant: &str) -> Result<(), Failure> {
        let Some(allowed) = self.caps.of_tenant(tenant).threads else { return Ok(()) };
        let owner = Owner::Tenant(tenant.to_owned());
        let meter = self.meter(Measure::Threads, &owner);
        let measure = || async { Ok(taken(ports, &owner).await?.threads) };
        let taken = meter.take(1, allowed, Times::of(ports), true, measure).await?;
        taken.map_err(|used| caps::tenant_threads_full(tenant, used, allowed))
    }

    /// Whether something may begin that makes threads of a tenant grow.
    ///
    /// # Errors
    ///
    /// `limit` if they take as much as they may; those of the store.
    pub(crate) async fn check_bytes(&self, ports: &Ports, tenant: &str) -> Result<(), Failure> {
        let Some(allowed) = self.caps.of_tenant(tenant).bytes else { return Ok(()) };
        let owner = Owner::Tenant(tenant.to_owned());
        let meter = self.meter(Measure::Bytes, &owner);
        let measure = || async { Ok(taken(ports, &owner).await?.bytes) };
        let taken = meter.take(1, allowed, Times::of(ports), true, measure).await?;
        taken.map_err(|used| caps::tenant_bytes_full(tenant, used, allowed))
    }

    /// Counts the bytes of a blob that is to be put for an app and a tenant. `is_mentioned` says
    /// whether a thread mentions it from now on; one that nobody mentions is swept. Answers where it
    /// was counted.
    async fn take_blob(
        &self,
        ports: &Ports,
        (app, tenant): (&AppName, Option<&str>),
        bytes: u64,
        is_mentioned: bool,
    ) -> Result<Vec<Arc<Meter>>, Failure> {
        let mut taken = Vec::new();
        for cap in self.blob_caps(app, tenant, is_mentioned) {
            let meter = self.meter(cap.measure, &cap.owner);
            let measure = || measured_blobs(ports, &cap);
            let came = meter.take(bytes, cap.allowed, Times::of(ports), is_mentioned, measure);
            match came.await {
                Ok(Ok(())) => taken.push(meter),
                refused => {
                    for meter in taken {
                        meter.give_back(bytes, is_mentioned).await;
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

    /// The caps that a blob counts for.
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

async fn taken(ports: &Ports, owner: &Owner) -> Result<Taken, Failure> {
    ports.store.taken(owner).await.map_err(Failure::from)
}

/// Bytes of all blobs that threads of an owner mention. A blob counts for each thread. Of those that
/// handlers put nothing is known but what this host counts.
async fn measured_blobs(ports: &Ports, cap: &BlobCap) -> Result<u64, Failure> {
    let (mut bytes, mut from) = (0_u64, None);
    if cap.measure == Measure::Handlers {
        return Ok(0);
    }
    loop {
        let page =
            ports.store.mentioned(&cap.owner, from.as_deref()).await.map_err(Failure::from)?;
        let sizes = ports.blobs.sizes(&page.blobs).await?;
        let there = page.blobs.iter().filter_map(|blob| sizes.get(blob));
        bytes = there.fold(bytes, |sum, size| sum.saturating_add(blobs::counts(*size)));
        from = page.next;
        if from.is_none() {
            return Ok(bytes);
        }
    }
}
