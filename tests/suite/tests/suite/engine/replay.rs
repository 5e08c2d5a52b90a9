//! Exports of finished threads, and their replay, which makes no calls.

mod measure;
mod tools;
mod unfinished;

use std::sync::Arc;
use std::sync::mpsc::channel;

use futures::{StreamExt as _, TryStreamExt as _, poll};
use serde_json::{Value, json};
use wattle_graph::failure::Failure;
use wattle_graph::id::{NodeName, ThreadId};
use wattle_graph::principal::Principal;
use wattle_run::app::App;
use wattle_run::engine::Engine;
use wattle_run::export::{Export, ExportError, ExportParts};
use wattle_run::hostcall::interrupt::InterruptRequest;
use wattle_run::hostcall::runs::{OnFailure, ResumeRun, RunOutcome, RunService, StartRun};
use wattle_run::limit;
use wattle_run::ports::BlobLinks;
use wattle_run::ports::store::{Durability, PruneStrategy, RunOptions};
use wattle_run::replay::{Against, Counts, Replay, replay_ports, replay_thread};
use wattle_store::{InMemoryBlobs, InMemoryStore, VolatileMemory};
use wattle_suite::native::NativePlugin;
use wattle_suite::scripted::{get, prompt, said, unavailable};
use wattle_suite::world::World;

use super::history::{TALK, replying};

const GRAPH: &str = r#"
[graphs.main]
entry = "think"
edges = [{ from = "think", to = "inner" }, { from = "inner", to = "ask" }]
[graphs.main.channels.out]
reducer = "append"
[graphs.main.nodes.think]
plugin = "p"
[graphs.main.nodes.inner]
graph = "inner"
[graphs.main.nodes.ask]
plugin = "p"

[graphs.inner]
entry = "fetch"
[graphs.inner.channels.out]
reducer = "append"
[graphs.inner.nodes.fetch]
plugin = "p"
"#;

/// Returns the plugin of the graph. `twist` changes one of its nodes.
fn plugin(twist: &'static str) -> NativePlugin {
    NativePlugin::new("p", "1")
        .node("think", move |call, gate| async move {
            let text = if twist == "prompt" { "other" } else { "hello" };
            let said = said(&gate.call(prompt(text)).await?);
            let now = gate.now_ms()?;
            let extra = if twist == "write" { "more" } else { "same" };
            if twist == "call" {
                gate.call(get("https://example.com/new")).await?;
            }
            Ok(json!({ "out": [said, now, extra, call.remaining_steps, call.context] }))
        })
        .node("fetch", move |_, gate| async move {
            let status = gate.call(get("https://example.com/slow")).await?.status;
            Ok(json!({ "out": if twist == "fetch" { 1 } else { status } }))
        })
        .node("ask", |_, gate| async move {
            let question = InterruptRequest { payload: json!("sure?"), response_schema: None };
            let answer = gate.ask(question).await?;
            gate.random(4)?;
            Ok(json!({ "out": answer }))
        })
}

async fn exported(engine: &Engine, thread: &ThreadId) -> String {
    let lines: Vec<_> =
        engine.export(thread, ExportParts::default()).await.unwrap().try_collect().await.unwrap();
    String::from_utf8(lines.concat()).unwrap()
}

/// Returns the export of a thread that was interrupted, answered and completed.
async fn finished() -> (World, String) {
    let world = World::new(GRAPH, plugin(""));
    let waiting = world.run(json!({ "out": "begun" })).await;
    let ended = world.answer(&waiting.run.thread, json!("yes")).await;
    assert_eq!(ended.state["out"][0], "begun");
    let text = exported(&world.engine, &waiting.run.thread).await;
    (world, text)
}

/// Returns the app with another plugin under the same digest.
fn app(twist: &'static str) -> Arc<App> {
    let world = World::new(GRAPH, plugin(twist));
    world.engine.catalog().apps().remove(0)
}

async fn replayed(text: &str, app: Arc<App>) -> Replay {
    replayed_against(text, app, Against::Pinned).await
}

async fn replayed_against(text: &str, app: Arc<App>, against: Against) -> Replay {
    try_replay(text, app, against).await.unwrap()
}

