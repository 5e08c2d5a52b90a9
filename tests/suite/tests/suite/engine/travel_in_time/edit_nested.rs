//! Edits inside of a subgraph: it continues from the edited state, and the rest of the superstep is
//! kept.

use serde_json::{Value, json};
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{AppName, CheckpointId, GraphName, Namespace, NodeName, ThreadId};
use wattle_graph::step::EditAs;
use wattle_run::hostcall::interrupt::InterruptRequest;
use wattle_run::hostcall::runs::{EndedRun, RunOutcome, RunService, StartRun};
use wattle_run::ports::store::ThreadStatus;
use wattle_run::time_travel::{EditThread, HistoryQuery, StateView};
use wattle_suite::native::NativePlugin;
use wattle_suite::scripted::{get, prompt, said, unavailable};
use wattle_suite::world::{World, failure, questions};

use super::edit::{edit, request};
use super::history;

const MAIN: &str = r#"
[graphs.main]
entry = ["side", "sub"]
[graphs.main.channels.text]
[graphs.main.channels.log]
reducer = "append"
[graphs.main.nodes.side]
plugin = "p"
[graphs.main.nodes.sub]
graph = "inner"
STATE
[graphs.main.nodes.after]
plugin = "p"
[[graphs.main.edges]]
from = ["side", "sub"]
to = "after"
[graphs.inner]
entry = "one"
[graphs.inner.channels.text]
[graphs.inner.channels.log]
reducer = "append"
[graphs.inner.channels.total]
reducer = "sum"
[graphs.inner.nodes.one]
plugin = "p"
[graphs.inner.nodes.two]
plugin = "p"
[[graphs.inner.edges]]
from = "one"
to = "two"
"#;

fn graphs(state: &str) -> String {
    MAIN.replace("STATE", state)
}

/// Returns graphs in which `sub` runs first, then `after`, then `side`.
fn one_by_one(state: &str) -> String {
    let side_by_side = "[[graphs.main.edges]]\nfrom = [\"side\", \"sub\"]\nto = \"after\"";
    let one_by_one = "[[graphs.main.edges]]\nfrom = \"sub\"\nto = \"after\"\n\
                      [[graphs.main.edges]]\nfrom = \"after\"\nto = \"side\"";
    let graph = graphs(state).replace("entry = [\"side\", \"sub\"]", "entry = \"sub\"");
    graph.replace(side_by_side, one_by_one)
}

/// Returns a plugin: `one` calls a model, `two` raises an interrupt unless `text` is `mine`, and
/// `side` sends a request.
fn asking() -> NativePlugin {
    NativePlugin::new("p", "1")
        .node("side", |_, gate| async move {
            gate.call(get("https://a.example/side")).await?;
            Ok(json!({ "log": "side" }))
        })
        .node("after", |_, _| async { Ok(json!({ "log": "after" })) })
        .node("one", |_, gate| async move {
            Ok(json!({ "text": said(&gate.call(prompt("one")).await?), "total": 1 }))
        })
        .node("two", |call, gate| async move {
            let text = call.input.get("text").into_owned();
            if text == "mine" {
                return Ok(json!({ "log": [text, call.input.get("total")] }));
            }
            let answer =
                gate.ask(InterruptRequest { payload: text, response_schema: None }).await?;
            Ok(json!({ "log": [answer, call.input.get("total")] }))
        })
}

/// Returns an edit of a subgraph as node `one`.
fn as_one(thread: &ThreadId, namespace: &Namespace, writes: &[(&str, Value)]) -> EditThread {
    let one = EditAs::Node(NodeName::new("one").unwrap());
    let supersteps = vec![vec![edit(one, writes)]];
    EditThread { namespace: namespace.clone(), ..request(thread, supersteps) }
}

async fn go_on(world: &World, thread: &ThreadId) -> EndedRun {
    world.resume(thread, &[], Default::default()).await.expect("the thread resumes")
}

async fn refused(world: &World, request: EditThread) -> Failure {
    let before = world.events(&request.thread).await;
    let failure = world.engine.edit(request.clone()).await.expect_err("the edit is refused");
    assert_eq!(world.events(&request.thread).await, before, "nothing was written");
    failure
}

