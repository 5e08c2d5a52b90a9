//! Streams of runs that continue from the state of another run of the thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::Body;
use axum::http::Request;
use serde_json::{Value, json};
use wattle_api::ApiConfig;
use wattle_graph::failure::{Failure, code};

use crate::gated_store::GatedStore;
use crate::host::{Host, HostOptions, request};
use crate::live_stream::{Frame, LiveStream};
use crate::plugin::{Closures, Nothing};
use crate::protocol::{ID, command, event_names, result};

/// Creates a host with a subgraph whose second node fails the first time.
fn failing_once() -> Host {
    let graphs = r#"
        [graphs.outer]
        entry = "inside"
        [graphs.outer.channels]
        word = {}
        items = { reducer = "append" }
        [graphs.outer.nodes.inside]
        graph = "inner"
        [graphs.inner]
        entry = "first"
        [graphs.inner.channels]
        word = {}
        items = { reducer = "append" }
        [graphs.inner.nodes.first]
        plugin = "p"
        [graphs.inner.nodes.second]
        plugin = "p"
        [[graphs.inner.edges]]
        from = "first"
        to = "second"
    "#;
    let attempts = Arc::new(AtomicUsize::new(0));
    let plugin = Closures::new("p")
        .node("first", |_, _| async move { Ok(json!({ "items": ["first"] })) })
        .node("second", move |_, _| {
            let is_first = attempts.fetch_add(1, Ordering::SeqCst) == 0;
            async move {
                if is_first {
                    return Err(Failure::new(code::INVALID, "not yet").into());
                }
                Ok(json!({ "items": ["second"] }))
            }
        });
    Host::with_model(graphs, plugin, Arc::new(Nothing))
}

fn rejoined(thread: &str, run: &str, query: &str, after: &str) -> Request<Body> {
    let mut request = request("GET", &format!("/threads/{thread}/runs/{run}/stream{query}"), None);
    request.headers_mut().insert("last-event-id", after.parse().unwrap());
    request
}

/// Returns the inputs of the tasks of a node.
fn inputs(frames: &[Frame], node: &str) -> Vec<Value> {
    let begun = frames.iter().filter(|(_, data, _)| {
        data["payload"]["name"] == node && data["payload"].get("input").is_some()
    });
    begun.map(|(_, data, _)| data["payload"]["input"].clone()).collect()
}

#[tokio::test]
async fn streams_of_a_resumed_subgraph_are_the_same_for_later_clients() {
    let host = failing_once();
    let thread = host.thread().await;
    let modes = ["values", "updates", "tasks", "checkpoints", "debug", "messages"];
    let run = |input: Value| {
        json!({
            "assistant_id": "outer", "input": input, "stream_mode": modes, "stream_subgraphs": true,
        })
    };
    let runs = format!("/threads/{thread}/runs/stream");
    let failed = host.post(&runs, run(json!({ "word": "w" }))).await.frames();
    assert_eq!(failed.last().unwrap().0, "error");
    let retried = host.post(&runs, run(Value::Null)).await.frames();
    let read = json!({ "word": "w", "items": ["first"] });
    for frames in [&failed, &retried] {
        assert_eq!(inputs(frames, "second"), std::slice::from_ref(&read));
        let run = frames[0].1["run_id"].as_str().unwrap();
        let modes: String = modes.map(|mode| format!("&stream_mode={mode}")).concat();
        let query = format!("?{}", &modes[1..]);
        let again = host.send(rejoined(&thread, run, &query, "-1")).await.frames();
        assert_eq!(again, *frames, "a later client gets the same events");
        let numbers: Vec<u64> = frames.iter().map(|(.., id)| number(id)).collect();
        assert!(numbers.is_sorted_by(|one, other| one < other), "{numbers:?}");
    }
}

fn number(id: &str) -> u64 {
    id.rsplit_once('-').unwrap().1.parse().unwrap()
}

