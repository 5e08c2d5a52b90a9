//! The cap of a thread's log in bytes.

use std::sync::Arc;

use serde_json::{Value, json};
use wattle_graph::event::{Decision, EventKind};
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::ThreadId;
use wattle_run::caps::Caps;
use wattle_run::engine::settle::SettleCall;
use wattle_run::hostcall::emit::Emission;
use wattle_run::hostcall::http::HttpRequest;
use wattle_run::hostcall::log::LogMessage;
use wattle_run::hostcall::runs::{OnFailure, RunOutcome, RunService};
use wattle_run::limit;
use wattle_run::ports::store::PruneStrategy;
use wattle_store::RedbStore;
use wattle_suite::native::NativePlugin;
use wattle_suite::scripted::get;
use wattle_suite::world::{World, failure};

/// The cap of these tests.
const ALLOWED: u64 = 200_000;

/// Bytes that a superstep, a call or an event adds.
const PIECE: usize = 10_000;

const LOOP: &str = r#"
[graphs.main]
entry = "work"
recursion_limit = 1000
[graphs.main.channels.text]
[graphs.main.channels.steps]
[graphs.main.nodes.work]
plugin = "p"
goto = ["work"]
"#;

fn allowed(thread_log_bytes: u64) -> Caps {
    Caps { thread_log_bytes, ..Caps::default() }
}

fn world(graph: &str, plugin: NativePlugin) -> World {
    let mut world = World::new(graph, plugin);
    world.cap(allowed(ALLOWED));
    world
}

/// Returns a plugin whose node takes as many supersteps as its input requests.
fn looping() -> NativePlugin {
    NativePlugin::new("p", "1").node("work", |call, _| async move {
        let left = call.input.get("steps").as_u64().unwrap_or_default();
        let next: &[&str] = if left > 1 { &["work"] } else { &[] };
        let text = format!("{left} {}", "x".repeat(PIECE));
        Ok(json!({ "text": text, "steps": left.saturating_sub(1), "$goto": next }))
    })
}

async fn log_bytes(world: &World, thread: &ThreadId) -> u64 {
    let store = &world.engine.ports().store;
    store.thread(thread).await.unwrap().expect("a thread").log_bytes
}

/// Checks the failure of a full log.
fn is_full(failure: &Failure) {
    let details = failure.details.as_ref().unwrap();
    assert_eq!(
        (failure.code.as_str(), &details["limit"]),
        (code::LIMIT, &json!("thread_log_bytes"))
    );
    assert!(details["used"].as_u64().unwrap() >= details["allowed"].as_u64().unwrap(), "{details}");
    for word in ["prune", "delete", "raise `limits.thread_log`"] {
        assert!(failure.message.contains(word), "{failure}");
    }
}

#[tokio::test]
async fn a_run_that_fills_the_log_fails_and_none_starts_until_there_is_room() {
    let mut world = world(LOOP, looping());
    let ended = world.run(json!({ "steps": 900 })).await;
    let thread = ended.run.thread.clone();
    is_full(&failure(&ended));
    let full = log_bytes(&world, &thread).await;
    assert!((ALLOWED..ALLOWED + 5 * PIECE as u64).contains(&full), "{full}");

    let before = world.events(&thread).await;
    is_full(&world.begin_on(Some(&thread), json!({ "steps": 1 })).await.unwrap_err());
    is_full(&world.resume(&thread, &[], OnFailure::Keep).await.unwrap_err());
    assert_eq!(world.events(&thread).await, before, "nothing was written");

    world.cap(allowed(2 * ALLOWED));
    is_full(&failure(&world.resume(&thread, &[], OnFailure::Keep).await.unwrap()));
    world.cap(allowed(ALLOWED));
    world.engine.prune(&thread, PruneStrategy::KeepLatest).await.unwrap();
    assert!(log_bytes(&world, &thread).await < ALLOWED);
    let run = world.begin_on(Some(&thread), json!({ "steps": 2 })).await.unwrap();
    let ended = world.engine.wait(&run).await.unwrap();
    assert_eq!((ended.outcome, &ended.state["steps"]), (RunOutcome::Completed, &json!(0)));
}

#[tokio::test]
async fn compressed_bytes_count() {
    let folder = tempfile::tempdir().unwrap();
    let store = RedbStore::open(folder.path().join("wattle.redb")).unwrap();
    let mut world = World::with_store(LOOP, looping(), Arc::new(store));
    world.cap(allowed(ALLOWED));
    let steps = 100;
    let ended = world.run(json!({ "steps": steps })).await;
    assert_eq!(ended.outcome, RunOutcome::Completed, "{} bytes as text", steps * 2 * PIECE);
    assert!(log_bytes(&world, &ended.run.thread).await < ALLOWED);
}