async fn newest(world: &World, thread: &ThreadId, namespace: &Namespace) -> StateView {
    world.engine.state(thread, namespace, None).await.expect("the subgraph has a state")
}

#[tokio::test]
async fn an_interrupted_subgraph_continues_from_the_edited_state() {
    for state in ["", "state = \"own\""] {
        let mut world = World::new(&graphs(state), asking());
        let ended = world.run(json!({})).await;
        let thread = &ended.run.thread;
        let asked = questions(&ended)[0].clone();
        assert_eq!(asked.payload, json!("answer 1"));
        let place = &asked.namespace;
        let before = newest(&world, thread, place).await;
        let edits = as_one(thread, place, &[("text", json!("mine")), ("total", json!(4))]);
        let metadata = [("ticket".to_owned(), json!(17))].into();
        let edited = world.engine.edit(EditThread { metadata, ..edits }).await.unwrap();
        assert_eq!((&edited.namespace, edited.parent), (place, Some(before.checkpoint)));
        assert_eq!(edited.parents, before.parents);
        assert_eq!(edited.values, json!({ "text": "mine", "total": 5 }));
        assert_eq!(edited.next.iter().map(ToString::to_string).collect::<Vec<_>>(), ["two"]);
        assert_eq!((edited.interrupts.len(), edited.metadata["ticket"].clone()), (0, json!(17)));
        let view = world.engine.thread(thread).await.unwrap().unwrap();
        assert_eq!((view.status, view.interrupts.len()), (ThreadStatus::Interrupted, 0));
        world.crash().await;
        let ended = go_on(&world, thread).await;
        assert_eq!(ended.outcome, RunOutcome::Completed, "{state}");
        assert_eq!(ended.state["log"], json!(["side", "mine", 5, "after"]), "{state}");
        assert_eq!((world.model.calls(), world.net.calls()), (1, 1), "no call is repeated");
        let query = HistoryQuery { namespace: place.clone(), ..HistoryQuery::default() };
        let steps: Vec<u32> =
            history(&world, thread, query).await.iter().map(|view| view.step).collect();
        assert_eq!(steps, [3, 2, 1, 0]);
        super::replays(&world, thread).await;
    }
}

#[tokio::test]
async fn a_call_after_an_edit_of_a_subgraph_can_be_forked() {
    let plugin = || {
        asking().node("two", |call, gate| async move {
            let text = call.input.get("text").into_owned();
            let answer =
                gate.ask(InterruptRequest { payload: text.clone(), response_schema: None }).await?;
            let words = said(&gate.call(prompt("two")).await?);
            Ok(json!({ "log": [text, answer, words] }))
        })
    };
    for state in ["", "state = \"own\""] {
        let world = World::new(&graphs(state), plugin());
        let ended = world.run(json!({})).await;
        let thread = &ended.run.thread;
        let place = questions(&ended)[0].namespace.clone();
        world.engine.edit(as_one(thread, &place, &[("text", json!("mine"))])).await.unwrap();
        assert_eq!(questions(&go_on(&world, thread).await)[0].payload, json!("mine"));
        let ended = world.answer(thread, json!("yes")).await;
        assert_eq!(ended.state["log"], json!(["side", "mine", "yes", "answer 2", "after"]));
        let call = super::call::entry(&world, thread, "llm.complete", &[1]).await;
        let answer = super::call::reworded(&world, thread, "what if").await;
        let forked = super::call::fork(&world, thread, call, Ok(answer)).await;
        assert_eq!(forked.state["log"], json!(["side", "mine", "yes", "what if", "after"]));
        assert_eq!((world.model.calls(), world.net.calls()), (2, 1), "{state}");
    }
}

#[tokio::test]
async fn an_edit_as_the_end_ends_the_subgraph() {
    let world = World::new(&graphs(""), asking());
    let ended = world.run(json!({})).await;
    let thread = &ended.run.thread;
    let place = questions(&ended)[0].namespace.clone();
    let supersteps = vec![vec![edit(EditAs::End, &[])]];
    let end = EditThread { namespace: place, ..request(thread, supersteps) };
    assert!(world.engine.edit(end).await.unwrap().next.is_empty());
    let ended = go_on(&world, thread).await;
    assert_eq!(ended.outcome, RunOutcome::Completed);
    assert_eq!(
        (&ended.state["text"], &ended.state["log"]),
        (&json!("answer 1"), &json!(["side", "after"]))
    );
}

