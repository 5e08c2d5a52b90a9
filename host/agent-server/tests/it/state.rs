//! States: at any checkpoint, in the history, and after updates.

use serde_json::{Value, json};

use crate::host::Host;

async fn thread_with_two_runs(host: &Host) -> String {
    let id = host.thread().await;
    for word in ["a", "b"] {
        let run = json!({ "assistant_id": "slow", "input": { "word": word } });
        host.post(&format!("/threads/{id}/runs/wait"), run).await.ok();
    }
    id
}

async fn history(host: &Host, id: &str, request: Value) -> Vec<Value> {
    let all = host.post(&format!("/threads/{id}/history"), request).await.ok();
    all.as_array().unwrap().clone()
}

#[tokio::test]
async fn every_state_of_the_history_can_be_read() {
    let host = Host::new();
    let id = thread_with_two_runs(&host).await;
    let all = history(&host, &id, json!({ "limit": 10 })).await;
    let words: Vec<_> = all.iter().map(|it| it["values"]["items"].clone()).collect();
    let (one, none) = (json!(["a"]), Value::Null);
    assert_eq!(words, [json!(["a", "b"]), one.clone(), one.clone(), one, none.clone(), none]);
    let sources: Vec<_> = all.iter().map(|it| it["metadata"]["source"].clone()).collect();
    assert_eq!(sources, ["loop", "input", "input", "loop", "input", "input"]);
    let next: Vec<_> = all.iter().map(|it| it["next"].clone()).collect();
    let round = [json!([]), json!(["hold"]), json!(["__start__"])];
    assert_eq!(next, [round.clone(), round].concat());
    assert_eq!(all[5]["metadata"]["step"], -1);
    assert_eq!((&all[5]["values"], &all[5]["tasks"][0]["name"]), (&json!({}), &json!("__start__")));
    for (state, older) in all.iter().zip(&all[1..]) {
        assert_eq!(state["parent_checkpoint"], older["checkpoint"]);
        assert!(state["checkpoint_id"].as_str() > older["checkpoint_id"].as_str());
    }
    assert!(all[5]["parent_checkpoint"].is_null());
    assert_eq!(all[0]["metadata"]["graph_id"], "slow");
    assert_eq!(host.get(&format!("/threads/{id}/history")).await.ok().as_array().unwrap().len(), 1);
    let first = history(&host, &id, json!({ "limit": 9, "metadata": { "source": "input" } })).await;
    assert_eq!(first, [&all[1..3], &all[4..]].concat());
    let of_step = json!({ "limit": 9, "metadata": { "step": 0 } });
    assert_eq!(history(&host, &id, of_step).await, all[4..5]);
    for (place, state) in all.iter().enumerate() {
        for before in [state["checkpoint"].clone(), state["checkpoint_id"].clone()] {
            for limit in [1, 2, 9] {
                let wanted = json!({ "limit": limit, "before": before });
                let older: Vec<Value> = all[place + 1..].iter().take(limit).cloned().collect();
                assert_eq!(history(&host, &id, wanted).await, older, "{limit} before {place}");
            }
        }
        let checkpoint = state["checkpoint_id"].as_str().unwrap();
        let one = host.get(&format!("/threads/{id}/state/{checkpoint}")).await.ok();
        assert_eq!(one, *state);
        let at = json!({ "checkpoint": state["checkpoint"] });
        assert_eq!(host.post(&format!("/threads/{id}/state/checkpoint"), at).await.ok(), one);
    }
}

