//! Several hosts on one store: a call continues on the host that holds it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use serde_json::json;
use tokio::sync::watch;
use wattle_graph::event::EventKind;
use wattle_graph::failure::code;
use wattle_graph::id::ThreadId;
use wattle_kit::clock::ManualClock;
use wattle_kit::layer::{Layer, Layered};
use wattle_run::engine::{Engine, EngineConfig};
use wattle_run::grant::InDoubtPolicy;
use wattle_run::hostcall::runs::{
    CreateRun, EndedRun, OnFailure, ResumeRun, RunOutcome, RunRef, RunService as _,
};
use wattle_run::ports::store::{
    HostReport, LeaseEpoch, LeaseHolder, Notification, RunAnswers, RunKind, RunOptions, RunRecord,
    RunSpec, StoreError,
};
use wattle_run::ports::{Ports, Store};
use wattle_suite::native::NativePlugin;
use wattle_suite::scripted::get;
use wattle_suite::world::{START_MS, World, failure, questions};

use super::{Desk, ONE, accept, book, caller, world, world_of};

const HOUR_MS: i64 = 3_600_000;

/// The store as one host sees it. Several hosts share the store.
struct Shared {
    below: Arc<dyn Store>,
    /// Number of lease requests of the host.
    leases: watch::Sender<usize>,
}

#[async_trait]
impl Layer for Shared {
    fn over(below: Arc<dyn Store>) -> Self {
        Self { below, leases: watch::Sender::default() }
    }

    fn below(&self) -> &dyn Store {
        &*self.below
    }

    fn is_shared(&self) -> bool {
        true
    }

    async fn acquire_lease(
        &self,
        thread: &ThreadId,
        holder: &LeaseHolder,
    ) -> Result<LeaseEpoch, StoreError> {
        self.leases.send_modify(|leases| *leases += 1);
        self.below.acquire_lease(thread, holder).await
    }
}

/// A host before it is started.
struct Setup<'w> {
    world: &'w World,
    name: &'w str,
    desk: &'w Arc<Desk>,
    clock: ManualClock,
    max_runs: Option<usize>,
}

impl<'w> Setup<'w> {
    fn new(world: &'w World, name: &'w str, desk: &'w Arc<Desk>) -> Self {
        Self { world, name, desk, clock: world.clock.clone(), max_runs: None }
    }

    /// Starts the host. Returns its engine and its view of the store.
    fn start(self) -> (Engine, Arc<Layered<Shared>>) {
        let ports = self.world.engine.ports().clone();
        let way = Arc::new(Layered::<Shared>::over(ports.store.clone()));
        let (tools, clock) = (self.desk.clone(), Arc::new(self.clock));
        let ports = Ports { store: way.clone(), tools, clock, ..ports };
        let config = EngineConfig {
            holder: Some(LeaseHolder(self.name.to_owned())),
            max_runs: self.max_runs,
            ..EngineConfig::default()
        };
        (Engine::new(ports, self.world.engine.catalog().clone(), config), way)
    }
}

/// Starts a host with MCP servers of its own on the store of a world.
fn host(world: &World, name: &str, desk: &Arc<Desk>) -> Engine {
    Setup::new(world, name, desk).start().0
}

/// Starts a host that executes one run at a time.
fn narrow(world: &World, name: &str, desk: &Arc<Desk>) -> Engine {
    Setup { max_runs: Some(1), ..Setup::new(world, name, desk) }.start().0
}

/// Writes a false report of a host for the others.
async fn report(world: &World, name: &str, runs: u32, is_stopping: bool) {
    let version = String::new();
    let report = HostReport { version, started_ms: START_MS, runs, max_runs: 9, is_stopping };
    world.engine.ports().store.report(&LeaseHolder(name.to_owned()), &report).await.unwrap();
}

/// Returns a plugin whose node calls a tool with an elicitation, or waits for a service without end
/// if `is_slow` is set.
fn slow_or_asking(is_slow: &Arc<AtomicBool>) -> NativePlugin {
    let is_slow = is_slow.clone();
    NativePlugin::new("p", "1").node("work", move |_, gate| {
        let is_slow = is_slow.swap(false, Ordering::SeqCst);
        async move {
            if is_slow {
                gate.call(get("https://a.example/slow")).await?;
            }
            book(&gate, "work").await
        }
    })
}

/// Starts a run on a host that does not end.
async fn fill(world: &World, is_slow: &AtomicBool, host: &Engine) -> RunRef {
    is_slow.store(true, Ordering::SeqCst);
    world.net.hang_next(1);
    let run = host.start(world.request(None, json!({}))).await.unwrap();
    world.net.hung().await;
    run
}

