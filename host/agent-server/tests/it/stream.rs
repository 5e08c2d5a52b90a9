//! Streams of runs.

use axum::http::HeaderValue;
use futures::StreamExt as _;
use serde_json::{Value, json};

use crate::host::{Host, TestResponse, request};

fn agent(modes: Value) -> Value {
    json!({ "assistant_id": "agent", "input": { "value": "v" }, "stream_mode": modes })
}

fn kinds(answer: &TestResponse) -> Vec<String> {
    answer.frames().into_iter().map(|(kind, ..)| kind).collect()
}

#[tokio::test]
async fn stream_starts_with_metadata_and_ends_without_an_end_event() {
    let host = Host::new();
    let id = host.thread().await;
    let streamed = host.post(&format!("/threads/{id}/runs/stream"), agent(json!("values"))).await;
    assert!(streamed.header("content-type").starts_with("text/event-stream"));
    let place = streamed.header("content-location").to_owned();
    assert_eq!(streamed.header("location"), format!("{place}/stream"));
    let frames = streamed.frames();
    assert_eq!(frames[0].0, "metadata");
    assert!(place.ends_with(frames[0].1["run_id"].as_str().unwrap()));
    assert_eq!(frames[1].1, json!({ "value": "v" }));
    let (kind, last, _) = frames.last().unwrap();
    assert_eq!(kind, "values");
    assert_eq!(last["__interrupt__"][0]["value"], "Are we good?");
    assert!(frames.iter().all(|(kind, ..)| kind == "metadata" || kind == "values"));
    // Both official clients read the run when the stream closes.
    assert_eq!(host.get(&place).await.ok()["status"], "success");
}

#[tokio::test]
async fn event_ids_increase_strictly() {
    let host = Host::new();
    let id = host.thread().await;
    let modes = json!(["values", "updates", "custom", "tasks", "checkpoints", "debug"]);
    let streamed = host.post(&format!("/threads/{id}/runs/stream"), agent(modes)).await;
    let number = |id: &str| id.rsplit_once('-').unwrap().1.parse::<u64>().unwrap();
    let ids: Vec<u64> = streamed.frames().iter().map(|(_, _, id)| number(id)).collect();
    assert!(ids.is_sorted_by(|one, other| one < other), "{ids:?}");
    let seen = kinds(&streamed);
    for mode in ["values", "updates", "custom", "tasks", "checkpoints", "debug"] {
        assert!(seen.iter().any(|kind| kind == mode), "{mode} of {seen:?}");
    }
}

#[tokio::test]
async fn checkpoints_of_streams_are_the_states_of_the_history() {
    let host = Host::new();
    for durability in ["async", "exit"] {
        let id = host.thread().await;
        let mut streamed = Vec::new();
        for word in ["a", "b"] {
            let run = json!({
                "assistant_id": "slow",
                "input": { "word": word },
                "durability": durability,
                "stream_mode": ["checkpoints", "debug"],
            });
            let response = host.post(&format!("/threads/{id}/runs/stream"), run).await;
            let mut frames = response.frames();
            frames.retain(|(kind, data, _)| kind == "debug" && data["type"] == "checkpoint");
            streamed.extend(frames.into_iter().map(|(_, data, _)| data["payload"].clone()));
        }
        let request = json!({ "limit": 10 });
        let history = host.post(&format!("/threads/{id}/history"), request).await.ok();
        let history: Vec<Value> = history.as_array().unwrap().iter().rev().map(essence).collect();
        assert_eq!(streamed.iter().map(essence).collect::<Vec<_>>(), history, "{durability}");
        let (first, next) = (&history[0], &history[1]);
        assert_eq!((&first["step"], &first["values"]), (&json!(-1), &json!({})));
        assert_eq!((history.len(), &next["parent"]), (6, &first["checkpoint"]));
    }
}

/// Returns what streams and the history show of a state.
fn essence(state: &Value) -> Value {
    let task = &state["tasks"][0];
    json!({
        "checkpoint": state["checkpoint"],
        "parent": state["parent_checkpoint"],
        "values": state["values"],
        "step": state["metadata"]["step"],
        "source": state["metadata"]["source"],
        "next": state["next"],
        "task": [task["id"], task["name"]],
    })
}

