//! Crashes: results are not requested again, and events are not lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use wattle_graph::failure::code;
use wattle_run::hostcall::http::HttpRequest;
use wattle_run::hostcall::runs::{RunOutcome, RunService};
use wattle_suite::native::NativePlugin;
use wattle_suite::scripted::{get, prompt, said};
use wattle_suite::world::{World, failure};

const ONE: &str = r#"
[graphs.one]
entry = "work"
[graphs.one.channels.out]
reducer = "append"
[graphs.one.nodes.work]
plugin = "p"
"#;

#[tokio::test]
async fn a_crash_in_the_middle_of_a_node_repeats_no_finished_call() {
    let plugin = NativePlugin::new("p", "1").node("work", |_, gate| async move {
        let said = said(&gate.call(prompt("hello")).await?);
        let (now, dice) = (gate.now_ms()?, gate.random(8)?);
        gate.call(get("https://example.com/slow")).await?;
        Ok(json!({ "out": [said, now, dice == gate.random(8)?] }))
    });
    let mut world = World::new(ONE, plugin);
    world.net.hang_next(1);
    let run = world.begin(json!({})).await.unwrap();
    world.net.hung().await;
    world.crash().await;
    world.clock.advance_ms(5_000);
    assert_eq!(world.engine.recover().await, 1);
    let ended = world.engine.wait(&run).await.unwrap();
    assert_eq!(ended.outcome, RunOutcome::Completed);
    assert_eq!(ended.state["out"], json!(["answer 1", wattle_suite::world::START_MS, false]));
    assert_eq!((world.model.calls(), world.net.calls()), (1, 2));
}

#[tokio::test]
async fn a_call_that_is_not_idempotent_is_in_doubt_after_a_crash() {
    let plugin = NativePlugin::new("p", "1").node("work", |_, gate| async move {
        let post = HttpRequest { method: "POST".into(), ..get("https://example.com/slow-pay") };
        gate.call(post).await?;
        Ok(json!({ "out": "paid" }))
    });
    let mut world = World::new(ONE, plugin);
    world.net.hang_next(1);
    let run = world.begin(json!({})).await.unwrap();
    world.net.hung().await;
    world.crash().await;
    world.engine.recover().await;
    let failure = failure(&world.engine.wait(&run).await.unwrap());
    assert_eq!(failure.code, "in-doubt");
    assert!(failure.message.contains("POST https://example.com/slow-pay"), "{failure}");
    assert_eq!(world.net.calls(), 1);
}

const WIDE: &str = r#"
[graphs.wide]
entry = ["a", "b"]
[graphs.wide.channels.out]
reducer = "append"
[graphs.wide.nodes.a]
plugin = "p"
[graphs.wide.nodes.b]
plugin = "p"
"#;

#[tokio::test]
async fn writes_of_finished_siblings_survive_a_failure() {
    let plugin = NativePlugin::new("p", "1")
        .node("a", |_, gate| async move {
            let said = said(&gate.call(prompt("a")).await?);
            Ok(json!({ "out": said }))
        })
        .node("b", |_, gate| async move {
            gate.call(get("https://example.com/b")).await?;
            Ok(json!({ "out": "b" }))
        });
    let world = World::new(WIDE, plugin);
    world.net.fail_next(wattle_suite::scripted::unavailable());
    let failed = world.run(json!({})).await;
    failure(&failed);
    let ended = world.resume(&failed.run.thread, &[], Default::default()).await.unwrap();
    assert_eq!(ended.state["out"], json!(["answer 1", "b"]));
    assert_eq!(world.model.calls(), 1, "the finished sibling does not run again");
}

#[tokio::test]
async fn a_divergence_names_the_recorded_and_the_current_request() {
    let executions = Arc::new(AtomicUsize::new(0));
    let plugin = NativePlugin::new("p", "1").node("work", move |_, gate| {
        let execution = executions.fetch_add(1, Ordering::SeqCst);
        async move {
            gate.call(get(&format!("https://example.com/{execution}"))).await?;
            gate.call(get("https://example.com/slow")).await?;
            Ok(json!({}))
        }
    });
    let mut world = World::new(ONE, plugin);
    world.net.hang_next(1);
    let run = world.begin(json!({})).await.unwrap();
    world.net.hung().await;
    world.crash().await;
    world.engine.recover().await;
    let failure = failure(&world.engine.wait(&run).await.unwrap());
    assert_eq!(failure.code, code::DIVERGENCE);
    let details = failure.details.unwrap();
    assert_eq!(details["journal"]["request"]["url"], "https://example.com/0");
    assert_eq!(details["now"]["request"]["url"], "https://example.com/1");
}

#[tokio::test]
async fn a_thread_stays_on_the_version_of_its_first_run() {
    let version = |text: &'static str| {
        NativePlugin::new("p", text)
            .node("work", move |_, _| async move { Ok(json!({ "out": text })) })
    };
    let world = World::new(ONE, version("old"));
    let first = world.run(json!({})).await;
    world.install(ONE, version("new"));
    let run = world.begin_on(Some(&first.run.thread), json!({})).await.unwrap();
    let second = world.engine.wait(&run).await.unwrap();
    assert_eq!(second.state["out"], json!(["old", "old"]));
    assert_eq!(world.run(json!({})).await.state["out"], json!(["new"]));
}

#[tokio::test]
async fn a_thread_whose_version_is_missing_is_refused_with_a_hint() {
    let plugin = |text| NativePlugin::new("p", text).node("work", |_, _| async { Ok(json!({})) });
    let mut world = World::new(ONE, plugin("old"));
    let first = world.run(json!({})).await;
    let fresh = World::new(ONE, plugin("new"));
    world.crash().await;
    // An engine on the same store whose catalog never had the old code.
    let engine = wattle_run::engine::Engine::new(
        world.engine.ports().clone(),
        fresh.engine.catalog().clone(),
        Default::default(),
    );
    world.engine = engine;
    let refused = world.begin_on(Some(&first.run.thread), json!({})).await.unwrap_err();
    assert_eq!(refused.code, code::UNAVAILABLE);
    assert!(refused.message.contains("pinned to version"), "{refused}");
}
