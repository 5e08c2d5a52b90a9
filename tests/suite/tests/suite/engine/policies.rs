//! Node policies of a graph: retries, timeouts, error handlers and caches.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use wattle_graph::event::{EventKind, TaskFailed, TaskFault, TaskFinished};
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{AppName, GraphName, NodeName};
use wattle_run::hostcall::emit::Emission;
use wattle_run::hostcall::interrupt::InterruptRequest;
use wattle_run::hostcall::runs::{EndedRun, RunOutcome, RunService as _};
use wattle_suite::native::NativePlugin;
use wattle_suite::scripted::{get, prompt, said, unavailable};
use wattle_suite::world::{World, failure, questions};

/// Returns a graph with the node `work` and further settings of it.
fn one(more: &str) -> String {
    format!(
        "[graphs.one]\nentry = \"work\"\n[graphs.one.channels.out]\n\
         [graphs.one.nodes.work]\nplugin = \"p\"\n{more}\n"
    )
}

/// Returns a plugin whose node `work` fails with these codes in order, and then succeeds.
fn failing(codes: &'static [&'static str]) -> NativePlugin {
    let calls = Arc::new(AtomicUsize::new(0));
    NativePlugin::new("p", "1").node("work", move |call, _| {
        let failed = codes.get(calls.fetch_add(1, Ordering::SeqCst)).copied();
        async move {
            match failed {
                Some(word) => Err(Failure::new(word, "did not work").into()),
                None => Ok(json!({ "out": call.attempt })),
            }
        }
    })
}

async fn failures(world: &World, ended: &EndedRun) -> Vec<TaskFailed> {
    let events = world.events(&ended.run.thread).await;
    let failed = events.into_iter().filter_map(|event| match event.kind {
        EventKind::TaskFailed(failed) => Some(failed),
        _ => None,
    });
    failed.collect()
}

async fn finished(world: &World, ended: &EndedRun) -> Vec<Arc<TaskFinished>> {
    let events = world.events(&ended.run.thread).await;
    let finished = events.into_iter().filter_map(|event| match event.kind {
        EventKind::TaskFinished(finished) => Some(finished),
        _ => None,
    });
    finished.collect()
}

#[tokio::test]
async fn the_first_matching_retry_policy_applies() {
    let graph = one("retry = [{ on = [\"busy\"], attempts = 4, initial = \"1ms\" }, \
                     { on = [\"busy\", \"lost\"], attempts = 2, initial = \"1ms\" }]");
    let ended = World::new(&graph, failing(&["busy", "busy", "busy"])).run(json!({})).await;
    assert_eq!(ended.state["out"], 4);
    let ended = World::new(&graph, failing(&["lost", "lost"])).run(json!({})).await;
    assert_eq!(failure(&ended).code, "lost");
    let ended = World::new(&graph, failing(&["other"])).run(json!({})).await;
    assert_eq!(failure(&ended).code, "other");
}

/// Returns a plugin whose node shows progress for a while, and then hangs in its first attempt.
fn lively(emits: bool) -> NativePlugin {
    NativePlugin::new("p", "1").node("work", move |call, gate| async move {
        for _ in 0..6 {
            tokio::time::sleep(Duration::from_millis(20)).await;
            if emits {
                let message = "alive".to_owned();
                gate.emit(Emission::Progress { message, fraction: None }).await?;
            } else {
                gate.now_ms()?;
            }
        }
        if call.attempt == 1 {
            gate.call(get("https://example.com/slow")).await?;
        }
        Ok(json!({ "out": call.attempt }))
    })
}

#[tokio::test(start_paused = true)]
async fn a_node_without_progress_times_out_and_is_retried() {
    let graph = one("timeout = { idle = \"80ms\" }\nretry = { attempts = 2, initial = \"1ms\" }");
    let world = World::new(&graph, lively(false));
    world.net.hang_next(1);
    let ended = world.run(json!({})).await;
    assert_eq!(ended.state["out"], 2);
    let failed = failures(&world, &ended).await;
    assert_eq!((failed.len(), failed[0].fault), (1, TaskFault::Timeout));
    let details = failed[0].failure.details.clone().unwrap();
    assert_eq!((&details["timeout"], &details["allowed_ms"]), (&json!("idle"), &json!(80)));
}