#[tokio::test]
async fn a_failed_subgraph_continues_from_the_edited_state() {
    let plugin = asking().node("two", |call, gate| async move {
        if *call.input.get("text") != "mine" {
            gate.call(get("https://a.example/two")).await?;
        }
        Ok(json!({ "log": call.input.get("text") }))
    });
    let world = World::new(&one_by_one(""), plugin);
    world.net.fail_next(unavailable());
    let ended = world.run(json!({})).await;
    failure(&ended);
    let thread = &ended.run.thread;
    let place = super::nested_place(&world, thread).await;
    world.engine.edit(as_one(thread, &place, &[("text", json!("mine"))])).await.unwrap();
    let ended = go_on(&world, thread).await;
    assert_eq!((&ended.outcome, world.model.calls()), (&RunOutcome::Completed, 1));
    assert_eq!(ended.state["log"][0], "mine");
}

#[tokio::test]
async fn an_edited_subgraph_passes_its_breakpoint() {
    let stops = "[graphs.inner]\ninterrupt_before = [\"two\"]";
    let world = World::new(&graphs("").replace("[graphs.inner]", stops), asking());
    let ended = world.run(json!({})).await;
    let thread = &ended.run.thread;
    let place = super::nested_place(&world, thread).await;
    world.engine.edit(as_one(thread, &place, &[("text", json!("mine"))])).await.unwrap();
    let ended = go_on(&world, thread).await;
    assert_eq!(ended.outcome, RunOutcome::Completed);
    assert_eq!(ended.state["log"], json!(["side", "mine", 1, "after"]));
}

const STARTED: &str = r#"
[graphs.main]
entry = "call"
[graphs.main.channels.out]
[graphs.main.nodes.call]
plugin = "p"
[graphs.inner]
entry = "one"
[graphs.inner.channels.text]
[graphs.inner.channels.log]
reducer = "append"
[graphs.inner.channels.total]
[graphs.inner.nodes.one]
plugin = "p"
[graphs.inner.nodes.two]
plugin = "p"
[[graphs.inner.edges]]
from = "one"
to = "two"
"#;

fn inner() -> StartRun {
    StartRun {
        graph: Some(GraphName::new("inner").unwrap()),
        ..StartRun::new(AppName::new("test").unwrap(), json!({}))
    }
}

#[tokio::test]
async fn a_started_subgraph_can_be_edited_until_it_has_ended() {
    let plugin = asking().node("call", |_, gate| async move {
        let own = said(&gate.call(prompt("own")).await?);
        let run = gate.start_run(inner()).await?;
        let ended = gate.wait_run(&run).await?;
        let sure =
            gate.ask(InterruptRequest { payload: json!("sure?"), response_schema: None }).await?;
        Ok(json!({ "out": [own, ended.state["log"], sure] }))
    });
    let world = World::new(STARTED, plugin);
    let ended = world.run(json!({})).await;
    let thread = &ended.run.thread;
    let place = questions(&ended)[0].namespace.clone();
    let tasks = newest(&world, thread, &place).await.tasks;
    assert_eq!(tasks.iter().map(|task| task.node.as_str()).collect::<Vec<_>>(), ["two"]);
    world.engine.edit(as_one(thread, &place, &[("text", json!("mine"))])).await.unwrap();
    let ended = go_on(&world, thread).await;
    assert_eq!(questions(&ended)[0].payload, json!("sure?"));
    let late = refused(&world, as_one(thread, &place, &[("text", json!("late"))])).await;
    assert_eq!(late.code, code::CONFLICT, "{late}");
    let ended = world.answer(thread, json!("yes")).await;
    assert_eq!(ended.state["out"], json!(["answer 1", ["mine", 1], "yes"]));
    assert_eq!(world.model.calls(), 2);
}

