//! Run options in place of the graph's settings: limits, breakpoints, drains and durability.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Notify;
use wattle_graph::checkpoint::CheckpointSource;
use wattle_graph::definition::NodeSet;
use wattle_graph::event::{EventKind, RunEnded};
use wattle_graph::failure::code;
use wattle_graph::id::{NodeName, ThreadId};
use wattle_run::hostcall::interrupt::InterruptRequest;
use wattle_run::hostcall::runs::{EndedRun, OnFailure, ResumeRun, RunOutcome, RunRef, RunService};
use wattle_run::ports::store::{CheckpointQuery, Durability, RunOptions, ThreadStatus};
use wattle_suite::native::NativePlugin;
use wattle_suite::scripted::{get, prompt, said, unavailable};
use wattle_suite::world::{World, failure, questions};

const LINE: &str = r#"
[graphs.line]
entry = "a"
interrupt_before = ["c"]
[graphs.line.channels.out]
reducer = "append"
[graphs.line.nodes.a]
plugin = "p"
node = "say"
[graphs.line.nodes.b]
plugin = "p"
node = "say"
[graphs.line.nodes.c]
plugin = "p"
node = "say"
[[graphs.line.edges]]
from = "a"
to = "b"
[[graphs.line.edges]]
from = "b"
to = "c"
"#;

fn saying() -> NativePlugin {
    NativePlugin::new("p", "1")
        .node("say", |call, _| async move { Ok(json!({ "out": call.remaining_steps })) })
}

fn nodes(names: &[&str]) -> NodeSet {
    let names = names.iter().map(|name| NodeName::new(*name).unwrap());
    NodeSet::Named(names.collect())
}

fn before(names: &[&str]) -> RunOptions {
    RunOptions { interrupt_before: Some(nodes(names)), ..RunOptions::default() }
}

fn durably(durability: Durability) -> RunOptions {
    RunOptions { durability, ..RunOptions::default() }
}

/// Resumes without answers and with run options.
async fn go_on(world: &World, thread: &ThreadId, options: RunOptions) -> EndedRun {
    let request = ResumeRun {
        run: None,
        thread: thread.clone(),
        answers: Default::default(),
        on_failure: OnFailure::Keep,
        app: None,
        tenant: None,
        options,
        principal: None,
    };
    let run = world.engine.resume(request).await.unwrap();
    world.engine.wait(&run).await.unwrap()
}

fn stopped_before(ended: &EndedRun) -> Vec<&str> {
    match &ended.outcome {
        RunOutcome::Interrupted { interrupts, next } if interrupts.is_empty() => {
            next.iter().map(NodeName::as_str).collect()
        }
        other => panic!("the run is not interrupted: {other:?}"),
    }
}

#[tokio::test]
async fn breakpoints_of_a_run_replace_those_of_the_graph_and_are_passed_once() {
    let world = World::new(LINE, saying());
    let first = world.run_as(json!({}), before(&["a", "b"])).await;
    assert_eq!(stopped_before(&first), ["a"]);
    let thread = &first.run.thread;
    let second = go_on(&world, thread, before(&["a", "b"])).await;
    assert_eq!(stopped_before(&second), ["b"]);
    let third = go_on(&world, thread, RunOptions::default()).await;
    assert_eq!(stopped_before(&third), ["c"], "of the graph");
    assert_eq!(go_on(&world, thread, before(&["c"])).await.outcome, RunOutcome::Completed);
}

#[tokio::test]
async fn breakpoints_for_all_nodes_stop_at_every_node() {
    let world = World::new(LINE, saying());
    let all = || RunOptions {
        interrupt_before: Some(NodeSet::All),
        interrupt_after: Some(NodeSet::All),
        ..RunOptions::default()
    };
    let mut ended = world.run_as(json!({}), all()).await;
    let mut stops = Vec::new();
    while ended.outcome != RunOutcome::Completed {
        stops.push(stopped_before(&ended)[0].to_owned());
        ended = go_on(&world, &ended.run.thread, all()).await;
    }
    // After one node and before the next is the same stop.
    assert_eq!(stops, ["a", "b", "c"]);
}

