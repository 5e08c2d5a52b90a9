//! Breakpoints with a crash at any write: the run stops at each breakpoint, and passes it once.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::sync::Notify;
use wattle_graph::event::EventKind;
use wattle_graph::id::ThreadId;
use wattle_kit::layer::{Layer, Layered};
use wattle_run::hostcall::runs::{OnFailure, ResumeRun, RunRef, RunService, StartRun};
use wattle_run::ports::Store;
use wattle_run::ports::store::{Batch, Durability, RunOptions, ThreadStatus, Ticket};
use wattle_store::InMemoryStore;
use wattle_suite::native::NativePlugin;
use wattle_suite::world::World;

/// A graph with breakpoints before and after nodes, and a subgraph with the same. `STATE` is the
/// state mode of the subgraph.
const STOPS: &str = r#"
[graphs.main]
entry = "a"
interrupt_before = ["a", "c"]
interrupt_after = ["b"]
edges = [
    { from = "a", to = "b" }, { from = "b", to = "sub" }, { from = "sub", to = "c" },
]
[graphs.main.channels.out]
reducer = "append"
[graphs.main.nodes]
a = { plugin = "p", node = "say" }
b = { plugin = "p", node = "say" }
c = { plugin = "p", node = "say" }
sub = { graph = "inner", state = "STATE" }

[graphs.inner]
entry = "one"
interrupt_before = ["one", "three"]
interrupt_after = ["one"]
edges = [{ from = "one", to = "two" }, { from = "two", to = "three" }]
[graphs.inner.channels.out]
reducer = "append"
[graphs.inner.nodes]
one = { plugin = "p", node = "say" }
two = { plugin = "p", node = "say" }
three = { plugin = "p", node = "say" }
"#;

fn saying() -> NativePlugin {
    NativePlugin::new("p", "1").node("say", |_, _| async move { Ok(json!({ "out": "x" })) })
}

/// A store that stops accepting writes, as if the host had died before the next one.
type CutStore = Layered<Cut>;

struct Cut {
    below: Arc<dyn Store>,
    left: AtomicUsize,
    reached: Notify,
}

impl Cut {
    fn after(&self, writes: usize) {
        self.left.store(writes, Ordering::SeqCst);
    }
}

#[async_trait]
impl Layer for Cut {
    fn over(below: Arc<dyn Store>) -> Self {
        Self { below, left: AtomicUsize::new(usize::MAX), reached: Notify::new() }
    }

    fn below(&self) -> &dyn Store {
        &*self.below
    }

    async fn append(&self, thread: &ThreadId, batch: Batch) -> Ticket {
        let left = self.left.load(Ordering::SeqCst);
        if left == 0 {
            self.reached.notify_one();
            return std::future::pending().await;
        }
        self.left.store(left - 1, Ordering::SeqCst);
        self.below.append(thread, batch).await
    }
}

/// A stop that a client saw: the number of finished nodes, and the next nodes.
type Stop = (usize, Value);

struct Journey {
    world: World,
    store: Arc<CutStore>,
    thread: ThreadId,
    options: RunOptions,
    stops: Vec<Stop>,
    /// True if the thread was resumed after the last recorded stop.
    has_gone_on: bool,
    /// True after the store was cut.
    was_cut: bool,
}

impl Journey {
    fn new(state: &str, durability: Durability) -> Self {
        let store = Arc::new(CutStore::over(Arc::new(InMemoryStore::new())));
        let world = World::with_store(&STOPS.replace("STATE", state), saying(), store.clone());
        let thread = ThreadId::new("journey").unwrap();
        let options = RunOptions { durability, ..RunOptions::default() };
        let (stops, has_gone_on, was_cut) = (Vec::new(), true, false);
        Self { world, store, thread, options, stops, has_gone_on, was_cut }
    }

    /// Continues the thread to its end, through all crashes.
    async fn travel(&mut self) {
        loop {
            match self.world.engine.thread(&self.thread).await.unwrap() {
                None => {
                    let request = self.world.request(Some(&self.thread), json!({}));
                    let request = StartRun { options: self.options.clone(), ..request };
                    let engine = self.world.engine.clone();
                    self.until_cut(async move { engine.start(request).await.unwrap() }).await;
                }
                Some(view) if view.status == ThreadStatus::Running => {
                    let run = RunRef { thread: view.thread, run: view.run.unwrap() };
                    let engine = self.world.engine.clone();
                    self.until_cut(async move { engine.wait(&run).await.unwrap() }).await;
                }
                Some(view) if view.status == ThreadStatus::Interrupted => {
                    self.see(json!(view.next)).await;
                    let engine = self.world.engine.clone();
                    let (request, run) = (self.resume(), view.run.unwrap());
                    let run = RunRef { thread: view.thread, run };
                    let resumed = async move {
                        // The thread is free only after the run has ended.
                        engine.wait(&run).await.unwrap();
                        engine.resume(request).await.unwrap()
                    };
                    self.has_gone_on = self.until_cut(resumed).await;
                }
                Some(view) => return assert_eq!(view.status, ThreadStatus::Idle),
            }
        }
    }

    fn resume(&self) -> ResumeRun {
        ResumeRun {
            thread: self.thread.clone(),
            answers: Default::default(),
            on_failure: OnFailure::Keep,
            app: None,
            tenant: None,
            options: self.options.clone(),
            run: None,
            principal: None,
        }
    }

    async fn see(&mut self, next: Value) {
        let finished = |kind: &EventKind| matches!(kind, EventKind::TaskFinished(_));
        let stop = (self.world.count(&self.thread, finished).await, next);
        if self.has_gone_on || self.stops.last() != Some(&stop) {
            self.stops.push(stop);
        }
    }

    /// Returns true if the work was done before the crash. Otherwise a new engine recovers the run.
    async fn until_cut<T>(&mut self, work: impl Future<Output = T>) -> bool {
        let store = self.store.clone();
        tokio::select! {
            biased;
            _ = work => return true,
            () = store.reached.notified() => {}
        }
        self.was_cut = true;
        self.world.crash().await;
        self.store.after(usize::MAX);
        self.world.engine.recover().await;
        false
    }
}

#[tokio::test]
async fn a_crash_at_any_write_neither_skips_nor_repeats_a_breakpoint() {
    for durability in [Durability::Commit, Durability::Exit] {
        for state in ["inherit", "own", "none"] {
            let mut whole = Journey::new(state, durability);
            whole.travel().await;
            let finished: Vec<usize> = whole.stops.iter().map(|(finished, _)| *finished).collect();
            assert_eq!(finished, [0, 2, 2, 3, 4, 6], "{state}: {:?}", whole.stops);
            for writes in 0.. {
                let mut cut = Journey::new(state, durability);
                cut.store.after(writes);
                cut.travel().await;
                let case = format!("{state}, {durability:?}, died after {writes} writes");
                assert_eq!(cut.stops, whole.stops, "{case}");
                if !cut.was_cut {
                    break;
                }
            }
        }
    }
}