/// Two hosts: `one`, and `other`, which holds a call open and has no room for a further run.
struct Full {
    world: World,
    one: Engine,
    /// The view of the store of `one`.
    way: Arc<Layered<Shared>>,
    other: Engine,
    others: Arc<Desk>,
    /// The thread that is interrupted by the elicitation.
    thread: ThreadId,
    /// The run that takes the only place of `other`.
    slow: RunRef,
}

impl Full {
    async fn new(rounds: usize) -> Self {
        let (own, others) = (Desk::holding(), Arc::new(Desk::new(true, rounds)));
        let is_slow = Arc::new(AtomicBool::new(false));
        let world = world_of(ONE, slow_or_asking(&is_slow), &own, InDoubtPolicy::Fail);
        let (one, way) = Setup::new(&world, "one", &own).start();
        let other = narrow(&world, "other", &others);
        let thread = asked(&world, &other).await;
        let slow = fill(&world, &is_slow, &other).await;
        other.heartbeat().await.unwrap();
        Self { world, one, way, other, others, thread, slow }
    }

    /// Cancels the run that takes the place.
    async fn make_room(&self) {
        self.other.cancel(&self.slow).await.unwrap();
    }
}

/// Starts a run on a host that is interrupted, and returns its thread.
async fn asked(world: &World, host: &Engine) -> ThreadId {
    let run = host.start(world.request(None, json!({}))).await.unwrap();
    host.wait(&run).await.unwrap();
    run.thread
}

async fn resume(host: &Engine, thread: &ThreadId) -> RunRef {
    let request = ResumeRun {
        run: None,
        thread: thread.clone(),
        answers: [(String::new(), accept())].into(),
        on_failure: OnFailure::Keep,
        app: None,
        tenant: None,
        options: RunOptions::default(),
        principal: None,
    };
    host.resume(request).await.unwrap()
}

async fn answer(host: &Engine, thread: &ThreadId) -> EndedRun {
    let run = resume(host, thread).await;
    host.wait(&run).await.unwrap()
}

#[tokio::test]
async fn an_answer_is_assigned_to_the_host_that_holds_the_call() {
    let (own, others) = (Desk::holding(), Desk::holding());
    let world = world(ONE, &own);
    let (one, other) = (host(&world, "one", &own), host(&world, "other", &others));
    let thread = asked(&world, &other).await;
    assert_eq!((own.waiting(), others.waiting()), (0, 1));
    other.heartbeat().await.unwrap();
    let ended = answer(&one, &thread).await;
    assert_eq!(ended.state["out"], json!([{ "work": ["accept"] }]), "{:?}", ended.outcome);
    assert_eq!((own.counts(), others.counts()), ((0, 0), (1, 1)));
}

/// The question is answered twice, and the server asks the next one in between.
#[tokio::test]
async fn an_assigned_answer_applies_only_to_the_interrupt_that_was_pending() {
    let full = Full::new(2).await;
    let (first, second) =
        (resume(&full.one, &full.thread).await, resume(&full.one, &full.thread).await);
    full.make_room().await;
    let refused = full.one.wait(&second).await.unwrap();
    assert_eq!(failure(&refused).code, code::CONFLICT);
    let asked = full.one.wait(&first).await.unwrap();
    assert_eq!(questions(&asked).len(), 1, "the second question has no answer");
    assert_eq!((full.others.counts(), full.others.waiting()), ((1, 0), 1));
    let is_answer = |kind: &EventKind| matches!(kind, EventKind::Answered(_));
    assert_eq!(full.world.count(&full.thread, is_answer).await, 1);
}

#[tokio::test]
async fn a_run_waits_for_a_full_host_until_it_has_room_or_stops() {
    for stops in [false, true] {
        let full = Full::new(1).await;
        let run = resume(&full.one, &full.thread).await;
        // A wrong clock does not make the other host count as dead.
        full.world.clock.set_now_ms(START_MS + HOUR_MS);
        full.way.leases.subscribe().wait_for(|leases| *leases >= 2).await.unwrap();
        while full.one.is_active(&full.thread) {
            tokio::task::yield_now().await;
        }
        assert!(full.one.is_pending(&run).await.unwrap());
        if stops {
            report(&full.world, "other", 1, true).await;
            full.world.clock.set_now_ms(START_MS + 2 * HOUR_MS);
        } else {
            full.make_room().await;
        }
        let ended = full.one.wait(&run).await.unwrap();
        if stops {
            assert_eq!(failure(&ended).code, code::IN_DOUBT);
        } else {
            assert_eq!(ended.outcome, RunOutcome::Completed);
        }
        assert_eq!(full.others.counts(), (1, usize::from(!stops)));
    }
}

