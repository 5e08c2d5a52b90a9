//! Recovery in the background after a start: requests for threads that are not recovered yet, and
//! runs that cannot be recovered.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::sync::{Notify, Semaphore};
use wattle_graph::event::RunStatus;
use wattle_graph::failure::code;
use wattle_graph::id::{AppName, GraphName, Namespace, RunId, ThreadId};
use wattle_kit::gates::Gates;
use wattle_kit::layer::{Layer, Layered};
use wattle_run::catalog::{Catalog, LoadingItem, is_still_loading};
use wattle_run::engine::{Engine, EngineConfig};
use wattle_run::grant::Grants;
use wattle_run::hostcall::runs::{CreateRun, RunOutcome, RunRef, RunService};
use wattle_run::meter::model_usage::ModelUsage;
use wattle_run::ports::store::{
    Batch, LeaseEpoch, LeaseHolder, OrphanedThread, RunKind, RunRecord, StoreError, Ticket,
};
use wattle_run::ports::{Plugin, Store};
use wattle_run::reads::begin_large_read;
use wattle_store::InMemoryStore;
use wattle_suite::native::NativePlugin;
use wattle_suite::scripted::get;
use wattle_suite::world::{World, app};

use super::calling;

const ONE: &str = r#"
[graphs.one]
entry = "work"
[graphs.one.channels.out]
[graphs.one.nodes.work]
plugin = "p"
"#;

/// A store with gates for the scan for orphaned runs and for reads, by the names of the methods.
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

    async fn orphaned_threads(
        &self,
        holder: &LeaseHolder,
        after: Option<&ThreadId>,
    ) -> Result<Vec<OrphanedThread>, StoreError> {
        self.reading("orphaned_threads").await?;
        self.below.orphaned_threads(holder, after).await
    }

    async fn reading(&self, read: &'static str) -> Result<(), StoreError> {
        let passed = self.gates.pass(read).await;
        passed.map_err(|failure| StoreError::Backend { operation: read, message: failure.message })
    }
}