async fn try_replay(text: &str, app: Arc<App>, against: Against) -> Result<Replay, Failure> {
    let world = World::new(GRAPH, plugin(""));
    let ports = replay_ports(
        Arc::new(InMemoryStore::new()),
        Arc::new(VolatileMemory::new()),
        Arc::new(InMemoryBlobs::new()),
        BlobLinks::new(b"test"),
        Arc::new(world.clock.clone()),
    );
    replay_thread(&Export::read(text).unwrap(), app, ports, against).await
}

#[tokio::test]
async fn a_finished_thread_replays_from_its_export_alone() {
    let (world, text) = finished().await;
    let export = Export::read(&text).unwrap();
    let verified = export.verify().unwrap();
    assert_eq!(verified.last_seq, export.header.last_seq);
    assert_eq!(verified.seal, export.header.seal);
    assert!(verified.seal.is_some());
    let replay = replayed(&text, app("")).await;
    assert_eq!(replay.divergences, []);
    assert_eq!(replay.skipped, []);
    assert_eq!((replay.tasks, replay.checkpoints), (3, 4));
    assert_eq!(replay.calls, 4, "a model call, the time, a request, random bytes");
    assert_eq!((world.model.calls(), world.net.calls()), (1, 1));
}

/// The messages come from the checkpoints that the replay computes.
#[tokio::test]
async fn a_replay_has_the_same_histories() {
    let world = World::new(TALK, replying(0, 0));
    let message = json!({ "id": "m1", "role": "user", "content": "hi" });
    let ended = world.run(json!({ "messages": [message] })).await;
    let text = exported(&world.engine, &ended.run.thread).await;
    for (from, divergences) in [(0, 0), (1, 1)] {
        let other = World::new(TALK, replying(from, 0));
        let app = other.engine.catalog().apps().remove(0);
        let replay = replayed(&text, app).await;
        assert_eq!(replay.divergences.len(), divergences, "{:?}", replay.divergences);
    }
}

async fn only_divergence(twist: &'static str) -> wattle_run::replay::Divergence {
    let (_world, text) = finished().await;
    let mut replay = replayed(&text, app(twist)).await;
    assert_eq!(replay.divergences.len(), 1, "{:?}", replay.divergences);
    replay.divergences.remove(0)
}

#[tokio::test]
async fn a_changed_request_is_a_divergence_with_node_call_and_both_requests() {
    let divergence = only_divergence("prompt").await;
    assert_eq!(divergence.node, Some(NodeName::new("think").unwrap()));
    assert_eq!(divergence.call, Some(0));
    let text = |request: &Value| request["request"]["messages"].to_string();
    assert!(text(&divergence.recorded).contains("hello"), "{divergence:?}");
    assert!(text(&divergence.now).contains("other"), "{divergence:?}");
}

#[tokio::test]
async fn a_changed_write_is_a_divergence_with_both_writes() {
    let divergence = only_divergence("write").await;
    assert_eq!((divergence.call, divergence.node.unwrap().as_str()), (None, "think"));
    assert!(divergence.recorded.to_string().contains("same"));
    assert!(divergence.now.to_string().contains("more"));
}

#[tokio::test]
async fn a_new_call_is_a_divergence_and_is_not_made() {
    let divergence = only_divergence("call").await;
    assert_eq!((divergence.call, divergence.node.unwrap().as_str()), (Some(2), "think"));
    assert_eq!(divergence.now["request"]["url"], "https://example.com/new");
}

/// Returns the app in another version: a part of its graph file is replaced.
fn other_version(from: &str, to: &str, twist: &'static str) -> Arc<App> {
    assert!(GRAPH.contains(from));
    let world = World::new(&GRAPH.replace(from, to), plugin(twist));
    world.engine.catalog().apps().remove(0)
}

