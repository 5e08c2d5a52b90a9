//! Subgraphs that a node starts itself.

use std::sync::Arc;

use serde_json::{Value, json};
use wattle_graph::event::EventKind;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{AppName, GraphName, Namespace, RunId, ThreadId};
use wattle_run::gate::Gate;
use wattle_run::gate::unwind::CallError;
use wattle_run::grant::Grants;
use wattle_run::hostcall::runs::{EndedRun, OnFailure, RunOutcome, RunRef, RunService, StartRun};
use wattle_run::limit::Limits;
use wattle_suite::native::NativePlugin;
use wattle_suite::scripted::{NoSql, get, prompt, said, unavailable};
use wattle_suite::world::{World, failure, questions};

use super::question;

const GRAPHS: &str = r#"
[graphs.main]
entry = "call"
[graphs.main.channels.out]
[graphs.main.nodes.call]
plugin = "p"
retry = { attempts = 2, initial = "1ms" }
[graphs.helper]
entry = "one"
[graphs.helper.channels.log]
reducer = "append"
[graphs.helper.nodes.one]
plugin = "p"
[graphs.helper.nodes.two]
plugin = "p"
[[graphs.helper.edges]]
from = "one"
to = "two"
"#;

fn start(graph: &str, input: Value) -> StartRun {
    StartRun {
        graph: Some(GraphName::new(graph).unwrap()),
        ..StartRun::new(AppName::new("test").unwrap(), input)
    }
}

async fn call(gate: &Gate, graph: &str, input: Value) -> Result<EndedRun, CallError> {
    let run = gate.start_run(start(graph, input)).await?;
    gate.wait_run(&run).await
}

/// Returns a plugin whose node `call` calls a model and then runs `helper`, whose node `one` calls
/// a model, too.
fn calling() -> NativePlugin {
    NativePlugin::new("p", "1")
        .node("call", |_, gate| async move {
            let own = said(&gate.call(prompt("own")).await?);
            let ended = call(&gate, "helper", json!({ "log": "in" })).await?;
            match ended.outcome {
                RunOutcome::Completed => Ok(json!({ "out": [own, ended.state["log"]] })),
                RunOutcome::Failed { failure } => Err(failure.into()),
                other => Err(Failure::internal(format!("{other:?}")).into()),
            }
        })
        .node("one", |_, gate| async move {
            Ok(json!({ "log": said(&gate.call(prompt("one")).await?) }))
        })
}

fn two_asks(plugin: NativePlugin) -> NativePlugin {
    plugin.node("two", |_, gate| async move {
        let answer = gate.ask(question(json!("well?"))).await?;
        gate.call(get("https://example.com/tell")).await?;
        Ok(json!({ "log": [answer] }))
    })
}

#[tokio::test]
async fn a_node_starts_a_subgraph_and_gets_its_state() {
    let plugin = calling().node("two", |call, _| async move { Ok(json!({ "log": call.step })) });
    let world = World::new(GRAPHS, plugin);
    let ended = world.run(json!({})).await;
    assert_eq!(ended.state["out"], json!(["answer 1", ["in", "answer 2", 1]]));
    let events = world.events(&ended.run.thread).await;
    let inside: Vec<&Namespace> =
        events.iter().map(|event| &event.namespace).filter(|place| !place.is_root()).collect();
    assert_eq!(inside[0].node(), "call");
    assert!(inside[0].as_str().ends_with(".1"), "the call that started it: {}", inside[0].as_str());
    assert_eq!(events.iter().filter(|it| matches!(it.kind, EventKind::RunStarted(_))).count(), 1);
}

