//! Commands: updates, answers and nodes with which a run starts instead of an input.

use serde_json::{Value, json};

use crate::host::{Host, TestResponse};

async fn command(host: &Host, id: &str, graph: &str, command: Value) -> TestResponse {
    let run = json!({ "assistant_id": graph, "command": command });
    host.post(&format!("/threads/{id}/runs/wait"), run).await
}

async fn input(host: &Host, id: &str, graph: &str, input: Value) -> Value {
    let run = json!({ "assistant_id": graph, "input": input });
    host.post(&format!("/threads/{id}/runs/wait"), run).await.ok()
}

/// Creates a thread of `agent` with a pending interrupt.
async fn interrupted_thread(host: &Host) -> String {
    let id = host.thread().await;
    let values = input(host, &id, "agent", json!({})).await;
    assert_eq!(values["__interrupt__"][0]["value"], "Are we good?");
    id
}

#[tokio::test]
async fn resume_and_update_are_combined() {
    let host = Host::new();
    let id = interrupted_thread(&host).await;
    let both = json!({ "resume": "yes", "update": { "items": ["mine"], "messages": "hi" } });
    let values = command(&host, &id, "agent", both).await.ok();
    assert_eq!(values["items"], json!(["greeted", "mine", "asked"]));
    assert_eq!(values["value"], "yes");
    assert_eq!(values["messages"][1]["content"], "hi");
    let thread = host.get(&format!("/threads/{id}")).await.ok();
    assert_eq!(thread["status"], "idle");
}

#[tokio::test]
async fn goto_runs_a_node_while_an_interrupt_is_pending() {
    let host = Host::new();
    let id = interrupted_thread(&host).await;
    let values = command(&host, &id, "agent", json!({ "goto": "greet" })).await.ok();
    assert_eq!(
        values["__interrupt__"].as_array().unwrap().len(),
        1,
        "the interrupt is still pending"
    );
    assert_eq!(values["items"], json!(["greeted"]), "the superstep has not ended");
    let state = host.get(&format!("/threads/{id}/state")).await.ok();
    assert_eq!(state["next"], json!(["ask", "greet"]));
    let values = command(&host, &id, "agent", json!({ "resume": "yes" })).await.ok();
    assert_eq!(values["items"], json!(["greeted", "asked", "greeted"]));
    assert!(
        values["__interrupt__"].is_array(),
        "the node after `greet` raises the interrupt again"
    );
}

#[tokio::test]
async fn resume_goto_and_update_are_combined() {
    let host = Host::new();
    let id = interrupted_thread(&host).await;
    let all =
        json!({ "resume": "yes", "goto": ["greet", "__end__"], "update": [["items", ["x"]]] });
    let values = command(&host, &id, "agent", all).await.ok();
    assert_eq!(values["items"], json!(["greeted", "x", "asked", "greeted"]));
    assert_eq!(values["value"], "yes");
}

#[tokio::test]
async fn goto_continues_an_ended_thread() {
    let host = Host::new();
    let id = host.thread().await;
    input(&host, &id, "slow", json!({ "word": "a" })).await;
    let values = command(&host, &id, "slow", json!({ "update": { "word": "b" } })).await.ok();
    assert_eq!(values, json!({ "items": ["a"], "word": "b" }), "no node runs");
    let values = command(&host, &id, "slow", json!({ "goto": "hold" })).await.ok();
    assert_eq!(values["items"], json!(["a", "b"]));
    let send = json!({ "goto": [{ "node": "hold", "input": { "word": "c" } }, "hold"] });
    let values = command(&host, &id, "slow", send).await.ok();
    assert_eq!(values["items"], json!(["a", "b", "b", "c"]));
    let history = host.post(&format!("/threads/{id}/history"), json!({ "limit": 99 })).await.ok();
    // The last item is the state before the input. The item before it is the oldest checkpoint.
    let oldest = history.as_array().unwrap().iter().nth_back(1).unwrap();
    let run = json!({ "assistant_id": "slow", "command": { "update": { "word": "z" } },
        "checkpoint_id": oldest["checkpoint_id"] });
    let values = host.post(&format!("/threads/{id}/runs/wait"), run).await.ok();
    assert_eq!(values, json!({ "items": ["z"], "word": "z" }), "from an earlier checkpoint");
}