#[tokio::test]
async fn an_export_as_a_test_replays_and_names_nobody() {
    let world = World::new(GRAPH, plugin(""));
    let user = Principal { user: Some("jane".to_owned()), ..Principal::default() };
    let start = StartRun {
        principal: Some(user),
        metadata: [("ticket".to_owned(), json!("of jane"))].into(),
        ..world.request(None, json!({ "out": "begun" }))
    };
    let run = world.engine.start(start).await.unwrap();
    let waiting = world.engine.wait(&run).await.unwrap();
    world.answer(&waiting.run.thread, json!("yes")).await;
    let text = exported(&world.engine, &waiting.run.thread).await;
    assert!(text.contains("of jane") && text.matches("jane").count() > 1, "{text}");
    let test = world.engine.export_test(&waiting.run.thread, false).await.unwrap();
    let lines: Vec<_> = test.try_collect().await.unwrap();
    let lines = String::from_utf8(lines.concat()).unwrap();
    assert!(!lines.contains("jane"), "{lines}");
    let export = Export::read(&lines).unwrap();
    assert_eq!(export.verify().unwrap().seal, None);
    assert_eq!(export.header.code, None);
    let replay = replayed_against(&lines, app(""), Against::Current).await;
    assert_eq!((replay.divergences.len(), replay.tasks, replay.calls), (0, 3, 4));
}

const THINK: &str = "[graphs.main.nodes.think]\n";
const SLOWER: &str = "[graphs.main.nodes.think]\ntimeout = \"50s\"\n";

#[tokio::test]
async fn another_version_that_does_the_same_replays_a_thread() {
    let (_world, text) = finished().await;
    let app = other_version(THINK, SLOWER, "");
    let refused = try_replay(&text, app.clone(), Against::Pinned).await.unwrap_err();
    assert_eq!(refused.code, "conflict");
    let replay = replayed_against(&text, app, Against::Current).await;
    assert_eq!((replay.divergences, replay.skipped), (Vec::new(), Vec::new()));
    assert_eq!((replay.tasks, replay.checkpoints, replay.calls), (3, 4, 4));
}

#[tokio::test]
async fn another_version_is_compared_with_what_a_thread_recorded() {
    let (_world, text) = finished().await;
    let changed = other_version(THINK, SLOWER, "write");
    let replay = replayed_against(&text, changed, Against::Current).await;
    assert_eq!(replay.divergences.len(), 1, "{:?}", replay.divergences);
    assert!(replay.divergences[0].now.to_string().contains("more"));

    let edge = ", { from = \"inner\", to = \"ask\" }";
    let node = "[graphs.main.nodes.ask]\nplugin = \"p\"\n";
    let removed = GRAPH.replace(edge, "").replace(node, "");
    let app = World::new(&removed, plugin("")).engine.catalog().apps().remove(0);
    let replay = replayed_against(&text, app, Against::Current).await;
    let ask = NodeName::new("ask").unwrap();
    let mut missing = replay.divergences.iter().filter(|it| it.node.as_ref() == Some(&ask));
    assert_eq!(missing.next().unwrap().message, "the graph has no such node");

    let renamed = other_version("[graphs.main", "[graphs.other", "");
    let refused = try_replay(&text, renamed, Against::Current).await.unwrap_err();
    assert_eq!(
        (refused.code.as_str(), refused.message.contains("no graph `main`")),
        ("not-found", true)
    );
}

#[tokio::test]
async fn an_edited_export_is_detected() {
    let (_world, text) = finished().await;
    let edited = text.replace("answer 1", "answer 2");
    assert_ne!(edited, text);
    let broken = Export::read(&edited).unwrap().verify().unwrap_err();
    assert!(matches!(broken, ExportError::Broken { .. }), "{broken}");
    let lines: Vec<&str> = text.lines().collect();
    let cut = lines[..lines.len() - 1].join("\n");
    let broken = Export::read(&cut).unwrap().verify().unwrap_err();
    assert!(matches!(broken, ExportError::Broken { .. }), "{broken}");
    let error = Export::read("{\"wattle_export\": 99}").unwrap_err();
    assert!(matches!(error, ExportError::NewerFormat { found: 99 }));
}

/// The blocking pool has one thread, which another task holds.
#[test]
fn batches_of_an_export_are_written_off_the_task_of_its_reader() {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().max_blocking_threads(1).build().unwrap();
    runtime.block_on(async {
        let (world, whole) = finished().await;
        let Export { header, .. } = Export::read(&whole).unwrap();
        let lines = world.engine.export(&header.thread.id, ExportParts::default()).await;
        let mut lines = lines.unwrap();
        let mut text = lines.next().await.unwrap().unwrap().to_vec();
        let (end, ended) = channel::<()>();
        let holder = tokio::task::spawn_blocking(move || ended.recv());
        assert!(poll!(lines.next()).is_pending());
        drop(end);
        text.extend(lines.try_collect::<Vec<_>>().await.unwrap().concat());
        assert_eq!(String::from_utf8(text).unwrap(), whole);
        holder.await.unwrap().unwrap_err();
    });
}

