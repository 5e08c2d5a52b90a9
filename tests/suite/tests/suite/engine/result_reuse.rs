//! Result reuse: the next run of a thread reuses each result of a cancelled run once.

use std::sync::Arc;

use serde_json::{Value, json};
use wattle_graph::event::{Called, Event, EventKind, RunStatus};
use wattle_graph::failure::code;
use wattle_graph::id::ThreadId;
use wattle_graph::limit::GraphLimits;
use wattle_graph::tool::ToolRequest;
use wattle_kit::forgetful::ForgetfulStore;
use wattle_run::grant::Grants;
use wattle_run::hostcall::interrupt::InterruptRequest;
use wattle_run::hostcall::runs::{CreateRun, EndedRun, OnFailure, RunOutcome, RunRef, RunService};
use wattle_run::json::approx_bytes;
use wattle_run::limit::Limits;
use wattle_run::ports::store::{RunAnswers, RunKind, StaleAnswers};
use wattle_run::ports::tool_server::NoToolServers;
use wattle_store::InMemoryStore;
use wattle_suite::native::NativePlugin;
use wattle_suite::scripted::{NoSql, get, picture, prompt, said, unavailable};
use wattle_suite::world::{START_MS, World, failure};

const ONE: &str = r#"
[graphs.one]
entry = "work"
[graphs.one.channels.out]
[graphs.one.nodes.work]
plugin = "p"
"#;

const TWO: &str = r#"
[graphs.two]
entry = ["work", "wait"]
[graphs.two.channels.out]
[graphs.two.channels.idle]
[graphs.two.nodes.work]
plugin = "p"
[graphs.two.nodes.wait]
plugin = "p"
[graphs.two.nodes.later]
plugin = "p"
[[graphs.two.edges]]
from = ["work", "wait"]
to = "later"
"#;

/// Returns a plugin whose node calls a model, generates an image, and then makes a slow call.
fn artist() -> NativePlugin {
    NativePlugin::new("p", "1").node("work", |_, gate| async move {
        let answer = gate.call(prompt("what to draw")).await?;
        let pictures = gate.call(picture("a tree")).await?;
        gate.call(get("https://example.com/slow")).await?;
        Ok(json!({ "out": [said(&answer), pictures[0].link] }))
    })
}

fn drawing() -> World {
    World::new(ONE, artist())
}

/// Starts a run and cancels it during its slow call.
async fn cut(world: &World, thread: Option<&ThreadId>) -> RunRef {
    world.net.hang_next(1);
    let run = world.begin_on(thread, json!({})).await.unwrap();
    world.net.hung().await;
    world.engine.cancel(&run).await.unwrap();
    assert_eq!(world.engine.wait(&run).await.unwrap().outcome, RunOutcome::Cancelled);
    run
}

async fn again(world: &World, thread: &ThreadId) -> EndedRun {
    let run = world.begin_on(Some(thread), json!({})).await.unwrap();
    world.engine.wait(&run).await.unwrap()
}

fn paid(world: &World) -> (usize, usize) {
    (world.model.calls(), world.model.pictures())
}

async fn called(world: &World, thread: &ThreadId) -> Vec<(Event, Called)> {
    let events = world.events(thread).await.into_iter();
    let called = events.filter_map(|event| match event.kind.clone() {
        EventKind::Called(called) => Some((event, *called)),
        _ => None,
    });
    called.collect()
}

/// Returns the function and the origin of each reused entry.
async fn reused(world: &World, thread: &ThreadId) -> Vec<(String, u64)> {
    let called = called(world, thread).await.into_iter();
    called.filter_map(|(_, called)| Some((called.function.clone(), called.reused?))).collect()
}

#[tokio::test]
async fn completions_and_images_of_a_cancelled_run_are_reused() {
    let world = drawing();
    let run = cut(&world, None).await;
    assert_eq!(paid(&world), (1, 1));
    let ended = again(&world, &run.thread).await;
    assert_eq!(ended.outcome, RunOutcome::Completed);
    assert_eq!(ended.state["out"][0], "answer 1");
    assert!(ended.state["out"][1].as_str().is_some_and(|link| link.starts_with("/blobs/")));
    assert_eq!(paid(&world), (1, 1));
    let entries = called(&world, &run.thread).await;
    let first = |function: &str| {
        entries.iter().find(|(_, it)| it.function == function).map(|(event, _)| event.seq).unwrap()
    };
    let from = ["llm.complete", "llm.generate-images"].map(|it| (it.to_owned(), first(it)));
    assert_eq!(reused(&world, &run.thread).await, from);
    let again = entries.iter().filter(|(_, called)| called.reused.is_some());
    assert!(again.clone().all(|(_, called)| called.tokens.is_none()), "counted in the first run");
    let streamed = |kind: &EventKind| matches!(kind, EventKind::Streamed(it) if it.call == 0);
    let events = world.events(&run.thread).await;
    let pieces = events.iter().filter(|event| event.run == ended.run.run && streamed(&event.kind));
    assert_eq!(pieces.count(), 1, "the second run streams the text");
}