#[tokio::test]
async fn command_starts_a_new_thread() {
    let host = Host::new();
    let id = host.thread().await;
    let begin = json!({ "update": { "word": "a" }, "goto": [{ "node": "hold", "input": {} }] });
    let values = command(&host, &id, "slow", begin).await.ok();
    assert_eq!(values, json!({ "items": ["a", null], "word": "a" }));
    let thread = host.get(&format!("/threads/{id}")).await.ok();
    assert_eq!(thread["metadata"]["graph_id"], "slow");
}

#[tokio::test]
async fn command_is_enqueued_behind_a_running_run() {
    let host = Host::new();
    host.hold();
    let id = host.thread().await;
    let runs = format!("/threads/{id}/runs");
    let first = json!({ "assistant_id": "slow", "input": { "word": "a" } });
    host.post(&runs, first).await.ok();
    host.wait_for_started(1).await;
    let second = json!({ "assistant_id": "slow",
        "command": { "goto": "hold", "update": { "word": "b" } } });
    let second = host.post(&runs, second).await;
    assert_eq!(second.ok()["status"], "pending");
    host.release.send_replace(true);
    let values = host.get(&format!("{}/join", second.header("content-location"))).await.ok();
    assert_eq!(values["items"], json!(["a", "b"]));
}

#[tokio::test]
async fn invalid_command_is_rejected_and_writes_nothing() {
    let host = Host::new();
    let id = interrupted_thread(&host).await;
    for (wish, status, why) in [
        (json!({ "goto": "nowhere" }), 422, "`nowhere`"),
        (json!({ "goto": 7 }), 422, "`command.goto`"),
        (json!({ "update": { "messages": [{ "role": "nobody" }] } }), 422, "`nobody`"),
        (json!({ "update": {} }), 400, "`command` is empty"),
        (json!({ "goto": "__end__" }), 400, "`command` is empty"),
    ] {
        let refused = command(&host, &id, "agent", wish.clone()).await;
        assert_eq!(refused.status, status, "{wish}: {}", refused.text);
        assert!(refused.text.contains(why), "{wish}: {}", refused.text);
    }
    let runs = host.get(&format!("/threads/{id}/runs")).await.ok();
    assert_eq!(runs.as_array().unwrap().len(), 1);
    let history = host.post(&format!("/threads/{id}/history"), json!({ "limit": 99 })).await.ok();
    // The last item is the state before the input. The item before it is the oldest checkpoint.
    let oldest = history.as_array().unwrap().iter().nth_back(1).unwrap();
    let run = json!({ "assistant_id": "agent", "command": { "resume": 1 },
        "checkpoint": oldest["checkpoint"] });
    let past = host.post(&format!("/threads/{id}/runs/wait"), run).await;
    assert_eq!(past.status, 400, "{}", past.text);
    let run = json!({ "assistant_id": "agent", "command": { "resume": "yes" },
        "checkpoint": history[0]["checkpoint"] });
    let here = host.post(&format!("/threads/{id}/runs/wait"), run).await.ok();
    assert_eq!(here["value"], "yes", "the named checkpoint is the current checkpoint");
}

#[tokio::test]
async fn stream_of_a_command_starts_with_its_update() {
    let host = Host::new();
    let id = interrupted_thread(&host).await;
    let run = json!({ "assistant_id": "agent", "stream_mode": ["values", "updates"],
        "command": { "resume": "yes", "update": { "items": ["x"] } } });
    let stream = host.post(&format!("/threads/{id}/runs/stream"), run).await;
    let frames = stream.frames();
    let of = |kind: &str| -> Vec<&Value> {
        frames.iter().filter(|(it, ..)| it == kind).map(|(_, data, _)| data).collect()
    };
    let values = of("values");
    assert_eq!(values[0]["items"], json!(["greeted", "x"]));
    assert_eq!(values.last().unwrap()["items"], json!(["greeted", "x", "asked"]));
    assert_eq!(of("updates"), [&json!({ "ask": { "items": ["asked"], "value": "yes" } })]);
}
