//! Edits: as a node, as an input, as the end; several at once; of earlier checkpoints and of new
//! threads.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wattle_graph::checkpoint::CheckpointSource;
use wattle_graph::event::Write;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{AppName, ChannelName, CheckpointId, Namespace, NodeName, ThreadId};
use wattle_graph::step::{Edit, EditAs};
use wattle_run::hostcall::runs::{EndedRun, OnFailure, RunOutcome, RunService};
use wattle_run::ports::store::ThreadStatus;
use wattle_run::time_travel::{EditThread, HistoryQuery, StateView};
use wattle_suite::native::NativePlugin;
use wattle_suite::world::World;

use super::{LINE, forks, history, line, state};

pub(super) fn request(thread: &ThreadId, supersteps: Vec<Vec<Edit>>) -> EditThread {
    EditThread {
        thread: thread.clone(),
        app: None,
        graph: None,
        tenant: None,
        namespace: Namespace::root(),
        checkpoint: None,
        supersteps,
        metadata: BTreeMap::new(),
        principal: None,
    }
}

pub(super) fn edit(as_node: EditAs, writes: &[(&str, Value)]) -> Edit {
    let write = |(channel, value): &(&str, Value)| Write {
        channel: ChannelName::new(channel).unwrap(),
        value: value.clone(),
        overwrite: false,
    };
    Edit { as_node, writes: writes.iter().map(write).collect() }
}

fn node(name: &str) -> EditAs {
    EditAs::Node(NodeName::new(name).unwrap())
}

async fn apply(world: &World, thread: &ThreadId, edits: Vec<Edit>) -> Result<StateView, Failure> {
    world.engine.edit(request(thread, vec![edits])).await
}

fn next(view: &StateView) -> Vec<&str> {
    view.next.iter().map(NodeName::as_str).collect()
}

async fn go_on(world: &World, thread: &ThreadId) -> EndedRun {
    world.resume(thread, &[], OnFailure::Keep).await.expect("the thread resumes")
}

#[tokio::test]
async fn an_edit_as_a_node_follows_the_edges_of_the_node() {
    let world = World::new(LINE, line());
    let ended = world.run(json!({})).await;
    let thread = &ended.run.thread;
    let edited = apply(&world, thread, vec![edit(node("first"), &[("trail", json!("mine"))])])
        .await
        .unwrap();
    assert_eq!((edited.source, next(&edited)), (CheckpointSource::Update, vec!["second"]));
    assert_eq!(edited.values["trail"], json!(["first", "answer 1", "mine"]));
    assert!(edited.interrupts.is_empty(), "pending interrupts are discarded");
    let view = world.engine.thread(thread).await.unwrap().unwrap();
    assert_eq!((view.status, view.run), (ThreadStatus::Interrupted, Some(ended.run.run.clone())));
    let ended = go_on(&world, thread).await;
    assert_eq!(ended.state["trail"], json!(["first", "answer 1", "mine", "answer 2"]));
}

#[tokio::test]
async fn an_edit_without_a_node_counts_as_the_only_writer() {
    let world = World::new(LINE, line());
    let ended = world.run(json!({})).await;
    let edits = vec![edit(EditAs::Infer, &[("trail", json!("mine"))])];
    let edited = apply(&world, &ended.run.thread, edits).await.unwrap();
    assert_eq!(next(&edited), ["third"], "the edges of the second node");
}

const FAN: &str = r#"
[graphs.fan]
entry = ["a", "b"]
[graphs.fan.channels.trail]
reducer = "append"
[graphs.fan.nodes.a]
plugin = "p"
[graphs.fan.nodes.b]
plugin = "p"
"#;

#[tokio::test]
async fn ambiguous_edits_name_the_candidates() {
    let plugin = NativePlugin::new("p", "1")
        .node("a", |_, _| async move { Ok(json!({ "trail": "a" })) })
        .node("b", |_, _| async move { Ok(json!({ "trail": "b" })) });
    let world = World::new(FAN, plugin);
    let ended = world.run(json!({})).await;
    let edits = vec![edit(EditAs::Infer, &[("trail", json!("mine"))])];
    let refused = apply(&world, &ended.run.thread, edits).await.unwrap_err();
    assert_eq!(refused.code, code::INVALID);
    let details = refused.details.unwrap();
    assert_eq!(details["candidates"], json!(["a", "b"]));
}

