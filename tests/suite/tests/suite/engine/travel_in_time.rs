//! Time travel: history, edits, and forks from checkpoints and from host calls.

mod call;
mod command;
mod edit;
mod edit_nested;
mod nested;
mod random;
mod started;

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::TryStreamExt as _;
use serde_json::{Value, json};
use wattle_graph::checkpoint::CheckpointSource;
use wattle_graph::event::{EventKind, RunReason};
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{CheckpointId, Namespace, ThreadId};
use wattle_run::export::{Export, ExportParts};
use wattle_run::hostcall::interrupt::InterruptRequest;
use wattle_run::hostcall::runs::{EndedRun, OnFailure, ResumeRun, RunOutcome, RunService};
use wattle_run::ports::BlobLinks;
use wattle_run::ports::store::{RunOptions, ThreadStatus};
use wattle_run::replay::{Against, replay_ports, replay_thread};
use wattle_run::time_travel::{ForkFrom, ForkInto, ForkThread, HistoryQuery, StateView};
use wattle_store::{InMemoryBlobs, InMemoryStore, VolatileMemory};
use wattle_suite::native::NativePlugin;
use wattle_suite::scripted::{get, prompt, said, unavailable};
use wattle_suite::world::{World, failure, questions};

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
[graphs.line.nodes.third]
plugin = "p"
[[graphs.line.edges]]
from = "first"
to = "second"
[[graphs.line.edges]]
from = "second"
to = "third"
"#;

/// Returns a plugin whose nodes append their names. The second also calls a model, and the third
/// raises an interrupt.
fn line() -> NativePlugin {
    NativePlugin::new("p", "1")
        .node("first", |_, _| async move { Ok(json!({ "trail": "first" })) })
        .node("second", |_, gate| async move {
            let answer = said(&gate.call(prompt("what now")).await?);
            Ok(json!({ "trail": answer }))
        })
        .node("third", |call, gate| async move {
            let question = json!({ "sure": call.input.get("trail") });
            let answer =
                gate.ask(InterruptRequest { payload: question, response_schema: None }).await?;
            Ok(json!({ "trail": answer, "n": 3 }))
        })
}

async fn state(world: &World, thread: &ThreadId, checkpoint: Option<u64>) -> StateView {
    let at = checkpoint.map(CheckpointId);
    world.engine.state(thread, &Namespace::root(), at).await.expect("the checkpoint exists")
}

async fn history(world: &World, thread: &ThreadId, query: HistoryQuery) -> Vec<StateView> {
    world.engine.history(thread, query).await.expect("the history can be read").items
}

fn at_checkpoint(thread: &ThreadId, checkpoint: u64, input: Option<Value>) -> ForkThread {
    ForkThread {
        run: None,
        thread: thread.clone(),
        from: ForkFrom::Checkpoint { checkpoint: CheckpointId(checkpoint), input },
        into: ForkInto::InPlace,
        app: None,
        tenant: None,
        options: RunOptions::default(),
        principal: None,
    }
}

async fn fork(world: &World, request: ForkThread) -> Result<EndedRun, Failure> {
    let run = world.engine.fork(request).await?;
    world.engine.wait(&run).await
}

/// Replays a thread from its export. There must be no divergence.
async fn replays(world: &World, thread: &ThreadId) {
    let lines = world.engine.export(thread, ExportParts::default()).await.expect("an export");
    let lines: Vec<_> = lines.try_collect().await.expect("the export can be read");
    let text = String::from_utf8(lines.concat()).expect("the export is UTF-8");
    let ports = replay_ports(
        Arc::new(InMemoryStore::new()),
        Arc::new(VolatileMemory::new()),
        Arc::new(InMemoryBlobs::new()),
        BlobLinks::new(b"test"),
        Arc::new(world.clock.clone()),
    );
    let app = world.engine.catalog().apps().remove(0);
    let export = Export::read(&text).expect("the export is complete");
    let replay = replay_thread(&export, app, ports, Against::Pinned).await;
    assert_eq!(replay.expect("the replay succeeds").divergences, []);
}