#[tokio::test]
async fn a_wrong_clock_does_not_move_a_held_call() {
    for ahead_ms in [HOUR_MS, -HOUR_MS] {
        let (own, others) = (Desk::holding(), Desk::holding());
        let world = world(ONE, &own);
        let clock = ManualClock::at_ms(START_MS + ahead_ms);
        let (one, _) = Setup { clock, ..Setup::new(&world, "one", &own) }.start();
        let other = host(&world, "other", &others);
        let thread = asked(&world, &other).await;
        other.heartbeat().await.unwrap();
        let ended = answer(&one, &thread).await;
        assert_eq!(ended.state["out"], json!([{ "work": ["accept"] }]), "{:?}", ended.outcome);
        assert_eq!((own.counts(), others.counts()), ((0, 0), (1, 1)));
    }
}

/// Returns a run that answers the only interrupt of a thread, in the form of the Agent Server.
fn answering(world: &World, thread: &ThreadId) -> CreateRun {
    world.create_run(thread, RunKind::Answer { answer: RunAnswers::Matched(accept()) })
}

#[tokio::test]
async fn a_full_host_assigns_an_answer_to_the_host_that_holds_the_call() {
    let (own, others) = (Desk::holding(), Desk::holding());
    let is_slow = Arc::new(AtomicBool::new(false));
    let world = world_of(ONE, slow_or_asking(&is_slow), &own, InDoubtPolicy::Fail);
    let (one, other) = (narrow(&world, "one", &own), host(&world, "other", &others));
    let third = host(&world, "third", &own);
    let thread = asked(&world, &other).await;
    fill(&world, &is_slow, &one).await;
    other.heartbeat().await.unwrap();
    third.heartbeat().await.unwrap();
    report(&world, "other", 5, false).await;
    one.heartbeat().await.unwrap();
    let mut signals = world.engine.ports().store.notifications().unwrap();
    let RunRecord { id: run, thread, spec, .. } =
        one.create_run(answering(&world, &thread)).await.unwrap();
    match signals.recv().await.unwrap() {
        Notification::Enqueued { host, .. } => {
            assert_eq!(host, Some(LeaseHolder("other".to_owned())));
        }
        signal => panic!("{signal:?}"),
    }
    let RunSpec { kind, .. } = *spec.unwrap();
    let is_named =
        matches!(&kind, RunKind::Answer { answer: RunAnswers::ById(it) } if it.len() == 1);
    assert!(is_named, "{kind:?}");
    let ended = one.wait(&RunRef { thread, run }).await.unwrap();
    assert_eq!(ended.outcome, RunOutcome::Completed);
    assert_eq!((own.counts(), others.counts()), ((0, 0), (1, 1)));
}

/// The first round was on a host that has lost the call since.
#[tokio::test]
async fn the_last_round_of_a_call_determines_its_host() {
    let (own, others) = (Arc::new(Desk::new(true, 2)), Arc::new(Desk::new(true, 2)));
    let world = world_of(ONE, caller(), &own, InDoubtPolicy::Retry);
    let (one, other) = (host(&world, "one", &own), host(&world, "other", &others));
    let thread = asked(&world, &one).await;
    own.lose();
    let ended = answer(&other, &thread).await;
    assert_eq!(questions(&ended).len(), 1);
    one.heartbeat().await.unwrap();
    other.heartbeat().await.unwrap();
    let ended = answer(&one, &thread).await;
    assert_eq!(
        ended.state["out"],
        json!([{ "work": ["accept", "accept"] }]),
        "{:?}",
        ended.outcome
    );
    assert_eq!((own.counts(), others.counts()), ((1, 0), (1, 1)));
}

#[tokio::test]
async fn a_call_whose_host_is_unknown_is_in_doubt() {
    let (own, others) = (Desk::holding(), Desk::holding());
    let world = world(ONE, &own);
    let one = host(&world, "one", &own);
    // The other host has not reported to the store.
    let thread = asked(&world, &host(&world, "other", &others)).await;
    let ended = answer(&one, &thread).await;
    assert_eq!(failure(&ended).code, code::IN_DOUBT);
}

#[tokio::test]
async fn a_host_releases_a_call_whose_thread_another_host_deletes() {
    let (own, others) = (Desk::holding(), Desk::holding());
    let world = world(ONE, &own);
    let (one, other) = (host(&world, "one", &own), host(&world, "other", &others));
    let thread = asked(&world, &other).await;
    other.sweep().await;
    assert_eq!(others.waiting(), 1);
    one.delete_thread(&thread).await.unwrap();
    other.sweep().await;
    assert_eq!(others.waiting(), 0);
}
