//! Several hosts over one store: a call goes on where it is held.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::sync::watch;
use wattle_graph::event::EventKind;
use wattle_graph::failure::code;
use wattle_graph::id::ThreadId;
use wattle_kit::clock::ManualClock;
use wattle_kit::layer::{Layer, Layered};
use wattle_run::engine::{Engine, EngineConfig};
use wattle_run::grant::InDoubt;
use wattle_run::hostcall::runs::{
    CreateRun, EndedRun, Multitask, OnFailure, ResumeRun, RunOutcome, RunRef, Runs as _,
};
use wattle_run::ports::store::{
    Answer, Epoch, Holder, HostReport, RunKind, RunOptions, RunRecord, RunSpec, Signal, StoreError,
};
use wattle_run::ports::{Ports, Store};
use wattle_suite::native::NativePlugin;
use wattle_suite::scripted::get;
use wattle_suite::world::{START_MS, World, failure, questions};

use super::{Desk, ONE, accept, book, caller, world, world_of};

const HOUR_MS: i64 = 3_600_000;

/// The way of a host to the store, which several processes open.
struct Shared {
    below: Arc<dyn Store>,
    /// How often the host has asked for a thread.
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

    async fn lease(&self, thread: &ThreadId, holder: &Holder) -> Result<Epoch, StoreError> {
        self.leases.send_modify(|leases| *leases += 1);
        self.below.lease(thread, holder).await
    }
}

/// A host that is set up.
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

    /// The host, and its way to the store.
    fn start(self) -> (Engine, Arc<Layered<Shared>>) {
        let ports = self.world.engine.ports().clone();
        let way = Arc::new(Layered::<Shared>::over(ports.store.clone()));
        let (tools, clock) = (self.desk.clone(), Arc::new(self.clock));
        let ports = Ports { store: way.clone(), tools, clock, ..ports };
        let config = EngineConfig {
            holder: Some(Holder(self.name.to_owned())),
            max_runs: self.max_runs,
            ..EngineConfig::default()
        };
        (Engine::new(ports, self.world.engine.catalog().clone(), config), way)
    }
}

/// A host with servers of its own, over the store of a world.
fn host(world: &World, name: &str, desk: &Arc<Desk>) -> Engine {
    Setup::new(world, name, desk).start().0
}

/// A host that has one run at a time.
fn narrow(world: &World, name: &str, desk: &Arc<Desk>) -> Engine {
    Setup { max_runs: Some(1), ..Setup::new(world, name, desk) }.start().0
}

/// Has a host report to the others something that is not so.
async fn report(world: &World, name: &str, runs: u32, is_stopping: bool) {
    let version = String::new();
    let report = HostReport { version, started_ms: START_MS, runs, max_runs: 9, is_stopping };
    world.engine.ports().store.report(&Holder(name.to_owned()), &report).await.unwrap();
}

/// A node that asks, or waits for a service without end if it is told to be slow.
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

/// Has a host begin a run that does not end.
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
    /// The way of `one` to the store.
    way: Arc<Layered<Shared>>,
    other: Engine,
    others: Arc<Desk>,
    /// The thread that waits for a person.
    thread: ThreadId,
    /// The run that takes the room.
    slow: RunRef,
}

impl Full {
    async fn new(rounds: usize) -> Self {
        let (own, others) = (Desk::holding(), Arc::new(Desk::new(true, rounds)));
        let is_slow = Arc::new(AtomicBool::new(false));
        let world = world_of(ONE, slow_or_asking(&is_slow), &own, InDoubt::Fail);
        let (one, way) = Setup::new(&world, "one", &own).start();
        let other = narrow(&world, "other", &others);
        let thread = asked(&world, &other).await;
        let slow = fill(&world, &is_slow, &other).await;
        other.heartbeat().await.unwrap();
        Self { world, one, way, other, others, thread, slow }
    }

    /// Ends the run that takes the room.
    async fn make_room(&self) {
        self.other.cancel(&self.slow).await.unwrap();
    }
}

