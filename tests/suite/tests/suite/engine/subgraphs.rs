//! Subgraphs: their inputs and outputs, and that nothing in them is repeated.

mod calls;
mod crashes;
mod interrupts;
mod retries;

use serde_json::{Value, json};
use wattle_graph::event::EventKind;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::Namespace;
use wattle_run::hostcall::interrupt::InterruptRequest;
use wattle_run::hostcall::runs::{RunOutcome, RunService};
use wattle_run::ports::store::CheckpointQuery;
use wattle_suite::native::NativePlugin;
use wattle_suite::scripted::{get, prompt, said, unavailable};
use wattle_suite::world::{World, failure};

/// A graph `main` whose node `sub` is the graph `inner`. Both append to `log`.
const MAIN: &str = r#"
[graphs.main]
entry = "before"
[graphs.main.channels.text]
[graphs.main.channels.mine]
[graphs.main.channels.log]
reducer = "append"
[graphs.main.nodes.before]
plugin = "p"
[graphs.main.nodes.sub]
graph = "inner"
goto = ["other"]
[graphs.main.nodes.after]
plugin = "p"
[graphs.main.nodes.other]
plugin = "p"
[[graphs.main.edges]]
from = "before"
to = "sub"
[[graphs.main.edges]]
from = "sub"
to = "after"
"#;

const INNER: &str = r#"
[graphs.inner]
entry = "one"
[graphs.inner.channels.text]
[graphs.inner.channels.own]
reducer = "sum"
[graphs.inner.channels.log]
reducer = "append"
[graphs.inner.nodes.one]
plugin = "p"
[graphs.inner.nodes.two]
plugin = "p"
[[graphs.inner.edges]]
from = "one"
to = "two"
"#;

fn graphs() -> String {
    format!("{MAIN}{INNER}")
}

/// Returns these graphs with further settings of the node `sub`.
fn graphs_with(sub: &str) -> String {
    let line = "graph = \"inner\"\n";
    format!("{}{INNER}", MAIN.replace(line, &format!("{line}{sub}\n")))
}

/// Returns a plugin with the nodes around the subgraph.
fn plugin() -> NativePlugin {
    let note = |name: &'static str| move |_, _| async move { Ok(json!({ "log": name })) };
    NativePlugin::new("p", "1")
        .node("before", |_, _| async {
            Ok(json!({ "log": "before", "text": "from outside", "mine": "secret" }))
        })
        .node("after", note("after"))
        .node("other", note("other"))
}

/// Returns a plugin whose node `one` calls a model and whose node `two` does not.
fn paying() -> NativePlugin {
    plugin()
        .node("one", |_, gate| async move {
            Ok(json!({ "log": said(&gate.call(prompt("one")).await?), "own": 1 }))
        })
        .node(
            "two",
            |call, _| async move { Ok(json!({ "log": "two", "text": call.input.get("own") })) },
        )
}

fn question(payload: Value) -> InterruptRequest {
    InterruptRequest { payload, response_schema: None }
}

/// Returns the namespaces of the events of a kind, in order.
async fn places(
    world: &World,
    thread: &wattle_graph::id::ThreadId,
    kind: impl Fn(&EventKind) -> bool,
) -> Vec<Namespace> {
    let events = world.events(thread).await;
    events.into_iter().filter(|event| kind(&event.kind)).map(|event| event.namespace).collect()
}

#[tokio::test]
async fn shared_channels_are_passed_in_and_changes_returned_once() {
    let plugin = plugin()
        .node("one", |call, _| async move {
            let (text, mine) =
                (call.input.get("text").into_owned(), call.input.get("mine").into_owned());
            Ok(json!({ "log": [text, mine], "own": 3 }))
        })
        .node("two", |call, _| async move {
            let seen = json!([call.graph, call.step, call.input.get("log")]);
            Ok(json!({ "text": seen, "log": "two" }))
        });
    let world = World::new(&graphs(), plugin);
    let ended = world.run(json!({ "log": "input" })).await;
    assert_eq!(ended.outcome, RunOutcome::Completed);
    let log = json!(["input", "before", "from outside", null, "two", "after"]);
    assert_eq!(ended.state["log"], log);
    let inside = json!(["input", "before", "from outside", null]);
    assert_eq!(ended.state["text"], json!(["inner", 1, inside]));
    assert_eq!((&ended.state["mine"], ended.state.get("own")), (&json!("secret"), None));
}

