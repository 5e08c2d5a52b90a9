//! Supersteps: order, parallel tasks, branches, goto, limits, retries and invalid outputs.

use std::future::pending;
use std::sync::Arc;

use serde_json::{Value, json};
use wattle_graph::event::{EventKind, TaskFault};
use wattle_graph::failure::{Failure, code};
use wattle_run::grant::Grants;
use wattle_run::hostcall::runs::RunOutcome;
use wattle_run::limit::Limits;
use wattle_suite::native::NativePlugin;
use wattle_suite::scripted::{NoSql, get, prompt, said, unavailable};
use wattle_suite::world::{World, failure};

const LINE: &str = r#"
[graphs.line]
entry = "first"
[graphs.line.channels.n]
[graphs.line.channels.trail]
reducer = "append"
[graphs.line.nodes.first]
plugin = "p"
[graphs.line.nodes.second]
plugin = "p"
[[graphs.line.edges]]
from = "first"
to = "second"
"#;

#[tokio::test]
async fn a_line_of_nodes_runs_to_its_end() {
    let plugin = NativePlugin::new("p", "1")
        .node("first", |call, _| async move {
            let n = call.input.get("n").as_i64().unwrap_or(0);
            Ok(json!({ "n": n + 1, "trail": "first" }))
        })
        .node("second", |call, _| async move {
            let n = call.input.get("n").as_i64().unwrap_or(0);
            Ok(json!({ "n": n * 10, "trail": "second" }))
        });
    let world = World::new(LINE, plugin);
    let ended = world.run(json!({ "n": 4 })).await;
    assert_eq!(ended.outcome, RunOutcome::Completed);
    assert_eq!(ended.state, json!({ "n": 50, "trail": ["first", "second"] }));
}

const DIAMOND: &str = r#"
[graphs.diamond]
entry = "split"
[graphs.diamond.channels.seen]
reducer = "append"
[graphs.diamond.channels.word]
reducer = { plugin = "p", reducer = "longest" }
[graphs.diamond.nodes.split]
plugin = "p"
[graphs.diamond.nodes.left]
plugin = "p"
node = "side"
[graphs.diamond.nodes.right]
plugin = "p"
node = "side"
[graphs.diamond.nodes.join]
plugin = "p"
[[graphs.diamond.edges]]
from = "split"
to = ["left", "right"]
[[graphs.diamond.edges]]
from = ["left", "right"]
to = "join"
"#;

#[tokio::test]
async fn parallel_tasks_see_the_previous_superstep_and_write_in_a_fixed_order() {
    let plugin = NativePlugin::new("p", "1")
        .node("split", |_, _| async { Ok(json!({ "seen": "split", "word": "a" })) })
        .node("side", |call, _| async move {
            Ok(json!({ "seen": [call.input.get("seen").into_owned()], "word": "abc" }))
        })
        .node("join", |call, _| async move { Ok(json!({ "seen": call.step, "word": "ab" })) })
        .reducer("longest", |current, writes| async move {
            let words = current.into_iter().chain(writes);
            words.max_by_key(|word| word.as_str().map_or(0, str::len)).unwrap_or_default()
        });
    let ended = World::new(DIAMOND, plugin).run(json!({})).await;
    assert_eq!(ended.outcome, RunOutcome::Completed);
    assert_eq!(ended.state["seen"], json!(["split", ["split"], ["split"], 2]));
    assert_eq!(ended.state["word"], "abc");
}

const LOOP: &str = r#"
[graphs.loop]
entry = "work"
recursion_limit = 20
[graphs.loop.channels.n]
[graphs.loop.nodes.work]
plugin = "p"
[[graphs.loop.branches]]
name = "again"
from = "work"
cases = [{ when = "state.n < 5", to = "work" }, { to = "END" }]
"#;