#[tokio::test]
async fn a_thread_with_an_active_run_is_not_exported() {
    let world = World::new(GRAPH, plugin(""));
    world.net.hang_next(1);
    let run = world.begin(json!({})).await.unwrap();
    world.net.hung().await;
    let refused = world.engine.export(&run.thread, ExportParts::default()).await.err().unwrap();
    assert_eq!(refused.code, "busy");
    world.engine.cancel(&run).await.unwrap();
    assert!(world.engine.export(&run.thread, ExportParts::default()).await.is_ok());
}

#[tokio::test]
async fn a_pruned_or_partly_deleted_thread_is_exported_and_verified() {
    let (world, text) = finished().await;
    let thread = Export::read(&text).unwrap().header.thread.id;
    let runs = Export::read(&text).unwrap().header.runs;
    for taken in ["first", "newest", "past"] {
        let copy = world.engine.copy_thread(&thread, None).await.unwrap();
        let own = world.engine.ports().store.runs(&copy, 0, 9).await.unwrap().items;
        assert_eq!((own.len(), runs.len()), (2, 2));
        match taken {
            "past" => world.engine.prune(&copy, PruneStrategy::KeepLatest).await.unwrap(),
            which => {
                let run = &own[usize::from(which == "newest")];
                world.engine.delete_runs(&copy, std::slice::from_ref(&run.id)).await.unwrap();
            }
        }
        let export = Export::read(&exported(&world.engine, &copy).await).unwrap();
        let verified = export.verify().unwrap();
        assert_eq!((verified.seal, export.header.seal.is_some()), (export.header.seal, true));
        let current = world.engine.ports().store.thread(&copy).await.unwrap().unwrap().current;
        let made = |at| export.batches.iter().flat_map(|it| &it.checkpoint).any(|it| it.id == at);
        assert!(current.is_some_and(made), "{taken}: its current checkpoint");
    }
}

/// Replays a thread with durability `exit` and a subgraph without stored checkpoints.
async fn unpersisted(twist: &'static str) -> Replay {
    let world = World::new(GRAPH, plugin(""));
    let options = RunOptions { durability: Durability::Exit, ..RunOptions::default() };
    let waiting = world.run_as(json!({ "out": "begun" }), options.clone()).await;
    let request = ResumeRun {
        thread: waiting.run.thread.clone(),
        answers: [(String::new(), json!("yes"))].into(),
        on_failure: OnFailure::Keep,
        app: None,
        tenant: None,
        options,
        run: None,
        principal: None,
    };
    let run = world.engine.resume(request).await.unwrap();
    world.engine.wait(&run).await.unwrap();
    let text = exported(&world.engine, &waiting.run.thread).await;
    replayed(&text, app(twist)).await
}

#[tokio::test]
async fn unpersisted_supersteps_are_replayed() {
    let replay = unpersisted("").await;
    assert_eq!((replay.divergences, replay.skipped), (vec![], vec![]));
    assert_eq!((replay.tasks, replay.checkpoints, replay.calls), (3, 4, 4));
    assert_eq!(replay.left_out, Counts::default());
}

#[tokio::test]
async fn a_divergence_in_unpersisted_supersteps_is_found() {
    for twist in ["write", "fetch"] {
        let replay = unpersisted(twist).await;
        let found: Vec<&str> = replay.divergences.iter().map(|it| it.message.as_str()).collect();
        let message = "the node returns a different outcome for the same call results";
        assert!(found.contains(&message), "{found:?}");
        // The replay applies the recorded outcome, so it also compares what follows.
        assert_eq!((replay.divergences.len(), replay.checkpoints), (1, 4), "{found:?}");
        assert_eq!(replay.left_out, Counts::default());
    }
}

/// A subgraph without checkpoints inside of another one, and a subgraph that a call starts.
const DEEP: &str = r#"
[graphs.main]
entry = "outer"
edges = [{ from = "outer", to = "call" }]
[graphs.main.channels.out]
reducer = "append"
[graphs.main.nodes]
outer = { graph = "middle", state = "none" }
call = { plugin = "p" }

