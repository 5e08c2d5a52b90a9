//! A run can be ahead of the disk within a limit: events that are not durable are in memory, the
//! start of the run included. Effects wait for the disk, and so do the answer to the request and
//! the end of the run.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::time::timeout;
use wattle_graph::definition::NodeSet;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::ThreadId;
use wattle_kit::layer::{Layer, Layered};
use wattle_run::hostcall::runs::{
    OnFailure, ResumeRun, RunOutcome, RunRef, RunService, StartRun, ThreadView, UpdateThread,
};
use wattle_run::ports::Store;
use wattle_run::ports::store::{Batch, Durability, RunOptions, StoreError, ThreadStatus, Ticket};
use wattle_store::InMemoryStore;
use wattle_suite::native::NativePlugin;
use wattle_suite::scripted::get;
use wattle_suite::world::World;

/// Interval between checks that the run waits.
const PAUSE: Duration = Duration::from_millis(500);

/// Duration in which a run would begin if it did not wait.
const SHORT: Duration = Duration::from_millis(50);

/// Maximum duration of a wait, far longer than needed.
const PATIENCE: Duration = Duration::from_mins(1);

/// Supersteps of the run, and the bytes that each writes.
const STEPS: usize = 16;
const WRITTEN_BYTES: usize = 1 << 20;

/// Maximum number of supersteps ahead of the disk. Each writes its bytes twice, in its task and in
/// its checkpoint.
const AHEAD: usize = 6;

const LOOP: &str = r#"
[graphs.main]
entry = "work"
recursion_limit = 1000
[graphs.main.channels.number]
[graphs.main.channels.text]
[graphs.main.nodes.work]
plugin = "p"
goto = ["work"]
"#;

const ONE: &str = r#"
[graphs.one]
entry = "work"
[graphs.one.channels.out]
[graphs.one.nodes.work]
plugin = "p"
"#;

/// What a disk does with the batches in its queue.
#[derive(Clone, Copy, PartialEq)]
enum State {
    /// Nothing.
    Stopped,
    /// It writes them.
    Works,
    /// It refuses them.
    Full,
    /// It refuses those with the record of a run, and writes all others.
    RefusesRuns,
}

/// A batch in the queue of a disk.
type Queued = (ThreadId, Batch, oneshot::Sender<Result<(), StoreError>>);

/// A store with a disk that the test controls.
struct Disk {
    below: Arc<dyn Store>,
    queue: mpsc::UnboundedSender<Queued>,
    state: watch::Sender<State>,
    /// Number of batches with the record of a thread that came into the queue.
    records: watch::Sender<usize>,
}

impl Disk {
    fn set(&self, state: State) {
        self.state.send_replace(state);
    }

    /// Waits until a number of batches with the record of a thread came into the queue.
    async fn wait_records(&self, count: usize) {
        let mut records = self.records.subscribe();
        let came = timeout(PATIENCE, records.wait_for(|records| *records >= count)).await;
        drop(came.expect("the batches come").expect("the disk is there"));
    }
}

#[async_trait]
impl Layer for Disk {
    fn over(below: Arc<dyn Store>) -> Self {
        let (queue, queued) = mpsc::unbounded_channel();
        let state = watch::Sender::new(State::Works);
        tokio::spawn(write(below.clone(), queued, state.subscribe()));
        Self { below, queue, state, records: watch::Sender::new(0) }
    }

    fn below(&self) -> &dyn Store {
        &*self.below
    }

    async fn append(&self, thread: &ThreadId, batch: Batch) -> Ticket {
        let (answer, durable) = oneshot::channel();
        let has_record = batch.record.is_some();
        // An error means that the test has ended.
        let _ = self.queue.send((thread.clone(), batch, answer));
        self.records.send_modify(|records| *records += usize::from(has_record));
        Ticket::waiting(durable, || ())
    }
}

/// Writes the batches of a queue in their order.
async fn write(
    below: Arc<dyn Store>,
    mut queued: mpsc::UnboundedReceiver<Queued>,
    mut state: watch::Receiver<State>,
) {
    while let Some((thread, batch, answer)) = queued.recv().await {
        let state = state.wait_for(|state| *state != State::Stopped).await.map(|state| *state);
        let written = match state {
            Ok(State::Full) => Err(full()),
            Ok(State::RefusesRuns) if batch.run.is_some() => Err(full()),
            Ok(_) => below.append(&thread, batch).await.await,
            // The test has ended.
            Err(_) => return,
        };
        // An error means that no caller waits for the batch.
        let _ = answer.send(written);
    }
}

fn full() -> StoreError {
    StoreError::Backend { operation: "commit", message: "no space left".to_owned() }
}