/// Returns the namespace of the subgraph that made the newest checkpoint.
async fn nested_place(world: &World, thread: &ThreadId) -> Namespace {
    let events = world.events(thread).await;
    let mut made = events.into_iter().rev().filter(|event| {
        !event.namespace.is_root() && matches!(event.kind, EventKind::Checkpointed(_))
    });
    made.next().expect("a subgraph made a checkpoint").namespace
}

async fn forks(world: &World, thread: &ThreadId) -> usize {
    world.count(thread, |kind| matches!(kind, EventKind::Forked(_))).await
}

#[tokio::test]
async fn history_shows_finished_and_next_tasks() {
    let world = World::new(LINE, line());
    let ended = world.run(json!({ "n": 1 })).await;
    let thread = &ended.run.thread;
    let now = state(&world, thread, None).await;
    assert_eq!((now.step, now.source), (2, CheckpointSource::Loop));
    assert_eq!(now.values["trail"], json!(["first", "answer 1"]));
    assert_eq!(now.next.iter().map(ToString::to_string).collect::<Vec<_>>(), ["third"]);
    assert_eq!(now.writers.iter().map(ToString::to_string).collect::<Vec<_>>(), ["second"]);
    assert_eq!(now.interrupts, questions(&ended));
    let [task] = now.tasks.as_slice() else { panic!("one task waits: {:?}", now.tasks) };
    assert_eq!((task.node.as_str(), task.index), ("third", 0));
    assert_eq!((&task.interrupts, &task.writes, &task.failure), (&now.interrupts, &None, &None));
    let all = history(&world, thread, HistoryQuery::default()).await;
    let steps: Vec<u32> = all.iter().map(|view| view.step).collect();
    assert_eq!(steps, [2, 1, 0]);
    assert_eq!(all[0], now);
    let first = &all[2];
    assert_eq!((first.source, first.parent), (CheckpointSource::Input, None));
    let written = first.tasks[0].writes.as_ref().expect("it has finished");
    assert_eq!(written[0].value, "first");
    let older =
        HistoryQuery { before: Some(now.checkpoint), limit: Some(1), ..HistoryQuery::default() };
    assert_eq!(history(&world, thread, older).await, [all[1].clone()]);
    let without = HistoryQuery { without_states: true, ..HistoryQuery::default() };
    let stateless = all.iter().map(|view| StateView { values: json!(null), ..view.clone() });
    assert_eq!(history(&world, thread, without).await, stateless.collect::<Vec<_>>());
    let other = world.engine.state(thread, &Namespace::root(), Some(CheckpointId(99))).await;
    assert_eq!(other.unwrap_err().code, code::NOT_FOUND);
}

#[tokio::test]
async fn history_filters_are_compared_as_values() {
    let world = World::new(LINE, line());
    let ended = world.run(json!({})).await;
    let thread = &ended.run.thread;
    let found = |key: &str, value: Value| {
        let filter = BTreeMap::from([(key.to_owned(), value)]);
        history(&world, thread, HistoryQuery { filter, ..HistoryQuery::default() })
    };
    assert_eq!(found("source", json!("loop")).await.len(), 2);
    assert_eq!(found("step", json!(1)).await.len(), 1);
    assert_eq!(found("run", json!(ended.run.run)).await.len(), 3);
    for key in ["') OR 1=1 --", "$.step", "%", "meta.step", "", "__proto__", "source\0"] {
        assert!(found(key, json!(1)).await.is_empty(), "{key}");
    }
    assert!(found("source", json!("loop' OR '1'='1")).await.is_empty());
    assert!(found("step", json!({ "$gt": 0 })).await.is_empty());
}

