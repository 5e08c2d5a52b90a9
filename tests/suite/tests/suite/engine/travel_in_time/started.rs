//! Forks from a host call after a subgraph that a node or a tool started, and inside of it.

use std::sync::Arc;

use serde_json::json;
use wattle_graph::id::{AppName, GraphName};
use wattle_graph::tool::ToolRequest;
use wattle_run::gate::Gate;
use wattle_run::gate::unwind::CallError;
use wattle_run::hostcall::runs::{EndedRun, RunOutcome, StartRun};
use wattle_run::ports::tool_server::NoToolServers;
use wattle_run::time_travel::CallRef;
use wattle_suite::native::NativePlugin;
use wattle_suite::scripted::{get, prompt, said};
use wattle_suite::world::World;

use super::call::{calls, entry, fork, reworded};
use super::nested::paying;
use super::replays;

const STARTED: &str = r#"
[graphs.main]
entry = "call"
[graphs.main.channels.out]
[graphs.main.nodes.call]
plugin = "p"
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

async fn helped(gate: &Gate) -> Result<EndedRun, CallError> {
    let start = StartRun {
        graph: Some(GraphName::new("helper").unwrap()),
        ..StartRun::new(AppName::new("test").unwrap(), json!({}))
    };
    let run = gate.start_run(start).await?;
    // The request contains the id of the run. A fork must make an equal request.
    gate.call(get(&format!("https://a.example/{}", run.run))).await?;
    gate.wait_run(&run).await
}

/// Returns a plugin whose node calls a model before, between and after two starts of a subgraph.
fn starting() -> NativePlugin {
    paying().node("call", |_, gate| async move {
        let own = said(&gate.call(prompt("own")).await?);
        let (first, second) = (helped(&gate).await?, helped(&gate).await?);
        let end = said(&gate.call(prompt("end")).await?);
        Ok(json!({ "out": [own, first.state["log"], second.state["log"], end] }))
    })
}

#[tokio::test]
async fn a_fork_after_a_started_subgraph_replays_it_from_the_journal() {
    let world = World::new(STARTED, starting());
    let ended = world.run(json!({})).await;
    let helped = json!([["answer 2", "answer 3"], ["answer 4", "answer 5"]]);
    assert_eq!(ended.state["out"], json!(["answer 1", helped[0], helped[1], "answer 6"]));
    assert_eq!((world.model.calls(), world.net.calls()), (6, 4));
    let thread = &ended.run.thread;
    let call = entry(&world, thread, "llm.complete", &[7]).await;
    let answer = reworded(&world, thread, "what if").await;
    let forked = fork(&world, thread, call, Ok(answer)).await;
    assert_eq!(forked.outcome, RunOutcome::Completed);
    assert_eq!(forked.state["out"], json!(["answer 1", helped[0], helped[1], "what if"]));
    assert_eq!((world.model.calls(), world.net.calls()), (6, 4));
}

#[tokio::test]
async fn a_fork_inside_of_a_started_subgraph_carries_over_earlier_work() {
    let world = World::new(STARTED, starting());
    let thread = &world.run(json!({})).await.run.thread;
    let mut call = entry(&world, thread, "llm.complete", &[0]).await;
    for (text, last) in [("what if", 7), ("and now", 8)] {
        let answer = reworded(&world, thread, text).await;
        let forked = fork(&world, thread, call, Ok(answer)).await;
        assert_eq!(forked.outcome, RunOutcome::Completed);
        let out = json!([
            "answer 1",
            ["answer 2", "answer 3"],
            ["answer 4", text],
            format!("answer {last}")
        ]);
        assert_eq!(forked.state["out"], out);
        assert_eq!(world.model.calls(), last);
        call = entry(&world, thread, "llm.complete", &[0]).await;
    }
    assert_eq!(world.net.calls(), 6, "only the second `two` calls the service again");
    replays(&world, thread).await;
}

#[tokio::test]
async fn a_fork_inside_of_the_first_started_subgraph_restarts_the_second() {
    let world = World::new(STARTED, starting());
    let thread = &world.run(json!({})).await.run.thread;
    let seqs = calls(&world, thread).await;
    let second = seqs.iter().filter(|(_, it)| it.function == "llm.complete").nth(2).unwrap();
    let answer = reworded(&world, thread, "what if").await;
    let call = CallRef::Seq(second.0);
    let forked = fork(&world, thread, call, Ok(answer)).await;
    let out = json!(["answer 1", ["answer 2", "what if"], ["answer 7", "answer 8"], "answer 9"]);
    assert_eq!(forked.state["out"], out);
    assert_eq!((world.model.calls(), world.net.calls()), (9, 7));
}

/// Returns plugins whose node calls two tools concurrently. Each tool starts a subgraph.
fn tooling() -> Vec<NativePlugin> {
    let node = paying().node("call", |_, gate| async move {
        let request = |tool: &str| {
            let (call_id, arguments) = (String::new(), json!({}));
            Ok(ToolRequest { tool: tool.into(), call_id, arguments, timeout_ms: None, state: None })
        };
        let answers = gate.call_tools(vec![request("think"), request("again")]).await?;
        let mut out = Vec::new();
        for answer in answers {
            out.push(answer?.structured.unwrap_or_default());
        }
        Ok(json!({ "out": out }))
    });
    let starts = |_, gate: Arc<Gate>| async move {
        let before = said(&gate.call(prompt("before")).await?);
        Ok(json!([before.len(), helped(&gate).await?.state["log"]]))
    };
    let tools = NativePlugin::new("h", "1").tool("think", starts).tool("again", starts);
    vec![node, tools]
}

#[tokio::test]
async fn a_result_in_a_subgraph_that_a_tool_started_can_be_overridden() {
    let world = World::with_tools(STARTED, tooling(), Arc::new(NoToolServers));
    let thread = &world.run(json!({})).await.run.thread;
    assert_eq!((world.model.calls(), world.net.calls()), (6, 4));
    let known = calls(&world, thread).await;
    let last = known.iter().rev().find(|(_, it)| it.function == "llm.complete").unwrap();
    assert_eq!(last.1.node.as_str(), "two");
    let answer = reworded(&world, thread, "what if").await;
    let forked = fork(&world, thread, CallRef::Seq(last.0), Ok(answer)).await;
    assert_eq!(forked.outcome, RunOutcome::Completed);
    assert!(forked.state["out"].to_string().contains("what if"), "{}", forked.state);
    assert_eq!((world.model.calls(), world.net.calls()), (6, 5), "only `two` calls again");
}
