//! Several hosts over one store and one memory: what one leaves, another takes on, and nothing is
//! done twice.

mod assistants;
mod crons;
mod queue;
mod webhooks;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use serde_json::{Value, json};
use wattle_api::ApiConfig;
use wattle_graph::failure::Failure;
use wattle_graph::id::ThreadId;
use wattle_kit::layer::{Layer, Layered};
use wattle_run::ports::memory::{Item, ListNamespaces, MemoryScope, PutItem, Search};
use wattle_run::ports::store::{Epoch, Holder, StoreError};
use wattle_run::ports::{Memory, Net, Store};
use wattle_store::{MemoryStore, VolatileMemory};

use crate::host::{Host, Parts};
use crate::plugin::Nothing;
use crate::store::Hand;

/// 2026-11-22T09:00:30Z.
const NOW_MS: i64 = 1_795_338_030_000;

/// After so long without a sign, a host counts as dead.
const LEASE_MS: i64 = 60_000;

/// A store that several hosts share, which can be away for a moment.
struct Shared {
    below: Arc<dyn Store>,
    failing: AtomicUsize,
}

#[async_trait]
impl Layer for Shared {
    fn over(below: Arc<dyn Store>) -> Self {
        Self { below, failing: AtomicUsize::new(0) }
    }

    fn below(&self) -> &dyn Store {
        &*self.below
    }

    fn is_shared(&self) -> bool {
        true
    }

    async fn lease(&self, thread: &ThreadId, holder: &Holder) -> Result<Epoch, StoreError> {
        let less = |failing: usize| failing.checked_sub(1);
        if self.failing.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).is_ok() {
            let message = "the database is away".to_owned();
            return Err(StoreError::Backend { operation: "lease a thread", message });
        }
        self.below.lease(thread, holder).await
    }
}

/// A memory in which each call gives way to others, so that theirs come in between, and which does
/// something when documents of a kind are read.
struct Yielding {
    inner: VolatileMemory,
    on_read: Box<dyn Fn(&str) + Send + Sync>,
}

#[async_trait]
impl Memory for Yielding {
    async fn get(
        &self,
        scope: &MemoryScope,
        namespace: &[String],
        key: &str,
        now_ms: i64,
    ) -> Result<Option<Item>, Failure> {
        tokio::task::yield_now().await;
        if let Some(kind) = namespace.get(1) {
            (self.on_read)(kind);
        }
        let found = self.inner.get(scope, namespace, key, now_ms).await;
        tokio::task::yield_now().await;
        found
    }

    async fn peek(
        &self,
        scope: &MemoryScope,
        namespace: &[String],
        key: &str,
        now_ms: i64,
    ) -> Result<Option<Item>, Failure> {
        self.inner.peek(scope, namespace, key, now_ms).await
    }

    async fn put(&self, scope: &MemoryScope, item: PutItem, now_ms: i64) -> Result<(), Failure> {
        tokio::task::yield_now().await;
        self.inner.put(scope, item, now_ms).await
    }

    async fn put_if(
        &self,
        scope: &MemoryScope,
        known: Option<&Value>,
        item: PutItem,
        now_ms: i64,
    ) -> Result<bool, Failure> {
        tokio::task::yield_now().await;
        self.inner.put_if(scope, known, item, now_ms).await
    }

    async fn list(
        &self,
        scope: &MemoryScope,
        namespace: &[String],
        after: &str,
        limit: usize,
        now_ms: i64,
    ) -> Result<Vec<Item>, Failure> {
        let found = self.inner.list(scope, namespace, after, limit, now_ms).await;
        tokio::task::yield_now().await;
        found
    }

    async fn delete(
        &self,
        scope: &MemoryScope,
        namespace: &[String],
        key: &str,
    ) -> Result<(), Failure> {
        self.inner.delete(scope, namespace, key).await
    }

    async fn search(
        &self,
        scope: &MemoryScope,
        search: &Search,
        now_ms: i64,
    ) -> Result<Vec<Item>, Failure> {
        self.inner.search(scope, search, now_ms).await
    }

    async fn namespaces(
        &self,
        scope: &MemoryScope,
        list: &ListNamespaces,
        now_ms: i64,
    ) -> Result<Vec<Vec<String>>, Failure> {
        self.inner.namespaces(scope, list, now_ms).await
    }

    async fn clear(&self, scope: &MemoryScope, prefix: &[String]) -> Result<usize, Failure> {
        self.inner.clear(scope, prefix).await
    }

    async fn sweep(&self, now_ms: i64) -> Result<usize, Failure> {
        self.inner.sweep(now_ms).await
    }
}

/// What hosts have in common.
struct Common {
    store: Arc<Layered<Shared>>,
    memory: Arc<dyn Memory>,
    clock: Arc<Hand>,
    net: Arc<dyn Net>,
}

impl Common {
    fn new() -> Self {
        Self::with_net(Arc::new(Nothing))
    }

    fn with_net(net: Arc<dyn Net>) -> Self {
        let store = Arc::new(Layered::over(Arc::new(MemoryStore::new())));
        let on_read = Box::new(|_: &str| {});
        let memory = Arc::new(Yielding { inner: VolatileMemory::new(), on_read });
        Self { store, memory, clock: Hand::at(NOW_MS), net }
    }

    /// The same, and something is done when documents of a kind are read.
    fn on_read(self, on_read: impl Fn(&str) + Send + Sync + 'static) -> Self {
        let on_read = Box::new(on_read);
        Self { memory: Arc::new(Yielding { inner: VolatileMemory::new(), on_read }), ..self }
    }

    /// A host that has told the others that it is there.
    async fn host(&self) -> Host {
        let parts = Parts {
            store: self.store.clone(),
            memory: self.memory.clone(),
            clock: self.clock.clone(),
            net: self.net.clone(),
            ..Parts::default()
        };
        let host = Host::with_parts(ApiConfig::default(), parts);
        host.agents.look_around().await;
        host
    }
}

fn slow(word: &str) -> Value {
    json!({ "assistant_id": "slow", "input": { "word": word } })
}

/// Asks for a run, and answers with its place.
async fn begin(host: &Host, thread: &str, run: Value) -> String {
    let made = host.post(&format!("/threads/{thread}/runs"), run).await;
    made.ok();
    made.header("content-location").to_owned()
}

/// Waits for the end of a run.
async fn items(host: &Host, place: &str) -> Value {
    host.get(&format!("{place}/join")).await.ok()["items"].clone()
}
