//! Streams of runs that store only their last state.

use std::sync::Arc;

use serde_json::{Value, json};
use wattle_run::gate::Gate;
use wattle_run::hostcall::interrupt::InterruptRequest;

use crate::host::{Host, request};
use crate::live_stream::{Frame, LiveStream};
use crate::plugin::{Closures, Nothing};

const ID: &str = "01a1ffdc-22ab-744e-a2fc-8bb051a654f8";

fn agent(more: &Value) -> Value {
    let mut run = json!({
        "assistant_id": "agent",
        "if_not_exists": "create",
        "stream_mode": ["values", "updates"],
    });
    for (name, value) in more.as_object().unwrap() {
        run[name] = value.clone();
    }
    run
}

fn shown(frames: Vec<Frame>) -> Vec<(String, Value)> {
    let own = frames.into_iter().filter(|(kind, ..)| kind != "metadata");
    let shown = own.map(|(kind, data, _)| {
        let text = data.to_string();
        let id = data["__interrupt__"][0]["id"].as_str().unwrap_or("-").to_owned();
        (kind, serde_json::from_str(&text.replace(&id, "<question>")).unwrap())
    });
    shown.collect()
}

async fn thread(durability: &str) -> Vec<Vec<(String, Value)>> {
    let host = Host::new();
    let mut streams = Vec::new();
    for more in [json!({ "input": { "value": "v" } }), json!({ "command": { "resume": "yes" } })] {
        let mut run = agent(&more);
        run["durability"] = durability.into();
        let streamed = host.post(&format!("/threads/{ID}/runs/stream"), run).await;
        let place = streamed.header("location").to_owned();
        let frames = streamed.frames();
        // A later client reads the same server-sent events from the log.
        let mut again = request("GET", &place, None);
        again.headers_mut().insert("last-event-id", "-1".parse().unwrap());
        assert_eq!(host.send(again).await.frames(), frames, "{durability}");
        streams.push(shown(frames));
    }
    let wanted = json!({ "channels": ["values", "lifecycle"] });
    let mut live = LiveStream::events(&host, ID, wanted).await;
    for _ in 0..2 {
        let frames = live.run().await.into_iter();
        let values = frames.filter(|(kind, ..)| kind == "values");
        streams
            .push(values.map(|(kind, event, _)| (kind, event["params"]["data"].clone())).collect());
    }
    streams
}

#[tokio::test]
async fn stream_with_durability_exit_has_every_state() {
    let (exit, sync) = (thread("exit").await, thread("sync").await);
    assert!(exit[0].iter().filter(|(kind, _)| kind == "values").count() > 2, "{exit:?}");
    assert_eq!(exit, sync);
}

#[tokio::test]
async fn stream_has_the_interrupts_that_a_run_did_not_answer() {
    let graphs = r#"
        [graphs.agent]
        entry = ["one", "other"]
        [graphs.agent.channels]
        items = { reducer = "append" }
        [graphs.agent.nodes.one]
        plugin = "p"
        [graphs.agent.nodes.other]
        plugin = "p"
    "#;
    let ask = |what: &'static str, gate: Arc<Gate>| async move {
        let answer =
            gate.ask(InterruptRequest { payload: json!(what), response_schema: None }).await?;
        Ok(json!({ "items": [answer] }))
    };
    for durability in ["async", "exit"] {
        let plugin = Closures::new("p")
            .node("one", move |_, gate| ask("one?", gate))
            .node("other", move |_, gate| ask("other?", gate));
        let host = Host::with_model(graphs, plugin, Arc::new(Nothing));
        let runs = format!("/threads/{ID}/runs/stream");
        let mut run = agent(&json!({ "input": {}, "durability": durability }));
        let frames = host.post(&runs, run.clone()).await.frames();
        let open = frames.last().unwrap().1["__interrupt__"].clone();
        assert_eq!(open.as_array().unwrap().len(), 2);
        let question = |which: usize| open[which]["id"].as_str().unwrap();
        let answers = |which: usize| json!({ "resume": { question(which): which } });
        run["input"] = Value::Null;
        run["command"] = answers(0);
        let frames = host.post(&runs, run.clone()).await.frames();
        let (kind, last, _) = frames.last().unwrap();
        assert_eq!(kind, "values");
        assert_eq!(last["__interrupt__"], json!([open[1]]), "{durability}");
        // The state that a stream starts with has the writes of earlier runs.
        run["command"] = answers(1);
        let frames = host.post(&runs, run).await.frames();
        let mut items = frames.last().unwrap().1["items"].as_array().unwrap().clone();
        items.sort_by_key(Value::as_u64);
        assert_eq!(items, [json!(0), json!(1)], "{durability}");
    }
}

#[tokio::test]
async fn run_with_durability_exit_keeps_the_state_before_its_input() {
    let host = Host::new();
    let wait = format!("/threads/{ID}/runs/wait");
    let mut run = json!({ "assistant_id": "slow", "if_not_exists": "create",
        "input": { "word": "a" }, "durability": "exit" });
    assert_eq!(host.post(&wait, run.clone()).await.ok()["items"], json!(["a"]));
    let limit = json!({ "limit": 9 });
    let all = host.post(&format!("/threads/{ID}/history"), limit).await.ok();
    let states = all.as_array().unwrap().iter();
    let sources: Vec<_> = states.map(|state| &state["metadata"]["source"]).collect();
    assert_eq!(sources, ["loop", "input", "input"]);
    // Another input can replace the input, because the state before the input is stored.
    run["input"]["word"] = json!("b");
    run["checkpoint_id"] = all[2]["checkpoint_id"].clone();
    assert_eq!(host.post(&wait, run).await.ok()["items"], json!(["b"]));
}
