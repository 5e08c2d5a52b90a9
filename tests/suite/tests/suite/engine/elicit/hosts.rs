//! Several hosts over one store: a call goes on where it is held.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use serde_json::json;
use wattle_graph::event::EventKind;
use wattle_graph::failure::code;
use wattle_graph::id::ThreadId;
use wattle_kit::layer::{Layer, Layered};
use wattle_run::engine::{Engine, EngineConfig};
use wattle_run::grant::InDoubt;
use wattle_run::hostcall::runs::{EndedRun, OnFailure, ResumeRun, RunRef, Runs as _};
use wattle_run::ports::store::{Holder, RunOptions};
use wattle_run::ports::{Ports, Store};
use wattle_suite::native::NativePlugin;
use wattle_suite::scripted::get;
use wattle_suite::world::{World, failure, questions};

use super::{Desk, ONE, accept, book, world, world_of};

/// The store as one that several processes open.
struct Shared(Arc<dyn Store>);

#[async_trait]
impl Layer for Shared {
    fn over(below: Arc<dyn Store>) -> Self {
        Self(below)
    }

    fn below(&self) -> &dyn Store {
        &*self.0
    }

    fn is_shared(&self) -> bool {
        true
    }
}

/// A host with servers of its own, over the store of a world.
fn host(world: &World, name: &str, desk: &Arc<Desk>) -> Engine {
    host_as(world, name, desk, EngineConfig::default())
}

fn host_as(world: &World, name: &str, desk: &Arc<Desk>, config: EngineConfig) -> Engine {
    let ports = world.engine.ports().clone();
    let store = Arc::new(Layered::<Shared>::over(ports.store.clone()));
    let ports = Ports { store, tools: desk.clone(), ..ports };
    let config = EngineConfig { holder: Some(Holder(name.to_owned())), ..config };
    Engine::new(ports, world.engine.catalog().clone(), config)
}

/// A host that has one run at a time.
fn narrow(world: &World, name: &str, desk: &Arc<Desk>) -> Engine {
    host_as(world, name, desk, EngineConfig { max_runs: Some(1), ..EngineConfig::default() })
}

/// A node that asks, or waits for a service without end if it is told to be slow.
fn caller(is_slow: &Arc<AtomicBool>) -> NativePlugin {
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

/// Two hosts: `one`, and `other`, which holds a call open and has no room for a further run.
struct Full {
    world: World,
    one: Engine,
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
        let world = world_of(ONE, caller(&is_slow), &own, InDoubt::Fail);
        let (one, other) = (host(&world, "one", &own), narrow(&world, "other", &others));
        let thread = asked(&world, &other).await;
        is_slow.store(true, Ordering::SeqCst);
        world.net.hang_next(1);
        let slow = other.start(world.request(None, json!({}))).await.unwrap();
        world.net.hung().await;
        other.heartbeat().await.unwrap();
        Self { world, one, other, others, thread, slow }
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
async fn without_the_host_that_held_it_a_call_is_in_doubt() {
    let (own, others) = (Desk::holding(), Desk::holding());
    let world = world(ONE, &own);
    let one = host(&world, "one", &own);
    // It has not told that it lives.
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
