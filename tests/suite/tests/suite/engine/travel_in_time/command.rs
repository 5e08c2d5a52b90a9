//! Commands: pending tasks continue together with the named nodes, and see the writes.

use std::sync::Arc;

use serde_json::{Value, json};
use wattle_graph::checkpoint::CheckpointSource;
use wattle_graph::event::{EventKind, Write};
use wattle_graph::failure::code;
use wattle_graph::id::{ChannelName, CheckpointId, NodeName, ThreadId};
use wattle_graph::step::Command;
use wattle_run::grant::{Grants, InDoubtPolicy};
use wattle_run::hostcall::http::HttpRequest;
use wattle_run::hostcall::interrupt::InterruptRequest;
use wattle_run::hostcall::runs::{OnFailure, RunOutcome, RunRef, RunService as _};
use wattle_run::ports::store::{RunAnswers, RunKind};
use wattle_suite::native::NativePlugin;
use wattle_suite::scripted::{NoSql, get, prompt, said};
use wattle_suite::world::{World, questions};

use super::{replays, state};

const FAN: &str = r#"
[graphs.fan]
entry = ["a", "b"]
[graphs.fan.channels.trail]
reducer = "append"
[graphs.fan.channels.n]
[graphs.fan.nodes.a]
plugin = "p"
goto = "c"
[graphs.fan.nodes.b]
plugin = "p"
[graphs.fan.nodes.c]
plugin = "p"
"#;

const NESTED: &str = r#"
[graphs.outer]
entry = "inner"
[graphs.outer.channels.trail]
reducer = "append"
[graphs.outer.nodes.inner]
graph = "inside"
goto = "c"
[graphs.outer.nodes.c]
plugin = "p"

[graphs.inside]
entry = "a"
[graphs.inside.channels.trail]
reducer = "append"
[graphs.inside.nodes.a]
plugin = "p"
goto = "b"
[graphs.inside.nodes.b]
plugin = "p"
[[graphs.inside.edges]]
from = "a"
to = "b"
"#;

const PAYS: &str = r#"
[graphs.pays]
entry = "work"
[graphs.pays.channels.n]
[graphs.pays.channels.out]
[graphs.pays.nodes.work]
plugin = "p"
"#;

/// Returns a plugin whose second node calls a model and then raises an interrupt.
fn plugin() -> NativePlugin {
    NativePlugin::new("p", "1")
        .node("a", |_, _| async move { Ok(json!({ "trail": "a" })) })
        .node("b", |_, gate| async move {
            let answer = said(&gate.call(prompt("what now")).await?);
            let question = InterruptRequest { payload: json!("sure?"), response_schema: None };
            let sure = gate.ask(question).await?;
            Ok(json!({ "trail": format!("{answer}, {}", sure.as_str().unwrap_or("?")) }))
        })
        .node(
            "c",
            |call, _| async move { Ok(json!({ "trail": format!("c {}", call.input.get("n")) })) },
        )
}

fn command(goto: &[&str], n: Option<u32>) -> Command {
    let write = |n: u32| Write {
        channel: ChannelName::new("n").unwrap(),
        value: n.into(),
        overwrite: false,
    };
    Command {
        writes: n.into_iter().map(write).collect(),
        goto: goto.iter().map(|name| NodeName::new(name).unwrap()).collect(),
        ..Command::default()
    }
}

/// Returns a run that executes a command at the current checkpoint.
fn run_of(command: Command) -> RunKind {
    RunKind::Command { command, answer: None, checkpoint: None }
}

/// Returns a run that executes a command and answers an interrupt; with an empty id, the only one.
fn answering(command: Command, id: &str, answer: Value) -> RunKind {
    let answer = Some(RunAnswers::ById([(id.to_owned(), answer)].into()));
    RunKind::Command { command, answer, checkpoint: None }
}

/// Returns the number of executions of a node.
async fn begun(world: &World, thread: &ThreadId, node: &str) -> usize {
    let is_new = |kind: &EventKind| match kind {
        EventKind::TaskFinished(done) => done.node.as_str() == node && !done.cached,
        _ => false,
    };
    world.count(thread, is_new).await
}

#[tokio::test]
async fn pending_tasks_continue_together_with_named_nodes() {
    let world = World::new(FAN, plugin());
    let asked = world.run(json!({})).await;
    let thread = &asked.run.thread;
    let run = answering(command(&["c"], None), "", json!("yes"));
    let ended = world.run_on(thread, run).await.unwrap();
    assert_eq!(ended.outcome, RunOutcome::Completed);
    let trail = json!(["a", "answer 1, yes", "c null"]);
    assert_eq!(ended.state["trail"], trail, "the model call is not repeated");
    assert_eq!(begun(&world, thread, "a").await, 1, "the task had finished");
    let fork = state(&world, thread, Some(2)).await;
    assert_eq!((fork.source, fork.parent), (CheckpointSource::Fork, Some(CheckpointId(1))));
    replays(&world, thread).await;
}

#[tokio::test]
async fn tasks_that_read_written_channels_restart_with_their_answers() {
    let world = World::new(FAN, plugin());
    let asked = world.run(json!({})).await;
    let thread = &asked.run.thread;
    let run = answering(command(&["c"], Some(7)), "", json!("yes"));
    let ended = world.run_on(thread, run).await.unwrap();
    assert_eq!(ended.outcome, RunOutcome::Completed);
    assert_eq!(ended.state["trail"], json!(["a", "answer 2, yes", "c 7"]));
    assert_eq!(begun(&world, thread, "a").await, 1, "the task had finished");
}

