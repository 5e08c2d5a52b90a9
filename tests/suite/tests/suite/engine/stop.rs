//! Work that blocks a thread delays neither a shutdown nor a cancel, and cancelled work does not
//! start.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use tokio::sync::Notify;
use wattle_graph::event::{EventKind, RunStatus};
use wattle_run::hostcall::runs::{RunRef, RunService};
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
