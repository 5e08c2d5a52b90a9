//! Two engines on one store: a thread always has one writer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;
use tokio::sync::Notify;
use wattle_graph::event::EventKind;
use wattle_graph::failure::code;
use wattle_graph::id::ThreadId;
use wattle_kit::gates::Gates;
use wattle_kit::layer::{Layer, Layered};
use wattle_run::engine::{Engine, EngineConfig};
use wattle_run::grant::{Grants, MemoryAccess, MemoryRule};
use wattle_run::hostcall::memory::PutDocument;
use wattle_run::hostcall::runs::{RunOutcome, RunService};
use wattle_run::ports::memory::{MemoryScope, MemorySearch, PutItem};
use wattle_run::ports::store::{Batch, LeaseEpoch, LeaseHolder, StoreError};
use wattle_run::ports::{Memory, Store};
use wattle_store::{InMemoryStore, VolatileMemory};
use wattle_suite::native::NativePlugin;
use wattle_suite::world::{START_MS, World};

use super::calling;

const ONE: &str = r#"
[graphs.one]
entry = "work"
[graphs.one.channels.out]
reducer = "append"
[graphs.one.nodes.work]
plugin = "p"
"#;

fn world() -> World {
    World::new(ONE, calling("1"))
}

/// A store that several hosts share, with a short lease. Its gates have two calls: `lease done`,
/// after a lease was acquired, and `release_lease`, before a lease is released.
struct Shaky {
    below: Arc<dyn Store>,
    gates: Gates,
}

impl Shaky {
    async fn pass(&self, call: &str) -> Result<(), StoreError> {
        let passed = self.gates.pass(call).await;
        passed.map_err(|failure| StoreError::Backend {
            operation: "pass the gates",
            message: failure.message,
        })
    }
}

#[async_trait]
impl Layer for Shaky {
    fn over(below: Arc<dyn Store>) -> Self {
        Self { below, gates: Gates::default() }
    }