#[tokio::test]
async fn a_run_that_is_far_ahead_of_the_disk_waits() {
    let store = Arc::new(Layered::<Disk>::over(Arc::new(InMemoryStore::new())));
    let (taken, stopped) = (Arc::<AtomicUsize>::default(), Arc::new(Notify::new()));
    let (counted, goes_on) = (taken.clone(), stopped.clone());
    let plugin = NativePlugin::new("p", "1").node("work", move |_, _| {
        let number = counted.fetch_add(1, Ordering::SeqCst) + 1;
        let next: &[&str] = if number < STEPS { &["work"] } else { &[] };
        let (text, goes_on) = ("x".repeat(WRITTEN_BYTES), goes_on.clone());
        async move {
            if number == 1 {
                goes_on.notified().await;
            }
            Ok(json!({ "number": number, "text": text, "$goto": next }))
        }
    });
    let world = World::with_store(LOOP, plugin, store.clone());
    let run = world.begin(json!({})).await.unwrap();
    store.set(State::Stopped);
    stopped.notify_one();
    let mut before = 0;
    let ahead = loop {
        tokio::time::sleep(PAUSE).await;
        let now = taken.load(Ordering::SeqCst);
        if now > 0 && now == before {
            break now;
        }
        before = now;
    };
    assert!(ahead <= AHEAD, "{ahead} supersteps wait for the disk");
    store.set(State::Works);
    let ended = world.engine.wait(&run).await.unwrap();
    assert_eq!((ended.outcome, &ended.state["number"]), (RunOutcome::Completed, &json!(STEPS)));
}

/// A world with a stopped disk, whose node sends a request.
struct Start {
    world: World,
    store: Arc<Layered<Disk>>,
    thread: ThreadId,
    /// Notified when the node executes.
    begun: Arc<Notify>,
    executions: Arc<AtomicUsize>,
}

impl Start {
    fn new() -> Self {
        let (begun, executions) = (Arc::<Notify>::default(), Arc::<AtomicUsize>::default());
        let (tell, count) = (begun.clone(), executions.clone());
        let plugin = NativePlugin::new("p", "1").node("work", move |_, gate| {
            count.fetch_add(1, Ordering::SeqCst);
            tell.notify_one();
            async move {
                gate.call(get("https://example.com/")).await?;
                Ok(json!({ "out": "done" }))
            }
        });
        let store = Arc::new(Layered::<Disk>::over(Arc::new(InMemoryStore::new())));
        store.set(State::Stopped);
        let world = World::with_store(ONE, plugin, store.clone());
        Self { world, store, thread: ThreadId::new("t").unwrap(), begun, executions }
    }

    async fn start(&self, durability: Durability) -> Result<RunRef, Failure> {
        let request = self.world.request(Some(&self.thread), json!({}));
        let options = RunOptions { durability, ..RunOptions::default() };
        self.world.engine.start(StartRun { options, ..request }).await
    }

    /// Leaves the thread at a breakpoint before its node, and stops the disk.
    async fn pause(&self) {
        self.store.set(State::Works);
        let options = RunOptions { interrupt_before: Some(NodeSet::All), ..RunOptions::default() };
        let request = self.world.request(Some(&self.thread), json!({}));
        let run = self.world.engine.start(StartRun { options, ..request }).await.unwrap();
        let paused = self.world.engine.wait(&run).await.unwrap();
        assert!(matches!(paused.outcome, RunOutcome::Interrupted { .. }), "{paused:?}");
        self.store.set(State::Stopped);
    }

    /// Returns the request of a run that passes the breakpoint.
    fn pass(&self) -> ResumeRun {
        ResumeRun {
            run: None,
            thread: self.thread.clone(),
            answers: BTreeMap::new(),
            on_failure: OnFailure::Keep,
            app: None,
            tenant: None,
            options: RunOptions::default(),
            principal: None,
        }
    }

    async fn view(&self) -> ThreadView {
        self.world.engine.thread(&self.thread).await.unwrap().unwrap()
    }

    /// Waits until the run executes its node before its start is durable, and checks that no client
    /// can see that. Then lets the disk continue, and returns the answer to the request.
    async fn ahead_until(&self, durability: Durability, state: State) -> Result<RunRef, Failure> {
        let mut start = pin!(self.start(durability));
        tokio::select! {
            answer = &mut start => panic!("the start is not durable: {answer:?}"),
            begun = timeout(PATIENCE, self.begun.notified()) => begun.expect("the run proceeds"),
        }
        assert!(self.world.engine.thread(&self.thread).await.unwrap().is_none());
        assert_eq!(self.world.net.calls(), 0);
        self.store.set(state);
        start.await
    }
}

/// Durabilities with which a run does not wait for its start.
const STARTS_AHEAD: [Durability; 2] = [Durability::Commit, Durability::Exit];

