//! The memory of the host cannot be reached.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use async_trait::async_trait;
use serde_json::json;
use tower::ServiceExt as _;
use wattle_api::{ApiConfig, Operator, unguarded_router};
use wattle_graph::failure::{Failure, code};
use wattle_kit::clock::ManualClock;
use wattle_kit::memory::{Call, Hook, Hooked};
use wattle_store::VolatileMemory;

use crate::host::{Host, Parts, request};

/// More than the time for which a host goes by what it read of the keys.
const LATER_MS: u32 = 3_000;

/// A memory that is away at times.
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
            return Err(Failure::new(code::UNAVAILABLE, "the memory is away"));
        }
        Ok(())
    }
}

fn host(away: &Away) -> (Host, ManualClock) {
    let clock = ManualClock::at_ms(1_000_000);
    let memory = Hooked::over(Arc::new(VolatileMemory::new()), away.clone());
    let (memory, time) = (Arc::new(memory), Arc::new(clock.clone()));
    let parts = Parts { memory, clock: time, ..Parts::default() };
    (Host::with_parts(ApiConfig::default(), parts), clock)
}

#[tokio::test]
async fn a_host_without_keys_needs_none_when_its_memory_is_away() {
    let away = Away::default();
    let (host, clock) = host(&away);
    host.get("/info").await.ok();
    away.is_away.store(true, Ordering::SeqCst);
    clock.advance_ms(LATER_MS);
    host.get("/info").await.ok();
    host.get("/api/v1/threads").await.ok();
    assert_eq!(away.refused.load(Ordering::SeqCst), 1, "the keys are asked for once in a while");
}

#[tokio::test]
async fn a_host_with_keys_says_when_to_come_back() {
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