    fn below(&self) -> &dyn Store {
        &*self.below
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn lease_ms(&self) -> u64 {
        300
    }

    async fn acquire_lease(
        &self,
        thread: &ThreadId,
        holder: &LeaseHolder,
    ) -> Result<LeaseEpoch, StoreError> {
        let epoch = self.below.acquire_lease(thread, holder).await?;
        self.pass("lease done").await?;
        Ok(epoch)
    }

    async fn release_lease(&self, thread: &ThreadId, epoch: LeaseEpoch) -> Result<(), StoreError> {
        self.pass("release_lease").await?;
        self.below.release_lease(thread, epoch).await
    }
}

/// Maximum duration of a wait, far longer than needed.
const IN_TIME: Duration = Duration::from_mins(1);

/// Waits until an engine can acquire the lease of a thread.
async fn is_free(engine: &Engine, thread: &ThreadId) {
    let free = async {
        while let Err(failure) = engine.delete_thread(thread).await {
            assert_eq!(failure.code, code::BUSY, "{failure}");
        }
    };
    tokio::time::timeout(IN_TIME, free).await.expect("the lease is released");
}

/// Creates another engine on the same store and apps.
fn beside(world: &World, holder: &str) -> Engine {
    let config =
        EngineConfig { holder: Some(LeaseHolder(holder.to_owned())), ..EngineConfig::default() };
    Engine::new(world.engine.ports().clone(), world.engine.catalog().clone(), config)
}

#[tokio::test]
async fn a_thread_that_is_active_on_one_engine_is_busy_on_another() {
    let world = world();
    world.net.hang_next(1);
    let run = world.begin(json!({})).await.unwrap();
    world.net.hung().await;
    let other = beside(&world, "other");
    assert_eq!(other.recover().await, 0, "an active run is not orphaned");
    let refused = other.delete_thread(&run.thread).await.unwrap_err();
    assert_eq!(refused.code, code::BUSY);
    world.engine.cancel(&run).await.unwrap();
    other.delete_thread(&run.thread).await.unwrap();
}

#[tokio::test]
async fn a_request_waits_for_a_lease_that_is_released_soon() {
    let world = world();
    let store = Arc::clone(&world.engine.ports().store);
    let (thread, other) = (ThreadId::new("t").unwrap(), LeaseHolder("other".to_owned()));
    store.heartbeat(&other).await.unwrap();
    let epoch = store.acquire_lease(&thread, &other).await.unwrap();
    let refused = world.engine.delete_thread(&thread).await.unwrap_err();
    assert_eq!(refused.code, code::BUSY, "the wait has a limit");
    let back = store.release_lease(&thread, epoch);
    let (taken, given) = tokio::join!(world.engine.delete_thread(&thread), back);
    taken.unwrap();
    given.unwrap();
}

#[tokio::test]
async fn the_last_batch_of_a_run_releases_its_lease() {
    let store = Arc::new(Layered::<Shaky>::over(Arc::new(InMemoryStore::new())));
    let world = World::with_store(ONE, calling("1"), store.clone());
    store.gates.fail("release_lease");
    let ended = world.run(json!({})).await;
    assert!(!store.gates.are_passed(), "the lease was released after the last batch");
    beside(&world, "other").delete_thread(&ended.run.thread).await.unwrap();
}

#[tokio::test]
async fn a_failed_release_of_a_lease_is_retried() {
    let store = Arc::new(Layered::<Shaky>::over(Arc::new(InMemoryStore::new())));
    let world = World::with_store(ONE, calling("1"), store.clone());
    let other = beside(&world, "other");
    let thread = ThreadId::new("kept").unwrap();
    store.gates.fail("release_lease");
    world.engine.delete_thread(&thread).await.unwrap();
    is_free(&other, &thread).await;
}

/// The store granted a lease, and its response was lost.
#[tokio::test]
async fn a_lease_whose_grant_was_lost_is_released() {
    let store = Arc::new(Layered::<Shaky>::over(Arc::new(InMemoryStore::new())));
    let world = World::with_store(ONE, calling("1"), store.clone());
    let other = beside(&world, "other");
    let thread = ThreadId::new("lost").unwrap();
    store.gates.fail("lease done");
    let failure = world.engine.delete_thread(&thread).await.unwrap_err();
    assert_eq!(failure.code, code::UNAVAILABLE, "{failure}");
    is_free(&other, &thread).await;
}

#[tokio::test]
async fn an_engine_writes_nothing_after_a_takeover() {
    let world = world();
    world.net.hang_next(1);
    let run = world.begin(json!({})).await.unwrap();
    world.net.hung().await;
    // The other engine has the same name, like one that takes over after an expired lease.
    let heir = beside(&world, "world");
    assert_eq!(heir.recover().await, 1);
    let ended = heir.wait(&run).await.unwrap();
    assert_eq!(ended.outcome, RunOutcome::Completed);
    assert_eq!(ended.state["out"], json!(["done"]));
    let before = world.events(&run.thread).await;
    // The first engine still executes the run. The store refuses all of its writes.
    world.engine.cancel(&run).await.unwrap();
    assert_eq!(world.events(&run.thread).await, before);
    let ends = before.iter().filter(|event| matches!(event.kind, EventKind::RunEnded(_))).count();
    assert_eq!(ends, 1);
}

#[tokio::test]
async fn a_write_without_a_lease_is_fenced_while_a_lease_exists() {
    let world = world();
    world.net.hang_next(1);
    let run = world.begin(json!({})).await.unwrap();
    world.net.hung().await;
    let store = Arc::clone(&world.engine.ports().store);
    let head = store.thread(&run.thread).await.unwrap().unwrap();
    let batch = Batch { record: Some(head.record), ..Batch::default() };
    let refused = store.append(&run.thread, batch).await.await.unwrap_err();
    assert!(matches!(refused, StoreError::Fenced { .. }), "{refused}");
    world.engine.cancel(&run).await.unwrap();
}

#[tokio::test]
async fn an_engine_checks_its_lease_before_an_effect_after_missed_heartbeats() {
    let rule = MemoryRule { namespace: vec!["notes".to_owned()], access: MemoryAccess::ReadWrite };
    let grants = Grants { memory: vec![rule], ..Grants::default() };
    let (runs, goes_on) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
    let (began, released) = (Arc::new(Notify::new()), goes_on.clone());
    let begun = began.clone();
    let put = |key: String| {
        let (namespace, value) = (vec!["notes".to_owned()], json!("written"));
        PutDocument(PutItem { namespace, key, value, ttl_ms: None, refresh_on_read: false })
    };
    let plugin = NativePlugin::new("p", "1").node("work", move |_, gate| {
        let (runs, goes_on, began) = (runs.clone(), goes_on.clone(), began.clone());
        async move {
            let run = runs.fetch_add(1, Ordering::SeqCst);
            // This call makes all events so far durable.
            gate.call(put("both".to_owned())).await?;
            if run == 0 {
                began.notify_one();
                goes_on.notified().await;
            }
            gate.call(put(format!("host {run}"))).await?;
            Ok(json!({ "out": "done" }))
        }
    });
    let memory = Arc::new(VolatileMemory::new());
    let world = World::with_memory(ONE, plugin, memory.clone(), grants);
    let run = world.begin(json!({})).await.unwrap();
    begun.notified().await;
    let heir = beside(&world, "world");
    assert_eq!(heir.recover().await, 1);
    assert_eq!(heir.wait(&run).await.unwrap().outcome, RunOutcome::Completed);
    // Like a machine that was suspended.
    world.clock.advance_ms(60_000);
    released.notify_one();
    // In every case it has released the run by then.
    world.engine.wait(&run).await.unwrap();
    let scope = MemoryScope::Tenant(None);
    let all =
        MemorySearch { prefix: vec!["notes".to_owned()], limit: 10, ..MemorySearch::default() };
    let found = memory.search(&scope, &all, START_MS + 60_000).await.unwrap();
    let mut keys: Vec<String> = found.into_iter().map(|item| item.key).collect();
    keys.sort();
    assert_eq!(keys, ["both", "host 1"]);
}
