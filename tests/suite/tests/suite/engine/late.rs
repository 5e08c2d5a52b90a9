//! A host that has lost its thread makes no further effect, even if it learns of the loss late: the
//! store's responses or the call itself are delayed.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use serde_json::json;
use tokio::sync::{Notify, Semaphore, oneshot};
use wattle_graph::failure::Failure;
use wattle_graph::id::ThreadId;
use wattle_graph::tool::{ToolOutput, ToolRequest};
use wattle_kit::gates::Gates;
use wattle_kit::layer::{Layer, Layered};
use wattle_run::engine::{Engine, EngineConfig};
use wattle_run::grant::Grants;
use wattle_run::hostcall::http::{HttpRequest, HttpResponse};
use wattle_run::hostcall::runs::{RunOutcome, RunRef, RunService};
use wattle_run::ports::sandbox::{ToolHints, ToolInfo};
use wattle_run::ports::store::{Batch, LeaseEpoch, LeaseHolder, StoreError, Ticket};
use wattle_run::ports::tool_server::{ServerCall, ServerCallResult};
use wattle_run::ports::{BlobStore, Caller, Net, Store, ToolServers};
use wattle_store::InMemoryStore;
use wattle_suite::native::NativePlugin;
use wattle_suite::scripted::get;
use wattle_suite::world::World;

const ONE: &str = r#"
[graphs.one]
entry = "work"
[graphs.one.channels.out]
reducer = "append"
[graphs.one.nodes.work]
plugin = "p"
"#;

/// Far longer than a lease.
const LONG_MS: u32 = 60_000;

/// A store whose gates delay the results of `append` and `is_lease_held` after the operation took
/// place, and let `heartbeat` fail.
struct Late {
    below: Arc<dyn Store>,
    gates: Arc<Gates>,
}

#[async_trait]
impl Layer for Late {
    fn over(below: Arc<dyn Store>) -> Self {
        Self { below, gates: Arc::default() }
    }

    fn below(&self) -> &dyn Store {
        &*self.below
    }

    async fn append(&self, thread: &ThreadId, batch: Batch) -> Ticket {
        let done = self.below.append(thread, batch).await;
        let (answer, late) = oneshot::channel();
        let gates = self.gates.clone();
        tokio::spawn(async move {
            let done = done.await;
            gates.pass("append").await.unwrap();
            // An error means that no caller waits for the batch.
            let _ = answer.send(done);
        });
        Ticket::waiting(late, || ())
    }

    async fn heartbeat(&self, holder: &LeaseHolder) -> Result<(), StoreError> {
        self.gates.pass("heartbeat").await.map_err(|failure| StoreError::Backend {
            operation: "record a heartbeat",
            message: failure.message,
        })?;
        self.below.heartbeat(holder).await
    }

    async fn is_lease_held(
        &self,
        thread: &ThreadId,
        epoch: LeaseEpoch,
    ) -> Result<bool, StoreError> {
        let is_held = self.below.is_lease_held(thread, epoch).await?;
        self.gates.pass("is_lease_held").await.unwrap();
        Ok(is_held)
    }
}

/// HTTP that is slow to connect, and that counts the requests.
#[derive(Default)]
struct SlowNet {
    gates: Gates,
    sent: AtomicUsize,
}

#[async_trait]
impl Net for SlowNet {
    async fn send(
        &self,
        _: &Caller,
        _: &Grants,
        request: &HttpRequest,
        _: &dyn BlobStore,
    ) -> Result<HttpResponse, Failure> {
        self.gates.pass("connect").await?;
        // A client also yields between connection and request. The lease is checked at each poll,
        // and the thread that polls may have checked it before the clock was moved.
        tokio::task::yield_now().await;
        self.sent.fetch_add(1, Ordering::SeqCst);
        let (body, url) = (Default::default(), request.url.clone());
        Ok(HttpResponse { status: 200, headers: Vec::new(), body, url })
    }
}

/// The state of a node that sends a request. Its first execution waits before the request.
#[derive(Default)]
struct Pause {
    began: Notify,
    goes_on: Notify,
    runs: AtomicUsize,
}

fn plugin(pause: &Arc<Pause>) -> NativePlugin {
    let pause = pause.clone();
    NativePlugin::new("p", "1").node("work", move |_, gate| {
        let pause = pause.clone();
        async move {
            if pause.runs.fetch_add(1, Ordering::SeqCst) == 0 {
                pause.began.notify_one();
                pause.goes_on.notified().await;
            }
            gate.call(get("https://example.com/")).await?;
            Ok(json!({ "out": "done" }))
        }
    })
}

/// Returns a world with a run whose node is about to send its request.
async fn paused() -> (World, Arc<Layered<Late>>, Arc<Pause>, RunRef) {
    let (pause, store) = (Arc::<Pause>::default(), InMemoryStore::new());
    let store = Arc::new(Layered::<Late>::over(Arc::new(store)));
    let world = World::with_store(ONE, plugin(&pause), store.clone());
    let run = world.begin(json!({})).await.unwrap();
    pause.began.notified().await;
    (world, store, pause, run)
}

/// Starts another engine with the name of the first, like a takeover after an expired lease, and
/// waits until it has ended the run.
async fn take_over(world: &World, run: &RunRef) {
    let config =
        EngineConfig { holder: Some(LeaseHolder("world".to_owned())), ..EngineConfig::default() };
    let heir = Engine::new(world.engine.ports().clone(), world.engine.catalog().clone(), config);
    assert_eq!(heir.recover().await, 1);
    assert_eq!(heir.wait(run).await.unwrap().outcome, RunOutcome::Completed);
}