const ONE: &str = r#"
[graphs.one]
entry = "work"
[graphs.one.channels.out]
[graphs.one.nodes.work]
plugin = "p"
"#;

async fn fills(plugin: NativePlugin) {
    let world = world(ONE, plugin);
    let ended = world.run(json!({})).await;
    is_full(&failure(&ended));
    let used = log_bytes(&world, &ended.run.thread).await;
    assert!((ALLOWED..2 * ALLOWED).contains(&used), "{used}");
    world.engine.delete_thread(&ended.run.thread).await.unwrap();
    assert!(world.engine.thread(&ended.run.thread).await.unwrap().is_none());
}

#[tokio::test]
async fn a_task_with_endless_host_calls_fails_at_the_cap() {
    let plugin = NativePlugin::new("p", "1").node("work", |_, gate| async move {
        for number in 0..1_000 {
            let text = format!("https://example.com/{number}/{}", "x".repeat(PIECE));
            gate.call(get(&text)).await?;
        }
        Ok(Value::Null)
    });
    fills(plugin).await;
}

#[tokio::test]
async fn a_task_with_endless_events_fails_at_the_cap() {
    let plugin = NativePlugin::new("p", "1").node("work", |_, gate| async move {
        for _ in 0..1_000 {
            let data = json!("x".repeat(PIECE));
            gate.emit(Emission::Custom { name: "more".into(), data }).await?;
        }
        Ok(Value::Null)
    });
    fills(plugin).await;
}

#[tokio::test]
async fn a_task_with_endless_log_messages_fails_at_the_cap() {
    let plugin = NativePlugin::new("p", "1").node("work", |_, gate| async move {
        loop {
            gate.log(LogMessage::new("info", "x".repeat(PIECE))).await?;
        }
    });
    let world = world(ONE, plugin);
    let ended = world.run(json!({})).await;
    is_full(&failure(&ended));
    let used = log_bytes(&world, &ended.run.thread).await;
    let most = ALLOWED + limit::LOG_BUFFER_BYTES + 2 * PIECE as u64;
    assert!((ALLOWED..most).contains(&used), "{used}");
}

#[tokio::test]
async fn a_run_on_a_full_thread_can_be_cancelled() {
    let plugin = NativePlugin::new("p", "1").node("work", |_, gate| async move {
        let data = json!("x".repeat(PIECE));
        gate.emit(Emission::Custom { name: "more".into(), data }).await?;
        std::future::pending().await
    });
    let mut world = World::new(ONE, plugin);
    world.cap(allowed(PIECE as u64));
    let run = world.begin(json!({})).await.unwrap();
    let mut newest = world.engine.watch(&run.thread);
    while log_bytes(&world, &run.thread).await < PIECE as u64 {
        newest.changed().await.unwrap();
    }
    world.engine.cancel(&run).await.unwrap();
    assert_eq!(world.engine.wait(&run).await.unwrap().outcome, RunOutcome::Cancelled);
    let ended = |kind: &EventKind| matches!(kind, EventKind::RunEnded(_));
    assert_eq!(world.count(&run.thread, ended).await, 1);
    is_full(&world.begin_on(Some(&run.thread), json!({})).await.unwrap_err());
}

#[tokio::test]
async fn a_call_in_doubt_of_a_full_thread_can_be_settled() {
    let plugin = NativePlugin::new("p", "1").node("work", |_, gate| async move {
        let post = HttpRequest { method: "POST".into(), ..get("https://example.com/slow-pay") };
        gate.call(post).await?;
        Ok(json!({ "out": "paid" }))
    });
    let mut world = World::new(ONE, plugin);
    world.net.hang_next(1);
    let run = world.begin(json!({})).await.unwrap();
    world.net.hung().await;
    world.cap(allowed(1));
    assert_eq!(world.engine.recover().await, 1);
    is_full(&failure(&world.engine.wait(&run).await.unwrap()));
    assert_eq!(world.net.calls(), 1, "the run fails before it repeats the call");

    let open = world.engine.pending_calls(&run.thread).await.unwrap();
    let settle = SettleCall {
        thread: run.thread.clone(),
        task: open[0].task.clone(),
        scope: Vec::new(),
        call: open[0].call,
        seq: None,
        decision: Decision::Fail,
        by: "test".into(),
        app: None,
        tenant: None,
        principal: None,
    };
    world.engine.settle(settle).await.unwrap();
    let settled = |kind: &EventKind| matches!(kind, EventKind::Settled(_));
    assert_eq!(world.count(&run.thread, settled).await, 1);
    world.engine.delete_thread(&run.thread).await.unwrap();
    assert!(world.engine.thread(&run.thread).await.unwrap().is_none());
}