/// Returns a world after a crash with some orphaned runs, the oldest first.
async fn crashed(runs: usize) -> (World, Arc<Layered<SlowLook>>, Vec<RunRef>) {
    let store = Arc::new(Layered::<SlowLook>::over(Arc::new(InMemoryStore::new())));
    let mut world = World::with_store(ONE, calling("1"), store.clone());
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
async fn a_request_for_a_thread_recovers_its_run_first() {
    let (world, store, cut) = crashed(4).await;
    let gate = store.gates.hold("orphaned_threads");
    world.engine.start_recovery();
    let held = gate.reached().await;
    assert!(!world.engine.recovery().is_complete);
    // A caller that waits gets the end, a second run is refused, and a cancel reaches the run.
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
    let recovery = world.engine.wait_recovered().await;
    assert_eq!((recovery.recovered, recovery.set_aside), (4, 0), "{recovery:?}");
    for run in &cut[2..] {
        assert_eq!(ended(&world, run).await, (RunOutcome::Completed, json!("done")));
    }
}

/// A store that is unavailable for a moment loses nothing.
#[tokio::test]
async fn a_failed_recovery_scan_is_repeated() {
    let (world, store, cut) = crashed(1).await;
    store.gates.fail("orphaned_threads");
    world.engine.start_recovery();
    assert_eq!(world.engine.wait_recovered().await.recovered, 1);
    assert_eq!(ended(&world, &cut[0]).await, (RunOutcome::Completed, json!("done")));
}

/// Only the cost of the run needs its earlier events.
#[tokio::test]
async fn a_run_whose_tokens_cannot_be_counted_is_recovered_without_a_cost() {
    let (world, store, cut) = crashed(1).await;
    store.gates.fail("events");
    world.engine.start_recovery();
    let recovery = world.engine.wait_recovered().await;
    assert_eq!((recovery.recovered, recovery.set_aside), (1, 0), "{recovery:?}");
    assert!(store.gates.are_passed());
    assert_eq!(ended(&world, &cut[0]).await, (RunOutcome::Completed, json!("done")));
    let run = store.run(&cut[0].run).await.unwrap().unwrap();
    assert_eq!(run.usage, ModelUsage::partial());
}

/// Clients would read the cost of a part of the run.
#[tokio::test]
async fn the_record_of_a_recovered_run_has_no_usage_before_its_end() {
    let (world, store, cut) = crashed(1).await;
    store.gates.fail("events");
    world.net.hang_next(1);
    world.engine.start_recovery();
    world.engine.wait_recovered().await;
    world.net.hung().await;
    let run = store.run(&cut[0].run).await.unwrap().unwrap();
    assert_eq!((run.status, run.usage), (RunStatus::Running, ModelUsage::default()));
}

/// After a start, an app can take minutes to load.
#[tokio::test]
async fn a_run_waits_until_its_app_is_loaded() {
    let (world, _, cut) = crashed(2).await;
    let (catalog, path) = (Catalog::new(), Path::new("plugins/test"));
    let name = AppName::new("test").unwrap();
    catalog.begin_loading(path, LoadingItem::App { name, mount: None });
    let ports = world.engine.ports().clone();
    let holder = Some(LeaseHolder("world".to_owned()));
    let config = EngineConfig { holder, ..EngineConfig::default() };
    let engine = Engine::new(ports, catalog.clone(), config);
    engine.start_recovery();
    let recovery = engine.wait_recovered().await;
    assert!(recovery.is_complete, "it holds nothing else up");
    assert_eq!((recovery.recovered, recovery.set_aside, recovery.waiting), (0, 0, 2));
    let thread = &cut[0].thread;
    for failure in [
        engine.start(world.request(None, json!({}))).await.unwrap_err(),
        engine.start(world.request(Some(thread), json!({}))).await.unwrap_err(),
        engine.wait(&cut[0]).await.unwrap_err(),
        engine.cancel(&cut[0]).await.unwrap_err(),
        engine.retry_recovery(thread).await.unwrap_err(),
    ] {
        assert!(failure.retryable && is_still_loading(&failure), "{failure:?}");
    }
    assert_eq!(engine.state(thread, &Namespace::root(), None).await.unwrap().thread, *thread);
    let plugin: Arc<dyn Plugin> = Arc::new(calling("1"));
    catalog.install(app(ONE, vec![(plugin, Grants::default())]));
    catalog.end_loading(path);
    for run in &cut {
        let ended = engine.wait(run).await.unwrap();
        assert_eq!((ended.outcome, &ended.state["out"]), (RunOutcome::Completed, &json!("done")));
    }
    assert_eq!(engine.recovery().waiting, 0);
}

/// The version to which the threads are pinned is missing.
#[tokio::test]
async fn a_run_that_cannot_be_recovered_is_set_aside_with_the_reason() {
    let store: Arc<dyn Store> = Arc::new(InMemoryStore::new());
    let old = World::with_store(ONE, calling("1"), store.clone());
    let mut runs = Vec::new();
    for _ in 0..2 {
        old.net.hang_next(1);
        runs.push(old.begin(json!({})).await.unwrap());
        old.net.hung().await;
    }
    drop(old);
    let world = World::with_store(ONE, calling("2"), store);
    let other = world.run(json!({})).await;
    assert_eq!(other.outcome, RunOutcome::Completed, "other runs complete");
    world.engine.start_recovery();
    let recovery = world.engine.wait_recovered().await;
    assert_eq!((recovery.found, recovery.recovered, recovery.set_aside), (2, 0, 2));
    let (run, deleted) = (&runs[0], &runs[1]);
    let aside = world.engine.set_aside(&run.thread).unwrap();
    assert_eq!((aside.failure.code.as_str(), aside.attempts), (code::UNAVAILABLE, 1));
    assert_eq!(aside.run.as_ref(), Some(&run.run));
    let busy = world.engine.wait(run).await.unwrap_err();
    assert!(busy.message.contains("cannot be recovered"), "{busy}");
    let busy = world.begin_on(Some(&run.thread), json!({})).await.unwrap_err();
    assert_eq!(busy.code, code::BUSY, "{busy}");
    world.engine.cancel(run).await.unwrap();

    // The recovery is retried when it is due and on request.
    assert_eq!(world.engine.retry_set_aside().await, 0);
    assert_eq!(world.engine.set_aside(&run.thread).unwrap().attempts, 1, "not yet");
    world.clock.advance_ms(31_000);
    assert_eq!(world.engine.retry_set_aside().await, 0);
    assert_eq!(world.engine.set_aside(&run.thread).unwrap().attempts, 2);
    let failure = world.engine.retry_recovery(&run.thread).await.unwrap_err();
    assert_eq!(failure.code, code::UNAVAILABLE);
    world.engine.delete_thread(&deleted.thread).await.unwrap();
    assert_eq!(world.engine.set_aside(&deleted.thread), None);
    world.install(ONE, calling("1"));
    assert_eq!(world.engine.retry_recovery(&run.thread).await.unwrap(), *run);
    assert_eq!(ended(&world, run).await, (RunOutcome::Completed, json!("done")));
    assert_eq!(world.engine.set_aside(&run.thread), None);
    let nothing = world.engine.retry_recovery(&run.thread).await.unwrap_err();
    assert_eq!(nothing.code, code::CONFLICT);
    let missing = world.engine.retry_recovery(&ThreadId::new("none").unwrap()).await.unwrap_err();
    assert_eq!(missing.code, code::NOT_FOUND);
}

/// A store that panics in the next read of a run.
struct Faulty {
    below: Arc<dyn Store>,
    is_faulty: AtomicBool,
}

#[async_trait]
impl Layer for Faulty {
    fn over(below: Arc<dyn Store>) -> Self {
        Self { below, is_faulty: AtomicBool::new(false) }
    }

    fn below(&self) -> &dyn Store {
        &*self.below
    }

    async fn reading(&self, read: &'static str) -> Result<(), StoreError> {
        assert!(read != "run" || !self.is_faulty.swap(false, Ordering::SeqCst), "a bug");
        Ok(())
    }
}

#[tokio::test]
async fn a_panic_in_a_recovery_sets_the_thread_aside() {
    let store = Arc::new(Layered::<Faulty>::over(Arc::new(InMemoryStore::new())));
    let mut world = World::with_store(ONE, calling("1"), store.clone());
    world.net.hang_next(1);
    let run = world.begin(json!({})).await.unwrap();
    world.net.hung().await;
    world.crash().await;
    store.is_faulty.store(true, Ordering::SeqCst);
    world.engine.start_recovery();
    let recovery = world.engine.wait_recovered().await;
    assert_eq!((recovery.recovered, recovery.set_aside), (0, 1), "{recovery:?}");
    let failure = world.engine.set_aside(&run.thread).unwrap().failure;
    assert_eq!(failure.code, code::INTERNAL, "{failure}");
    assert!(failure.message.contains("a bug"), "{failure}");
    assert_eq!(world.engine.retry_recovery(&run.thread).await.unwrap(), run);
    assert_eq!(ended(&world, &run).await, (RunOutcome::Completed, json!("done")));
}

/// A store that delays leases and records the requested threads.
struct Closed {
    below: Arc<dyn Store>,
    is_closed: AtomicBool,
    wanted: Mutex<Vec<ThreadId>>,
    /// One permit for each requested thread.
    came: Semaphore,
    /// Closed when leases are granted again.
    opening: Semaphore,
}

#[async_trait]
impl Layer for Closed {
    fn over(below: Arc<dyn Store>) -> Self {
        let (came, opening) = (Semaphore::new(0), Semaphore::new(0));
        Self { below, is_closed: AtomicBool::new(false), wanted: Mutex::default(), came, opening }
    }

    fn below(&self) -> &dyn Store {
        &*self.below
    }

    async fn acquire_lease(
        &self,
        thread: &ThreadId,
        holder: &LeaseHolder,
    ) -> Result<LeaseEpoch, StoreError> {
        if self.is_closed.load(Ordering::SeqCst) {
            self.wanted.lock().unwrap().push(thread.clone());
            self.came.add_permits(1);
            self.opening.acquire().await.unwrap_err();
        }
        self.below.acquire_lease(thread, holder).await
    }
}

/// Runs that are recovered concurrently.
const AT_ONCE: usize = 16;

/// The ids are in reverse order, so a recovery in the order of the store would fail.
#[tokio::test]
async fn the_oldest_runs_are_recovered_first() {
    let store = Arc::new(Layered::<Closed>::over(Arc::new(InMemoryStore::new())));
    let mut world = World::with_store(ONE, calling("1"), store.clone());
    let mut cut = Vec::new();
    for number in (0..2 * AT_ONCE).rev() {
        let thread = ThreadId::new(format!("t{number:02}")).unwrap();
        world.net.hang_next(1);
        world.begin_on(Some(&thread), json!({})).await.unwrap();
        world.net.hung().await;
        world.clock.advance_ms(1_000);
        cut.push(thread);
    }
    world.crash().await;
    store.is_closed.store(true, Ordering::SeqCst);
    world.engine.start_recovery();
    drop(store.came.acquire_many(AT_ONCE as u32).await.unwrap());
    let mut first = store.wanted.lock().unwrap().clone();
    first.sort();
    cut.truncate(AT_ONCE);
    cut.sort();
    assert_eq!(first, cut);
    store.opening.close();
    assert_eq!(world.engine.wait_recovered().await.recovered, 2 * AT_ONCE);
}

/// Runs with large threads that are recovered concurrently.
const LARGE_AT_ONCE: usize = 4;

/// A store whose reads of checkpoints are large, and wait until they may end.
struct Large {
    below: Arc<dyn Store>,
    is_large: AtomicBool,
    /// Has a permit for each read that was asked for.
    asked: Semaphore,
    /// Has a permit for each read that began.
    begun: Semaphore,
    ending: Semaphore,
}

#[async_trait]
impl Layer for Large {
    fn over(below: Arc<dyn Store>) -> Self {
        let [asked, begun, ending] = [0; 3].map(Semaphore::new);
        Self { below, is_large: AtomicBool::new(false), asked, begun, ending }
    }

    fn below(&self) -> &dyn Store {
        &*self.below
    }

    async fn reading(&self, read: &'static str) -> Result<(), StoreError> {
        if read == "checkpoint" && self.is_large.load(Ordering::SeqCst) {
            self.asked.add_permits(1);
            let _read = begin_large_read().await;
            self.begun.add_permits(1);
            self.ending.acquire().await.unwrap_err();
        }
        Ok(())
    }
}

/// Returns a world after a crash with some orphaned runs of large threads.
async fn crashed_with_large(runs: usize) -> (World, Arc<Layered<Large>>) {
    let store = Arc::new(Layered::<Large>::over(Arc::new(InMemoryStore::new())));
    let mut world = World::with_store(ONE, calling("1"), store.clone());
    for number in 0..runs {
        let thread = ThreadId::new(format!("t{number}")).unwrap();
        world.net.hang_next(1);
        world.begin_on(Some(&thread), json!({})).await.unwrap();
        world.net.hung().await;
    }
    world.crash().await;
    store.is_large.store(true, Ordering::SeqCst);
    (world, store)
}

#[tokio::test]
async fn few_recoveries_hold_a_large_thread_at_once() {
    const RUNS: usize = 2 * LARGE_AT_ONCE;
    let (world, store) = crashed_with_large(RUNS).await;
    world.engine.start_recovery();
    store.asked.acquire_many(RUNS as u32).await.unwrap().forget();
    store.begun.acquire_many(LARGE_AT_ONCE as u32).await.unwrap().forget();
    assert_eq!(store.begun.available_permits(), 0);
    store.ending.close();
    assert_eq!(world.engine.wait_recovered().await.recovered, RUNS);
}

/// A scan finds the runs that the scan before it has not begun to recover.
#[tokio::test]
async fn scans_at_the_same_time_share_the_turns_of_large_threads() {
    let (world, store) = crashed_with_large(AT_ONCE + 1).await;
    let scan = || {
        let engine = world.engine.clone();
        tokio::spawn(async move { engine.recover().await })
    };
    let first = scan();
    store.asked.acquire_many(AT_ONCE as u32).await.unwrap().forget();
    let second = scan();
    store.asked.acquire().await.unwrap().forget();
    store.begun.acquire_many(LARGE_AT_ONCE as u32).await.unwrap().forget();
    assert_eq!(store.begun.available_permits(), 0);
    store.ending.close();
    assert_eq!(first.await.unwrap() + second.await.unwrap(), AT_ONCE + 1);
}

/// The first four take longer than a recovery may.
#[tokio::test(start_paused = true)]
async fn a_recovery_that_waits_for_its_turn_is_not_set_aside() {
    let (world, store) = crashed_with_large(LARGE_AT_ONCE + 1).await;
    let config =
        EngineConfig { holder: Some(LeaseHolder("world".to_owned())), ..EngineConfig::default() };
    // The engine is on the runtime of the test, whose time advances whenever all tasks wait.
    let engine = Engine::new(world.engine.ports().clone(), world.engine.catalog().clone(), config);
    let scan = tokio::spawn({
        let engine = engine.clone();
        async move { engine.recover().await }
    });
    let last = store.begun.acquire_many(LARGE_AT_ONCE as u32 + 1);
    let last = tokio::time::timeout(2 * PATIENCE, last).await;
    last.expect("the last run has its turn").unwrap().forget();
    store.ending.close();
    assert_eq!((scan.await.unwrap(), engine.recovery().set_aside), (1, LARGE_AT_ONCE));
}

/// A store that can refuse batches.
struct Refusing {
    below: Arc<dyn Store>,
    refusal: Mutex<Option<StoreError>>,
}

impl Refusing {
    fn refuse(&self, refusal: Option<StoreError>) {
        *self.refusal.lock().unwrap() = refusal;
    }

    fn admit(&self) -> Result<(), StoreError> {
        self.refusal.lock().unwrap().clone().map_or(Ok(()), Err)
    }
}

#[async_trait]
impl Layer for Refusing {
    fn over(below: Arc<dyn Store>) -> Self {
        Self { below, refusal: Mutex::default() }
    }

    fn below(&self) -> &dyn Store {
        &*self.below
    }

    async fn append(&self, thread: &ThreadId, batch: Batch) -> Ticket {
        match self.admit() {
            Ok(()) => self.below.append(thread, batch).await,
            Err(refusal) => Ticket::ready(Err(refusal)),
        }
    }

    /// Adds the run even if the store refuses, like a commit whose response is lost.
    async fn enqueue(
        &self,
        run: &RunRecord,
        requested: Option<&(AppName, GraphName)>,
    ) -> Result<bool, StoreError> {
        let is_added = self.below.enqueue(run, requested).await?;
        self.admit().map(|()| is_added)
    }

    async fn check_writable(&self) -> Result<(), StoreError> {
        self.admit()
    }
}

fn full() -> StoreError {
    StoreError::Backend { operation: "commit", message: "no space left".to_owned() }
}

/// Returns a world with a run that lost its log because the store refused its next batch.
async fn lost(refusal: StoreError) -> (World, Arc<Layered<Refusing>>, RunRef) {
    let store = Arc::new(Layered::<Refusing>::over(Arc::new(InMemoryStore::new())));
    let (began, goes_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (begun, released, runs) = (began.clone(), goes_on.clone(), AtomicUsize::new(0));
    let plugin = NativePlugin::new("p", "1").node("work", move |_, gate| {
        let (began, goes_on) = (began.clone(), goes_on.clone());
        let is_first = runs.fetch_add(1, Ordering::SeqCst) == 0;
        async move {
            if is_first {
                began.notify_one();
                goes_on.notified().await;
            }
            gate.call(get("https://example.com/")).await?;
            Ok(json!({ "out": "done" }))
        }
    });
    let world = World::with_store(ONE, plugin, store.clone());
    let run = world.begin(json!({})).await.unwrap();
    begun.notified().await;
    store.refuse(Some(refusal));
    released.notify_one();
    let failure = world.engine.wait(&run).await.unwrap_err();
    assert_ne!(failure.code, code::INTERNAL, "the run has not failed: {failure}");
    assert_eq!(world.net.calls(), 0);
    (world, store, run)
}

/// As on a full disk.
#[tokio::test]
async fn a_run_continues_when_the_store_accepts_batches_again() {
    let (world, store, run) = lost(full()).await;
    let failure = world.engine.wait(&run).await.unwrap_err();
    assert_eq!((failure.code.as_str(), failure.retryable), (code::UNAVAILABLE, true), "{failure}");
    let mut news = world.engine.watch(&run.thread);
    news.borrow_and_update();
    store.refuse(None);
    news.changed().await.unwrap();
    assert_eq!(ended(&world, &run).await, (RunOutcome::Completed, json!("done")));
    let record = store.run(&run.run).await.unwrap().unwrap();
    assert_eq!(record.recovery_count.without_progress, 0, "the process went on");
}

/// Otherwise a run whose batch the store never accepts would be repeated without end.
#[tokio::test]
async fn a_run_whose_batch_is_invalid_is_set_aside() {
    let (thread, message) = (ThreadId::new("t").unwrap(), "not a valid batch".to_owned());
    let (world, store, run) = lost(StoreError::InvalidBatch { thread, message }).await;
    let aside = loop {
        match world.engine.set_aside(&run.thread) {
            Some(aside) => break aside,
            None => tokio::task::yield_now().await,
        }
    };
    assert!(aside.failure.message.contains("not a valid batch"), "{}", aside.failure);
    let busy = world.engine.wait(&run).await.unwrap_err();
    assert_eq!(busy.code, code::BUSY, "{busy}");
    store.refuse(None);
    assert_eq!(world.engine.retry_recovery(&run.thread).await.unwrap(), run);
    assert_eq!(ended(&world, &run).await, (RunOutcome::Completed, json!("done")));
}

/// Maximum duration of the wait for a run.
const PATIENCE: Duration = Duration::from_mins(1);

#[tokio::test]
async fn a_pending_run_whose_confirmation_was_lost_starts() {
    let store = Arc::new(Layered::<Refusing>::over(Arc::new(InMemoryStore::new())));
    let world = World::with_store(ONE, calling("1"), store.clone());
    world.engine.start_recovery();
    world.engine.wait_recovered().await;
    world.net.hang_next(1);
    let first = world.begin(json!({})).await.unwrap();
    world.net.hung().await;
    store.refuse(Some(full()));
    let asked = CreateRun {
        run: Some(RunId::new("second").unwrap()),
        ..world.create_run(&first.thread, RunKind::Start { input: json!({}) })
    };
    let failure = world.engine.create_run(asked).await.unwrap_err();
    assert_eq!(failure.code, code::UNAVAILABLE, "{failure}");
    store.refuse(None);
    world.engine.cancel(&first).await.unwrap();
    let second = RunRef { thread: first.thread, run: RunId::new("second").unwrap() };
    let ended = tokio::time::timeout(PATIENCE, ended(&world, &second)).await;
    assert_eq!(ended.expect("the run starts"), (RunOutcome::Completed, json!("done")));
}
