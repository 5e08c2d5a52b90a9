//! The history of a thread with answered interrupts and with subgraphs.

use std::sync::Arc;

use serde_json::{Value, json};
use wattle_graph::failure::{Failure, code};
use wattle_run::gate::Gate;
use wattle_run::gate::unwind::CallError;
use wattle_run::hostcall::interrupt::InterruptRequest;
use wattle_run::hostcall::runs::RunOutcome;

use crate::host::Host;
use crate::plugin::{Closures, Nothing};

/// `twice` raises two interrupts. `outer` runs `twice` as a node that keeps its state. `caller`
/// starts `twice` by a host call.
const GRAPHS: &str = r#"
    [graphs.twice]
    entry = "ask"
    [graphs.twice.channels]
    items = { reducer = "append" }
    word = {}
    [graphs.twice.nodes.ask]
    plugin = "p"

    [graphs.outer]
    entry = "inner"
    [graphs.outer.channels]
    word = {}
    [graphs.outer.nodes.inner]
    graph = "twice"
    state = "own"

    [graphs.caller]
    entry = "call"
    [graphs.caller.channels]
    items = { reducer = "append" }
    [graphs.caller.nodes.call]
    plugin = "p"
"#;

async fn ask(gate: &Gate, payload: &str) -> Result<Value, CallError> {
    gate.ask(InterruptRequest { payload: json!(payload), response_schema: None }).await
}

fn host() -> Host {
    let plugin = Closures::new("p")
        .node("ask", |_, gate| async move {
            let one = ask(&gate, "one?").await?;
            let two = ask(&gate, "two?").await?;
            Ok(json!({ "items": [one, two] }))
        })
        .node("call", |_, gate| async move {
            let start = json!({ "app": "test", "graph": "twice", "input": {}, "thread": null });
            let run = gate.start_run(serde_json::from_value(start).unwrap()).await?;
            let ended = gate.wait_run(&run).await?;
            match ended.outcome {
                RunOutcome::Completed => Ok(json!({ "items": ended.state["items"] })),
                other => Err(Failure::new(code::INTERNAL, format!("{other:?}")).into()),
            }
        });
    Host::with_model(GRAPHS, plugin, Arc::new(Nothing))
}

async fn run(host: &Host, thread: &str, graph: &str, more: Value) {
    let mut request = json!({ "assistant_id": graph });
    for (name, value) in more.as_object().unwrap() {
        request[name] = value.clone();
    }
    host.post(&format!("/threads/{thread}/runs/wait"), request).await.ok();
}

/// Creates a thread on which `times` interrupts were answered.
async fn answered(host: &Host, graph: &str, times: usize) -> String {
    let thread = host.thread().await;
    run(host, &thread, graph, json!({ "input": {} })).await;
    for _ in 0..times {
        run(host, &thread, graph, json!({ "command": { "resume": "yes" } })).await;
    }
    thread
}

/// Returns the checkpoints, without the states before inputs.
async fn history(host: &Host, thread: &str) -> Vec<Value> {
    let all = host.post(&format!("/threads/{thread}/history"), json!({ "limit": 20 })).await.ok();
    let all = all.as_array().unwrap().iter().filter(|state| state["next"] != json!(["__start__"]));
    all.cloned().collect()
}