#[tokio::test]
async fn invalid_options_are_refused() {
    let world = World::new(LINE, saying());
    let refused = world.begin_as(json!({}), before(&["nowhere"])).await.unwrap_err();
    assert_eq!(refused.code, code::INVALID);
    assert!(refused.message.contains("`nowhere`") && refused.message.contains("`a`"), "{refused}");
    let none = RunOptions { max_concurrency: Some(0), ..RunOptions::default() };
    let refused = world.begin_as(json!({}), none).await.unwrap_err();
    assert!(refused.message.contains("`max_concurrency`"), "{refused}");
}

#[tokio::test]
async fn the_recursion_limit_of_a_run_is_visible_to_nodes_and_ends_the_run() {
    let world = World::new(LINE, saying());
    let limit = |steps| RunOptions { recursion_limit: Some(steps), ..before(&[]) };
    let ended = world.run_as(json!({}), limit(5)).await;
    assert_eq!(ended.state["out"], json!([4, 3, 2]));
    let ended = world.run_as(json!({}), limit(2)).await;
    let failed = failure(&ended);
    assert_eq!(failed.details.unwrap()["limit"], "recursion");
    let ended = go_on(&world, &ended.run.thread, limit(1)).await;
    assert_eq!((ended.outcome, &ended.state["out"]), (RunOutcome::Completed, &json!([1, 0, 0])));
}