#[tokio::test]
async fn a_failed_started_subgraph_continues_from_the_edited_state() {
    let plugin = asking()
        .node("call", |_, gate| async move {
            let run = gate.start_run(inner()).await?;
            match gate.wait_run(&run).await?.outcome {
                RunOutcome::Failed { failure } => Err(failure.into()),
                _ => Ok(json!({ "out": gate.wait_run(&run).await?.state["log"] })),
            }
        })
        .node("two", |call, _| async move {
            match call.input.get("text").as_str() {
                Some("mine") => Ok(json!({ "log": "mine" })),
                _ => Err(Failure::new("oops", "it is not mine").into()),
            }
        });
    let world = World::new(STARTED, plugin);
    let ended = world.run(json!({})).await;
    failure(&ended);
    let thread = &ended.run.thread;
    let place = super::nested_place(&world, thread).await;
    world.engine.edit(as_one(thread, &place, &[("text", json!("mine"))])).await.unwrap();
    let ended = go_on(&world, thread).await;
    assert_eq!((ended.outcome, &ended.state["out"]), (RunOutcome::Completed, &json!(["mine"])));
    assert_eq!(world.model.calls(), 1);
}

#[tokio::test]
async fn other_interrupts_stay_pending_after_an_edit_of_a_subgraph() {
    let graph = graphs("").replace("[\"side\", \"sub\"]", "[\"side\", \"sub\", \"more\"]")
        + "[graphs.main.nodes.more]\nplugin = \"p\"\n";
    let plugin = asking().node("more", |_, gate| async move {
        let answer =
            gate.ask(InterruptRequest { payload: json!("more?"), response_schema: None }).await?;
        Ok(json!({ "log": [answer] }))
    });
    let world = World::new(&graph, plugin);
    let ended = world.run(json!({})).await;
    let thread = &ended.run.thread;
    let open = questions(&ended);
    let place = open.iter().map(|it| &it.namespace).find(|it| !it.is_root()).unwrap().clone();
    assert_eq!(open.len(), 2);
    world.engine.edit(as_one(thread, &place, &[("text", json!("mine"))])).await.unwrap();
    let view = world.engine.thread(thread).await.unwrap().unwrap();
    assert_eq!((view.interrupts.len(), &view.interrupts[0].payload), (1, &json!("more?")));
    let ended = world.answer(thread, json!("no more")).await;
    assert_eq!(ended.state["log"].as_array().unwrap().len(), 5, "{}", ended.state);
    assert_eq!((world.model.calls(), world.net.calls()), (1, 1));
}

#[tokio::test]
async fn own_state_of_a_subgraph_can_be_edited_between_runs() {
    let plugin = asking()
        .node("two", |call, _| async move { Ok(json!({ "log": [call.input.get("total")] })) });
    let world = World::new(&graphs("state = \"own\""), plugin);
    let ended = world.run(json!({})).await;
    assert_eq!(ended.state["log"], json!(["side", 1, "after"]));
    let thread = &ended.run.thread;
    let place = Namespace::new("sub");
    let supersteps = vec![vec![edit(EditAs::Infer, &[("total", json!(10))])]];
    let edits = EditThread { namespace: place.clone(), ..request(thread, supersteps) };
    let edited = world.engine.edit(edits).await.unwrap();
    assert_eq!(edited.values["total"], 11);
    let view = world.engine.thread(thread).await.unwrap().unwrap();
    assert_eq!((view.status, view.state), (ThreadStatus::Idle, ended.state));
    let run = world.begin_on(Some(thread), json!({})).await.unwrap();
    let ended = world.engine.wait(&run).await.unwrap();
    assert_eq!(ended.state["log"], json!(["side", 1, "after", "side", 12, "after"]));
}

const NESTED: &str = r#"
[graphs.main]
entry = "down"
[graphs.main.channels.text]
[graphs.main.nodes.down]
graph = "middle"
state = "own"
[graphs.middle]
entry = "down"
[graphs.middle.channels.text]
[graphs.middle.nodes.down]
graph = "low"
state = "own"
[graphs.low]
entry = "add"
[graphs.low.channels.text]
[graphs.low.channels.total]
reducer = "sum"
[graphs.low.nodes.add]
plugin = "p"
[graphs.low.nodes.show]
plugin = "p"
[[graphs.low.edges]]
from = "add"
to = "show"
"#;