[graphs.middle]
entry = "first"
edges = [{ from = "first", to = "inner" }, { from = "inner", to = "ask" }]
[graphs.middle.channels.out]
reducer = "append"
[graphs.middle.nodes]
first = { plugin = "p", node = "say" }
inner = { graph = "inner", state = "none" }
ask = { plugin = "p" }

[graphs.inner]
entry = "say"
[graphs.inner.channels.out]
reducer = "append"
[graphs.inner.nodes]
say = { plugin = "p" }
"#;

fn deep(twist: &'static str) -> NativePlugin {
    NativePlugin::new("p", "1")
        .node("say", move |call, gate| async move {
            let said = said(&gate.call(prompt("hello")).await?);
            let is_other = twist == "say" && call.graph.as_str() == "inner";
            Ok(json!({ "out": if is_other { json!("other") } else { json!(said) } }))
        })
        .node("ask", |_, gate| async move {
            let question = InterruptRequest { payload: json!("sure?"), response_schema: None };
            Ok(json!({ "out": gate.ask(question).await? }))
        })
        .node("call", |_, gate| async move {
            let start = StartRun {
                graph: Some("inner".parse().unwrap()),
                ..StartRun::new("test".parse().unwrap(), json!({ "out": "given" }))
            };
            let run = gate.start_run(start).await?;
            Ok(json!({ "out": gate.wait_run(&run).await?.state["out"] }))
        })
}

async fn replayed_deep(graph: &str, twist: &'static str) -> Replay {
    let world = World::new(DEEP, deep(""));
    let options = RunOptions { durability: Durability::Exit, ..RunOptions::default() };
    let waiting = world.run_as(json!({}), options.clone()).await;
    let request = ResumeRun {
        thread: waiting.run.thread.clone(),
        answers: [(String::new(), json!("yes"))].into(),
        on_failure: OnFailure::Keep,
        app: None,
        tenant: None,
        options,
        run: None,
        principal: None,
    };
    let run = world.engine.resume(request).await.unwrap();
    assert_eq!(world.engine.wait(&run).await.unwrap().outcome, RunOutcome::Completed);
    let text = exported(&world.engine, &waiting.run.thread).await;
    let app = World::new(graph, deep(twist)).engine.catalog().apps().remove(0);
    replayed(&text, app).await
}

#[tokio::test]
async fn subgraphs_without_checkpoints_are_replayed() {
    let replay = replayed_deep(DEEP, "").await;
    assert_eq!((replay.divergences, replay.skipped), (vec![], vec![]));
    // Tasks of the thread: outer and call. Of middle: first, inner, ask. Of inner, twice: say.
    assert_eq!((replay.tasks, replay.checkpoints), (5, 7));
    assert_eq!(replay.left_out, Counts::default());
}

#[tokio::test]
async fn a_divergence_in_a_subgraph_without_checkpoints_is_found() {
    let replay = replayed_deep(DEEP, "say").await;
    let found: Vec<&str> = replay.divergences.iter().map(|it| it.namespace.as_str()).collect();
    assert_eq!(found.len(), 2, "{:?}", replay.divergences);
    assert!(found.iter().all(|namespace| !namespace.is_empty()), "{found:?}");
}

/// A graph that takes two supersteps after the answer before it fails.
const UNDONE: &str = r#"
[graphs.main]
entry = "ask"
edges = [{ from = "ask", to = "next" }, { from = "next", to = "last" }]
[graphs.main.channels.out]
reducer = "append"
[graphs.main.nodes]
ask = { plugin = "p" }
next = { plugin = "p" }
last = { plugin = "p" }
"#;

/// The graph as a subgraph of another one.
const OUTER: &str = r#"
[graphs.main]
entry = "inner"
[graphs.main.channels.out]
reducer = "append"
[graphs.main.nodes.inner]
graph = "sub"
"#;

fn undone() -> NativePlugin {
    NativePlugin::new("p", "1")
        .node("ask", |_, gate| async move {
            let question = InterruptRequest { payload: json!("sure?"), response_schema: None };
            Ok(json!({ "out": gate.ask(question).await? }))
        })
        .node("next", |call, _| async move { Ok(json!({ "out": call.input.get("out")[0] })) })
        .node("last", |_, gate| async move {
            Ok(json!({ "out": gate.call(get("https://example.com/last")).await?.status }))
        })
}