#[tokio::test]
async fn results_are_reused_after_several_cancels() {
    let world = drawing();
    let run = cut(&world, None).await;
    for _ in 0..3 {
        cut(&world, Some(&run.thread)).await;
    }
    assert_eq!(again(&world, &run.thread).await.outcome, RunOutcome::Completed);
    assert_eq!(paid(&world), (1, 1));
}

/// Returns a plugin whose node asks a model three times, and then makes a slow call.
fn curious() -> NativePlugin {
    NativePlugin::new("p", "1").node("work", |_, gate| async move {
        for _ in 0..3 {
            gate.call(prompt("why")).await?;
        }
        gate.call(get("https://example.com/slow")).await?;
        Ok(json!({}))
    })
}

/// The limit suffices for the calls of the cancelled run. The response to the slow call exceeds it.
#[tokio::test]
async fn reused_results_count_towards_the_limit_of_bytes() {
    let world = World::new(ONE, curious());
    let run = cut(&world, None).await;
    let entries = called(&world, &run.thread).await;
    let results = entries.iter().map(|(_, called)| approx_bytes(called.result.as_ref().unwrap()));
    let (question, slow) = (json!(prompt("why")), json!(get("https://example.com/slow")));
    let requests = 3 * question.to_string().len() + slow.to_string().len();
    let host_call_bytes = results.sum::<u64>() + requests as u64 + 10;
    let limits = Limits { host_call_bytes, ..Limits::default() };
    let grants = Grants { limits, ..Grants::default() };
    let world = World::with_sql(ONE, curious(), Arc::new(NoSql), grants);
    let run = cut(&world, None).await;
    let ended = again(&world, &run.thread).await;
    assert_eq!(failure(&ended).details.unwrap()["limit"], "host_call_bytes");
    assert_eq!(world.model.calls(), 3, "the results are reused");
}

#[tokio::test]
async fn a_run_starts_without_reuse_if_the_log_cannot_be_read() {
    let store = Arc::new(ForgetfulStore::over(Arc::new(InMemoryStore::new())));
    let world = World::with_store(ONE, artist(), store.clone());
    let run = cut(&world, None).await;
    store.forget(true);
    assert_eq!(again(&world, &run.thread).await.outcome, RunOutcome::Completed);
    assert_eq!(paid(&world), (2, 2), "all calls are repeated");
}

#[tokio::test]
async fn results_of_a_completed_run_are_not_reused() {
    let world = drawing();
    let run = cut(&world, None).await;
    again(&world, &run.thread).await;
    let ended = again(&world, &run.thread).await;
    assert_eq!((&ended.state["out"][0], paid(&world)), (&json!("answer 2"), (2, 2)));
}

#[tokio::test]
async fn results_are_not_reused_without_the_grant() {
    let world = drawing();
    let run = cut(&world, None).await;
    world.limit_graphs(ONE, artist(), GraphLimits::default());
    assert_eq!(failure(&again(&world, &run.thread).await).code, code::DENIED);
    assert_eq!(reused(&world, &run.thread).await, []);
    assert_eq!(paid(&world), (1, 1));
}

#[tokio::test]
async fn results_before_a_failed_run_are_not_reused() {
    let world = drawing();
    let run = cut(&world, None).await;
    world.net.fail_next(unavailable());
    failure(&again(&world, &run.thread).await);
    assert_eq!(paid(&world), (1, 1));
    assert_eq!(again(&world, &run.thread).await.outcome, RunOutcome::Completed);
    assert_eq!(paid(&world), (2, 2));
}