#[tokio::test]
async fn own_state_of_a_subgraph_can_be_edited_at_any_depth() {
    let plugin = NativePlugin::new("p", "1")
        .node("add", |_, _| async { Ok(json!({ "total": 1 })) })
        .node("show", |call, _| async move { Ok(json!({ "text": call.input.get("total") })) });
    let world = World::new(NESTED, plugin);
    let ended = world.run(json!({})).await;
    assert_eq!(ended.state["text"], 1);
    let thread = &ended.run.thread;
    let show = EditAs::Node(NodeName::new("show").unwrap());
    let steps = |by: i64| vec![vec![edit(show.clone(), &[("total", json!(by))])]];
    let place = Namespace::new("down|down");
    for by in [10, 100] {
        let edits = EditThread { namespace: place.clone(), ..request(thread, steps(by)) };
        world.engine.edit(edits).await.unwrap();
    }
    let run = world.begin_on(Some(thread), json!({})).await.unwrap();
    assert_eq!(world.engine.wait(&run).await.unwrap().state["text"], 112);
    let missing = Namespace::new("down|up");
    let edits = EditThread { namespace: missing, ..request(thread, steps(1)) };
    assert_eq!(refused(&world, edits).await.code, code::NOT_FOUND);
}

#[tokio::test]
async fn an_invalid_edit_of_a_subgraph_is_refused() {
    let world = World::new(&graphs(""), asking());
    let ended = world.run(json!({})).await;
    let thread = &ended.run.thread;
    let place = questions(&ended)[0].namespace.clone();
    let edits = as_one(thread, &place, &[("text", json!("mine"))]);
    let earlier = newest(&world, thread, &place).await.parent;
    let old = refused(&world, EditThread { checkpoint: earlier, ..edits.clone() }).await;
    assert_eq!(old.code, code::CONFLICT, "{old}");
    let other = as_one(thread, &place, &[("mine", json!(1))]);
    assert_eq!(refused(&world, other).await.code, code::INVALID);
    let nowhere = as_one(thread, &Namespace::new("sub"), &[]);
    assert_eq!(refused(&world, nowhere).await.code, code::NOT_FOUND);
    let bottomless = as_one(thread, &Namespace::new("|".repeat(1_000_000)), &[]);
    assert_eq!(refused(&world, bottomless).await.code, code::NOT_FOUND);
    let checkpoint = Some(CheckpointId(99));
    assert_eq!(
        refused(&world, EditThread { checkpoint, ..edits.clone() }).await.code,
        code::CONFLICT
    );
    world.answer(thread, json!("fine")).await;
    let ended = refused(&world, edits).await;
    assert_eq!(ended.code, code::CONFLICT, "{ended}");
    assert!(ended.message.contains("has ended"), "{ended}");
}

#[tokio::test]
async fn a_subgraph_without_checkpoints_cannot_be_edited() {
    let world = World::new(&graphs("state = \"none\""), asking());
    let ended = world.run(json!({})).await;
    let place = questions(&ended)[0].namespace.clone();
    let edits = as_one(&ended.run.thread, &place, &[("text", json!("mine"))]);
    assert_eq!(refused(&world, edits).await.code, code::UNSUPPORTED);
}

#[tokio::test]
async fn own_state_cannot_be_edited_during_a_superstep_of_the_parent() {
    let graph = one_by_one("state = \"own\"");
    let plugin =
        asking().node("two", |_, _| async { Ok(json!({})) }).node("after", |_, gate| async move {
            let answer =
                gate.ask(InterruptRequest { payload: json!("?"), response_schema: None }).await?;
            Ok(json!({ "log": [answer] }))
        });
    let world = World::new(&graph, plugin);
    let ended = world.run(json!({})).await;
    let thread = &ended.run.thread;
    assert_eq!(questions(&ended).len(), 1);
    let edits = as_one(thread, &Namespace::new("sub"), &[("total", json!(1))]);
    let failure = refused(&world, edits.clone()).await;
    assert_eq!(failure.code, code::CONFLICT, "{failure}");
    world.answer(thread, json!("fine")).await;
    assert_eq!(world.engine.edit(edits).await.unwrap().values["total"], 2);
}