#[tokio::test]
async fn a_subgraph_has_its_own_history_and_no_run() {
    let world = World::new(&graphs(), paying());
    let ended = world.run(json!({})).await;
    let thread = &ended.run.thread;
    let made = places(&world, thread, |kind| matches!(kind, EventKind::Checkpointed(_))).await;
    let child = made.iter().find(|place| !place.is_root()).unwrap().clone();
    assert_eq!((child.node(), child.depth()), ("sub", 1));
    assert_eq!(made.iter().filter(|place| **place == child).count(), 3, "an input, two supersteps");
    let runs = |kind: &EventKind| matches!(kind, EventKind::RunStarted(_) | EventKind::RunEnded(_));
    assert!(places(&world, thread, runs).await.iter().all(Namespace::is_root));
    let query = CheckpointQuery { namespace: Some(child), ..CheckpointQuery::default() };
    let history = world.engine.ports().store.checkpoints(thread, &query).await.unwrap().items;
    let newest = &history[0].checkpoint;
    assert_eq!(newest.state()["own"], json!(1));
    assert_eq!(newest.meta.parent_graphs.keys().collect::<Vec<_>>(), [&Namespace::root()]);
    let ids: Vec<u64> = history.iter().map(|tuple| tuple.checkpoint.meta.id.0).collect();
    assert!(ids.is_sorted_by(|newer, older| newer > older), "{ids:?}");
}

const DEEP: &str = r#"
[graphs.main]
entry = "down"
[graphs.main.channels.log]
reducer = "append"
[graphs.main.nodes.down]
graph = "middle"
[graphs.middle]
entry = "down"
[graphs.middle.channels.log]
reducer = "append"
[graphs.middle.nodes.down]
graph = "low"
[graphs.low]
entry = "work"
[graphs.low.channels.log]
reducer = "append"
[graphs.low.nodes.work]
plugin = "p"
"#;

#[tokio::test]
async fn subgraphs_nest_at_any_depth() {
    let plugin = NativePlugin::new("p", "1")
        .node("work", |call, _| async move { Ok(json!({ "log": call.graph })) });
    let world = World::new(DEEP, plugin);
    let ended = world.run(json!({ "log": ["in"] })).await;
    assert_eq!(ended.state["log"], json!(["in", "low"]));
    let begun = places(&world, &ended.run.thread, |kind| matches!(kind, EventKind::TaskStarted(_)));
    let depths: Vec<usize> = begun.await.iter().map(Namespace::depth).collect();
    assert_eq!(depths, [0, 1, 2]);
}

const FAN: &str = r#"
[graphs.main]
entry = "fan"
[graphs.main.channels.log]
reducer = "append"
[graphs.main.nodes.fan]
plugin = "p"
goto = ["sub"]
[graphs.main.nodes.sub]
graph = "inner"
"#;

/// Sends the numbers below `count` to `sub`, each as `text`.
fn fan(count: u32) -> NativePlugin {
    NativePlugin::new("p", "1").node("fan", move |_, _| async move {
        let sends: Vec<Value> =
            (0..count).map(|n| json!({ "node": "sub", "input": { "text": n } })).collect();
        Ok(json!({ "$send": sends }))
    })
}

#[tokio::test]
async fn concurrent_subgraphs_write_in_the_order_of_their_tasks() {
    let plugin =
        fan(3)
            .node("one", |call, _| async move {
                Ok(json!({ "log": [["one", call.input.get("text")]] }))
            })
            .node("two", |call, _| async move {
                Ok(json!({ "log": [["two", call.input.get("text")]] }))
            });
    let world = World::new(&format!("{FAN}{INNER}"), plugin);
    let ended = world.run(json!({})).await;
    let expected = json!([["one", 0], ["two", 0], ["one", 1], ["two", 1], ["one", 2], ["two", 2]]);
    assert_eq!(ended.state["log"], expected);
}

#[tokio::test]
async fn an_input_with_an_unknown_channel_of_the_subgraph_fails_its_task() {
    let plugin = NativePlugin::new("p", "1")
        .node("fan", |_, _| async {
            Ok(json!({ "$send": [{ "node": "sub", "input": { "typo": 1 } }] }))
        })
        .node("one", |_, _| async { Ok(json!({})) })
        .node("two", |_, _| async { Ok(json!({})) });
    let world = World::new(&format!("{FAN}{INNER}"), plugin);
    let failure = failure(&world.run(json!({})).await);
    assert_eq!(failure.code, code::INVALID);
    assert!(failure.message.contains("node `sub`, which is graph `inner`"), "{failure}");
    assert!(failure.message.contains("no channel `typo`"), "{failure}");
}