#[tokio::test]
async fn a_fork_continues_from_an_earlier_checkpoint() {
    let world = World::new(LINE, line());
    let ended = world.run(json!({})).await;
    let thread = &ended.run.thread;
    world.answer(thread, json!("yes")).await;
    assert_eq!(world.model.calls(), 1);
    let forked = fork(&world, at_checkpoint(thread, 2, None)).await.unwrap();
    assert_eq!(world.model.calls(), 2, "the second node runs again");
    let question = questions(&forked);
    assert_eq!(question[0].payload, json!({ "sure": ["first", "answer 2"] }));
    assert_ne!(question[0].id, questions(&ended)[0].id, "the interrupt is a new one");
    let ended = world.answer(thread, json!("no")).await;
    assert_eq!(ended.state["trail"], json!(["first", "answer 2", "no"]));
    assert_eq!(forks(&world, thread).await, 1);
    let copies = BTreeMap::from([("source".to_owned(), json!("fork"))]);
    let query = HistoryQuery { filter: copies, ..HistoryQuery::default() };
    let copies = history(&world, thread, query).await;
    assert_eq!(copies[0].parent, Some(CheckpointId(2)));
    let old = state(&world, thread, Some(4)).await;
    assert_eq!(old.values["trail"], json!(["first", "answer 1", "yes"]), "the old value is kept");
    let reasons = world.events(thread).await.into_iter().filter_map(|event| match event.kind {
        EventKind::RunStarted(started) => Some(started.reason),
        _ => None,
    });
    let wanted = [RunReason::Input, RunReason::Resume, RunReason::Fork, RunReason::Resume];
    assert_eq!(reasons.collect::<Vec<_>>(), wanted);
}

#[tokio::test]
async fn a_fork_with_an_input_starts_at_the_entry() {
    let world = World::new(LINE, line());
    let ended = world.run(json!({})).await;
    let thread = &ended.run.thread;
    let forked = fork(&world, at_checkpoint(thread, 2, Some(json!({ "n": 7 })))).await.unwrap();
    assert_eq!(forked.state, json!({ "n": 7, "trail": ["first", "first", "answer 2"] }));
    let refused = fork(&world, at_checkpoint(thread, 2, Some(json!({ "m": 1 })))).await;
    assert_eq!(refused.unwrap_err().code, code::INVALID);
    let view = world.engine.thread(thread).await.unwrap().unwrap();
    assert_eq!(view.status, ThreadStatus::Interrupted, "a refused fork changes nothing");
}

#[tokio::test]
async fn a_fork_without_a_next_task_is_refused() {
    let world = World::new(LINE, line());
    let ended = world.run(json!({})).await;
    let thread = &ended.run.thread;
    world.answer(thread, json!("yes")).await;
    let refused = fork(&world, at_checkpoint(thread, 4, None)).await.unwrap_err();
    assert_eq!(refused.code, code::CONFLICT);
    let refused = fork(&world, at_checkpoint(thread, 9, None)).await.unwrap_err();
    assert_eq!(refused.code, code::NOT_FOUND);
}

#[tokio::test]
async fn a_busy_thread_is_neither_forked_nor_copied() {
    let plugin = NativePlugin::new("p", "1")
        .node("first", |_, gate| async move {
            gate.call(get("https://a.example/slow")).await?;
            Ok(json!({}))
        })
        .node("second", |_, _| async move { Ok(json!({})) })
        .node("third", |_, _| async move { Ok(json!({})) });
    let world = World::new(LINE, plugin);
    world.net.hang_next(1);
    let run = world.begin(json!({})).await.unwrap();
    world.net.hung().await;
    let here = at_checkpoint(&run.thread, 1, None);
    let copy = ForkThread { into: ForkInto::Copy { thread: None }, ..here.clone() };
    for request in [here, copy] {
        assert_eq!(world.engine.fork(request).await.unwrap_err().code, code::BUSY);
    }
    world.engine.cancel(&run).await.unwrap();
}

