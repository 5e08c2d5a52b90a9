//! Requests while the memory or the store of the host is unavailable.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use async_trait::async_trait;
use serde_json::json;
use tower::ServiceExt as _;
use wattle_api::{ApiConfig, Operator, unguarded_router};
use wattle_graph::failure::{Failure, code};
use wattle_kit::clock::ManualClock;
use wattle_kit::layer::{Layer, Layered};
use wattle_kit::memory::{Call, Hook, Hooked};
use wattle_run::ports::store::{Store, StoreError};
use wattle_store::{InMemoryStore, VolatileMemory};

use crate::host::{Host, HostOptions, request};

/// A duration after which a host no longer uses its cached keys.
const LATER_MS: u32 = 3_000;

/// A memory that can become unavailable.
#[derive(Clone, Default)]
struct Away {
    is_away: Arc<AtomicBool>,
    refused: Arc<AtomicUsize>,
}

#[async_trait]
impl Hook for Away {
    async fn before(&self, _: Call<'_>) -> Result<(), Failure> {
        if self.is_away.load(Ordering::SeqCst) {
            self.refused.fetch_add(1, Ordering::SeqCst);
            return Err(Failure::new(code::UNAVAILABLE, "the memory is unavailable"));
        }
        Ok(())
    }
}

fn host(away: &Away) -> (Host, ManualClock) {
    let clock = ManualClock::at_ms(1_000_000);
    let memory = Hooked::over(Arc::new(VolatileMemory::new()), away.clone());
    let (memory, time) = (Arc::new(memory), Arc::new(clock.clone()));
    let options = HostOptions { memory, clock: time, ..HostOptions::default() };
    (Host::with_options(ApiConfig::default(), options), clock)
}

#[tokio::test]
async fn host_without_keys_accepts_requests_while_its_memory_is_unavailable() {
    let away = Away::default();
    let (host, clock) = host(&away);
    host.get("/info").await.ok();
    away.is_away.store(true, Ordering::SeqCst);
    clock.advance_ms(LATER_MS);
    host.get("/info").await.ok();
    host.get("/api/v1/threads").await.ok();
    assert_eq!(away.refused.load(Ordering::SeqCst), 1, "the keys are read once per interval");
}

#[tokio::test]
async fn host_with_keys_sends_retry_after_while_its_memory_is_unavailable() {
    let away = Away::default();
    let (host, clock) = host(&away);
    let mut made = request("POST", "/api/v1/keys", Some(json!({ "name": "k" })));
    made.extensions_mut().insert(Operator);
    let made = unguarded_router(host.state.clone()).oneshot(made).await.unwrap();
    assert!(made.status().is_success());
    away.is_away.store(true, Ordering::SeqCst);
    clock.advance_ms(LATER_MS);
    for path in ["/info", "/api/v1/threads"] {
        let refused = host.get(path).await;
        assert_eq!((refused.status, refused.header("retry-after")), (503, "1"), "{path}");
    }
    assert_eq!(host.get("/ok").await.status, 200);
}

/// A store whose threads can become unreadable.
struct Forgetful {
    below: Arc<dyn Store>,
    is_away: AtomicBool,
}

#[async_trait]
impl Layer for Forgetful {
    fn over(below: Arc<dyn Store>) -> Self {
        Self { below, is_away: AtomicBool::new(false) }
    }

    fn below(&self) -> &dyn Store {
        &*self.below
    }

    async fn reading(&self, read: &'static str) -> Result<(), StoreError> {
        if read == "thread" && self.is_away.load(Ordering::SeqCst) {
            let message = "connection refused".to_owned();
            return Err(StoreError::Backend { operation: "read a thread", message });
        }
        Ok(())
    }
}

#[tokio::test]
async fn failed_read_of_the_store_is_503_and_not_404() {
    let store = Arc::new(Layered::<Forgetful>::over(Arc::new(InMemoryStore::new())));
    let options = HostOptions { store: store.clone(), ..HostOptions::default() };
    let host = Host::with_options(ApiConfig::default(), options);
    let start = json!({
        "graph": "agent", "input": { "value": "v" }, "thread_id": "t", "wait": true,
    });
    let run = host.post("/api/v1/apps/test/runs", start).await.ok();
    let run = format!("/api/v1/runs/{}", run["run"].as_str().unwrap());
    host.get(&run).await.ok();
    store.is_away.store(true, Ordering::SeqCst);
    for path in [run.as_str(), "/api/v1/threads/t"] {
        let refused = host.get(path).await;
        assert_eq!((refused.status, refused.header("retry-after")), (503, "1"), "{path}");
    }
    store.is_away.store(false, Ordering::SeqCst);
    host.get(&run).await.ok();
    assert_eq!(host.get("/api/v1/runs/none").await.status, 404);
}

#[tokio::test]
async fn unsupported_store_operation_has_no_retry_after() {
    let host = Host::new();
    for (method, path) in [("GET", "/api/v1/store/verify"), ("POST", "/api/v1/store/backup")] {
        let refused = host.call(method, path, None).await;
        assert_eq!(refused.status, 501, "{path}: {}", refused.text);
        assert_eq!(refused.json()["code"], code::UNSUPPORTED, "{path}");
        assert!(refused.headers.get("retry-after").is_none(), "{path}");
    }
}