#[tokio::test]
async fn own_state_persists_across_runs_and_is_separate_from_the_parent() {
    let plugin = plugin()
        .node("one", |_, _| async { Ok(json!({ "own": 1 })) })
        .node("two", |call, _| async move { Ok(json!({ "text": call.input.get("own") })) });
    let world = World::new(&graphs_with("state = \"own\""), plugin);
    let first = world.run(json!({})).await;
    assert_eq!(first.state["text"], json!(1));
    for count in 2..4 {
        let run = world.begin_on(Some(&first.run.thread), json!({})).await.unwrap();
        assert_eq!(world.engine.wait(&run).await.unwrap().state["text"], json!(count));
    }
    let made = places(&world, &first.run.thread, |kind| matches!(kind, EventKind::Checkpointed(_)));
    let nested: Vec<Namespace> = made.await.into_iter().filter(|it| !it.is_root()).collect();
    assert!(nested.iter().all(|place| place.as_str() == "sub"), "{nested:?}");
    assert_eq!(nested.len(), 9);
}

#[tokio::test]
async fn own_state_follows_a_fork_of_the_parent() {
    use wattle_run::time_travel::{ForkFrom, ForkInto, ForkThread};
    let plugin = plugin()
        .node("one", |_, _| async { Ok(json!({ "own": 1 })) })
        .node("two", |call, _| async move { Ok(json!({ "text": call.input.get("own") })) });
    let world = World::new(&graphs_with("state = \"own\""), plugin);
    let first = world.run(json!({})).await;
    let thread = first.run.thread.clone();
    let head = world.engine.ports().store.thread(&thread).await.unwrap().unwrap();
    let after_one = head.current.unwrap();
    for _ in 0..2 {
        let run = world.begin_on(Some(&thread), json!({})).await.unwrap();
        world.engine.wait(&run).await.unwrap();
    }
    let fork = ForkThread {
        run: None,
        thread: thread.clone(),
        from: ForkFrom::Checkpoint { checkpoint: after_one, input: Some(json!({})) },
        into: ForkInto::InPlace,
        options: Default::default(),
        app: None,
        tenant: None,
        principal: None,
    };
    let run = world.engine.fork(fork).await.unwrap();
    let ended = world.engine.wait(&run).await.unwrap();
    assert_eq!(ended.state["text"], json!(2), "the state after the first run");
}

#[tokio::test]
async fn a_subgraph_with_own_state_cannot_run_twice_in_a_superstep() {
    let graph = FAN.replace("graph = \"inner\"", "graph = \"inner\"\nstate = \"own\"");
    let plugin = fan(2)
        .node("one", |_, _| async { Ok(json!({})) })
        .node("two", |_, _| async { Ok(json!({})) });
    let world = World::new(&format!("{graph}{INNER}"), plugin);
    let failure = failure(&world.run(json!({})).await);
    assert_eq!(failure.code, code::INVALID);
    assert!(failure.message.contains("state of its own"), "{failure}");
}

#[tokio::test]
async fn a_subgraph_without_state_makes_no_checkpoints() {
    let world = World::new(&graphs_with("state = \"none\""), paying());
    let ended = world.run(json!({})).await;
    assert_eq!(ended.state["text"], json!(1));
    let made = places(&world, &ended.run.thread, |kind| matches!(kind, EventKind::Checkpointed(_)));
    assert!(made.await.iter().all(Namespace::is_root));
}

#[tokio::test]
async fn a_failed_run_resumes_inside_of_the_subgraph() {
    for (state, graph) in [("inherit", graphs()), ("none", graphs_with("state = \"none\""))] {
        let plugin = plugin()
            .node("one", |_, gate| async move {
                Ok(json!({ "log": said(&gate.call(prompt("one")).await?) }))
            })
            .node("two", |_, gate| async move {
                gate.call(get("https://example.com/two")).await?;
                Ok(json!({ "log": "two" }))
            });
        let mut world = World::new(&graph, plugin);
        world.net.fail_next(unavailable());
        let failed = world.run(json!({})).await;
        let why = failure(&failed);
        assert!(why.message.contains("node `sub`, which is graph `inner`: node `two`"), "{why}");
        world.crash().await;
        let ended = world.resume(&failed.run.thread, &[], Default::default()).await.unwrap();
        assert_eq!(ended.state["log"], json!(["before", "answer 1", "two", "after"]), "{state}");
        assert_eq!((world.model.calls(), world.net.calls()), (1, 2), "{state}");
    }
}

