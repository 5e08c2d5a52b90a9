//! Recorded runs that the engine executes again to measure them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use wattle_graph::event::Event;
use wattle_graph::failure::Failure;
use wattle_graph::id::{AppName, RunId, ThreadId};
use wattle_graph::tool::ToolRequest;
use wattle_kit::clock::ManualClock;
use wattle_run::app::App;
use wattle_run::export::Export;
use wattle_run::grant::{FolderAccess, FolderRule, Grants};
use wattle_run::hostcall::interrupt::InterruptRequest;
use wattle_run::hostcall::runs::{EndedRun, RunService as _};
use wattle_run::ports::store::{Durability, RunOptions};
use wattle_run::ports::{BlobLinks, Plugin, Store as _};
use wattle_run::replay::{RecordedRun, RecordedRunError, RunCost, Unsuitable, replay_ports};
use wattle_store::{InMemoryBlobs, InMemoryStore, VolatileMemory};
use wattle_suite::native::NativePlugin;
use wattle_suite::world::World;

use super::{GRAPH, app, deep, exported, finished, plugin};

/// A graph with one node, which may have other properties.
const ONE: &str = r#"
[graphs.main]
entry = "say"
[graphs.main.channels.out]
reducer = "append"
[graphs.main.nodes.say]
plugin = "p"
"#;

/// A graph that the node `call` starts, or that is a subgraph.
const INNER: &str = r#"
[graphs.inner]
entry = "say"
[graphs.inner.channels.out]
reducer = "append"
[graphs.inner.nodes.say]
plugin = "p"
"#;

/// Returns namespaces and kinds of events.
fn kinds<'e>(events: impl IntoIterator<Item = &'e Event>) -> Vec<String> {
    let kind = |event: &Event| format!("{}/{}", event.namespace.as_str(), event.kind.name());
    events.into_iter().map(kind).collect()
}

/// Returns the kinds of the events of a run after its input was applied.
fn recorded(text: &str, run: &RunId) -> Vec<String> {
    let export = Export::read(text).unwrap();
    let events = export.batches.iter().flat_map(|batch| &batch.events);
    kinds(events.filter(|event| event.run == *run).skip(2))
}

/// Executes a run again. Returns its cost, and the kinds of the events that it wrote.
async fn executed(
    text: &str,
    app: &Arc<App>,
    wanted: Option<&RunId>,
) -> Result<(RunCost, Vec<String>), RecordedRunError> {
    let export = Export::read(text).unwrap();
    let run = RecordedRun::find(&export, app, wanted.map(RunId::as_str))?;
    let store = Arc::new(InMemoryStore::new());
    let ports = replay_ports(
        store.clone(),
        Arc::new(VolatileMemory::new()),
        Arc::new(InMemoryBlobs::new()),
        BlobLinks::new(b"test"),
        Arc::new(ManualClock::at_ms(0)),
    );
    let cost = run.execute(ports, &InMemoryStore::new()).await?;
    let events = store.events(run.thread(), 0, 1_000).await.unwrap();
    Ok((cost, kinds(&events)))
}

async fn refused(text: &str, app: &Arc<App>, wanted: Option<&RunId>) -> RecordedRunError {
    executed(text, app, wanted).await.expect_err("the run is not executed as recorded")
}

/// Returns the reason why a run is not suitable.
async fn reason(text: &str, app: &Arc<App>, wanted: Option<&RunId>) -> Unsuitable {
    match refused(text, app, wanted).await {
        RecordedRunError::Unsuitable { reason, .. } => reason,
        other => panic!("{other}"),
    }
}

fn app_of(world: &World) -> Arc<App> {
    world.engine.catalog().apps().remove(0)
}

async fn run_on(world: &World, thread: &ThreadId) -> EndedRun {
    let run = world.begin_on(Some(thread), json!({ "out": "more" })).await.unwrap();
    world.engine.wait(&run).await.unwrap()
}

