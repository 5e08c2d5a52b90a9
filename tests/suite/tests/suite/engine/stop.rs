//! Work that does not let go keeps neither the host from stopping nor a request from its answer, and
//! what is given up is not begun.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use tokio::sync::Notify;
use wattle_graph::event::{EventKind, RunStatus};
use wattle_run::hostcall::runs::{RunRef, Runs};
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

/// A world with a run whose node keeps a thread of the runtime busy until something is sent, or
/// nobody can send any more.
async fn busy() -> (World, RunRef, Sender<()>) {
    let began = Arc::new(Notify::new());
    let (let_go, waits): (Sender<()>, Receiver<()>) = channel();
    let (begun, waits) = (began.clone(), Arc::new(Mutex::new(waits)));
    let plugin = NativePlugin::new("p", "1").node("work", move |_, _| {
        let (begun, waits) = (begun.clone(), waits.clone());
        async move {
            begun.notify_one();
            // An error means that the test is over.
            let _ = waits.lock().unwrap().recv();
            Ok(json!({}))
        }
    });
    let world = World::new(ONE, plugin);
    let run = world.begin(json!({})).await.unwrap();
    began.notified().await;
    (world, run, let_go)
}

/// The clock of the test stands: it goes on when nothing else can happen.
#[tokio::test(start_paused = true)]
async fn an_engine_stops_though_a_run_keeps_a_thread_busy() {
    let (world, run, let_go) = busy().await;
    world.engine.shutdown(Duration::ZERO).await;
    let record = world.engine.ports().store.run(&run.run).await.unwrap().unwrap();
    assert_eq!(record.status, RunStatus::Running, "it goes on after the next start");
    drop(let_go);
}

#[tokio::test(start_paused = true)]
async fn a_request_to_cancel_is_answered_though_the_run_keeps_a_thread_busy() {
    let (world, run, let_go) = busy().await;
    world.engine.cancel(&run).await.unwrap();
    assert!(world.engine.is_active(&run.thread), "it ends when it lets go");
    drop(let_go);
    let ended = world.engine.wait(&run).await.unwrap();
    let record = world.engine.ports().store.run(&run.run).await.unwrap().unwrap();
    assert_eq!(record.status, RunStatus::Cancelled, "{ended:?}");
}

/// Tasks of a superstep that is cancelled, and how many of them run at once.
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
async fn a_cancel_begins_no_further_task_of_the_superstep() {
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
