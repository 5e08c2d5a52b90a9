//! Work that blocks a thread delays neither a shutdown nor a cancel, cancelled work does not start,
//! and a superstep whose tasks have finished is applied after a cancel.

use std::num::NonZero;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::{available_parallelism, spawn};
use std::time::Duration;

use serde_json::json;
use tokio::runtime::Builder;
use tokio::sync::{Notify, watch};
use wattle_graph::event::{EventKind, RunStatus};
use wattle_run::blocking::block_in_place_in_turn;
use wattle_run::caller_id::CallerId;
use wattle_run::engine::{Engine, EngineConfig};
use wattle_run::hostcall::runs::{RunOutcome, RunRef, RunService};
use wattle_run::ports::store::RunOptions;
use wattle_suite::native::NativePlugin;
use wattle_suite::scripted::get;
use wattle_suite::world::World;

const ONE: &str = r#"
[graphs.one]
entry = "work"
[graphs.one.nodes.work]
plugin = "p"
"#;

/// Returns a world with a run whose node blocks a runtime thread until the sender sends or is
/// dropped.
async fn busy() -> (World, RunRef, Sender<()>) {
    let began = Arc::new(Notify::new());
    let (let_go, waits): (Sender<()>, Receiver<()>) = channel();
    let (begun, waits) = (began.clone(), Arc::new(Mutex::new(waits)));
    let plugin = NativePlugin::new("p", "1").node("work", move |_, _| {
        let (begun, waits) = (begun.clone(), waits.clone());
        async move {
            begun.notify_one();
            // An error means that the test has ended.
            let _ = waits.lock().unwrap().recv();
            Ok(json!({}))
        }
    });
    let world = World::new(ONE, plugin);
    let run = world.begin(json!({})).await.unwrap();
    began.notified().await;
    (world, run, let_go)
}

/// The paused clock advances only when nothing else can happen.
#[tokio::test(start_paused = true)]
async fn an_engine_stops_while_a_run_blocks_a_thread() {
    let (world, run, let_go) = busy().await;
    world.engine.shutdown(Duration::ZERO).await;
    let record = world.engine.ports().store.run(&run.run).await.unwrap().unwrap();
    assert_eq!(record.status, RunStatus::Running, "the next start recovers it");
    drop(let_go);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_returns_while_the_run_blocks_a_thread() {
    let (world, run, let_go) = busy().await;
    world.engine.cancel(&run).await.unwrap();
    assert!(world.engine.is_active(&run.thread), "it ends when the thread is free");
    drop(let_go);
    let ended = world.engine.wait(&run).await.unwrap();
    let record = world.engine.ports().store.run(&run.run).await.unwrap().unwrap();
    assert_eq!(record.status, RunStatus::Cancelled, "{ended:?}");
}

/// Tasks of a superstep that is cancelled, and the limit of concurrent tasks.
const TASKS: usize = 1_000;
const AT_ONCE: u32 = 2;

const FAN: &str = r#"
[graphs.fan]
entry = "split"
[graphs.fan.nodes.split]
plugin = "p"
goto = ["work"]
[graphs.fan.nodes.work]
plugin = "p"
"#;

#[tokio::test]
async fn a_cancel_prevents_further_tasks_of_the_superstep() {
    let plugin = NativePlugin::new("p", "1")
        .node("split", |_, _| async move {
            let sends: Vec<_> = (0..TASKS).map(|n| json!({ "node": "work", "input": n })).collect();
            Ok(json!({ "$send": sends }))
        })
        .node("work", |_, gate| async move {
            gate.call(get("https://example.com/slow")).await?;
            Ok(json!({}))
        });
    let world = World::new(FAN, plugin);
    world.net.hang_next(TASKS);
    let options = RunOptions { max_concurrency: Some(AT_ONCE), ..RunOptions::default() };
    let run = world.begin_as(json!({}), options).await.unwrap();
    world.net.hung().await;
    world.engine.cancel(&run).await.unwrap();
    let is_start = |kind: &EventKind| matches!(kind, EventKind::TaskStarted(_));
    let started = world.count(&run.thread, is_start).await;
    assert!(started <= 1 + AT_ONCE as usize, "{started} tasks began");
}

/// Both tasks of the first superstep write 600 values. That is short work to validate, but long
/// work to apply.
const PAIR: &str = r#"
[graphs.pair]
entry = ["left", "right"]
[graphs.pair.channels.list]
reducer = "append"
[graphs.pair.channels.out]
reducer = { plugin = "p", reducer = "first" }
[graphs.pair.nodes.left]
plugin = "p"
node = "side"
[graphs.pair.nodes.right]
plugin = "p"
node = "side"
[graphs.pair.nodes.later]
plugin = "p"
[[graphs.pair.edges]]
from = ["left", "right"]
to = "later"
"#;

/// Takes all turns for long work, and holds them until the sender is dropped.
fn hold_turns() -> Sender<()> {
    let (let_go, waits) = channel::<()>();
    let waits = Arc::new(Mutex::new(waits));
    let (begun, begins) = channel();
    let at_once = available_parallelism().map_or(1, NonZero::get);
    for _ in 0..at_once {
        let (waits, begun) = (waits.clone(), begun.clone());
        spawn(move || {
            let runtime = Builder::new_current_thread().build().unwrap();
            runtime.block_on(block_in_place_in_turn(CallerId::default(), true, || {
                begun.send(()).unwrap();
                // An error means that the turns are given back.
                let _ = waits.lock().unwrap().recv();
            }));
        });
    }
    for _ in 0..at_once {
        begins.recv().unwrap();
    }
    let_go
}

/// The engine shares the paused clock of the test, so a cancel that nothing ends times out when the
/// run waits for the test.
#[tokio::test(start_paused = true)]
async fn a_superstep_whose_tasks_have_finished_is_applied_on_a_busy_host_too() {
    let (reducing, reduce) = (Arc::new(Notify::new()), watch::Sender::new(false));
    let (told, go) = (reducing.clone(), reduce.clone());
    let plugin = NativePlugin::new("p", "1")
        .node("side", |_, _| async { Ok(json!({ "list": vec![0; 600], "out": "done" })) })
        .node("later", |_, _| async { Ok(json!({ "out": "later" })) })
        .reducer("first", move |_, writes| {
            let (told, mut go) = (told.clone(), go.subscribe());
            async move {
                told.notify_one();
                let _ = go.wait_for(|go| *go).await;
                writes[0].clone()
            }
        });
    let world = World::new(PAIR, plugin);
    let (ports, catalog) = (world.engine.ports().clone(), world.engine.catalog().clone());
    let engine = Engine::new(ports, catalog, EngineConfig::default());
    let turns = hold_turns();
    let run = engine.start(world.request(None, json!({}))).await.unwrap();
    reducing.notified().await;
    engine.cancel(&run).await.unwrap();
    assert!(engine.is_active(&run.thread), "the run waits for the reducer");
    reduce.send_replace(true);
    engine.cancel(&run).await.unwrap();
    assert!(engine.is_active(&run.thread), "the run waits for a turn");
    drop(turns);
    let ended = engine.wait(&run).await.unwrap();
    assert_eq!((ended.outcome, &ended.state["out"]), (RunOutcome::Cancelled, &json!("done")));
}
