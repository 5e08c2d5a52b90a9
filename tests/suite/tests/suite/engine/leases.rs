//! Two engines on one store: a thread has one writer, whatever they try.

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
use wattle_run::hostcall::memory::Put;
use wattle_run::hostcall::runs::{RunOutcome, Runs};
use wattle_run::ports::memory::{MemoryScope, PutItem, Search};
use wattle_run::ports::store::{Batch, Epoch, Holder, StoreError};
use wattle_run::ports::{Memory, Store};
use wattle_store::{MemoryStore, VolatileMemory};
use wattle_suite::native::NativePlugin;
use wattle_suite::scripted::get;
use wattle_suite::world::{START_MS, World};

const ONE: &str = r#"
[graphs.one]
entry = "work"
[graphs.one.channels.out]
reducer = "append"
[graphs.one.nodes.work]
plugin = "p"
"#;

fn plugin() -> NativePlugin {
    NativePlugin::new("p", "1").node("work", |_, gate| async move {
        gate.call(get("https://example.com/slow")).await?;
        Ok(json!({ "out": "done" }))
    })
}

fn world() -> World {
    World::new(ONE, plugin())
}

/// A store that many hosts share, whose holders beat often. Gates know two calls: `lease done`,
/// when a thread is leased, and `release`, before it is given back.
struct Shaky {
    below: Arc<dyn Store>,
    gates: Gates,
}