#[tokio::test]
async fn attempts_are_counted_on_after_a_restart() {
    let plugin = NativePlugin::new("p", "1").node("work", |call, gate| async move {
        if call.attempt == 1 {
            return Err(unavailable().into());
        }
        gate.call(get("https://example.com/slow")).await?;
        Ok(json!({ "out": call.attempt }))
    });
    let mut world = World::new(&one("retry = { attempts = 3, initial = \"1ms\" }"), plugin);
    world.net.hang_next(1);
    let run = world.begin(json!({})).await.unwrap();
    world.net.hung().await;
    world.crash().await;
    assert_eq!(world.engine.recover().await, 1);
    let ended = world.engine.wait(&run).await.unwrap();
    assert_eq!(ended.state["out"], 2);
    let events = world.events(&run.thread).await.into_iter();
    let attempts = events.filter_map(|event| match event.kind {
        EventKind::TaskStarted(started) => Some(started.attempt),
        _ => None,
    });
    assert_eq!(attempts.collect::<Vec<_>>(), [1, 2, 2]);
}

#[tokio::test(start_paused = true)]
async fn refresh_decides_whether_host_calls_are_task_heartbeats() {
    let graph = |refresh| one(&format!("timeout = {{ idle = \"80ms\", refresh = \"{refresh}\" }}"));
    for (refresh, emits, lives) in
        [("heartbeat", true, true), ("heartbeat", false, false), ("auto", false, true)]
    {
        let ended = World::new(&graph(refresh), lively(emits)).run(json!({})).await;
        assert_eq!(ended.outcome == RunOutcome::Completed, lives, "{refresh}, emits: {emits}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_run_timeout_applies_to_an_attempt_with_progress() {
    let graph = one("timeout = { run = \"50ms\", idle = \"50ms\" }");
    let world = World::new(&graph, lively(true));
    let ended = world.run(json!({})).await;
    assert_eq!(failure(&ended).details.unwrap()["timeout"], "run");
}

const SENDING: &str = r#"
[graphs.sending]
entry = "first"
[graphs.sending.channels.out]
reducer = "append"
[graphs.sending.nodes.first]
plugin = "p"
goto = ["work"]
[graphs.sending.nodes.work]
plugin = "p"
timeout = "1h"
"#;

#[tokio::test(start_paused = true)]
async fn a_send_can_set_the_timeout_of_its_task() {
    let plugin = NativePlugin::new("p", "1")
        .node("first", |_, _| async {
            let send = json!([{ "node": "work", "input": {}, "timeout_ms": 30 }]);
            Ok(json!({ "$goto": ["END"], "$send": send }))
        })
        .node("work", |_, gate| async move {
            gate.call(get("https://example.com/slow")).await?;
            Ok(json!({ "out": "never" }))
        });
    let world = World::new(SENDING, plugin);
    world.net.hang_next(1);
    let failed = failure(&world.run(json!({})).await);
    assert_eq!(
        (failed.code.as_str(), failed.details.unwrap()["allowed_ms"].as_u64()),
        (code::TIMEOUT, Some(30))
    );
}

const HANDLED: &str = r#"
[graphs.handled]
entry = ["work", "other"]
[graphs.handled.channels.out]
reducer = "append"
[graphs.handled.nodes.work]
plugin = "p"
on_error = "rescue"
retry = { attempts = 2, initial = "1ms", on = ["lost"] }
[graphs.handled.nodes.other]
plugin = "p"
[graphs.handled.nodes.rescue]
plugin = "p"
[graphs.handled.nodes.after_work]
plugin = "p"
node = "say"
[graphs.handled.nodes.after_rescue]
plugin = "p"
node = "say"
[[graphs.handled.edges]]
from = "work"
to = "after_work"
[[graphs.handled.edges]]
from = "rescue"
to = "after_rescue"
"#;

fn handled(rescue: fn(&Value) -> Result<Value, Failure>) -> NativePlugin {
    NativePlugin::new("p", "1")
        .node("work", |_, _| async { Err(Failure::new("lost", "the map is lost").into()) })
        .node("other", |_, gate| async move {
            Ok(json!({ "out": said(&gate.call(prompt("other")).await?) }))
        })
        .node("say", |_, _| async { Ok(json!({ "out": "said" })) })
        .node("rescue", move |call, _| async move { Ok(rescue(&call.error.unwrap_or_default())?) })
}

#[tokio::test]
async fn an_error_handler_replaces_a_failed_node_and_follows_its_own_edges() {
    let plugin = handled(|error| {
        Ok(json!({ "out": [error["node"], error["code"], error["details"]["reason"]] }))
    });
    let world = World::new(HANDLED, plugin);
    let ended = world.run(json!({})).await;
    assert_eq!(ended.outcome, RunOutcome::Completed);
    let out = json!(["answer 1", "work", "lost", "the map is lost", "said"]);
    assert_eq!(ended.state["out"], out);
    let failed = failures(&world, &ended).await;
    assert_eq!(failed.len(), 2, "one failure per attempt");
    let handler = failed[1].handler.clone().unwrap();
    let ran = finished(&world, &ended).await;
    assert!(ran.iter().any(|task| task.task == handler && task.node.as_str() == "rescue"));
    assert!(ran.iter().all(|task| task.node.as_str() != "after_work"));
}

#[tokio::test]
async fn a_failed_error_handler_fails_the_run_and_only_the_handler_is_retried() {
    let plugin = handled(|_| Err(Failure::new("also-lost", "no rope either")));
    let world = World::new(HANDLED, plugin);
    let ended = world.run(json!({})).await;
    assert_eq!(failure(&ended).code, "also-lost");
    let again = world.resume(&ended.run.thread, &[], Default::default()).await.unwrap();
    assert_eq!(failure(&again).code, "also-lost");
    let began = async |node: &str| {
        let is_its = |kind: &EventKind| matches!(kind, EventKind::TaskStarted(task) if task.node.as_str() == node);
        world.count(&ended.run.thread, is_its).await
    };
    assert_eq!((began("work").await, began("rescue").await, began("other").await), (2, 2, 1));
    assert_eq!(world.model.calls(), 1);
}

#[tokio::test]
async fn an_error_handler_can_raise_an_interrupt_and_survives_a_crash() {
    let rescue = |call: wattle_run::ports::sandbox::NodeCall, gate: Arc<wattle_run::gate::Gate>| async move {
        let error = call.error.unwrap_or_default();
        let said = said(&gate.call(prompt("what now")).await?);
        let payload = json!({ "failed": error["node"] });
        let answer = gate.ask(InterruptRequest { payload, response_schema: None }).await?;
        Ok(json!({ "out": [said, answer] }))
    };
    let plugin = NativePlugin::new("p", "1")
        .node("work", |_, _| async { Err(Failure::new("broken", "always").into()) })
        .node("other", |_, _| async { Ok(json!({})) })
        .node("say", |_, _| async { Ok(json!({})) })
        .node("rescue", rescue);
    let mut world = World::new(HANDLED, plugin);
    let first = world.run(json!({})).await;
    assert_eq!(questions(&first)[0].payload, json!({ "failed": "work" }));
    world.crash().await;
    let ended = world.answer(&first.run.thread, json!("go on")).await;
    assert_eq!(ended.outcome, RunOutcome::Completed);
    assert_eq!(ended.state["out"], json!(["answer 1", "go on"]));
    assert_eq!(world.model.calls(), 1);
}

const CACHED: &str = r#"
[graphs.cached]
entry = "work"
[graphs.cached.channels.n]
[graphs.cached.channels.out]
[graphs.cached.nodes.work]
plugin = "p"
cache = { ttl = "1h" }
"#;

fn calling() -> NativePlugin {
    NativePlugin::new("p", "1").node("work", |call, gate| async move {
        let said = said(&gate.call(prompt("hello")).await?);
        Ok(json!({ "out": format!("{said} for {}", call.input.get("n")) }))
    })
}

#[tokio::test]
async fn an_equal_task_of_any_thread_is_taken_from_the_cache() {
    let world = World::new(CACHED, calling());
    let first = world.run(json!({ "n": 1 })).await;
    let second = world.run(json!({ "n": 1 })).await;
    assert_eq!((&first.state, world.model.calls()), (&second.state, 1));
    assert_ne!(first.run.thread, second.run.thread);
    let cached =
        |tasks: Vec<Arc<TaskFinished>>| tasks.iter().map(|it| it.cached).collect::<Vec<_>>();
    assert_eq!(cached(finished(&world, &first).await), [false]);
    assert_eq!(cached(finished(&world, &second).await), [true]);
    let other = world.run(json!({ "n": 2 })).await;
    assert_eq!(other.state["out"], "answer 2 for 2");
    world.clock.advance_ms(3_600_001);
    assert_eq!(world.run(json!({ "n": 1 })).await.state["out"], "answer 3 for 1");
}

#[tokio::test]
async fn a_cache_is_cleared_by_app_graph_and_node() {
    let world = World::new(CACHED, calling());
    let app = AppName::new("test").unwrap();
    let (graph, node) = (GraphName::new("cached").unwrap(), NodeName::new("work").unwrap());
    world.run(json!({ "n": 1 })).await;
    let clear = async |graph: Option<&GraphName>, node: Option<&NodeName>| {
        world.engine.clear_cache(None, &app, graph, node).await.unwrap()
    };
    let other = NodeName::new("other").unwrap();
    assert_eq!(clear(Some(&graph), Some(&other)).await, 0);
    assert_eq!(clear(Some(&graph), Some(&node)).await, 1);
    world.run(json!({ "n": 1 })).await;
    assert_eq!(world.model.calls(), 2);
    assert_eq!(clear(None, None).await, 1);
}

#[tokio::test]
async fn a_cache_can_have_a_key_and_ends_with_the_version() {
    let graph = CACHED.replace("{ ttl = \"1h\" }", "{ key = \"input.n > 10\" }");
    let world = World::new(&graph, calling());
    assert_eq!(world.run(json!({ "n": 1 })).await.state["out"], "answer 1 for 1");
    assert_eq!(world.run(json!({ "n": 2 })).await.state["out"], "answer 1 for 1");
    assert_eq!(world.run(json!({ "n": 11 })).await.state["out"], "answer 2 for 11");
    let renewed = NativePlugin::new("p", "2")
        .node("work", |_, _| async { Ok(json!({ "out": "other code" })) });
    world.install(&graph, renewed);
    assert_eq!(world.run(json!({ "n": 2 })).await.state["out"], "other code");
}

#[tokio::test]
async fn a_failed_task_is_not_cached() {
    let plugin = NativePlugin::new("p", "1").node("work", |_, gate| async move {
        gate.call(get("https://example.com/a")).await?;
        Ok(json!({ "out": "done" }))
    });
    let world = World::new(CACHED, plugin);
    world.net.fail_next(unavailable());
    failure(&world.run(json!({ "n": 1 })).await);
    assert_eq!(world.run(json!({ "n": 1 })).await.state["out"], "done");
    assert_eq!(world.run(json!({ "n": 1 })).await.state["out"], "done");
    assert_eq!(world.net.calls(), 2);
}

/// Runs a graph that sends five tasks to the node `work`, and returns the maximum number of
/// concurrent tasks.
async fn at_once(graph: &str, options: wattle_run::ports::store::RunOptions) -> usize {
    let running = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
    let seen = running.clone();
    let plugin = NativePlugin::new("p", "1")
        .node("first", |_, _| async {
            let sends: Vec<Value> = (0..5).map(|n| json!({ "node": "work", "input": n })).collect();
            Ok(json!({ "$goto": ["END"], "$send": sends }))
        })
        .node("work", move |call, _| {
            let seen = seen.clone();
            async move {
                let now = seen.0.fetch_add(1, Ordering::SeqCst) + 1;
                seen.1.fetch_max(now, Ordering::SeqCst);
                // The paused clock advances only when every permitted task has started.
                tokio::time::sleep(Duration::from_millis(20)).await;
                seen.0.fetch_sub(1, Ordering::SeqCst);
                Ok(json!({ "out": call.input }))
            }
        });
    let ended = World::new(graph, plugin).run_as(json!({}), options).await;
    assert_eq!(ended.state["out"], json!([0, 1, 2, 3, 4]), "in order for any concurrency");
    running.1.load(Ordering::SeqCst)
}

#[tokio::test(start_paused = true)]
async fn graph_and_run_limit_concurrent_tasks() {
    let options = |max_concurrency| wattle_run::ports::store::RunOptions {
        max_concurrency,
        ..Default::default()
    };
    let narrow = SENDING.replace("entry = \"first\"", "entry = \"first\"\nmax_concurrency = 2");
    assert_eq!(at_once(SENDING, options(None)).await, 5);
    assert_eq!(at_once(&narrow, options(None)).await, 2);
    assert_eq!(at_once(&narrow, options(Some(1))).await, 1);
    assert_eq!(at_once(&narrow, options(Some(3))).await, 3);
}

#[tokio::test]
async fn defaults_of_a_graph_apply_to_nodes_without_own_policy() {
    let graph = one("").replace(
        "[graphs.one.channels.out]",
        "[graphs.one.defaults]\nretry = { attempts = 3, initial = \"1ms\", on = [\"busy\"] }\n\
         [graphs.one.channels.out]",
    );
    let ended = World::new(&graph, failing(&["busy", "busy"])).run(json!({})).await;
    assert_eq!(ended.state["out"], 3);
}