#[tokio::test]
async fn stream_resumes_from_any_event_id() {
    let host = Host::new();
    let id = host.thread().await;
    let modes = json!(["values", "updates", "custom"]);
    let first = host.post(&format!("/threads/{id}/runs/stream"), agent(modes)).await;
    let place = first.header("location").to_owned();
    let again = async |after: Option<&str>| {
        let mut request = request("GET", &place, None);
        if let Some(after) = after {
            request.headers_mut().insert("last-event-id", HeaderValue::from_str(after).unwrap());
        }
        host.send(request).await
    };
    assert_eq!(again(Some("-1")).await.frames(), first.frames(), "all events");
    let frames = first.frames();
    assert_eq!(again(Some(&frames[2].2)).await.frames(), frames[3..]);
    assert_eq!(again(None).await.frames(), [], "the run has ended");
    assert_eq!(again(Some("x")).await.status, 422);
    let custom = host.get(&format!("{place}?stream_mode=custom")).await;
    assert_eq!(custom.status, 200);
}

#[tokio::test]
async fn stream_of_a_resumed_run_starts_with_the_current_state() {
    let host = Host::new();
    let id = host.thread().await;
    host.post(&format!("/threads/{id}/runs/wait"), agent(json!("values"))).await.ok();
    let resume = json!({
        "assistant_id": "agent",
        "command": { "resume": "yes" },
        "stream_mode": ["values", "updates"],
    });
    let streamed = host.post(&format!("/threads/{id}/runs/stream"), resume).await;
    let frames = streamed.frames();
    let values: Vec<_> = frames.iter().filter(|(kind, ..)| kind == "values").collect();
    assert_eq!(values[0].1["items"], json!(["greeted"]));
    assert_eq!(values.last().unwrap().1["items"], json!(["greeted", "asked"]));
    let updates: Vec<_> = frames.iter().filter(|(kind, ..)| kind == "updates").collect();
    assert_eq!(updates[0].1["ask"]["value"], "yes");
}

#[tokio::test]
async fn failed_run_ends_its_stream_with_an_error() {
    let host = Host::new();
    let id = host.thread().await;
    let run = json!({ "assistant_id": "broken", "input": {}, "stream_mode": ["tasks"] });
    let streamed = host.post(&format!("/threads/{id}/runs/stream"), run).await;
    let mut frames = streamed.frames();
    let (kind, data, _) = frames.pop().unwrap();
    assert_eq!(kind, "error");
    assert_eq!((&data["error"], &data["message"]), (&json!("invalid"), &json!("no way")));
    let (kind, task, _) = frames.pop().unwrap();
    assert_eq!((kind.as_str(), &task["error"]), ("tasks", &json!("no way")));
}

#[tokio::test]
async fn on_disconnect_cancels_the_run() {
    let host = Host::new();
    host.hold();
    let id = host.thread().await;
    let run = json!({
        "assistant_id": "slow", "input": { "word": "a" }, "on_disconnect": "cancel",
    });
    let path = format!("/threads/{id}/runs/stream");
    let response = host.raw(request("POST", &path, Some(run))).await;
    let place = response.headers()["content-location"].to_str().unwrap().to_owned();
    let mut body = response.into_body().into_data_stream();
    assert!(body.next().await.is_some());
    host.wait_for_started(1).await;
    drop(body);
    let joined = host.get(&format!("{place}/join")).await.ok();
    assert_eq!(joined, json!({ "word": "a" }));
    assert_eq!(host.get(&place).await.ok()["status"], "interrupted", "the run was cancelled");
}

#[tokio::test]
async fn stream_of_an_ended_run_rejects_invalid_query_parameters() {
    let host = Host::new();
    let id = host.thread().await;
    let run = json!({ "assistant_id": "slow", "input": { "word": "a" } });
    let ended = host.post(&format!("/threads/{id}/runs/wait"), run).await;
    let place = format!("{}/stream", ended.header("content-location"));
    assert_eq!(host.get(&place).await.status, 200);
    for query in ["stream_mode=nothing", "cancel_on_disconnect=perhaps"] {
        assert_eq!(host.get(&format!("{place}?{query}")).await.status, 422, "{query}");
    }
}