impl Shaky {
    async fn pass(&self, call: &str) -> Result<(), StoreError> {
        let passed = self.gates.pass(call).await;
        passed.map_err(|failure| StoreError::Backend {
            operation: "go through the gates",
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

    async fn lease(&self, thread: &ThreadId, holder: &Holder) -> Result<Epoch, StoreError> {
        let epoch = self.below.lease(thread, holder).await?;
        self.pass("lease done").await?;
        Ok(epoch)
    }

    async fn release(&self, thread: &ThreadId, epoch: Epoch) -> Result<(), StoreError> {
        self.pass("release").await?;
        self.below.release(thread, epoch).await
    }
}

/// Far longer than it takes.
const IN_TIME: Duration = Duration::from_mins(1);

/// Waits until an engine may have a thread.
async fn is_free(engine: &Engine, thread: &ThreadId) {
    let free = async {
        while let Err(failure) = engine.delete_thread(thread).await {
            assert_eq!(failure.code, code::BUSY, "{failure}");
        }
    };
    tokio::time::timeout(IN_TIME, free).await.expect("the lease is given back");
}

/// Another engine over the same store and apps.
fn beside(world: &World, holder: &str) -> Engine {
    let config =
        EngineConfig { holder: Some(Holder(holder.to_owned())), ..EngineConfig::default() };
    Engine::new(world.engine.ports().clone(), world.engine.catalog().clone(), config)
}

#[tokio::test]
async fn a_thread_that_is_at_work_on_one_engine_is_busy_on_another() {
    let world = world();
    world.net.hang_next(1);
    let run = world.begin(json!({})).await.unwrap();
    world.net.hung().await;
    let other = beside(&world, "other");
    assert_eq!(other.recover().await, 0, "a run that is alive is nobody else's");
    let refused = other.delete_thread(&run.thread).await.unwrap_err();
    assert_eq!(refused.code, code::BUSY);
    world.engine.cancel(&run).await.unwrap();
    other.delete_thread(&run.thread).await.unwrap();
}

#[tokio::test]
async fn a_thread_that_is_about_to_be_given_back_is_waited_for() {
    let world = world();
    let store = Arc::clone(&world.engine.ports().store);
    let (thread, other) = (ThreadId::new("t").unwrap(), Holder("other".to_owned()));
    store.beat(&other).await.unwrap();
    let epoch = store.lease(&thread, &other).await.unwrap();
    let refused = world.engine.delete_thread(&thread).await.unwrap_err();
    assert_eq!(refused.code, code::BUSY, "not for ever");
    let back = store.release(&thread, epoch);
    let (taken, given) = tokio::join!(world.engine.delete_thread(&thread), back);
    taken.unwrap();
    given.unwrap();
}

#[tokio::test]
async fn a_lease_that_could_not_be_given_back_is_given_back_later() {
    let store = Arc::new(Layered::<Shaky>::over(Arc::new(MemoryStore::new())));
    let world = World::with_store(ONE, plugin(), store.clone());
    let other = beside(&world, "other");
    let thread = ThreadId::new("kept").unwrap();
    store.gates.fail("release");
    world.engine.delete_thread(&thread).await.unwrap();
    is_free(&other, &thread).await;
}

/// The store gave a lease, and its answer was lost.
#[tokio::test]
async fn a_lease_that_nobody_knows_of_is_given_back() {
    let store = Arc::new(Layered::<Shaky>::over(Arc::new(MemoryStore::new())));
    let world = World::with_store(ONE, plugin(), store.clone());
    let other = beside(&world, "other");
    let thread = ThreadId::new("lost").unwrap();
    store.gates.fail("lease done");
    let failure = world.engine.delete_thread(&thread).await.unwrap_err();
    assert_eq!(failure.code, code::UNAVAILABLE, "{failure}");
    is_free(&other, &thread).await;
}

#[tokio::test]
async fn an_engine_whose_thread_was_taken_over_writes_nothing_more() {
    let world = world();
    world.net.hang_next(1);
    let run = world.begin(json!({})).await.unwrap();
    world.net.hung().await;
    // The other one takes the name, as one does that finds the first silent for too long.
    let heir = beside(&world, "world");
    assert_eq!(heir.recover().await, 1);
    let ended = heir.wait(&run).await.unwrap();
    assert_eq!(ended.outcome, RunOutcome::Completed);
    assert_eq!(ended.state["out"], json!(["done"]));
    let before = world.events(&run.thread).await;
    // The first engine still believes in its run; what it does now is refused as a whole.
    world.engine.cancel(&run).await.unwrap();
    assert_eq!(world.events(&run.thread).await, before);
    let ends = before.iter().filter(|event| matches!(event.kind, EventKind::RunEnded(_))).count();
    assert_eq!(ends, 1);
}

#[tokio::test]
async fn a_write_without_a_lease_is_refused_while_somebody_has_one() {
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
async fn an_engine_that_was_silent_asks_before_an_effect_whether_the_thread_is_still_its() {
    let rule = MemoryRule { namespace: vec!["notes".to_owned()], access: MemoryAccess::ReadWrite };
    let grants = Grants { memory: vec![rule], ..Grants::default() };
    let (runs, goes_on) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
    let (began, released) = (Arc::new(Notify::new()), goes_on.clone());
    let begun = began.clone();
    let put = |key: String| {
        let (namespace, value) = (vec!["notes".to_owned()], json!("written"));
        Put(PutItem { namespace, key, value, ttl_ms: None, refresh_on_read: false })
    };
    let plugin = NativePlugin::new("p", "1").node("work", move |_, gate| {
        let (runs, goes_on, began) = (runs.clone(), goes_on.clone(), began.clone());
        async move {
            let run = runs.fetch_add(1, Ordering::SeqCst);
            // Brings everything so far into the store.
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
    // As if the machine had slept.
    world.clock.advance_ms(60_000);
    released.notify_one();
    // However it tells of that, it has let go of the run then.
    world.engine.wait(&run).await.unwrap();
    let scope = MemoryScope::Agents(None);
    let all = Search { prefix: vec!["notes".to_owned()], limit: 10, ..Search::default() };
    let found = memory.search(&scope, &all, START_MS + 60_000).await.unwrap();
    let mut keys: Vec<String> = found.into_iter().map(|item| item.key).collect();
    keys.sort();
    assert_eq!(keys, ["both", "host 1"]);
}