#[tokio::test]
async fn a_task_can_return_an_outcome_for_the_parent_graph() {
    let plugin = plugin()
        .node("one", |_, _| async {
            Ok(json!({ "$parent": true, "$goto": ["other"], "log": "up", "mine": "changed" }))
        })
        .node("two", |_, _| async { Err(Failure::new("oops", "never reached").into()) });
    let world = World::new(&graphs(), plugin);
    let ended = world.run(json!({})).await;
    assert_eq!(ended.outcome, RunOutcome::Completed);
    assert_eq!(ended.state["log"], json!(["before", "up", "other"]));
    assert_eq!(ended.state["mine"], json!("changed"));
}

#[tokio::test]
async fn an_outcome_for_the_parent_is_invalid_in_the_root_graph() {
    let plugin = paying().node("before", |_, _| async { Ok(json!({ "$parent": true })) });
    let failure = failure(&World::new(&graphs(), plugin).run(json!({})).await);
    assert_eq!(failure.code, code::INVALID);
    assert!(failure.message.contains("parent graph"), "{failure}");
}

#[tokio::test]
async fn each_graph_counts_its_own_supersteps() {
    let plugin = plugin()
        .node("one", |_, _| async { Ok(json!({ "$goto": ["one"] })) })
        .node("two", |_, _| async { Ok(json!({})) });
    let graph = graphs().replace("[graphs.inner]\n", "[graphs.inner]\nrecursion_limit = 3\n");
    let world = World::new(&graph, plugin);
    let ended = world.run(json!({})).await;
    assert_eq!(failure(&ended).details.unwrap()["limit"], "recursion");
    let begun = places(&world, &ended.run.thread, |kind| matches!(kind, EventKind::TaskStarted(_)));
    assert_eq!(begun.await.iter().filter(|place| !place.is_root()).count(), 3);
}

#[tokio::test]
async fn a_cancel_ends_subgraphs() {
    let plugin = plugin()
        .node("one", |_, gate| async move {
            gate.call(get("https://example.com/slow")).await?;
            Ok(json!({}))
        })
        .node("two", |_, _| async { Ok(json!({})) });
    let world = World::new(&graphs(), plugin);
    world.net.hang_next(1);
    let run = world.begin(json!({})).await.unwrap();
    world.net.hung().await;
    world.engine.cancel(&run).await.unwrap();
    assert_eq!(world.engine.wait(&run).await.unwrap().outcome, RunOutcome::Cancelled);
}

#[tokio::test]
async fn results_of_a_cancelled_subgraph_are_reused() {
    let plugin = plugin()
        .node("one", |_, gate| async move {
            Ok(json!({ "log": said(&gate.call(prompt("one")).await?) }))
        })
        .node("two", |_, gate| async move {
            gate.call(get("https://example.com/slow")).await?;
            Ok(json!({}))
        });
    let world = World::new(&graphs(), plugin);
    world.net.hang_next(1);
    let run = world.begin(json!({})).await.unwrap();
    world.net.hung().await;
    world.engine.cancel(&run).await.unwrap();
    let again = world.begin_on(Some(&run.thread), json!({})).await.unwrap();
    assert_eq!(world.engine.wait(&again).await.unwrap().outcome, RunOutcome::Completed);
    assert_eq!(world.model.calls(), 1);
}

#[tokio::test]
async fn a_subgraph_with_own_state_handles_one_failure_per_superstep() {
    const LOST: &str = r#"
[graphs.main]
entry = ENTRY
[graphs.main.channels.log]
reducer = "append"
[graphs.main.nodes.work]
plugin = "p"
node = "lose"
on_error = "sub"
[graphs.main.nodes.more]
plugin = "p"
node = "lose"
on_error = "sub"
[graphs.main.nodes.sub]
graph = "inner"
state = "own"
[[graphs.main.edges]]
from = "work"
to = "more"
"#;
    let lost = async |entry: &str| {
        let plugin =
            paying().node("lose", |_, _| async { Err(Failure::new("lost", "it is lost").into()) });
        let graph = format!("{}{INNER}", LOST.replace("ENTRY", entry));
        World::new(&graph, plugin).run(json!({})).await
    };
    let ended = lost("\"work\"").await;
    assert_eq!(ended.outcome, RunOutcome::Completed);
    assert_eq!(ended.state["log"], json!(["answer 1", "two"]));
    let failed = failure(&lost("[\"work\", \"more\"]").await);
    assert_eq!(failed.code, code::INVALID, "{failed}");
}