#[tokio::test]
async fn typed_events_of_a_resumed_subgraph_are_the_same_for_later_clients() {
    let host = failing_once();
    let thread = host.thread().await;
    let wanted = json!({ "channels": ["lifecycle", "tasks", "values", "updates", "checkpoints"] });
    let mut live = LiveStream::events(&host, &thread, wanted.clone()).await;
    let mut seen = Vec::new();
    for input in [json!({ "word": "w" }), Value::Null] {
        let run = json!({ "assistant_id": "outer", "input": input });
        host.post(&format!("/threads/{thread}/runs/wait"), run).await.ok();
        seen.push(live.run().await);
    }
    let mut again = LiveStream::events(&host, &thread, wanted).await;
    for frames in &seen {
        assert_eq!(again.run().await, *frames);
        let begun = frames.iter().map(|(_, event, _)| &event["params"]["data"]);
        let begun = begun.filter(|data| data["name"] == "second");
        let inputs: Vec<&Value> = begun.filter_map(|data| data.get("input")).collect();
        assert_eq!(inputs, [&json!({ "word": "w", "items": ["first"] })]);
    }
}

#[tokio::test]
async fn run_from_the_parent_of_a_typed_checkpoint_replaces_the_input() {
    let host = Host::new();
    let run = |word: &str, config: Value| {
        json!({
            "assistant_id": "slow", "input": { "word": word }, "config": config,
        })
    };
    result(&command(&host, "run.start", run("a", json!({}))).await);
    let wanted = json!({ "channels": ["lifecycle", "checkpoints", "values"] });
    let mut live = LiveStream::events(&host, ID, wanted).await;
    let first = live.run().await;
    let names = [
        "lifecycle running",
        "checkpoints",
        "values",
        "checkpoints",
        "values",
        "lifecycle completed",
    ];
    assert_eq!(event_names(&first), names);
    let data = |frame: &Frame| frame.1["params"]["data"].clone();
    assert_eq!(data(&first[4])["items"], json!(["a"]));
    let made = data(&first[1]);
    let config = json!({ "configurable": { "checkpoint_id": made["parent_id"] } });
    result(&command(&host, "run.start", run("b", config)).await);
    let edited = live.run().await;
    assert_eq!(event_names(&edited), names);
    assert_eq!(data(&edited[4])["items"], json!(["b"]));
}

#[tokio::test]
async fn stream_of_a_run_reads_no_later_runs() {
    let store = GatedStore::new();
    let options = HostOptions { store: store.clone(), ..HostOptions::default() };
    let host = Host::with_options(ApiConfig::default(), options);
    let thread = host.thread().await;
    let run = json!({ "assistant_id": "slow", "input": { "word": "w" } });
    let first = host.post(&format!("/threads/{thread}/runs/stream"), run.clone()).await.frames();
    // The events of these runs fill several pages of the log.
    for _ in 0..60 {
        host.post(&format!("/threads/{thread}/runs/wait"), run.clone()).await.ok();
    }
    let id = first[0].1["run_id"].as_str().unwrap();
    let before = store.event_reads.load(Ordering::SeqCst);
    let again = host.send(rejoined(&thread, id, "", "-1")).await.frames();
    assert_eq!(again, first);
    assert_eq!(store.event_reads.load(Ordering::SeqCst) - before, 1);
}

#[tokio::test]
async fn input_is_streamed_without_the_state_before_it_if_that_cannot_be_read() {
    let store = GatedStore::new();
    let options = HostOptions { store: store.clone(), ..HostOptions::default() };
    let host = Host::with_options(ApiConfig::default(), options);
    let thread = host.thread().await;
    let run = |word: &str| {
        json!({
            "assistant_id": "slow", "input": { "word": word },
            "stream_mode": ["checkpoints", "values"],
        })
    };
    host.post(&format!("/threads/{thread}/runs/wait"), run("a")).await.ok();
    let path = format!("/threads/{thread}/runs/stream");
    let whole = host.post(&path, run("b")).await.frames();
    let id = whole[0].1["run_id"].as_str().unwrap();
    // The state before the input is read after that of the input.
    store.failing_checkpoint.store(2, Ordering::SeqCst);
    let query = "?stream_mode=checkpoints&stream_mode=values";
    let streamed = host.send(rejoined(&thread, id, query, "-1")).await.frames();
    assert_eq!(whole[1].1["next"], json!(["__start__"]));
    let shown = |frames: &[Frame]| {
        frames.iter().map(|(kind, data, _)| (kind.clone(), data.clone())).collect::<Vec<_>>()
    };
    assert_eq!(shown(&streamed[1..]), shown(&whole[2..]));
}