#[tokio::test]
async fn an_interrupt_in_a_started_subgraph_unwinds_the_node() {
    let mut world = World::new(GRAPHS, two_asks(calling()));
    let first = world.run(json!({})).await;
    let open = questions(&first);
    assert_eq!((open.len(), open[0].node.as_str()), (1, "two"));
    assert_eq!(open[0].namespace.node(), "call");
    world.crash().await;
    let ended = world.answer(&first.run.thread, json!("fine")).await;
    assert_eq!(ended.state["out"], json!(["answer 1", ["in", "answer 2", "fine"]]));
    assert_eq!((world.model.calls(), world.net.calls()), (2, 1));
}

#[tokio::test]
async fn a_failed_resume_reopens_the_interrupt_of_a_started_subgraph() {
    let graph = GRAPHS.replace("retry = { attempts = 2, initial = \"1ms\" }\n", "");
    let world = World::new(&graph, two_asks(calling()));
    let first = world.run(json!({})).await;
    let thread = first.run.thread.clone();
    world.net.fail_next(unavailable());
    let failed = world.resume(&thread, &[("", json!("a"))], OnFailure::Reopen).await.unwrap();
    failure(&failed);
    assert_eq!(world.engine.thread(&thread).await.unwrap().unwrap().interrupts.len(), 1);
    let ended = world.answer(&thread, json!("b")).await;
    assert_eq!(ended.state["out"], json!(["answer 1", ["in", "answer 2", "b"]]));
    assert_eq!((world.model.calls(), world.net.calls()), (2, 2));
}

#[tokio::test]
async fn a_crash_in_a_started_subgraph_repeats_nothing() {
    let plugin = calling().node("two", |_, gate| async move {
        gate.call(get("https://example.com/slow")).await?;
        Ok(json!({ "log": "two" }))
    });
    let mut world = World::new(GRAPHS, plugin);
    world.net.hang_next(1);
    let run = world.begin(json!({})).await.unwrap();
    world.net.hung().await;
    world.crash().await;
    assert_eq!(world.engine.recover().await, 1);
    let ended = world.engine.wait(&run).await.unwrap();
    assert_eq!(ended.state["out"], json!(["answer 1", ["in", "answer 2", "two"]]));
    assert_eq!((world.model.calls(), world.net.calls()), (2, 2));
}

#[tokio::test]
async fn a_retry_of_the_node_continues_at_the_failure_of_its_subgraph() {
    let plugin = calling().node("two", |_, gate| async move {
        gate.call(get("https://example.com/two")).await?;
        Ok(json!({ "log": "two" }))
    });
    let world = World::new(GRAPHS, plugin);
    world.net.fail_next(unavailable());
    let ended = world.run(json!({})).await;
    assert_eq!(ended.state["out"], json!(["answer 1", ["in", "answer 2", "two"]]));
    assert_eq!((world.model.calls(), world.net.calls()), (2, 2));
}

#[tokio::test]
async fn a_subgraph_that_is_awaited_twice_runs_once() {
    let plugin = NativePlugin::new("p", "1")
        .node("call", |_, gate| async move {
            let run = gate.start_run(start("helper", json!({}))).await?;
            let (one, two) = (gate.wait_run(&run).await?, gate.wait_run(&run).await?);
            Ok(json!({ "out": one.state == two.state }))
        })
        .node("one", |_, gate| async move {
            Ok(json!({ "log": said(&gate.call(prompt("one")).await?) }))
        })
        .node("two", |_, _| async { Ok(json!({})) });
    let world = World::new(GRAPHS, plugin);
    assert_eq!(world.run(json!({})).await.state["out"], json!(true));
    assert_eq!(world.model.calls(), 1);
}

#[tokio::test]
async fn recursive_starts_of_subgraphs_end_at_a_limit() {
    let plugin = NativePlugin::new("p", "1")
        .node("call", |_, gate| async move {
            match call(&gate, "main", json!({})).await?.outcome {
                RunOutcome::Failed { failure } => Err(failure.into()),
                _ => Ok(json!({})),
            }
        })
        .node("one", |_, _| async { Ok(json!({})) })
        .node("two", |_, _| async { Ok(json!({})) });
    let graph = GRAPHS.replace("retry = { attempts = 2, initial = \"1ms\" }\n", "");
    let failure = failure(&World::new(&graph, plugin).run(json!({})).await);
    assert_eq!(failure.code, code::LIMIT);
    assert_eq!(failure.details.unwrap()["limit"], "graph_depth");
}