#[tokio::test]
async fn run_from_before_an_input_replaces_or_repeats_the_input() {
    let host = Host::new();
    let id = thread_with_two_runs(&host).await;
    let all = history(&host, &id, json!({ "limit": 10 })).await;
    let wait = format!("/threads/{id}/runs/wait");
    let run = |at: &Value, input: Value| {
        let checkpoint = &at["parent_checkpoint"];
        json!({ "assistant_id": "slow", "input": input, "checkpoint": checkpoint })
    };
    // A client edits a message by replacing the input that contains it. The first input can be
    // replaced too.
    for (at, items) in [(&all[1], json!(["a", "c"])), (&all[4], json!(["c"]))] {
        let ended = host.post(&wait, run(at, json!({ "word": "c" }))).await.ok();
        assert_eq!(ended, json!({ "items": items, "word": "c" }));
    }
    for (at, items) in [(&all[1], json!(["a", "b"])), (&all[4], json!(["a"]))] {
        assert_eq!(host.post(&wait, run(at, Value::Null)).await.ok()["items"], items);
    }
    let first = history(&host, &id, json!({ "limit": 1, "before": all[0]["checkpoint"] })).await;
    assert_eq!(first, all[1..2], "the earlier state stays");
    let before = &all[5]["checkpoint"];
    let update = json!({ "values": { "word": "z" }, "checkpoint": before });
    assert_eq!(host.post(&format!("/threads/{id}/state"), update).await.status, 422);
    let goto = json!({
        "assistant_id": "slow", "command": { "goto": "hold" }, "checkpoint": before,
    });
    assert_eq!(host.post(&wait, goto).await.status, 422);
    let fork = json!({ "checkpoint_id": before["checkpoint_id"], "input": { "word": "d" } });
    let fork = json!({ "id": 1, "method": "state.fork", "params": fork });
    let forked = host.post(&format!("/threads/{id}/commands"), fork).await.ok();
    let run = forked["result"]["run_id"].as_str().unwrap();
    let joined = host.get(&format!("/threads/{id}/runs/{run}/join")).await.ok();
    assert_eq!(joined["items"], json!(["d"]));
}

#[tokio::test]
async fn checkpoint_of_another_thread_is_not_found() {
    let host = Host::new();
    let (one, other) = (thread_with_two_runs(&host).await, thread_with_two_runs(&host).await);
    let state = host.get(&format!("/threads/{one}/state")).await.ok();
    let checkpoint = state["checkpoint"]["checkpoint_id"].as_str().unwrap();
    let own = host.get(&format!("/threads/{one}/state/{checkpoint}")).await;
    assert_eq!(own.status, 200);
    let foreign = host.get(&format!("/threads/{other}/state/{checkpoint}")).await;
    assert_eq!(foreign.status, 404);
}

#[tokio::test]
async fn update_state_writes_channels() {
    let host = Host::new();
    let id = thread_with_two_runs(&host).await;
    let path = format!("/threads/{id}/state");
    let update = json!({ "values": { "items": ["x"] }, "as_node": "hold" });
    let changed = host.post(&path, update).await.ok();
    assert_eq!(changed["checkpoint"]["thread_id"], json!(id));
    assert_eq!(changed["checkpoint"]["checkpoint_ns"], "");
    let state = host.get(&path).await.ok();
    assert_eq!(state["values"]["items"], json!(["a", "b", "x"]));
    assert_eq!(state["checkpoint"], changed["checkpoint"]);
    assert_eq!(state["metadata"]["source"], "update");
    assert_eq!(host.get(&path).await.ok()["values"]["items"], json!(["a", "b", "x"]));
}

#[tokio::test]
async fn unknown_keys_of_an_update_are_ignored_and_named_in_a_header() {
    let host = Host::new();
    let id = thread_with_two_runs(&host).await;
    let path = format!("/threads/{id}/state");
    let values = json!([{ "items": ["x"], "color": 1 }, { "a b": 2 }]);
    let changed = host.post(&path, json!({ "values": values, "as_node": "hold" })).await;
    let state = host.get(&path).await.ok();
    assert_eq!(state["values"], json!({ "items": ["a", "b", "x"], "word": "b" }));
    assert_eq!(state["checkpoint"], changed.ok()["checkpoint"]);
    assert_eq!(changed.header("x-wattle-ignored-keys"), "values.color, values.a+b");
    let known = json!({ "values": { "items": ["y"] }, "as_node": "hold" });
    let changed = host.post(&path, known).await;
    assert_eq!((changed.status, changed.headers.get("x-wattle-ignored-keys")), (200, None));
}