/// Returns a plugin whose node `say` waits in superstep 1 until it is released.
fn waiting() -> (NativePlugin, Arc<Notify>, Arc<Notify>) {
    let (began, goes_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (begins, waits) = (began.clone(), goes_on.clone());
    let plugin = NativePlugin::new("p", "1").node("say", move |call, _| {
        let (begins, waits) = (begins.clone(), waits.clone());
        async move {
            if call.step == 1 {
                begins.notify_one();
                waits.notified().await;
            }
            Ok(json!({ "out": call.step }))
        }
    });
    (plugin, began, goes_on)
}

async fn ends(world: &World, thread: &ThreadId) -> Vec<RunEnded> {
    let events = world.events(thread).await;
    let ends = events.into_iter().filter_map(|event| match event.kind {
        EventKind::RunEnded(ended) => Some(ended),
        _ => None,
    });
    ends.collect()
}

#[tokio::test]
async fn a_drained_run_ends_its_superstep_and_can_be_resumed() {
    let (plugin, began, goes_on) = waiting();
    let world = World::new(LINE, plugin);
    let run = world.begin_as(json!({}), before(&[])).await.unwrap();
    began.notified().await;
    world.engine.drain(&run).await.unwrap();
    goes_on.notify_one();
    let drained = world.engine.wait(&run).await.unwrap();
    assert_eq!((stopped_before(&drained), &drained.state["out"]), (vec!["c"], &json!([0, 1])));
    assert!(ends(&world, &run.thread).await[0].drained);
    let view = world.engine.thread(&run.thread).await.unwrap().unwrap();
    assert_eq!((view.status, view.expires_ms), (ThreadStatus::Interrupted, None));
    world.engine.drain(&run).await.expect("a run that has ended may be drained");
    // The drain did not stop at the breakpoint, so the resumed run stops there once.
    let stopped = go_on(&world, &run.thread, RunOptions::default()).await;
    assert_eq!(stopped_before(&stopped), ["c"]);
    let ended = go_on(&world, &run.thread, RunOptions::default()).await;
    assert_eq!((ended.outcome, &ended.state["out"]), (RunOutcome::Completed, &json!([0, 1, 2])));
}

#[tokio::test]
async fn a_run_that_does_not_exist_cannot_be_drained() {
    let world = World::new(LINE, saying());
    let ended = world.run(json!({})).await;
    let other = RunRef { thread: ThreadId::new("other").unwrap(), run: ended.run.run };
    assert_eq!(world.engine.drain(&other).await.unwrap_err().code, code::NOT_FOUND);
}

#[tokio::test]
async fn a_shutdown_ends_supersteps_and_the_runs_are_recovered() {
    for durability in [Durability::Commit, Durability::Exit] {
        let (plugin, began, goes_on) = waiting();
        let mut world = World::new(LINE, plugin);
        let options = RunOptions { durability, ..before(&[]) };
        let run = world.begin_as(json!({}), options).await.unwrap();
        began.notified().await;
        let engine = world.engine.clone();
        let mut down = Box::pin(engine.shutdown(Duration::MAX));
        assert!(futures::poll!(&mut down).is_pending(), "the stop waits for the superstep");
        assert_eq!(world.begin(json!({})).await.unwrap_err().code, code::UNAVAILABLE);
        goes_on.notify_one();
        down.await;
        let tasks = |kind: &EventKind| matches!(kind, EventKind::TaskFinished(_));
        assert_eq!(world.count(&run.thread, tasks).await, 2, "not the third");
        assert!(ends(&world, &run.thread).await.is_empty(), "the run has not ended");
        world.crash().await;
        assert_eq!(world.engine.recover().await, 1);
        let ended = world.engine.wait(&run).await.unwrap();
        assert_eq!(
            (ended.outcome, &ended.state["out"]),
            (RunOutcome::Completed, &json!([0, 1, 2]))
        );
        assert_eq!(world.count(&run.thread, tasks).await, 3, "no task ran twice");
    }
}

const PAYING: &str = r#"
[graphs.paying]
entry = "a"
[graphs.paying.channels.out]
reducer = "append"
[graphs.paying.channels.kept]
default = "as it was"
[graphs.paying.nodes.a]
plugin = "p"
node = "pay"
[graphs.paying.nodes.b]
plugin = "p"
node = "pay"
[graphs.paying.nodes.side]
plugin = "p"
node = "pay"
[graphs.paying.nodes.c]
plugin = "p"
node = "last"
[[graphs.paying.edges]]
from = "a"
to = ["b", "side"]
[[graphs.paying.edges]]
from = ["b", "side"]
to = "c"
"#;

/// Returns a plugin whose nodes each make a model call. The node `last` makes another call, which
/// may hang or fail, and raises an interrupt if its context requests it.
fn paying() -> NativePlugin {
    NativePlugin::new("p", "1")
        .node("pay", |_, gate| async move {
            Ok(json!({ "out": said(&gate.call(prompt("pay")).await?) }))
        })
        .node("last", |call, gate| async move {
            let said = said(&gate.call(prompt("last")).await?);
            gate.call(get("https://example.com/slow")).await?;
            if call.context["asks"] == json!(true) {
                let payload = json!("sure?");
                gate.ask(InterruptRequest { payload, response_schema: None }).await?;
            }
            Ok(json!({ "out": said }))
        })
}

/// Returns ids and parents of the stored checkpoints, oldest first.
async fn stored(world: &World, thread: &ThreadId) -> Vec<(u64, Option<u64>)> {
    let store = &world.engine.ports().store;
    let tuples = store.checkpoints(thread, &CheckpointQuery::default()).await.unwrap().items;
    let ids = tuples.iter().rev().map(|tuple| &tuple.checkpoint.meta);
    ids.map(|meta| (meta.id.0, meta.parent.map(|id| id.0))).collect()
}

fn sorted(state: &Value) -> Vec<String> {
    let mut out: Vec<String> = serde_json::from_value(state["out"].clone()).unwrap();
    out.sort();
    out
}

#[tokio::test]
async fn all_durabilities_lead_to_the_same_state_and_events() {
    let mut seen = Vec::new();
    for durability in [Durability::Commit, Durability::Sync, Durability::Async, Durability::Exit] {
        let world = World::new(PAYING, paying());
        let ended = world.run_as(json!({}), durably(durability)).await;
        assert_eq!(ended.outcome, RunOutcome::Completed);
        assert_eq!(sorted(&ended.state), ["answer 1", "answer 2", "answer 3", "answer 4"]);
        let view = world.engine.thread(&ended.run.thread).await.unwrap().unwrap();
        assert_eq!(view.state, ended.state, "the stored state is the reported one");
        let told = |kind: &EventKind| !matches!(kind, EventKind::Streamed(_));
        seen.push((
            world.count(&ended.run.thread, told).await,
            stored(&world, &ended.run.thread).await.len(),
        ));
    }
    let [commit, sync, asynchronous, exit] = seen[..] else { unreachable!() };
    assert_eq!((commit, sync.0, asynchronous.0), (sync, commit.0, commit.0));
    assert_eq!((commit.1, exit), (4, (commit.0, 2)), "only the input and the end are stored");
}

#[tokio::test]
async fn a_run_with_durability_exit_replays_its_journal_after_a_crash() {
    let mut world = World::new(PAYING, paying());
    world.net.hang_next(2);
    let run = world.begin_as(json!({}), durably(Durability::Exit)).await.unwrap();
    for _ in 0..2 {
        world.net.hung().await;
        assert_eq!(stored(&world, &run.thread).await.len(), 1);
        world.crash().await;
        assert_eq!(world.engine.recover().await, 1);
    }
    let ended = world.engine.wait(&run).await.unwrap();
    assert_eq!(ended.outcome, RunOutcome::Completed);
    assert_eq!(sorted(&ended.state), ["answer 1", "answer 2", "answer 3", "answer 4"]);
    assert_eq!(world.model.calls(), 4, "no call is repeated");
    let finished = |kind: &EventKind| matches!(kind, EventKind::TaskFinished(_));
    assert_eq!(world.count(&run.thread, finished).await, 4, "finished tasks do not run again");
    let made = |kind: &EventKind| matches!(kind, EventKind::Checkpointed(made) if made.source == CheckpointSource::Loop);
    assert_eq!(world.count(&run.thread, made).await, 3, "each superstep is reported once");
    assert_eq!(stored(&world, &run.thread).await, [(1, None), (4, Some(1))]);
    assert_eq!(ended.state["kept"], "as it was");
}

#[tokio::test]
async fn an_interrupt_with_durability_exit_repeats_no_call() {
    let mut world = World::new(PAYING, paying());
    let request = wattle_run::hostcall::runs::StartRun {
        context: json!({ "asks": true }),
        options: durably(Durability::Exit),
        ..world.request(None, json!({}))
    };
    let run = world.engine.start(request).await.unwrap();
    let first = world.engine.wait(&run).await.unwrap();
    assert_eq!(questions(&first)[0].payload, "sure?");
    assert_eq!(stored(&world, &run.thread).await, [(1, None), (3, Some(1))]);
    world.crash().await;
    let view = world.engine.thread(&run.thread).await.unwrap().unwrap();
    assert_eq!((view.interrupts.len(), sorted(&view.state).len()), (1, 3));
    let ended = world.answer(&run.thread, json!("yes")).await;
    assert_eq!(ended.outcome, RunOutcome::Completed);
    assert_eq!((world.model.calls(), world.net.calls()), (4, 1));
}

#[tokio::test]
async fn a_failed_run_with_durability_exit_is_resumed_at_the_failed_superstep() {
    let world = World::new(PAYING, paying());
    world.net.fail_next(unavailable());
    let failed = world.run_as(json!({}), durably(Durability::Exit)).await;
    failure(&failed);
    assert_eq!(stored(&world, &failed.run.thread).await, [(1, None), (3, Some(1))]);
    let ended = go_on(&world, &failed.run.thread, durably(Durability::Exit)).await;
    assert_eq!(ended.outcome, RunOutcome::Completed);
    assert_eq!(world.model.calls(), 4);
    assert_eq!(stored(&world, &failed.run.thread).await, [(1, None), (3, Some(1)), (4, Some(3))]);
}

const NESTED: &str = r#"
[graphs.main]
entry = "a"
[graphs.main.channels.out]
reducer = "append"
[graphs.main.nodes.a]
plugin = "p"
node = "pay"
[graphs.main.nodes.sub]
graph = "inner"
state = "inherit"
[graphs.main.nodes.c]
plugin = "p"
node = "last"
[[graphs.main.edges]]
from = "a"
to = "sub"
[[graphs.main.edges]]
from = "sub"
to = "c"
[graphs.inner]
entry = "one"
[graphs.inner.channels.out]
reducer = "append"
[graphs.inner.nodes.one]
plugin = "p"
node = "pay"
[graphs.inner.nodes.two]
plugin = "p"
node = "last"
[[graphs.inner.edges]]
from = "one"
to = "two"
"#;

#[tokio::test]
async fn subgraphs_with_durability_exit_repeat_no_call_after_a_crash() {
    for state in ["inherit", "own", "none"] {
        let graph = NESTED.replace("state = \"inherit\"", &format!("state = \"{state}\""));
        let mut world = World::new(&graph, paying());
        world.net.hang_next(2);
        let run = world.begin_as(json!({}), durably(Durability::Exit)).await.unwrap();
        for _ in 0..2 {
            world.net.hung().await;
            world.crash().await;
            assert_eq!(world.engine.recover().await, 1);
        }
        let ended = world.engine.wait(&run).await.unwrap();
        assert_eq!(ended.outcome, RunOutcome::Completed, "{state}");
        let all = json!(["answer 1", "answer 2", "answer 3", "answer 4"]);
        assert_eq!((&ended.state["out"], world.model.calls()), (&all, 4), "{state}");
        let view = world.engine.thread(&run.thread).await.unwrap().unwrap();
        assert_eq!(view.state, ended.state, "{state}");
    }
}

#[tokio::test]
async fn a_drained_run_stops_inside_of_a_subgraph() {
    let more = "[graphs.inner.nodes.three]\nplugin = \"p\"\nnode = \"pay\"\n\
                [[graphs.inner.edges]]\nfrom = \"two\"\nto = \"three\"\n";
    let graph = format!("{}{more}", NESTED.replace("node = \"last\"", "node = \"say\""));
    let (plugin, began, goes_on) = waiting();
    let plugin = plugin.node("pay", |_, _| async { Ok(json!({ "out": "x" })) });
    let mut world = World::new(&graph, plugin);
    let run = world.begin(json!({})).await.unwrap();
    began.notified().await;
    world.engine.drain(&run).await.unwrap();
    goes_on.notify_one();
    let drained = world.engine.wait(&run).await.unwrap();
    assert_eq!(stopped_before(&drained), ["sub"], "its subgraph has a node to run");
    assert!(ends(&world, &run.thread).await[0].drained);
    world.crash().await;
    let ended = go_on(&world, &run.thread, RunOptions::default()).await;
    assert_eq!(ended.outcome, RunOutcome::Completed);
    let finished = |kind: &EventKind| matches!(kind, EventKind::TaskFinished(_));
    assert_eq!(world.count(&run.thread, finished).await, 6, "each task runs once");
}

#[tokio::test]
async fn a_reopened_run_with_durability_exit_does_not_affect_the_next_run() {
    const ASKED: &str = r#"
[graphs.asked]
entry = "ask"
[graphs.asked.channels.out]
reducer = "append"
[graphs.asked.nodes.ask]
plugin = "p"
[graphs.asked.nodes.pay]
plugin = "p"
[[graphs.asked.edges]]
from = "ask"
to = "pay"
"#;
    let plugin = NativePlugin::new("p", "1")
        .node("ask", |_, gate| async move {
            let answer = gate
                .ask(InterruptRequest { payload: json!("what?"), response_schema: None })
                .await?;
            Ok(json!({ "out": answer }))
        })
        .node("pay", |call, gate| async move {
            let said = said(&gate.call(prompt(&call.input.get("out").to_string())).await?);
            gate.call(get("https://example.com/a")).await?;
            Ok(json!({ "out": said }))
        });
    let world = World::new(ASKED, plugin);
    let first = world.run(json!({})).await;
    let answer = async |answer: &str| {
        let request = ResumeRun {
            run: None,
            thread: first.run.thread.clone(),
            answers: [(String::new(), json!(answer))].into(),
            on_failure: OnFailure::Reopen,
            app: None,
            tenant: None,
            options: durably(Durability::Exit),
            principal: None,
        };
        let run = world.engine.resume(request).await.unwrap();
        world.engine.wait(&run).await.unwrap()
    };
    world.net.fail_next(unavailable());
    failure(&answer("one").await);
    let ended = answer("two").await;
    assert_eq!(ended.state["out"], json!(["two", "answer 2"]));
    let thread = &first.run.thread;
    world.engine.wait(&world.begin_on(Some(thread), json!({})).await.unwrap()).await.unwrap();
    world.net.fail_next(unavailable());
    failure(&answer("three").await);
    world.engine.wait(&world.begin_on(Some(thread), json!({})).await.unwrap()).await.unwrap();
    let events = world.events(thread).await;
    let made: Vec<u64> = events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::Checkpointed(made) => Some(made.checkpoint.0),
            _ => None,
        })
        .collect();
    assert!(made.is_sorted_by(|one, next| one < next), "no number is used twice: {made:?}");
}