#[tokio::test]
async fn unsupported_requests_of_a_node_fail_with_a_reason() {
    let refused = Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = refused.clone();
    let plugin = NativePlugin::new("p", "1")
        .node("call", move |_, gate| {
            let seen = seen.clone();
            async move {
                let thread = ThreadId::new("other").unwrap();
                let elsewhere = StartRun { thread: Some(thread), ..start("helper", json!({})) };
                let mut failures = vec![gate.runs().err()];
                for request in [elsewhere, start("missing", json!({}))] {
                    let Err(CallError::Failure(failure)) = gate.start_run(request).await else {
                        continue;
                    };
                    failures.push(Some(failure));
                }
                seen.lock().unwrap().extend(failures.into_iter().flatten());
                Ok(json!({}))
            }
        })
        .node("one", |_, _| async { Ok(json!({})) })
        .node("two", |_, _| async { Ok(json!({})) });
    let ended = World::new(GRAPHS, plugin).run(json!({})).await;
    assert_eq!(ended.outcome, RunOutcome::Completed);
    let refused = refused.lock().unwrap();
    let codes: Vec<&str> = refused.iter().map(|failure| failure.code.as_str()).collect();
    assert_eq!(codes, [code::UNSUPPORTED, code::UNSUPPORTED, code::NOT_FOUND]);
    assert!(refused[2].message.contains("`helper`"), "{}", refused[2]);
}

#[tokio::test]
async fn inputs_of_subgraphs_count_towards_the_bytes_of_host_calls() {
    let plugin = NativePlugin::new("p", "1")
        .node("call", |_, gate| async move {
            for _ in 0..100 {
                gate.start_run(start("helper", json!({ "log": "x".repeat(1_000) }))).await?;
            }
            Ok(json!({ "out": "done" }))
        })
        .node("one", |_, _| async move { Ok(json!({})) })
        .node("two", |_, _| async move { Ok(json!({})) });
    let limits = Limits { host_call_bytes: 20_000, ..Limits::default() };
    let grants = Grants { limits, ..Grants::default() };
    let world = World::with_sql(GRAPHS, plugin, Arc::new(NoSql), grants);
    let details = failure(&world.run(json!({})).await).details.unwrap();
    assert_eq!(details["limit"], "host_call_bytes");
}

#[tokio::test]
async fn refused_starts_and_waits_of_subgraphs_count_as_calls() {
    for is_wait in [true, false] {
        let plugin = NativePlugin::new("p", "1")
            .node("call", move |_, gate| async move {
                let run = RunRef {
                    thread: ThreadId::new("other").unwrap(),
                    run: RunId::new("other").unwrap(),
                };
                for _ in 0..100 {
                    let ended = if is_wait {
                        gate.wait_run(&run).await.map(drop)
                    } else {
                        gate.start_run(start("missing", json!({}))).await.map(drop)
                    };
                    if let Err(CallError::Unwind(unwind)) = ended {
                        return Err(CallError::Unwind(unwind));
                    }
                }
                Ok(json!({ "out": "done" }))
            })
            .node("one", |_, _| async move { Ok(json!({})) })
            .node("two", |_, _| async move { Ok(json!({})) });
        let limits = Limits { host_calls: 50, ..Limits::default() };
        let grants = Grants { limits, ..Grants::default() };
        let world = World::with_sql(GRAPHS, plugin, Arc::new(NoSql), grants);
        let details = failure(&world.run(json!({})).await).details.unwrap();
        assert_eq!(details["limit"], "host_calls", "{is_wait}");
    }
}