#[tokio::test]
async fn a_branch_loops_until_its_condition_fails() {
    let plugin = NativePlugin::new("p", "1").node("work", |call, _| async move {
        Ok(json!({ "n": call.input.get("n").as_i64().unwrap_or(0) + 1 }))
    });
    let ended = World::new(LOOP, plugin).run(json!({ "n": 0 })).await;
    assert_eq!((ended.outcome, ended.state), (RunOutcome::Completed, json!({ "n": 5 })));
}

#[tokio::test]
async fn an_endless_loop_ends_at_the_recursion_limit() {
    let plugin =
        NativePlugin::new("p", "1").node("work", |_, _| async { Ok(json!({ "$goto": ["work"] })) });
    let ended = World::new(LOOP, plugin).run(json!({ "n": 0 })).await;
    let failure = failure(&ended);
    assert_eq!(failure.code, code::LIMIT);
    assert_eq!(failure.details.unwrap()["limit"], "recursion");
}

#[tokio::test]
async fn goto_replaces_the_edges_and_end_ends_the_graph() {
    let plugin = NativePlugin::new("p", "1")
        .node("first", |_, _| async { Ok(json!({ "trail": "first", "$goto": ["END"] })) })
        .node("second", |_, _| async { Ok(json!({ "trail": "second" })) });
    let ended = World::new(LINE, plugin).run(json!({})).await;
    assert_eq!(ended.state["trail"], json!(["first"]));
}

#[tokio::test]
async fn a_send_gives_a_task_its_own_input() {
    let plugin = NativePlugin::new("p", "1")
        .node("first", |_, _| async {
            Ok(json!({ "$goto": ["END"], "$send": [
                { "node": "second", "input": { "k": 1 } },
                { "node": "second", "input": { "k": 2 } },
            ] }))
        })
        .node("second", |call, _| async move { Ok(json!({ "trail": call.input.get("k") })) });
    let ended = World::new(LINE, plugin).run(json!({})).await;
    assert_eq!(ended.state["trail"], json!([1, 2]));
}

const RETRY: &str = r#"
[graphs.retry]
entry = "work"
[graphs.retry.channels.out]
[graphs.retry.nodes.work]
plugin = "p"
retry = { attempts = 3, initial = "1ms", jitter = false }
"#;

#[tokio::test]
async fn a_retry_repeats_only_the_failed_call() {
    let plugin = NativePlugin::new("p", "1").node("work", |call, gate| async move {
        let said = said(&gate.call(prompt("hello")).await?);
        gate.call(get("https://example.com/a")).await?;
        Ok(json!({ "out": [said, call.attempt] }))
    });
    let world = World::new(RETRY, plugin);
    world.net.fail_next(unavailable());
    let ended = world.run(json!({})).await;
    assert_eq!(ended.state["out"], json!(["answer 1", 2]));
    assert_eq!((world.model.calls(), world.net.calls()), (1, 2));
    let failed = world.count(&ended.run.thread, |kind| matches!(kind, EventKind::TaskFailed(_)));
    assert_eq!(failed.await, 1);
}

#[tokio::test]
async fn the_failure_after_the_last_attempt_names_node_and_plugin() {
    let plugin = NativePlugin::new("p", "1").node("work", |_, gate| async move {
        gate.call(get("https://example.com/a")).await?;
        Ok(json!({}))
    });
    let world = World::new(RETRY, plugin);
    for _ in 0..3 {
        world.net.fail_next(unavailable());
    }
    let ended = world.run(json!({})).await;
    assert_eq!(failure(&ended).message, "node `work` of plugin `p`: the service is away");
    assert_eq!(world.net.calls(), 3);
    // Resuming without an answer retries the failed task.
    let retried = world.resume(&ended.run.thread, &[], Default::default()).await.unwrap();
    assert_eq!(retried.outcome, RunOutcome::Completed);
    assert_eq!(world.net.calls(), 4);
}