#[tokio::test]
async fn results_of_a_failed_attempt_are_not_reused() {
    let graph = format!("{ONE}retry = {{ attempts = 2, initial = \"30s\" }}\n");
    let world = World::new(&graph, artist());
    world.net.fail_next(unavailable());
    let run = world.begin(json!({})).await.unwrap();
    let mut newest = world.engine.watch(&run.thread);
    while world.count(&run.thread, |kind| matches!(kind, EventKind::TaskFailed(_))).await == 0 {
        newest.changed().await.unwrap();
    }
    world.engine.cancel(&run).await.unwrap();
    assert_eq!(again(&world, &run.thread).await.outcome, RunOutcome::Completed);
    assert_eq!(paid(&world), (2, 2));
}

#[tokio::test]
async fn a_different_request_is_executed() {
    let plugin = NativePlugin::new("p", "1").node("work", |call, gate| async move {
        let answer = gate.call(prompt(&call.input.get("out").to_string())).await?;
        gate.call(get("https://example.com/slow")).await?;
        Ok(json!({ "out": said(&answer) }))
    });
    let world = World::new(ONE, plugin);
    let run = cut(&world, None).await;
    let next = world.begin_on(Some(&run.thread), json!({ "out": "new" })).await.unwrap();
    assert_eq!(world.engine.wait(&next).await.unwrap().state["out"], "answer 2");
}

/// Returns a plugin whose node makes the same model call twice, with a slow call in between.
fn twice() -> NativePlugin {
    NativePlugin::new("p", "1").node("work", |_, gate| async move {
        let one = gate.call(prompt("same")).await?;
        gate.call(get("https://example.com/slow")).await?;
        let two = gate.call(prompt("same")).await?;
        Ok(json!({ "out": [said(&one), said(&two)] }))
    })
}

#[tokio::test]
async fn each_result_is_reused_once() {
    let world = World::new(ONE, twice());
    let run = cut(&world, None).await;
    let ended = again(&world, &run.thread).await;
    assert_eq!(ended.state["out"], json!(["answer 1", "answer 2"]));
}

#[tokio::test]
async fn a_resumed_run_replays_its_journal_instead() {
    let world = World::new(ONE, twice());
    let run = cut(&world, None).await;
    let ended = world.resume(&run.thread, &[], OnFailure::Keep).await.unwrap();
    assert_eq!(ended.state["out"], json!(["answer 1", "answer 2"]));
    assert_eq!(reused(&world, &run.thread).await, []);
}

#[tokio::test]
async fn a_crash_of_the_next_run_does_not_affect_the_reuse() {
    let mut world = drawing();
    let run = cut(&world, None).await;
    world.net.hang_next(1);
    let next = world.begin_on(Some(&run.thread), json!({})).await.unwrap();
    world.net.hung().await;
    world.crash().await;
    assert_eq!(world.engine.recover().await, 1);
    let ended = world.engine.wait(&next).await.unwrap();
    assert_eq!((&ended.outcome, paid(&world)), (&RunOutcome::Completed, (1, 1)));
    assert_eq!(reused(&world, &run.thread).await.len(), 2, "each once");
}

#[tokio::test]
async fn results_of_finished_tasks_in_a_cancelled_superstep_are_reused() {
    let plugin = NativePlugin::new("p", "1")
        .node("work", |call, gate| async move {
            if *call.input.get("idle") == true {
                return Ok(json!({}));
            }
            let answer = gate.call(prompt("quick")).await?;
            Ok(json!({ "out": said(&answer) }))
        })
        .node("wait", |call, gate| async move {
            if *call.input.get("idle") != true {
                gate.call(get("https://example.com/slow")).await?;
            }
            Ok(json!({}))
        })
        .node("later", |_, gate| async move {
            gate.call(get("https://example.com/slow")).await?;
            Ok(json!({}))
        });
    let world = World::new(TWO, plugin);
    world.net.hang_next(1);
    let run = world.begin(json!({ "idle": false })).await.unwrap();
    world.net.hung().await;
    let has_finished = |kind: &EventKind| matches!(kind, EventKind::TaskFinished(_));
    let mut newest = world.engine.watch(&run.thread);
    while world.count(&run.thread, has_finished).await == 0 {
        newest.changed().await.unwrap();
    }
    world.engine.cancel(&run).await.unwrap();
    // A run that takes one superstep and is then cancelled does not affect the reuse.
    world.net.hang_next(1);
    let idle = world.begin_on(Some(&run.thread), json!({ "idle": true })).await.unwrap();
    world.net.hung().await;
    world.engine.cancel(&idle).await.unwrap();
    let last = world.begin_on(Some(&run.thread), json!({ "idle": false })).await.unwrap();
    let ended = world.engine.wait(&last).await.unwrap();
    assert_eq!((&ended.state["out"], world.model.calls()), (&json!("answer 1"), 1));
}