/// A run on a host that waits for a person; its thread.
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
async fn an_answer_is_left_to_the_host_that_holds_the_call() {
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

/// It is given twice, and the server asks once more meanwhile.
#[tokio::test]
async fn an_answer_that_is_left_to_a_host_is_for_the_question_that_was_open() {
    let full = Full::new(2).await;
    let (first, second) =
        (resume(&full.one, &full.thread).await, resume(&full.one, &full.thread).await);
    full.make_room().await;
    let refused = full.one.wait(&second).await.unwrap();
    assert_eq!(failure(&refused).code, code::CONFLICT);
    let asked = full.one.wait(&first).await.unwrap();
    assert_eq!(questions(&asked).len(), 1, "nobody has answered the second question");
    assert_eq!((full.others.counts(), full.others.waiting()), ((1, 0), 1));
    let is_answer = |kind: &EventKind| matches!(kind, EventKind::Answered(_));
    assert_eq!(full.world.count(&full.thread, is_answer).await, 1);
}

#[tokio::test]
async fn a_run_is_left_to_a_host_that_is_full_until_that_has_room_or_stops() {
    for stops in [false, true] {
        let full = Full::new(1).await;
        let run = resume(&full.one, &full.thread).await;
        // However late it is by then, the other host lives.
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
async fn a_clock_that_is_wrong_takes_no_call_away() {
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

/// A run that answers the only question of a thread, as a client of the Agent Server asks for it.
fn answering(world: &World, thread: &ThreadId) -> CreateRun {
    CreateRun {
        thread: Some(thread.clone()),
        creates_thread: false,
        run: None,
        tenant: None,
        strategy: Multitask::Enqueue,
        options: RunOptions::default(),
        is_patient: false,
        spec: RunSpec {
            kind: RunKind::Answer { answer: Answer::Matched(accept()) },
            app: world.request(None, Value::Null).app,
            graph: None,
            context: Value::Null,
            metadata: BTreeMap::new(),
            due_ms: START_MS,
            ttl: None,
            client: Value::Null,
            principal: None,
        },
    }
}

#[tokio::test]
async fn a_busy_host_assigns_an_answer_to_the_host_that_holds_the_call() {
    let (own, others) = (Desk::holding(), Desk::holding());
    let is_slow = Arc::new(AtomicBool::new(false));
    let world = world_of(ONE, slow_or_asking(&is_slow), &own, InDoubt::Fail);
    let (one, other) = (narrow(&world, "one", &own), host(&world, "other", &others));
    let third = host(&world, "third", &own);
    let thread = asked(&world, &other).await;
    fill(&world, &is_slow, &one).await;
    other.heartbeat().await.unwrap();
    third.heartbeat().await.unwrap();
    report(&world, "other", 5, false).await;
    one.heartbeat().await.unwrap();
    let mut signals = world.engine.ports().store.signals().unwrap();
    let RunRecord { id: run, thread, spec, .. } =
        one.create_run(answering(&world, &thread)).await.unwrap();
    match signals.recv().await.unwrap() {
        Signal::Enqueued { host, .. } => assert_eq!(host, Some(Holder("other".to_owned()))),
        signal => panic!("{signal:?}"),
    }
    let RunSpec { kind, .. } = *spec.unwrap();
    let is_named = matches!(&kind, RunKind::Answer { answer: Answer::ById(it) } if it.len() == 1);
    assert!(is_named, "{kind:?}");
    let ended = one.wait(&RunRef { thread, run }).await.unwrap();
    assert_eq!(ended.outcome, RunOutcome::Completed);
    assert_eq!((own.counts(), others.counts()), ((0, 0), (1, 1)));
}

/// Its first round was asked on a host that has lost it since.
#[tokio::test]
async fn the_last_round_of_a_call_says_where_it_is_held() {
    let (own, others) = (Arc::new(Desk::new(true, 2)), Arc::new(Desk::new(true, 2)));
    let world = world_of(ONE, caller(), &own, InDoubt::Retry);
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
async fn without_the_host_that_held_it_a_call_is_in_doubt() {
    let (own, others) = (Desk::holding(), Desk::holding());
    let world = world(ONE, &own);
    let one = host(&world, "one", &own);
    // It has not reported to the store.
    let thread = asked(&world, &host(&world, "other", &others)).await;
    let ended = answer(&one, &thread).await;
    assert_eq!(failure(&ended).code, code::IN_DOUBT);
}

#[tokio::test]
async fn a_host_lets_go_of_a_call_whose_thread_another_host_deletes() {
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