#[tokio::test]
async fn reopened_attempts_are_no_divergence() {
    let nested = UNDONE.replace("graphs.main", "graphs.sub") + OUTER;
    for graph in [UNDONE.to_owned(), nested] {
        let world = World::new(&graph, undone());
        let waiting = world.run(json!({})).await;
        let thread = &waiting.run.thread;
        world.net.fail_next(unavailable());
        let failed = world.resume(thread, &[("", json!("no"))], OnFailure::Reopen).await.unwrap();
        assert_ne!(failed.outcome, RunOutcome::Completed);
        let before = exported(&world.engine, thread).await;
        world.answer(thread, json!("yes")).await;
        for text in [before, exported(&world.engine, thread).await] {
            let app = World::new(&graph, undone()).engine.catalog().apps().remove(0);
            let replay = replayed(&text, app).await;
            assert_eq!(replay.divergences, [], "{graph}");
            assert_eq!(replay.left_out.checkpoints, 0, "{:?}", replay.skipped);
            assert!(replay.tasks > 0);
        }
    }
}

/// A graph whose node starts another one.
const STARTING: &str = r#"
[graphs.main]
entry = "call"
[graphs.main.channels.out]
[graphs.main.nodes.call]
plugin = "p"
[graphs.helper]
entry = "tell"
[graphs.helper.channels.out]
[graphs.helper.nodes.tell]
plugin = "p"
"#;

/// Replays a thread whose node starts a subgraph that returns its context.
async fn replayed_start(input: Value, context: Value, durability: Durability) -> Replay {
    let start = StartRun {
        graph: Some("helper".parse().unwrap()),
        context: context.clone(),
        ..StartRun::new("test".parse().unwrap(), input)
    };
    let plugin = || {
        let start = start.clone();
        NativePlugin::new("p", "1")
            .node("call", move |_, gate| {
                let start = start.clone();
                async move {
                    let run = gate.start_run(start).await?;
                    Ok(json!({ "out": gate.wait_run(&run).await?.state["out"] }))
                }
            })
            .node("tell", |call, _| async move { Ok(json!({ "out": call.context })) })
    };
    let world = World::new(STARTING, plugin());
    let options = RunOptions { durability, ..RunOptions::default() };
    let ended = world.run_as(json!({}), options).await;
    assert_eq!(ended.state["out"], context);
    let text = exported(&world.engine, &ended.run.thread).await;
    let app = World::new(STARTING, plugin()).engine.catalog().apps().remove(0);
    let replay = replayed(&text, app).await;
    assert_eq!(replay.divergences, []);
    replay
}

#[tokio::test]
async fn a_started_subgraph_replays_with_what_the_journal_has_of_its_start() {
    let long = || json!({ "out": "x".repeat(limit::JOURNAL_REQUEST_BYTES) });
    let eve = || json!({ "user": "eve" });
    let of_both = Counts { checkpoints: 1, tasks: 1, calls: 0 };
    let of_task = Counts { tasks: 1, ..Counts::default() };
    for (input, context, durability, skipped) in [
        (json!({}), eve(), Durability::Commit, None),
        (long(), eve(), Durability::Commit, None),
        (json!({}), long(), Durability::Commit, Some(("the context", of_task))),
        (json!({}), eve(), Durability::Exit, None),
        (json!({}), long(), Durability::Exit, Some(("the context", of_task))),
        (long(), eve(), Durability::Exit, Some(("the input", of_both))),
    ] {
        let replay = replayed_start(input, context, durability).await;
        let reasons: Vec<&str> = replay.skipped.iter().map(|it| it.reason.as_str()).collect();
        let expected = skipped.map(|(what, left_out)| {
            let started = "from the call that started the graph is too long for the journal";
            (format!("{what} {started}"), left_out)
        });
        let expected_reasons: Vec<&str> =
            expected.iter().map(|(reason, _)| reason.as_str()).collect();
        assert_eq!(reasons, expected_reasons);
        assert_eq!(replay.left_out, expected.map_or(Counts::default(), |(_, left_out)| left_out));
        assert_eq!(replay.tasks, 2 - replay.left_out.tasks);
    }
}