#[tokio::test]
async fn update_state_is_rejected_before_a_pending_run() {
    let host = Host::new();
    let update = json!({ "values": { "items": ["x"] }, "as_node": "hold" });
    let later = json!({ "assistant_id": "slow", "input": { "word": "a" }, "after_seconds": 3_600 });
    for id in [host.thread().await, thread_with_two_runs(&host).await] {
        host.post(&format!("/threads/{id}/runs"), later.clone()).await.ok();
        let refused = host.post(&format!("/threads/{id}/state"), update.clone()).await;
        assert_eq!(refused.status, 409, "{}", refused.text);
    }
}

#[tokio::test]
async fn update_state_forks_from_an_earlier_checkpoint() {
    let host = Host::new();
    let id = thread_with_two_runs(&host).await;
    let all = history(&host, &id, json!({ "limit": 10 })).await;
    let update = json!({
        "values": [{ "items": ["x"] }, { "items": ["y"] }],
        "as_node": "hold",
        "checkpoint_id": all[3]["checkpoint_id"],
    });
    host.post(&format!("/threads/{id}/state"), update).await.ok();
    let state = host.get(&format!("/threads/{id}/state")).await.ok();
    assert_eq!(state["values"]["items"], json!(["a", "x", "y"]));
}

#[tokio::test]
async fn update_state_of_a_new_thread_needs_its_graph() {
    let host = Host::new();
    let id = host.thread().await;
    let update = json!({ "values": { "word": "w" }, "as_node": "__start__" });
    let refused = host.post(&format!("/threads/{id}/state"), update.clone()).await;
    assert_eq!(refused.status, 400, "{}", refused.text);
    let patch = json!({ "metadata": { "graph_id": "slow" } });
    host.call("PATCH", &format!("/threads/{id}"), Some(patch)).await.ok();
    host.post(&format!("/threads/{id}/state"), update).await.ok();
    let state = host.get(&format!("/threads/{id}/state")).await.ok();
    assert_eq!((&state["values"], &state["next"]), (&json!({ "word": "w" }), &json!(["hold"])));
}

#[tokio::test]
async fn run_forks_from_an_earlier_checkpoint() {
    let host = Host::new();
    let id = thread_with_two_runs(&host).await;
    let all = history(&host, &id, json!({ "limit": 10 })).await;
    let wait = format!("/threads/{id}/runs/wait");
    let run = json!({
        "assistant_id": "slow",
        "input": { "word": "c" },
        "checkpoint_id": all[3]["checkpoint_id"],
    });
    assert_eq!(host.post(&wait, run).await.ok()["items"], json!(["a", "c"]));
    let again = json!({ "assistant_id": "slow", "checkpoint": all[1]["checkpoint"] });
    assert_eq!(host.post(&wait, again).await.ok()["items"], json!(["a", "b"]));
}