/// Returns the request for a run on a thread whose only answer is to an interrupt that the thread
/// never raised.
fn stale_answer(world: &World, thread: &ThreadId) -> CreateRun {
    let answers = [("0".repeat(32), json!("yes"))].into();
    let kind = RunKind::Answer { answer: RunAnswers::ById(answers) };
    let mut request = world.create_run(thread, kind);
    request.spec.stale_answers = StaleAnswers::Ignore;
    request
}

#[tokio::test]
async fn a_stale_answer_after_a_cancel_does_not_affect_the_reuse() {
    let plugin = NativePlugin::new("p", "1")
        .node("work", |_, gate| async move {
            let answer = gate.call(prompt("quick")).await?;
            gate.call(get("https://example.com/slow")).await?;
            Ok(json!({ "out": said(&answer) }))
        })
        .node("wait", |_, gate| async move {
            let question = InterruptRequest { payload: json!("sure?"), response_schema: None };
            gate.ask(question).await?;
            Ok(json!({}))
        })
        .node("later", |_, _| async { Ok(json!({})) });
    let world = World::new(TWO, plugin);
    world.net.hang_next(1);
    let run = world.begin(json!({})).await.unwrap();
    world.net.hung().await;
    let has_asked = |kind: &EventKind| matches!(kind, EventKind::InterruptRaised(_));
    let mut newest = world.engine.watch(&run.thread);
    while world.count(&run.thread, has_asked).await == 0 {
        newest.changed().await.unwrap();
    }
    world.engine.cancel(&run).await.unwrap();
    let stale = world.engine.create_run(stale_answer(&world, &run.thread)).await.unwrap();
    assert_eq!(stale.status, RunStatus::Cancelled, "the interrupt is still pending");
    let ended = again(&world, &run.thread).await;
    assert!(matches!(ended.outcome, RunOutcome::Interrupted { .. }), "{ended:?}");
    assert_eq!((reused(&world, &run.thread).await.len(), world.model.calls()), (1, 1));
}

/// A pending run is neither cancelled nor a run whose caller has new results.
#[tokio::test]
async fn a_run_that_is_not_due_does_not_affect_the_reuse() {
    let world = drawing();
    let run = cut(&world, None).await;
    let mut later = stale_answer(&world, &run.thread);
    later.spec.kind = RunKind::Start { input: json!({}) };
    later.spec.due_ms = START_MS + 1_000_000;
    let later = world.engine.create_run(later).await.unwrap();
    assert_eq!(later.status, RunStatus::Pending);
    assert_eq!(again(&world, &run.thread).await.outcome, RunOutcome::Completed);
    assert_eq!((reused(&world, &run.thread).await.len(), paid(&world)), (2, (1, 1)));
}

/// Creates a world whose node calls two tools in sequence. The second tool makes a slow call.
fn with_tools() -> World {
    let caller = NativePlugin::new("p", "1").node("work", |_, gate| async move {
        let mut out = Vec::new();
        for tool in ["quick", "slow"] {
            let (tool, arguments) = (tool.to_owned(), json!({}));
            let request = ToolRequest {
                tool,
                call_id: String::new(),
                arguments,
                timeout_ms: None,
                state: None,
            };
            out.push(gate.call_tool(request).await?.structured.unwrap_or_default());
        }
        Ok(json!({ "out": out }))
    });
    let tools = NativePlugin::new("t", "1")
        .tool("quick", |_, gate| async move { ask(&gate.call(prompt("quick")).await?) })
        .tool("slow", |_, gate| async move {
            let answer = gate.call(prompt("slow")).await?;
            gate.call(get("https://example.com/slow")).await?;
            ask(&answer)
        });
    World::with_tools(ONE, vec![caller, tools], Arc::new(NoToolServers))
}

#[expect(clippy::unnecessary_wraps, reason = "nodes and tools of the suite return a result")]
fn ask(answer: &wattle_graph::llm::Completion) -> wattle_suite::native::Answer {
    Ok(Value::String(said(answer)))
}

#[tokio::test]
async fn a_finished_tool_is_called_again_and_a_cancelled_one_reuses_its_results() {
    let world = with_tools();
    let run = cut(&world, None).await;
    assert_eq!(world.model.calls(), 2);
    let ended = again(&world, &run.thread).await;
    assert_eq!(ended.state["out"], json!(["answer 3", "answer 2"]));
}
