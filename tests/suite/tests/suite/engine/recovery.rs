//! Going on after a start, in the background: what is wanted of a thread meanwhile, and what cannot
//! be gone on with.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};
use wattle_graph::failure::code;
use wattle_graph::id::ThreadId;
use wattle_kit::gates::Gates;
use wattle_kit::layer::{Layer, Layered};
use wattle_run::hostcall::runs::{RunOutcome, RunRef, Runs};
use wattle_run::ports::Store;
use wattle_run::ports::store::{Holder, StoreError, ThreadRecord};
use wattle_store::MemoryStore;
use wattle_suite::native::NativePlugin;
use wattle_suite::scripted::get;
use wattle_suite::world::World;

const ONE: &str = r#"
[graphs.one]
entry = "work"
[graphs.one.channels.out]
[graphs.one.nodes.work]
plugin = "p"
"#;

fn plugin(version: &str) -> NativePlugin {
    NativePlugin::new("p", version).node("work", |_, gate| async move {
        gate.call(get("https://example.com/slow")).await?;
        Ok(json!({ "out": "done" }))
    })
}

/// Holds the look for runs that were cut.
struct SlowLook {
    below: Arc<dyn Store>,
    gates: Gates,
}

#[async_trait]
impl Layer for SlowLook {
    fn over(below: Arc<dyn Store>) -> Self {
        Self { below, gates: Gates::default() }
    }

    fn below(&self) -> &dyn Store {
        &*self.below
    }

    async fn abandoned(
        &self,
        holder: &Holder,
        after: Option<&ThreadId>,
    ) -> Result<Vec<ThreadRecord>, StoreError> {
        let passed = self.gates.pass("abandoned").await;
        passed.map_err(|failure| StoreError::Backend {
            operation: "look for runs that were cut",
            message: failure.message,
        })?;
        self.below.abandoned(holder, after).await
    }
}

/// A world after a crash that cut some runs, the oldest first.
async fn crashed(runs: usize) -> (World, Arc<Layered<SlowLook>>, Vec<RunRef>) {
    let store = Arc::new(Layered::<SlowLook>::over(Arc::new(MemoryStore::new())));
    let mut world = World::with_store(ONE, plugin("1"), store.clone());
    let mut cut = Vec::new();
    for _ in 0..runs {
        world.net.hang_next(1);
        cut.push(world.begin(json!({})).await.unwrap());
        world.net.hung().await;
        world.clock.advance_ms(1_000);
    }
    world.crash().await;
    (world, store, cut)
}

async fn ended(world: &World, run: &RunRef) -> (RunOutcome, Value) {
    let ended = world.engine.wait(run).await.unwrap();
    (ended.outcome, ended.state["out"].clone())
}

#[tokio::test]
async fn what_is_wanted_of_a_thread_goes_on_with_its_run_first() {
    let (world, store, cut) = crashed(4).await;
    let gate = store.gates.hold("abandoned");
    world.engine.start_recovery();
    let held = gate.reached().await;
    assert!(!world.engine.recovery().is_over);
    // Whoever waits for it has its end, a second run comes too late, and a cancel finds it.
    assert_eq!(ended(&world, &cut[0]).await, (RunOutcome::Completed, json!("done")));
    world.net.hang_next(1);
    let busy = world.begin_on(Some(&cut[1].thread), json!({})).await.unwrap_err();
    assert_eq!(
        (busy.code.as_str(), &busy.details.unwrap()["run_id"]),
        (code::BUSY, &json!(cut[1].run))
    );
    world.net.hung().await;
    world.engine.cancel(&cut[1]).await.unwrap();
    assert_eq!(ended(&world, &cut[1]).await.0, RunOutcome::Cancelled);
    drop(held);
    let recovery = world.engine.recovered().await;
    assert_eq!((recovery.recovered, recovery.set_aside), (4, 0), "{recovery:?}");
    for run in &cut[2..] {
        assert_eq!(ended(&world, run).await, (RunOutcome::Completed, json!("done")));
    }
}

/// A store that is away for a moment loses nothing.
#[tokio::test]
async fn a_look_that_fails_is_made_again() {
    let (world, store, cut) = crashed(1).await;
    store.gates.fail("abandoned");
    world.engine.start_recovery();
    assert_eq!(world.engine.recovered().await.recovered, 1);
    assert_eq!(ended(&world, &cut[0]).await, (RunOutcome::Completed, json!("done")));
}

/// The code that a thread is pinned to is not there any more.
#[tokio::test]
async fn a_run_that_cannot_be_gone_on_with_is_set_aside_with_the_reason() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let old = World::with_store(ONE, plugin("1"), store.clone());
    let mut runs = Vec::new();
    for _ in 0..2 {
        old.net.hang_next(1);
        runs.push(old.begin(json!({})).await.unwrap());
        old.net.hung().await;
    }
    drop(old);
    let world = World::with_store(ONE, plugin("2"), store);
    let other = world.run(json!({})).await;
    assert_eq!(other.outcome, RunOutcome::Completed, "others go on");
    world.engine.start_recovery();
    let recovery = world.engine.recovered().await;
    assert_eq!((recovery.found, recovery.recovered, recovery.set_aside), (2, 0, 2));
    let (run, deleted) = (&runs[0], &runs[1]);
    let aside = world.engine.set_aside(&run.thread).unwrap();
    assert_eq!((aside.failure.code.as_str(), aside.attempts), (code::UNAVAILABLE, 1));
    assert_eq!(aside.run.as_ref(), Some(&run.run));
    let busy = world.engine.wait(run).await.unwrap_err();
    assert!(busy.message.contains("cannot be gone on with"), "{busy}");
    let busy = world.begin_on(Some(&run.thread), json!({})).await.unwrap_err();
    assert_eq!(busy.code, code::BUSY, "{busy}");
    world.engine.cancel(run).await.unwrap();

    // It is tried again when it is time, and when somebody wants it.
    assert_eq!(world.engine.retry_set_aside().await, 0);
    assert_eq!(world.engine.set_aside(&run.thread).unwrap().attempts, 1, "not yet");
    world.clock.advance_ms(31_000);
    assert_eq!(world.engine.retry_set_aside().await, 0);
    assert_eq!(world.engine.set_aside(&run.thread).unwrap().attempts, 2);
    let failure = world.engine.retry(&run.thread).await.unwrap_err();
    assert_eq!(failure.code, code::UNAVAILABLE);
    world.engine.delete_thread(&deleted.thread).await.unwrap();
    assert_eq!(world.engine.set_aside(&deleted.thread), None);
    world.install(ONE, plugin("1"));
    assert_eq!(world.engine.retry(&run.thread).await.unwrap(), *run);
    assert_eq!(ended(&world, run).await, (RunOutcome::Completed, json!("done")));
    assert_eq!(world.engine.set_aside(&run.thread), None);
    let nothing = world.engine.retry(&run.thread).await.unwrap_err();
    assert_eq!(nothing.code, code::CONFLICT);
    let missing = world.engine.retry(&ThreadId::new("none").unwrap()).await.unwrap_err();
    assert_eq!(missing.code, code::NOT_FOUND);
}