/// The batch became durable under the lease, and the host learned of that long afterwards.
#[tokio::test]
async fn a_late_acknowledgement_of_a_commit_leads_to_no_effect() {
    let (world, store, pause, run) = paused().await;
    let gate = store.gates.hold("append");
    pause.goes_on.notify_one();
    let held = gate.reached().await;
    take_over(&world, &run).await;
    world.clock.advance_ms(LONG_MS);
    drop(held);
    // In every case it has released the run by then.
    world.engine.wait(&run).await.unwrap();
    assert_eq!(world.net.calls(), 1);
}

/// The lease was valid when the store checked it, and no longer when the host received the result.
#[tokio::test]
async fn a_late_confirmation_of_a_lease_leads_to_no_effect() {
    let (world, store, pause, run) = paused().await;
    world.clock.advance_ms(LONG_MS);
    let gate = store.gates.hold("is_lease_held");
    pause.goes_on.notify_one();
    let held = gate.reached().await;
    take_over(&world, &run).await;
    world.clock.advance_ms(LONG_MS);
    drop(held);
    world.engine.wait(&run).await.unwrap();
    assert_eq!(world.net.calls(), 1);
}

/// The process or the machine was suspended between the check and the request.
#[tokio::test]
async fn a_delayed_call_is_not_made_after_the_lease_was_lost() {
    let (pause, net) = (Arc::<Pause>::default(), Arc::<SlowNet>::default());
    let world = World::with_net(ONE, plugin(&pause), net.clone());
    let gate = net.gates.hold("connect");
    pause.goes_on.notify_one();
    let run = world.begin(json!({})).await.unwrap();
    let held = gate.reached().await;
    take_over(&world, &run).await;
    world.clock.advance_ms(LONG_MS);
    drop(held);
    world.engine.wait(&run).await.unwrap();
    assert_eq!(net.sent.load(Ordering::SeqCst), 1);
}

/// A missed heartbeat alone does not end a lease.
#[tokio::test]
async fn a_delayed_call_continues_while_the_lease_is_valid() {
    let (pause, net) = (Arc::<Pause>::default(), Arc::<SlowNet>::default());
    let world = World::with_net(ONE, plugin(&pause), net.clone());
    let gate = net.gates.hold("connect");
    pause.goes_on.notify_one();
    let run = world.begin(json!({})).await.unwrap();
    let held = gate.reached().await;
    world.clock.advance_ms(LONG_MS);
    drop(held);
    assert_eq!(world.engine.wait(&run).await.unwrap().outcome, RunOutcome::Completed);
    assert_eq!(net.sent.load(Ordering::SeqCst), 1);
}

/// An MCP server whose calls are sent by separate tasks, which outlive the call.
struct Far {
    gates: Arc<Gates>,
    sent: Arc<AtomicUsize>,
    /// One permit for each task that has ended.
    ended: Arc<Semaphore>,
}

#[async_trait]
impl ToolServers for Far {
    fn has_server(&self, server: &str) -> bool {
        server == "far"
    }

    async fn list(&self, _: &Caller, _: &str) -> Result<Vec<ToolInfo>, Failure> {
        Ok(vec![ToolInfo {
            name: "look".into(),
            description: String::new(),
            arguments_schema: json!({}),
            accepts_invalid: false,
            hints: ToolHints { read_only: true, idempotent: true },
            reference: None,
            unavailable: None,
        }])
    }

    async fn call(
        &self,
        _: &Caller,
        _: &str,
        call: ServerCall<'_>,
    ) -> Result<ServerCallResult, Failure> {
        let (gates, sent) = (self.gates.clone(), self.sent.clone());
        let (leased, ended) = (call.lease.clone(), self.ended.clone());
        let work = tokio::spawn(async move {
            let send = async {
                gates.pass("connect").await?;
                // The lease is checked at each poll, see `SlowNet`.
                tokio::task::yield_now().await;
                sent.fetch_add(1, Ordering::SeqCst);
                Ok::<_, Failure>(ServerCallResult::Returned(ToolOutput::default()))
            };
            let done = leased.poll_while_valid(pin!(send)).await;
            ended.add_permits(1);
            done.map_err(Failure::from).flatten()
        });
        work.await.unwrap()
    }
}

/// A task of an MCP server checks the same lease.
#[tokio::test]
async fn a_delayed_call_of_an_mcp_server_is_not_sent_after_the_lease_was_lost() {
    let far = Arc::new(Far {
        gates: Arc::default(),
        sent: Arc::default(),
        ended: Arc::new(Semaphore::new(0)),
    });
    let node = NativePlugin::new("p", "1").node("work", |_, gate| async move {
        let (tool, call_id) = ("look".to_owned(), String::new());
        let (arguments, timeout_ms, state) = (json!({}), None, None);
        gate.call_tool(ToolRequest { tool, call_id, arguments, timeout_ms, state }).await?;
        Ok(json!({ "out": "done" }))
    });
    let world = World::with_tools(ONE, vec![node], far.clone());
    let gate = far.gates.hold("connect");
    let run = world.begin(json!({})).await.unwrap();
    let held = gate.reached().await;
    take_over(&world, &run).await;
    world.clock.advance_ms(LONG_MS);
    drop(held);
    world.engine.wait(&run).await.unwrap();
    drop(far.ended.acquire_many(2).await.unwrap());
    assert_eq!(far.sent.load(Ordering::SeqCst), 1);
}

/// The store is not available just before the call.
#[tokio::test]
async fn a_call_waits_until_the_store_can_confirm_the_lease() {
    let (world, store, pause, run) = paused().await;
    world.clock.advance_ms(LONG_MS);
    for _ in 0..2 {
        store.gates.fail("heartbeat");
    }
    pause.goes_on.notify_one();
    assert_eq!(world.engine.wait(&run).await.unwrap().outcome, RunOutcome::Completed);
    assert_eq!(world.net.calls(), 1);
}