#[tokio::test]
async fn a_fork_into_a_new_thread_does_not_change_the_old_one() {
    let world = World::new(LINE, line());
    let ended = world.run(json!({})).await;
    let thread = &ended.run.thread;
    let before = world.events(thread).await;
    let name = ThreadId::new("what if").unwrap();
    let into = ForkInto::Copy { thread: Some(name.clone()) };
    let request = ForkThread { into, ..at_checkpoint(thread, 2, None) };
    let forked = fork(&world, request.clone()).await.unwrap();
    assert_eq!(forked.run.thread, name);
    assert_eq!(forked.state["trail"], json!(["first", "answer 2"]));
    assert_eq!(world.events(thread).await, before);
    let view = world.engine.thread(thread).await.unwrap().unwrap();
    assert_eq!(view.interrupts, questions(&ended), "the interrupt is still pending");
    let taken = world.engine.fork(request).await.unwrap_err();
    assert_eq!(taken.code, code::CONFLICT);
    let nowhere =
        ForkThread { into: ForkInto::Copy { thread: None }, ..at_checkpoint(thread, 9, None) };
    assert_eq!(world.engine.fork(nowhere).await.unwrap_err().code, code::NOT_FOUND);
    let threads = world.engine.ports().store.threads(&Default::default()).await.unwrap();
    assert_eq!(threads.items.len(), 2, "a fork that failed leaves no copy");
}

const TWO: &str = r#"
[graphs.two]
entry = ["left", "right"]
[graphs.two.channels.trail]
reducer = "append"
[graphs.two.nodes.left]
plugin = "p"
[graphs.two.nodes.right]
plugin = "p"
[graphs.two.nodes.last]
plugin = "p"
[[graphs.two.edges]]
from = ["left", "right"]
to = "last"
"#;

#[tokio::test]
async fn a_failed_run_resumes_at_the_failed_superstep() {
    let plugin = NativePlugin::new("p", "1")
        .node("left", |_, gate| async move {
            Ok(json!({ "trail": said(&gate.call(prompt("left")).await?) }))
        })
        .node("right", |_, gate| async move {
            let picture = gate.call(wattle_suite::scripted::picture("right")).await?;
            gate.call(get("https://a.example/x")).await?;
            Ok(json!({ "trail": picture[0].media_type }))
        })
        .node("last", |_, _| async move { Ok(json!({ "trail": "last" })) });
    let world = World::new(TWO, plugin);
    world.net.fail_next(unavailable());
    let ended = world.run(json!({})).await;
    assert_eq!(failure(&ended).code, code::UNAVAILABLE);
    let thread = &ended.run.thread;
    let now = state(&world, thread, None).await;
    assert!(now.tasks[0].writes.is_some() && now.tasks[1].failure.is_some(), "{:?}", now.tasks);
    let resume = |recursion_limit| ResumeRun {
        run: None,
        thread: thread.clone(),
        answers: BTreeMap::new(),
        on_failure: OnFailure::Keep,
        app: None,
        tenant: None,
        options: RunOptions { recursion_limit, ..RunOptions::default() },
        principal: None,
    };
    let run = world.engine.resume(resume(Some(1))).await.unwrap();
    let ended = world.engine.wait(&run).await.unwrap();
    assert_eq!(failure(&ended).code, code::LIMIT, "the option of the run applies");
    assert_eq!((world.model.calls(), world.model.pictures(), world.net.calls()), (1, 1, 2));
    let run = world.engine.resume(resume(None)).await.unwrap();
    let ended = world.engine.wait(&run).await.unwrap();
    assert_eq!(ended.outcome, RunOutcome::Completed);
    assert_eq!(ended.state["trail"], json!(["answer 1", "image/png", "last"]));
    assert_eq!((world.model.calls(), world.model.pictures(), world.net.calls()), (1, 1, 2));
}