#[tokio::test]
async fn a_run_writes_its_events_again_and_makes_no_call() {
    for durability in [Durability::Commit, Durability::Exit] {
        let world = World::new(GRAPH, plugin(""));
        let options = RunOptions { durability, ..RunOptions::default() };
        let waiting = world.run_as(json!({ "out": "begun" }), options).await;
        world.answer(&waiting.run.thread, json!("yes")).await;
        let text = exported(&world.engine, &waiting.run.thread).await;
        let calls = (world.model.calls(), world.net.calls());
        let (cost, written) = executed(&text, &app_of(&world), None).await.unwrap();
        assert_eq!(written, recorded(&text, &waiting.run.run), "{durability:?}");
        assert_eq!(cost.steps, 3, "think, fetch and ask");
        assert!(cost.total >= cost.guest && cost.store > Duration::ZERO, "{cost:?}");
        assert!(cost.bytes > 0, "{cost:?}");
        assert_eq!((world.model.calls(), world.net.calls()), calls);
    }
}

#[tokio::test]
async fn a_later_run_starts_from_the_state_of_its_thread() {
    let counts = NativePlugin::new("p", "1").node("say", |call, _| async move {
        let length = call.input.get("out").as_array().map_or(0, Vec::len);
        Ok(json!({ "out": length }))
    });
    let world = World::new(ONE, counts);
    let first = world.run(json!({ "out": "one" })).await;
    let second = run_on(&world, &first.run.thread).await;
    assert_eq!(second.state["out"], json!(["one", 1, "more", 3]));
    let text = exported(&world.engine, &first.run.thread).await;
    for (wanted, run) in [(None, &second.run.run), (Some(&first.run.run), &first.run.run)] {
        let (cost, written) = executed(&text, &app_of(&world), wanted).await.unwrap();
        assert_eq!((cost.steps, written), (1, recorded(&text, run)));
    }
}

#[tokio::test]
async fn a_run_that_ends_differently_is_refused_with_the_difference() {
    let (_world, text) = finished().await;
    for (twist, expected) in [
        ("write", "its state differs"),
        ("prompt", "host call 0 diverges"),
        ("call", "a replay calls no service"),
    ] {
        match refused(&text, &app(twist), None).await {
            RecordedRunError::Different { difference, .. } => {
                assert!(difference.contains(expected), "{twist}: {difference}");
            }
            other => panic!("{twist}: {other}"),
        }
    }
}

#[tokio::test]
async fn only_a_run_of_the_app_that_began_with_an_input_is_executed() {
    let (_world, text) = finished().await;
    let resumed = Export::read(&text).unwrap().header.runs[1].id.clone();
    assert_eq!(reason(&text, &app(""), Some(&resumed)).await, Unsuitable::Continues);
    let unknown = refused(&text, &app(""), Some(&RunId::new("other").unwrap())).await;
    assert!(matches!(unknown, RecordedRunError::UnknownRun { .. }), "{unknown}");
    let empty = |name: &str| Arc::new(App::empty(AppName::new(name).unwrap()));
    let other = refused(&text, &empty("other"), None).await;
    assert!(matches!(other, RecordedRunError::OtherApp { .. }), "{other}");
    let missing = refused(&text, &empty("test"), None).await;
    assert!(matches!(missing, RecordedRunError::NoGraph { .. }), "{missing}");
    let edited = text.replace("answer 1", "answer 2");
    let broken = refused(&edited, &app(""), None).await;
    assert!(matches!(broken, RecordedRunError::Export(_)), "{broken}");
}

#[tokio::test]
async fn a_failed_run_is_refused() {
    let lost = NativePlugin::new("p", "1")
        .node("say", |_, _| async { Err(Failure::new("lost", "it is lost").into()) });
    let world = World::new(ONE, lost);
    let ended = world.run(json!({})).await;
    let text = exported(&world.engine, &ended.run.thread).await;
    assert_eq!(reason(&text, &app_of(&world), None).await, Unsuitable::Failed);
}

#[tokio::test]
async fn a_result_from_the_cache_is_refused_with_its_node() {
    let world = World::new(&format!("{ONE}cache = {{ ttl = \"1h\" }}\n"), deep(""));
    world.run(json!({})).await;
    let ended = world.run(json!({})).await;
    let text = exported(&world.engine, &ended.run.thread).await;
    let expected = Unsuitable::Cached("say".parse().unwrap());
    assert_eq!(reason(&text, &app_of(&world), None).await, expected);
}