fn payloads(interrupts: &Value) -> Vec<&str> {
    interrupts.as_array().unwrap().iter().map(|it| it["value"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn history_keeps_an_answered_interrupt() {
    let host = host();
    let thread = answered(&host, "twice", 2).await;
    let all = history(&host, &thread).await;
    let (end, asked) = (&all[0], &all[1]);
    assert_eq!((&end["next"], &end["interrupts"]), (&json!([]), &json!([])));
    assert_eq!(asked["next"], json!(["ask"]));
    // The interrupt at which the task stopped last.
    assert_eq!(payloads(&asked["interrupts"]), ["two?"]);
    let task = &asked["tasks"][0];
    assert_eq!(task["interrupts"], asked["interrupts"]);
    assert_eq!(task["result"], json!({ "items": ["yes", "yes"] }));
    let id = asked["checkpoint_id"].as_str().unwrap();
    assert_eq!(host.get(&format!("/threads/{thread}/state/{id}")).await.ok(), *asked);
}

#[tokio::test]
async fn current_state_has_pending_interrupts_only() {
    let host = host();
    let thread = answered(&host, "twice", 1).await;
    let state = host.get(&format!("/threads/{thread}/state")).await.ok();
    assert_eq!(payloads(&state["interrupts"]), ["two?"]);
    assert_eq!(payloads(&state["tasks"][0]["interrupts"]), ["two?"]);
    let shown = host.get(&format!("/threads/{thread}")).await.ok();
    assert_eq!(shown["interrupts"].as_object().unwrap().len(), 1);
}

#[tokio::test]
async fn history_keeps_an_unanswered_interrupt() {
    let host = host();
    let thread = answered(&host, "twice", 0).await;
    run(&host, &thread, "twice", json!({ "input": {} })).await;
    let all = history(&host, &thread).await;
    for state in &all {
        assert_eq!(payloads(&state["interrupts"]), ["one?"]);
    }
    assert_eq!(all.len(), 2);
}

#[tokio::test]
async fn task_names_the_subgraph_that_it_ran() {
    let host = host();
    for (graph, is_kept) in [("outer", true), ("caller", false)] {
        let thread = answered(&host, graph, 2).await;
        let all = history(&host, &thread).await;
        let past = &all[1];
        assert_eq!(payloads(&past["tasks"][0]["interrupts"]), ["two?"], "{graph}");
        let place = &past["tasks"][0]["checkpoint"];
        assert_eq!(place["thread_id"], thread, "{graph}");
        assert_eq!(place.get("checkpoint_id").is_some(), is_kept, "{graph}");
        let at = json!({ "checkpoint": place });
        let end = host.post(&format!("/threads/{thread}/state/checkpoint"), at).await.ok();
        assert_eq!(end["checkpoint"]["checkpoint_ns"], place["checkpoint_ns"]);
        assert_eq!((&end["values"]["items"], &end["next"]), (&json!(["yes", "yes"]), &json!([])));

        let at = json!({ "checkpoint": past["checkpoint"], "subgraphs": true });
        let whole = host.post(&format!("/threads/{thread}/state/checkpoint"), at).await.ok();
        assert_eq!(whole["tasks"][0]["state"]["checkpoint"], end["checkpoint"], "{graph}");
    }
}

#[tokio::test]
async fn subgraph_that_a_host_call_started_is_found_by_the_task_of_the_call() {
    let host = host();
    let thread = answered(&host, "caller", 1).await;
    let states = format!("/threads/{thread}/state");
    let task = host.get(&states).await.ok()["tasks"][0].clone();
    let own = task["checkpoint"]["checkpoint_ns"].as_str().unwrap().to_owned();
    let by_task = format!("call:{}", task["id"].as_str().unwrap());
    assert!(own.starts_with(&format!("{by_task}.")), "{own}");
    let named = json!({ "checkpoint_ns": by_task });
    let past = json!({ "limit": 9, "checkpoint": named });
    let past = host.post(&format!("/threads/{thread}/history"), past).await.ok();
    assert_eq!(past[0]["next"], json!(["ask"]));
    assert_eq!(past[0]["checkpoint"]["checkpoint_ns"], own);
    let at = json!({ "checkpoint": named });
    let state = host.post(&format!("{states}/checkpoint"), at).await.ok();
    assert_eq!(state["checkpoint"], past[0]["checkpoint"]);
    let command = json!({ "id": 1, "method": "state.get", "params": { "namespace": [by_task] } });
    let read = host.post(&format!("/threads/{thread}/commands"), command).await.ok();
    assert_eq!(read["result"]["checkpoint"]["ns"], own);
    let edit = json!({ "values": { "word": "w", "mood": 1 }, "as_node": "__start__",
        "checkpoint": named });
    let edited = host.post(&states, edit).await;
    assert_eq!(edited.ok()["checkpoint"]["checkpoint_ns"], own);
    assert_eq!(edited.header("x-wattle-ignored-keys"), "values.mood");
    // A task that does not exist, and more levels than a namespace of a thread can have.
    for place in [format!("call:{thread}"), vec![by_task.as_str(); 1_000].join("|")] {
        let at = json!({ "checkpoint": { "checkpoint_ns": place } });
        let nothing = host.post(&format!("{states}/checkpoint"), at).await.ok();
        assert_eq!(nothing["values"], json!({}), "{place}");
    }
}

#[tokio::test]
async fn history_of_a_stateful_subgraph_has_its_earlier_states() {
    let host = host();
    let thread = answered(&host, "outer", 2).await;
    run(&host, &thread, "outer", json!({ "input": {} })).await;
    for _ in 0..2 {
        run(&host, &thread, "outer", json!({ "command": { "resume": "no" } })).await;
    }
    let all = history(&host, &thread).await;
    let mut seen = Vec::new();
    for past in [&all[1], &all[3]] {
        let at = json!({ "checkpoint": past["checkpoint"], "subgraphs": true });
        let whole = host.post(&format!("/threads/{thread}/state/checkpoint"), at).await.ok();
        seen.push(whole["tasks"][0]["state"]["values"]["items"].clone());
    }
    assert_eq!(seen, [json!(["yes", "yes", "no", "no"]), json!(["yes", "yes"])]);
}

#[tokio::test]
async fn state_before_the_start_of_a_subgraph_has_no_subgraph_state() {
    let host = host();
    let thread = host.thread().await;
    run(&host, &thread, "outer", json!({ "input": {}, "interrupt_before": ["inner"] })).await;
    run(&host, &thread, "outer", json!({ "input": {} })).await;
    for _ in 0..2 {
        run(&host, &thread, "outer", json!({ "command": { "resume": "yes" } })).await;
    }
    let all = history(&host, &thread).await;
    let first = all.last().unwrap();
    assert_eq!(first["next"], json!(["inner"]));
    let id = first["checkpoint_id"].as_str().unwrap();
    let path = format!("/threads/{thread}/state/{id}?subgraphs=true");
    let whole = host.get(&path).await.ok();
    assert_eq!(whole["tasks"][0]["name"], "inner");
    assert_eq!(whole["tasks"][0]["state"], Value::Null);

    // In the current state of the thread, the subgraph has its last state.
    run(&host, &thread, "outer", json!({ "input": {}, "interrupt_before": ["inner"] })).await;
    let now = host.get(&format!("/threads/{thread}/state?subgraphs=true")).await.ok();
    assert_eq!(now["next"], json!(["inner"]));
    assert_eq!(now["tasks"][0]["state"]["values"]["items"], json!(["yes", "yes"]));
}

#[tokio::test]
async fn state_of_an_interrupted_subgraph_has_its_interrupt() {
    let host = host();
    for graph in ["outer", "caller"] {
        let thread = answered(&host, graph, 1).await;
        let state = host.get(&format!("/threads/{thread}/state?subgraphs=true")).await.ok();
        let task = &state["tasks"][0];
        assert_eq!(payloads(&task["interrupts"]), ["two?"], "{graph}");
        assert_eq!(payloads(&task["state"]["interrupts"]), ["two?"], "{graph}");
        assert_eq!(payloads(&task["state"]["tasks"][0]["interrupts"]), ["two?"], "{graph}");
    }
}