#[tokio::test]
async fn a_failure_that_is_not_retryable_ends_the_run() {
    let plugin = NativePlugin::new("p", "1")
        .node("work", |_, _| async { Err(Failure::new("nope", "never works").into()) });
    let world = World::new(RETRY, plugin);
    let ended = world.run(json!({})).await;
    assert_eq!(failure(&ended).code, "nope");
    let started = world.count(&ended.run.thread, |kind| matches!(kind, EventKind::TaskStarted(_)));
    assert_eq!(started.await, 1);
}

const TIMEOUT: &str = r#"
[graphs.timeout]
entry = "work"
[graphs.timeout.channels.out]
[graphs.timeout.nodes.work]
plugin = "p"
timeout = "20ms"
retry = { attempts = 2, initial = "1ms" }
"#;

#[tokio::test(start_paused = true)]
async fn a_timeout_has_its_own_fault_and_can_be_retried() {
    let plugin = NativePlugin::new("p", "1").node("work", |_, gate| async move {
        gate.call(get("https://example.com/slow")).await?;
        Ok(json!({ "out": "made it" }))
    });
    let world = World::new(TIMEOUT, plugin);
    world.net.hang_next(1);
    let ended = world.run(json!({})).await;
    assert_eq!(ended.state, json!({ "out": "made it" }));
    let timeouts = world.count(
        &ended.run.thread,
        |kind| matches!(kind, EventKind::TaskFailed(failed) if failed.fault == TaskFault::Timeout),
    );
    assert_eq!(timeouts.await, 1);
}

const WAITING: &str = r#"
[graphs.waiting]
entry = "work"
[graphs.waiting.channels.out]
reducer = { plugin = "p", reducer = "waits" }
[graphs.waiting.nodes.work]
plugin = "p"
"#;

#[tokio::test]
async fn a_reducer_that_waits_for_nothing_fails_its_run() {
    let plugin = NativePlugin::new("p", "1")
        .node("work", |_, _| async { Ok(json!({ "out": 1 })) })
        .reducer("waits", |_, _| pending::<Value>());
    let limits = Limits { node_timeout_ms: 20, ..Limits::default() };
    let grants = Grants { limits, ..Grants::default() };
    let world = World::with_sql(WAITING, plugin, Arc::new(NoSql), grants);
    let failed = failure(&world.run(json!({})).await);
    assert_eq!((failed.code.as_str(), failed.retryable), (code::TIMEOUT, true));
    assert_eq!(failed.details.unwrap(), json!({ "limit": "timeout", "allowed_ms": 20 }));
    for part in ["reducer `waits` of channel `out`", "`[grants.\"test/p\"]`"] {
        assert!(failed.message.contains(part), "`{}` does not name `{part}`", failed.message);
    }
}

#[tokio::test]
async fn an_invalid_write_fails_its_task_and_names_node_channel_and_plugin() {
    let check = |value: Value, expected: &'static [&'static str]| async move {
        let plugin = NativePlugin::new("p", "1").node("work", move |_, _| {
            let value = value.clone();
            async move { Ok(value) }
        });
        let ended = World::new(RETRY, plugin).run(json!({})).await;
        let message = failure(&ended).message;
        for part in expected {
            assert!(message.contains(part), "`{message}` does not name `{part}`");
        }
    };
    check(json!({ "other": 1 }), &["work", "`other`", "`p`"]).await;
    check(json!({ "$goto": ["nowhere"] }), &["work", "`nowhere`"]).await;
}

#[tokio::test]
async fn an_input_with_an_unknown_channel_starts_nothing() {
    let plugin = NativePlugin::new("p", "1").node("work", |_, _| async { Ok(json!({})) });
    let world = World::new(RETRY, plugin);
    let refused = world.begin(json!({ "typo": 1 })).await.unwrap_err();
    assert_eq!(refused.code, code::INVALID);
    assert!(refused.message.contains("`typo`") && refused.message.contains("`out`"), "{refused}");
}
