//! Several hosts over one store: a call goes on where it is held.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::json;
use wattle_graph::failure::code;
use wattle_graph::id::ThreadId;
use wattle_kit::layer::{Layer, Layered};
use wattle_run::engine::{Engine, EngineConfig};
use wattle_run::hostcall::runs::{EndedRun, OnFailure, ResumeRun, Runs as _};
use wattle_run::ports::store::{Holder, RunOptions};
use wattle_run::ports::{Ports, Store};
use wattle_suite::world::{World, failure};

use super::{Desk, ONE, accept, world};

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
    let ports = world.engine.ports().clone();
    let store = Arc::new(Layered::<Shared>::over(ports.store.clone()));
    let ports = Ports { store, tools: desk.clone(), ..ports };
    let config = EngineConfig { holder: Some(Holder(name.to_owned())), ..EngineConfig::default() };
    Engine::new(ports, world.engine.catalog().clone(), config)
}

/// A run on a host that waits for a person; its thread.
async fn asked(world: &World, host: &Engine) -> ThreadId {
    let run = host.start(world.request(None, json!({}))).await.unwrap();
    host.wait(&run).await.unwrap();
    run.thread
}

async fn answer(host: &Engine, thread: &ThreadId) -> EndedRun {
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
    let run = host.resume(request).await.unwrap();
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