#[tokio::test]
async fn state_of_a_subgraph_is_read_and_updated() {
    let host = Host::new();
    let id = host.thread().await;
    let run = json!({ "assistant_id": "outer", "input": {} });
    host.post(&format!("/threads/{id}/runs/wait"), run).await.ok();
    let whole = host.get(&format!("/threads/{id}/state?subgraphs=true")).await.ok();
    let nested = &whole["tasks"][0]["state"];
    assert_eq!(nested["values"]["items"], json!(["greeted"]));
    let place = &nested["checkpoint"];
    let ns = place["checkpoint_ns"].as_str().unwrap();
    assert_eq!(place["checkpoint_map"][ns], place["checkpoint_id"]);
    let at = async |checkpoint: Value| {
        let body = json!({ "checkpoint": checkpoint });
        host.post(&format!("/threads/{id}/state/checkpoint"), body).await
    };
    let bare = json!({ "thread_id": id, "checkpoint_ns": ns });
    assert_eq!(at(bare.clone()).await.ok()["checkpoint"], *place, "the newest checkpoint");
    let mut mapped = bare.clone();
    mapped["checkpoint_map"] = place["checkpoint_map"].clone();
    assert_eq!(&at(mapped.clone()).await.ok()["checkpoint"], place);
    let values = json!({ "items": ["mine"], "color": 1 });
    let change = json!({ "values": values, "as_node": "greet", "checkpoint": mapped });
    let changed = host.post(&format!("/threads/{id}/state"), change).await;
    assert_eq!(changed.ok()["checkpoint"]["checkpoint_ns"], ns);
    assert_eq!(changed.header("x-wattle-ignored-keys"), "values.color");
    let read = at(bare).await.ok();
    assert_eq!(read["values"]["items"], json!(["greeted", "mine"]));
    let from = json!({ "assistant_id": "outer", "input": null, "checkpoint": place });
    let refused = host.post(&format!("/threads/{id}/runs/wait"), from).await;
    assert_eq!(refused.status, 422, "{}", refused.text);
    let go_on = json!({ "assistant_id": "outer", "input": null });
    host.post(&format!("/threads/{id}/runs/wait"), go_on).await.ok();
    let answer = json!({ "assistant_id": "outer", "command": { "resume": "yes" } });
    let values = host.post(&format!("/threads/{id}/runs/wait"), answer).await.ok();
    assert_eq!(values["items"], json!(["greeted", "mine", "asked"]));
}

#[tokio::test]
async fn select_returns_some_fields_of_a_state() {
    let host = Host::new();
    let id = thread_with_two_runs(&host).await;
    let names = |state: &Value| state.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let state = host.get(&format!("/threads/{id}/state?select=values&select=next")).await.ok();
    assert_eq!(names(&state), ["values", "next"]);
    let past = history(&host, &id, json!({ "limit": 2, "select": ["checkpoint"] })).await;
    assert!(past.iter().all(|state| names(state) == ["checkpoint"]), "{past:?}");
    let at = json!({ "checkpoint": past[1]["checkpoint"], "select": ["metadata"] });
    let state = host.post(&format!("/threads/{id}/state/checkpoint"), at).await.ok();
    assert_eq!(names(&state), ["metadata"]);
    assert_eq!(host.get(&format!("/threads/{id}/state?select=secrets")).await.status, 422);
}

#[tokio::test]
async fn select_returns_one_channel_of_a_state() {
    let host = Host::new();
    let id = thread_with_two_runs(&host).await;
    let path = format!("/threads/{id}/state");
    let items = json!({ "values": { "items": ["a", "b"] } });
    assert_eq!(host.get(&format!("{path}?select=values.items")).await.ok(), items);
    let past = history(&host, &id, json!({ "limit": 1, "select": ["values.items"] })).await;
    assert_eq!(past, std::slice::from_ref(&items));
    let latest = host.get(&path).await.ok();
    let at = json!({ "checkpoint": latest["checkpoint"], "select": ["next", "values.items"] });
    let state = host.post(&format!("{path}/checkpoint"), at).await.ok();
    assert_eq!(state, json!({ "values": items["values"], "next": [] }));
    // A channel without a value is left out, and `values` includes all channels.
    let none = host.get(&format!("{path}?select=values.mood")).await.ok();
    assert_eq!(none, json!({ "values": {} }));
    let all = host.get(&format!("{path}?select=values.items&select=values")).await.ok();
    assert_eq!(all, json!({ "values": latest["values"] }));
    for field in ["values.", "metadata.step", "secrets.key"] {
        let refused = host.get(&format!("{path}?select={field}")).await;
        assert_eq!(refused.status, 422, "{field}");
        assert!(refused.text.contains("values.<channel>"), "{}", refused.text);
    }
}