#[tokio::test]
async fn edits_can_end_copy_and_restart_a_thread() {
    let world = World::new(LINE, line());
    let ended = world.run(json!({})).await;
    let thread = &ended.run.thread;
    let copied = apply(&world, thread, vec![edit(EditAs::Copy, &[])]).await.unwrap();
    assert_eq!((next(&copied), &copied.values), (vec!["third"], &ended.state));
    let over = apply(&world, thread, vec![edit(EditAs::End, &[])]).await.unwrap();
    assert!(over.next.is_empty() && over.tasks.is_empty());
    let view = world.engine.thread(thread).await.unwrap().unwrap();
    assert_eq!(view.status, ThreadStatus::Idle);
    let refused = world.resume(thread, &[], OnFailure::Keep).await.unwrap_err();
    assert_eq!(refused.code, code::CONFLICT, "no task is left to run");
    let edits = vec![edit(EditAs::Input, &[("n", json!(5))])];
    let begun = apply(&world, thread, edits).await.unwrap();
    assert_eq!((next(&begun), &begun.values["n"]), (vec!["first"], &json!(5)));
}

#[tokio::test]
async fn several_edits_are_atomic() {
    let world = World::new(LINE, line());
    let ended = world.run(json!({})).await;
    let thread = &ended.run.thread;
    let before = world.events(thread).await;
    let good = vec![edit(node("first"), &[("trail", json!("one"))])];
    let bad = vec![edit(node("second"), &[("nothing", json!(1))])];
    let refused = world.engine.edit(request(thread, vec![good.clone(), bad])).await.unwrap_err();
    assert_eq!(refused.code, code::INVALID);
    assert_eq!(world.events(thread).await, before);
    let pair = vec![
        edit(node("second"), &[("trail", json!("two"))]),
        edit(node("first"), &[("trail", json!("three"))]),
    ];
    let metadata = BTreeMap::from([("ticket".to_owned(), json!(17))]);
    let edits = EditThread { metadata, ..request(thread, vec![good, pair]) };
    let edited = world.engine.edit(edits).await.unwrap();
    assert_eq!(edited.values["trail"], json!(["first", "answer 1", "one", "two", "three"]));
    assert_eq!(next(&edited), ["second", "third"]);
    let filter = BTreeMap::from([("ticket".to_owned(), json!(17))]);
    let made = history(&world, thread, HistoryQuery { filter, ..HistoryQuery::default() }).await;
    assert_eq!(made.len(), 2, "one per superstep");
    assert_eq!(made[0].parent, Some(made[1].checkpoint));
}

#[tokio::test]
async fn an_edit_of_an_earlier_checkpoint_forks_the_thread() {
    let world = World::new(LINE, line());
    let ended = world.run(json!({})).await;
    let thread = &ended.run.thread;
    let edits = vec![vec![edit(node("first"), &[("trail", json!("mine"))])]];
    let past = EditThread { checkpoint: Some(CheckpointId(1)), ..request(thread, edits.clone()) };
    let edited = world.engine.edit(past).await.unwrap();
    assert_eq!((edited.parent, forks(&world, thread).await), (Some(CheckpointId(1)), 1));
    assert_eq!(edited.values["trail"], json!(["mine"]));
    let ended = go_on(&world, thread).await;
    assert_eq!(ended.state["trail"], json!(["mine", "answer 2"]));
    assert_eq!(state(&world, thread, Some(3)).await.values["trail"], json!(["first", "answer 1"]));
    let nowhere = EditThread { checkpoint: Some(CheckpointId(99)), ..request(thread, edits) };
    assert_eq!(world.engine.edit(nowhere).await.unwrap_err().code, code::NOT_FOUND);
}

#[tokio::test]
async fn an_edit_can_create_a_thread() {
    let world = World::new(LINE, line());
    let thread = &ThreadId::new("made by hand").unwrap();
    let edits = vec![vec![edit(node("second"), &[("trail", json!("given"))])]];
    let refused = world.engine.edit(request(thread, edits.clone())).await.unwrap_err();
    assert_eq!(refused.code, code::NOT_FOUND, "the app is unknown");
    let app = Some(AppName::new("test").unwrap());
    let edited = world.engine.edit(EditThread { app, ..request(thread, edits) }).await.unwrap();
    assert_eq!((next(&edited), &edited.values["trail"]), (vec!["third"], &json!(["given"])));
    let ended = go_on(&world, thread).await;
    assert!(matches!(ended.outcome, RunOutcome::Interrupted { .. }));
    let ended = world.answer(thread, json!("yes")).await;
    assert_eq!(ended.state["trail"], json!(["given", "yes"]));
    assert_eq!(world.model.calls(), 0);
}
