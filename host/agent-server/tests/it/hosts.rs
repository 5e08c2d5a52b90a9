//! Several hosts over one store and one memory. One host takes over the work of another, and no
//! work is done twice.

mod assistants;
mod cron_races;
mod cron_updates;
mod crons;
mod queue;
mod webhooks;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use wattle_api::ApiConfig;
use wattle_graph::failure::Failure;
use wattle_graph::id::ThreadId;
use wattle_kit::gates::Gates;
use wattle_kit::layer::{Layer, Layered};
use wattle_kit::memory::{Call, Hook, Hooked};
use wattle_run::ports::store::{LeaseEpoch, LeaseHolder, StoreError};
use wattle_run::ports::{Clock as _, Memory, Net, Store};
use wattle_store::{InMemoryStore, VolatileMemory};

use crate::host::{Host, HostOptions};
use crate::plugin::Nothing;
use crate::store::Hand;

/// 2026-11-22T09:00:30Z.
const NOW_MS: i64 = 1_795_338_030_000;

/// Time without a heartbeat after which a host is not live.
const LEASE_MS: i64 = wattle_run::ports::store::LEASE_MS.cast_signed();

/// The access of one host to the shared store. A test can hold calls with [`Gates`] by their names,
/// such as `lease` and `run`. `lease done` is the name of a call that has acquired a lease and has
/// not returned.
struct SharedStore {
    below: Arc<dyn Store>,
    gates: Arc<Gates>,
}

impl SharedStore {
    async fn pass(&self, call: &str) -> Result<(), StoreError> {
        let passed = self.gates.pass(call).await;
        passed.map_err(|failure| StoreError::Backend {
            operation: "go through the gates",
            message: failure.message,
        })
    }
}

#[async_trait]
impl Layer for SharedStore {
    fn over(below: Arc<dyn Store>) -> Self {
        Self { below, gates: Arc::default() }
    }

    fn below(&self) -> &dyn Store {
        &*self.below
    }

    fn is_shared(&self) -> bool {
        true
    }

    async fn acquire_lease(
        &self,
        thread: &ThreadId,
        holder: &LeaseHolder,
    ) -> Result<LeaseEpoch, StoreError> {
        self.pass("lease").await?;
        let epoch = self.below.acquire_lease(thread, holder).await?;
        self.pass("lease done").await?;
        Ok(epoch)
    }

    async fn reading(&self, read: &'static str) -> Result<(), StoreError> {
        self.pass(read).await
    }
}

/// The access of one host to the shared memory. Each call yields, so that calls of other hosts
/// interleave. A test can hold calls with [`Gates`] by method and collection, such as `get runs`.
/// `get runs done` is the name of a call that was executed and has not returned.
struct SharedMemory(Arc<Gates>);

fn kind(call: Call<'_>) -> &str {
    call.namespace.get(1).map_or("", String::as_str)
}

#[async_trait]
impl Hook for SharedMemory {
    async fn before(&self, call: Call<'_>) -> Result<(), Failure> {
        tokio::task::yield_now().await;
        self.0.pass(&format!("{} {}", call.method, kind(call))).await
    }

    async fn after(&self, call: Call<'_>) -> Result<(), Failure> {
        self.0.pass(&format!("{} {} done", call.method, kind(call))).await?;
        tokio::task::yield_now().await;
        Ok(())
    }
}

/// The state that the hosts share.
struct SharedState {
    store: Arc<dyn Store>,
    memory: Arc<dyn Memory>,
    clock: Arc<Hand>,
    net: Arc<dyn Net>,
}

impl SharedState {
    fn new() -> Self {
        Self::with_net(Arc::new(Nothing))
    }

    fn with_net(net: Arc<dyn Net>) -> Self {
        let clock = Hand::at(NOW_MS);
        let time = clock.clone();
        let elapsed = move || Duration::from_nanos(time.monotonic_ns());
        let store = Arc::new(InMemoryStore::with_clock(Arc::new(elapsed)));
        Self { store, memory: Arc::new(VolatileMemory::new()), clock, net }
    }

    /// Creates a host that has sent a heartbeat, so that the other hosts know it.
    async fn host(&self) -> Host {
        self.host_with_gates().await.0
    }

    /// Creates a host. Returns it with the gates of its store and memory.
    async fn host_with_gates(&self) -> (Host, Arc<Gates>) {
        let store = Layered::<SharedStore>::over(self.store.clone());
        let gates = store.gates.clone();
        let options = HostOptions {
            store: Arc::new(store),
            memory: Arc::new(Hooked::over(self.memory.clone(), SharedMemory(gates.clone()))),
            clock: self.clock.clone(),
            net: self.net.clone(),
            ..HostOptions::default()
        };
        let host = Host::with_options(ApiConfig::default(), options);
        host.server.reconcile().await;
        (host, gates)
    }
}

/// Returns how many nodes of `slow` were started, on all hosts together.
fn executions<const N: usize>(hosts: [&Host; N]) -> usize {
    hosts.iter().map(|host| *host.started.borrow()).sum()
}

/// Lets background tasks proceed until all of them wait.
async fn run_until_idle() {
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
}

fn slow(word: &str) -> Value {
    json!({ "assistant_id": "slow", "input": { "word": word } })
}

/// Creates a run and returns its path.
async fn create_run(host: &Host, thread: &str, run: Value) -> String {
    let made = host.post(&format!("/threads/{thread}/runs"), run).await;
    made.ok();
    made.header("content-location").to_owned()
}

/// Waits for the end of a run and returns its items.
async fn items(host: &Host, place: &str) -> Value {
    host.get(&format!("{place}/join")).await.ok()["items"].clone()
}