#[tokio::test]
async fn a_graph_that_a_call_started_is_refused_with_the_node() {
    let graph = format!("{}{INNER}", ONE.replace("say", "call"));
    let world = World::new(&graph, deep(""));
    let ended = world.run(json!({})).await;
    let text = exported(&world.engine, &ended.run.thread).await;
    let expected = Unsuitable::StartedGraph("call".to_owned());
    assert_eq!(reason(&text, &app_of(&world), None).await, expected);
}

#[tokio::test]
async fn a_subgraph_with_the_state_of_an_earlier_run_is_refused() {
    let own = "graph = \"inner\"\nstate = \"own\"";
    let world = World::new(&format!("{}{INNER}", ONE.replace("plugin = \"p\"", own)), deep(""));
    let first = world.run(json!({})).await;
    let second = run_on(&world, &first.run.thread).await;
    let text = exported(&world.engine, &first.run.thread).await;
    let (app, wanted) = (app_of(&world), Some(&second.run.run));
    let expected = Unsuitable::EarlierSubgraph("say".to_owned());
    assert_eq!(reason(&text, &app, wanted).await, expected);
    let (cost, written) = executed(&text, &app, None).await.unwrap();
    assert_eq!((cost.steps, written), (1, recorded(&text, &first.run.run)));
}

/// Returns a world whose node calls a tool. The tool notes the number of its folders, and may ask.
fn calling(times: usize, asks: bool, noted: &Arc<Mutex<Vec<usize>>>) -> World {
    let caller = NativePlugin::new("p", "1").node("say", move |_, gate| async move {
        for _ in 0..times {
            let request = ToolRequest {
                tool: "h/work".to_owned(),
                call_id: String::new(),
                arguments: json!({}),
                timeout_ms: None,
                state: None,
            };
            gate.call_tool(request).await?;
        }
        Ok(json!({ "out": "said" }))
    });
    let noted = noted.clone();
    let helper = NativePlugin::new("h", "1").tool("work", move |call, gate| {
        noted.lock().unwrap().push(call.grants.folders.len());
        async move {
            if asks {
                let payload = json!("go on?");
                gate.ask(InterruptRequest { payload, response_schema: None }).await?;
            }
            Ok(json!("done"))
        }
    });
    let folder = FolderRule {
        path: "/srv/reports".into(),
        guest: "/reports".to_owned(),
        access: FolderAccess::ReadWrite,
    };
    let (caller, helper): (Arc<dyn Plugin>, Arc<dyn Plugin>) = (Arc::new(caller), Arc::new(helper));
    let may_call = Grants { tools: vec!["h/*".parse().unwrap()], ..Grants::default() };
    let may_write = Grants { folders: vec![folder], ..Grants::default() };
    World::with_plugins(ONE, vec![(caller, may_call), (helper, may_write)])
}

#[tokio::test]
async fn a_tool_call_that_is_not_recorded_is_refused() {
    let noted = Arc::default();
    let world = calling(1, false, &noted);
    let ended = world.run(json!({})).await;
    let text = exported(&world.engine, &ended.run.thread).await;
    let (cost, _) = executed(&text, &app_of(&world), None).await.unwrap();
    assert_eq!(cost.steps, 1);
    match refused(&text, &app_of(&calling(2, false, &noted)), None).await {
        RecordedRunError::Different { difference, .. } => {
            assert!(difference.contains("a replay calls no tool"), "{difference}");
        }
        other => panic!("{other}"),
    }
    assert_eq!(*noted.lock().unwrap(), [1], "only the recorded run has called the tool");
}

#[tokio::test]
async fn a_tool_that_asked_is_executed_without_its_folders() {
    let noted = Arc::default();
    let world = calling(1, true, &noted);
    let waiting = world.run(json!({})).await;
    let text = exported(&world.engine, &waiting.run.thread).await;
    let (cost, _) = executed(&text, &app_of(&world), None).await.unwrap();
    assert_eq!(cost.steps, 1);
    assert_eq!(*noted.lock().unwrap(), [1, 0]);
}
