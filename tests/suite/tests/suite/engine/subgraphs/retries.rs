//! Retries of the task of a subgraph, which repeat no finished work.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use serde_json::json;
use wattle_graph::event::EventKind;
use wattle_run::grant::Grants;
use wattle_run::hostcall::runs::RunOutcome;
use wattle_suite::lost_put::LostPut;
use wattle_suite::native::NativePlugin;
use wattle_suite::scripted::{get, prompt, said, unavailable};
use wattle_suite::world::World;

use super::{graphs_with, plugin};

#[tokio::test]
async fn a_retry_continues_at_the_failure_of_the_subgraph() {
    let retry = "retry = { attempts = 2, initial = \"1ms\" }";
    let plugin = plugin()
        .node("one", |_, gate| async move {
            Ok(json!({ "log": said(&gate.call(prompt("one")).await?) }))
        })
        .node("two", |_, gate| async move {
            let said = said(&gate.call(prompt("two")).await?);
            gate.call(get("https://example.com/two")).await?;
            Ok(json!({ "log": said }))
        });
    let world = World::new(&graphs_with(retry), plugin);
    world.net.fail_next(unavailable());
    let ended = world.run(json!({})).await;
    assert_eq!(ended.outcome, RunOutcome::Completed);
    assert_eq!(ended.state["log"], json!(["before", "answer 1", "answer 2", "after"]));
    assert_eq!((world.model.calls(), world.net.calls()), (2, 2));
}

/// A graph `main` whose node `sub` is the graph `pair`, in which `one` and `two` run concurrently.
const PAIR: &str = r#"
[graphs.main]
entry = "sub"
[graphs.main.channels.log]
reducer = "append"
[graphs.main.nodes.sub]
graph = "pair"
timeout = "100ms"
retry = { attempts = 20, initial = "1ms" }
[graphs.pair]
entry = ["one", "two"]
[graphs.pair.channels.log]
reducer = "append"
[graphs.pair.nodes.one]
plugin = "p"
[graphs.pair.nodes.two]
plugin = "p"
"#;

#[tokio::test(start_paused = true)]
async fn a_task_that_finished_before_a_timeout_does_not_run_again() {
    let plugin = NativePlugin::new("p", "1")
        .node("one", |_, gate| async move {
            Ok(json!({ "log": said(&gate.call(prompt("one")).await?) }))
        })
        .node("two", |_, gate| async move {
            gate.call(get("https://example.com/slow")).await?;
            Ok(json!({ "log": "two" }))
        });
    let world = World::new(PAIR, plugin);
    world.net.hang_next(1);
    let ended = world.run(json!({})).await;
    assert_eq!(ended.outcome, RunOutcome::Completed);
    assert_eq!(ended.state["log"], json!(["answer 1", "two"]));
    let events = world.events(&ended.run.thread).await;
    let begun = |name: &str| {
        let tasks = events.iter().filter_map(|event| match &event.kind {
            EventKind::TaskStarted(started) => Some(started.node.as_str()),
            _ => None,
        });
        tasks.filter(|node| *node == name).count()
    };
    assert_eq!((begun("one"), begun("two"), world.model.calls()), (1, 2, 1));
}

#[tokio::test(start_paused = true)]
async fn a_task_that_finished_unnoticed_before_a_timeout_does_not_run_again() {
    let graph = PAIR.replacen(
        "[graphs.pair.nodes.one]\n",
        "[graphs.pair.nodes.one]\ncache = { ttl = \"1h\" }\n",
        1,
    );
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = runs.clone();
    let plugin = NativePlugin::new("p", "1")
        .node("one", move |_, _| {
            counted.fetch_add(1, Ordering::SeqCst);
            async { Ok(json!({ "log": "one" })) }
        })
        .node("two", |_, _| async { Ok(json!({ "log": "two" })) });
    let memory = LostPut::memory();
    // The task finishes and then hangs while its outcome is written to the cache.
    memory.lose_next();
    let world = World::with_memory(&graph, plugin, memory, Grants::default());
    let ended = world.run(json!({})).await;
    assert_eq!(ended.outcome, RunOutcome::Completed);
    assert_eq!(ended.state["log"], json!(["one", "two"]));
    assert_eq!(runs.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_task_that_does_not_stop_is_not_executed_twice_concurrently() {
    let (tell, told) = mpsc::channel::<()>();
    let told = Arc::new(Mutex::new(told));
    let (runs, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (begun, at_once) = (runs.clone(), most.clone());
    let running = Arc::new(AtomicUsize::new(0));
    let plugin = NativePlugin::new("p", "1")
        .node("one", move |_, _| {
            let (begun, at_once, running) = (begun.clone(), at_once.clone(), running.clone());
            let (tell, told) = (tell.clone(), told.clone());
            async move {
                at_once.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                if begun.fetch_add(1, Ordering::SeqCst) == 0 {
                    // The task blocks its thread. A concurrent second execution would end that.
                    let told = told.lock().expect("no panic under the lock");
                    let _ = told.recv_timeout(Duration::from_millis(400));
                } else {
                    let _ = tell.send(());
                }
                running.fetch_sub(1, Ordering::SeqCst);
                tokio::task::yield_now().await;
                Ok(json!({ "log": "one" }))
            }
        })
        .node("two", |_, _| async { Ok(json!({ "log": "two" })) });
    let ended = World::new(PAIR, plugin).run(json!({})).await;
    assert_eq!(ended.outcome, RunOutcome::Completed);
    assert_eq!(ended.state["log"], json!(["one", "two"]));
    assert_eq!((runs.load(Ordering::SeqCst), most.load(Ordering::SeqCst)), (2, 1));
}