#[tokio::test]
async fn interrupts_stay_pending_and_can_be_answered_later() {
    let world = World::new(FAN, plugin());
    let asked = world.run(json!({})).await;
    let thread = &asked.run.thread;
    let still = world.run_on(thread, run_of(command(&["c"], None))).await.unwrap();
    let [open] = questions(&still).try_into().unwrap();
    assert_eq!(open.payload, json!("sure?"));
    assert_eq!(still.state["trail"], Value::Null);
    let ended = world.resume(thread, &[("", json!("no"))], OnFailure::Keep).await.unwrap();
    assert_eq!(ended.state["trail"], json!(["a", "answer 1, no", "c null"]));
    replays(&world, thread).await;
}

#[tokio::test]
async fn a_subgraph_continues_at_its_current_checkpoint() {
    let world = World::new(NESTED, plugin());
    let mut start = world.request(None, json!({}));
    start.graph = Some("outer".parse().unwrap());
    let run = world.engine.start(start).await.unwrap();
    let asked = world.engine.wait(&run).await.unwrap();
    let thread = &asked.run.thread;
    assert_eq!(questions(&asked).len(), 1);
    let run = answering(command(&["c"], None), "", json!("yes"));
    let ended = world.run_on(thread, run).await.unwrap();
    assert_eq!(ended.outcome, RunOutcome::Completed);
    assert_eq!(ended.state["trail"], json!(["c null", "a", "answer 1, yes"]));
    assert_eq!(begun(&world, thread, "a").await, 1);
    replays(&world, thread).await;
}

#[tokio::test]
async fn all_tasks_restart_at_an_earlier_checkpoint() {
    let world = World::new(FAN, plugin());
    let asked = world.run(json!({})).await;
    let thread = &asked.run.thread;
    let first = state(&world, thread, None).await.checkpoint;
    let now = answering(command(&["c"], None), "", json!("yes"));
    world.run_on(thread, now).await.unwrap();
    let past = |answer: Option<RunAnswers>| {
        let command = command(&[], Some(1));
        world.run_on(thread, RunKind::Command { command, answer, checkpoint: Some(first) })
    };
    let yes = RunAnswers::ById([(String::new(), json!("yes"))].into());
    let refused = past(Some(yes)).await.unwrap_err();
    assert_eq!(refused.code, code::CONFLICT);
    let asked = past(None).await.unwrap();
    assert_eq!(questions(&asked).len(), 1);
    assert_eq!(begun(&world, thread, "a").await, 2);
}

#[tokio::test]
async fn an_invalid_command_changes_nothing() {
    let world = World::new(FAN, plugin());
    let asked = world.run(json!({})).await;
    let thread = &asked.run.thread;
    let before = world.events(thread).await;
    let mut wrong = command(&[], Some(1));
    wrong.writes[0].channel = ChannelName::new("nothing").unwrap();
    let unknown = answering(command(&["c"], None), "nobody", json!(1));
    for (refused, expected) in [
        (run_of(command(&["nowhere"], None)), code::INVALID),
        (run_of(wrong), code::INVALID),
        (unknown, code::CONFLICT),
    ] {
        assert_eq!(world.run_on(thread, refused).await.unwrap_err().code, expected);
    }
    assert_eq!(world.events(thread).await, before);
}

/// Starts a run whose payment is in progress.
async fn paying() -> (World, RunRef) {
    let plugin = NativePlugin::new("p", "1").node("work", |_, gate| async move {
        let post = HttpRequest { method: "POST".into(), ..get("https://example.com/slow-pay") };
        let answer = gate.call(post).await?;
        Ok(json!({ "out": answer.status }))
    });
    let grants = Grants { in_doubt: InDoubtPolicy::Ask, ..Grants::default() };
    let world = World::with_sql(PAYS, plugin, Arc::new(NoSql), grants);
    world.net.hang_next(1);
    let run = world.begin(json!({})).await.unwrap();
    world.net.hung().await;
    (world, run)
}

#[tokio::test]
async fn a_command_does_not_restart_a_task_with_a_call_in_doubt() {
    let (mut world, run) = paying().await;
    world.crash().await;
    assert_eq!(world.engine.recover().await, 1);
    assert_eq!(questions(&world.engine.wait(&run).await.unwrap()).len(), 1);
    let write = command(&[], Some(7));
    let decided = answering(write.clone(), "", json!({ "kind": "fail" }));
    for refused in [run_of(write), decided] {
        let refused = world.run_on(&run.thread, refused).await;
        assert_eq!(refused.unwrap_err().code, code::CONFLICT);
    }
    assert_eq!(world.net.calls(), 1);
    let ended = world.answer(&run.thread, json!({ "kind": "retry" })).await;
    assert_eq!((ended.state["out"].clone(), world.net.calls()), (json!(200), 2));
}

#[tokio::test]
async fn a_command_does_not_restart_a_task_with_a_call_of_a_cancelled_run() {
    let (world, run) = paying().await;
    world.engine.cancel(&run).await.unwrap();
    let refused = world.run_on(&run.thread, run_of(command(&[], Some(7)))).await;
    assert_eq!(refused.unwrap_err().code, code::CONFLICT);
    assert_eq!(world.net.calls(), 1);
}