#[tokio::test]
async fn a_run_executes_nodes_before_its_start_is_durable() {
    for durability in STARTS_AHEAD {
        let start = Start::new();
        let run = start.ahead_until(durability, State::Works).await.unwrap();
        let ended = start.world.engine.wait(&run).await.unwrap();
        assert_eq!((ended.outcome, start.world.net.calls()), (RunOutcome::Completed, 1));
    }
}

#[tokio::test]
async fn a_run_whose_start_is_refused_leaves_its_thread_as_it_was() {
    for durability in STARTS_AHEAD {
        let start = Start::new();
        let failure = start.ahead_until(durability, State::Full).await.unwrap_err();
        assert_eq!(failure.code, code::UNAVAILABLE, "{failure}");
        let engine = &start.world.engine;
        assert!(!engine.is_active(&start.thread), "the thread is free");
        assert!(engine.set_aside(&start.thread).is_none());
        assert!(engine.thread(&start.thread).await.unwrap().is_none());
        assert_eq!(start.world.net.calls(), 0);
        start.store.set(State::Works);
        let run = start.start(durability).await.unwrap();
        assert_eq!(engine.wait(&run).await.unwrap().outcome, RunOutcome::Completed);
        assert_eq!((start.executions.load(Ordering::SeqCst), start.world.net.calls()), (2, 1));
    }
}

#[tokio::test]
async fn runs_with_another_durability_wait_for_their_start() {
    for durability in [Durability::Sync, Durability::Async] {
        let start = Start::new();
        let mut starts = pin!(start.start(durability));
        assert!(timeout(SHORT, &mut starts).await.is_err(), "{durability:?}");
        start.store.set(State::Full);
        assert_eq!(starts.await.unwrap_err().code, code::UNAVAILABLE);
        assert_eq!(start.executions.load(Ordering::SeqCst), 0, "{durability:?}");
    }
}

/// Returns an update of the metadata of a thread.
fn note(thread: &ThreadId) -> UpdateThread {
    let metadata = BTreeMap::from([("note".to_owned(), json!("new"))]);
    UpdateThread { thread: thread.clone(), app: None, tenant: None, metadata, ttl: None }
}

#[tokio::test]
async fn an_update_during_a_refused_start_does_not_write_the_run() {
    for has_input in [false, true] {
        let start = Start::new();
        start.pause().await;
        let before = start.view().await;
        let engine = &start.world.engine;
        let mut starts = if has_input {
            engine.start(start.world.request(Some(&start.thread), json!({})))
        } else {
            engine.resume(start.pass())
        };
        tokio::select! {
            run = &mut starts => panic!("the start is not durable: {run:?}"),
            begun = timeout(PATIENCE, start.begun.notified()) => begun.expect("the run proceeds"),
        }
        let mut updates = pin!(engine.update_thread(note(&start.thread)));
        tokio::select! {
            record = &mut updates => panic!("the update is not durable: {record:?}"),
            // Two of the first run, one of the start, and one of the update.
            () = start.store.wait_records(4) => {}
        }
        start.store.set(State::RefusesRuns);
        let (refused, updated) = tokio::join!(starts, updates);
        assert_eq!(refused.unwrap_err().code, code::UNAVAILABLE);
        assert_eq!(updated.unwrap().metadata["note"], "new");
        let after = start.view().await;
        assert_eq!((after.status, after.run), (before.status, before.run), "{has_input}");
        assert_eq!(after.metadata["note"], "new");
    }
}

#[tokio::test]
async fn an_update_after_a_refused_end_does_not_end_the_run() {
    let goes_on = Arc::<Notify>::default();
    let released = goes_on.clone();
    let plugin = NativePlugin::new("p", "1").node("work", move |_, _| {
        let released = released.clone();
        async move {
            released.notified().await;
            Ok(json!({ "out": "done" }))
        }
    });
    let store = Arc::new(Layered::<Disk>::over(Arc::new(InMemoryStore::new())));
    let world = World::with_store(ONE, plugin, store.clone());
    let run = world.begin(json!({})).await.unwrap();
    store.set(State::Stopped);
    goes_on.notify_one();
    store.wait_records(2).await;
    let mut updates = pin!(world.engine.update_thread(note(&run.thread)));
    tokio::select! {
        record = &mut updates => panic!("the update is not durable: {record:?}"),
        () = store.wait_records(3) => {}
    }
    store.set(State::RefusesRuns);
    let refused = updates.await.unwrap_err();
    let thread = world.engine.thread(&run.thread).await.unwrap().unwrap();
    assert_eq!((thread.status, thread.run), (ThreadStatus::Running, Some(run.run)), "{refused}");
}