#[tokio::test]
async fn a_run_with_durability_async_is_durable_at_its_end() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let plugin = NativePlugin::new("p", "1")
        .node("pay", move |_, _| {
            counted.fetch_add(1, Ordering::SeqCst);
            async { Ok(json!({ "out": "x" })) }
        })
        .node("last", |_, _| async { Ok(json!({ "out": "y" })) });
    let mut world = World::new(PAYING, plugin);
    let ended = world.run_as(json!({}), durably(Durability::Async)).await;
    world.crash().await;
    assert_eq!(world.engine.recover().await, 0);
    let view = world.engine.thread(&ended.run.thread).await.unwrap().unwrap();
    assert_eq!((view.status, view.state), (ThreadStatus::Idle, ended.state));
    assert_eq!(calls.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn interrupts_of_a_reopened_superstep_are_not_pending() {
    const LATER: &str = r#"
[graphs.main]
entry = "ask"
[graphs.main.channels.out]
reducer = "append"
[graphs.main.nodes.ask]
plugin = "p"
[graphs.main.nodes.sub]
graph = "inner"
[graphs.main.nodes.tell]
plugin = "p"
[[graphs.main.edges]]
from = "ask"
to = ["sub", "tell"]
[graphs.inner]
entry = "ask"
[graphs.inner.channels.out]
reducer = "append"
[graphs.inner.nodes.ask]
plugin = "p"
"#;
    let plugin = NativePlugin::new("p", "1")
        .node("ask", |call, gate| async move {
            let payload = json!(call.graph);
            gate.ask(InterruptRequest { payload, response_schema: None }).await?;
            Ok(json!({}))
        })
        .node("tell", |_, gate| async move {
            gate.call(get("https://example.com/tell")).await?;
            Ok(json!({}))
        });
    let world = World::new(LATER, plugin);
    let first = world.run(json!({})).await;
    world.net.fail_next(unavailable());
    let request = ResumeRun {
        run: None,
        thread: first.run.thread.clone(),
        answers: [(String::new(), json!("yes"))].into(),
        on_failure: OnFailure::Reopen,
        app: None,
        tenant: None,
        options: durably(Durability::Exit),
        principal: None,
    };
    let run = world.engine.resume(request).await.unwrap();
    failure(&world.engine.wait(&run).await.unwrap());
    let view = world.engine.thread(&run.thread).await.unwrap().unwrap();
    let open: Vec<&Value> = view.interrupts.iter().map(|it| &it.payload).collect();
    assert_eq!(open, ["main"]);
}
