//! Threads: create, read, change, search and delete.

use serde_json::{Value, json};
use wattle_api::ApiConfig;
use wattle_api::guard::limits::Limits;
use wattle_graph::id::ThreadId;
use wattle_run::ports::store::{Batch, ThreadRecord, ThreadStatus};

use crate::host::{Host, TestResponse, request};

#[tokio::test]
async fn thread_exists_before_its_first_run() {
    let host = Host::new();
    let made = host.post("/threads", json!({ "metadata": { "user": "u" } })).await.ok();
    assert_eq!((&made["status"], &made["metadata"]), (&json!("idle"), &json!({ "user": "u" })));
    let id = made["thread_id"].as_str().unwrap();
    let read = host.get(&format!("/threads/{id}")).await.ok();
    assert_eq!(read, made);
    let state = host.get(&format!("/threads/{id}/state")).await.ok();
    assert_eq!((&state["values"], &state["next"]), (&json!({}), &json!([])));
    let history = host.post(&format!("/threads/{id}/history"), json!({ "limit": 10 })).await.ok();
    assert_eq!(history, json!([]));
}

#[tokio::test]
async fn thread_id_that_a_client_chooses_must_be_an_unused_uuid() {
    let host = Host::new();
    let id = "01a1ffdc-22ab-744e-a2fc-8bb051a654f8";
    let wish = |if_exists: &str| json!({ "thread_id": id, "if_exists": if_exists });
    let made = host.post("/threads", wish("raise")).await.ok();
    assert_eq!(made["thread_id"], id);
    assert_eq!(host.post("/threads", wish("raise")).await.status, 409);
    assert_eq!(host.post("/threads", wish("do_nothing")).await.ok(), made);
    let refused = host.post("/threads", json!({ "thread_id": "mine" })).await;
    assert_eq!(refused.status, 422);
    assert!(refused.json()["detail"].as_str().unwrap().contains("`mine`"), "{}", refused.text);
}

#[tokio::test]
async fn invalid_id_is_422_and_unknown_id_is_404() {
    let host = Host::new();
    let nothing = "01a1ffdc-22ab-744e-a2fc-8bb051a654f8";
    for path in ["", "/state", "/history", "/runs"] {
        let there = host.get(&format!("/threads/{nothing}{path}")).await;
        assert_eq!(there.status, 404, "{path}");
        assert_eq!(host.get(&format!("/threads/mine{path}")).await.status, 422, "{path}");
    }
    let thread = host.thread().await;
    let run = |run: &str| format!("/threads/{thread}/runs/{run}");
    assert_eq!(host.get(&run(nothing)).await.status, 404);
    assert_eq!(host.get(&run("mine")).await.status, 422);
}

#[tokio::test]
async fn patch_merges_metadata() {
    let host = Host::new();
    let id = host.thread().await;
    let path = format!("/threads/{id}");
    let patch = json!({ "metadata": { "a": 1 }, "ttl": { "ttl": 30, "strategy": "delete" } });
    let changed = host.call("PATCH", &path, Some(patch)).await.ok();
    assert_eq!(changed["metadata"], json!({ "a": 1 }));
    assert_eq!(changed["ttl"]["ttl"], 30.0);
    let mut patch = request("PATCH", &path, Some(json!({ "metadata": { "b": 2 } })));
    patch.headers_mut().insert("prefer", "return=minimal".parse().unwrap());
    assert_eq!(host.send(patch).await.status, 204);
    let read = host.get(&path).await.ok();
    assert_eq!(read["metadata"], json!({ "a": 1, "b": 2 }));
}

#[tokio::test]
async fn deleted_thread_is_not_found() {
    let host = Host::new();
    let id = host.thread().await;
    let run = json!({ "assistant_id": "slow", "input": { "word": "a" } });
    host.post(&format!("/threads/{id}/runs/wait"), run).await.ok();
    let gone = host.call("DELETE", &format!("/threads/{id}"), None).await;
    assert_eq!((gone.status, gone.text.as_str()), (204, ""));
    assert_eq!(host.get(&format!("/threads/{id}")).await.status, 404);
}

#[tokio::test]
async fn search_filters_by_metadata_values_and_ids() {
    let host = Host::new();
    for user in ["a", "b", "b"] {
        host.post("/threads", json!({ "metadata": { "user": user } })).await.ok();
    }
    let ran = host.thread().await;
    let run = json!({ "assistant_id": "slow", "input": { "word": "x" } });
    host.post(&format!("/threads/{ran}/runs/wait"), run).await.ok();
    let search = async |body: Value| host.post("/threads/search", body).await;
    let found = search(json!({ "metadata": { "user": "b" } })).await;
    assert_eq!(found.ok().as_array().unwrap().len(), 2);
    assert_eq!(found.header("x-pagination-total"), "2");
    let page = search(json!({ "limit": 1, "offset": 1, "select": ["thread_id"] })).await;
    assert_eq!(page.header("x-pagination-total"), "4");
    assert_eq!(page.header("x-pagination-next"), "2");
    assert_eq!(page.ok()[0].as_object().unwrap().len(), 1);
    let by_value = search(json!({ "values": { "word": "x" } })).await.ok();
    assert_eq!(by_value[0]["thread_id"], json!(ran));
    assert_eq!(by_value.as_array().unwrap().len(), 1);
    let by_id = search(json!({ "ids": [ran] })).await.ok();
    assert_eq!(by_id[0]["metadata"]["graph_id"], "slow");
    let counted = host.post("/threads/count", json!({ "metadata": { "user": "b" } })).await.ok();
    assert_eq!(counted, 2);
    assert_eq!(search(json!({ "sort_by": "color" })).await.status, 422);
    assert_eq!(search(json!({ "select": ["color"] })).await.status, 422);
}

/// Creates a thread that has expired and is not deleted yet.
async fn expired_thread(host: &Host) -> String {
    let id = host.thread().await;
    expire(host, &id).await;
    id
}

/// Lets a thread expire without deleting it.
pub(crate) async fn expire(host: &Host, id: &str) {
    let thread = ThreadId::new(id).unwrap();
    let store = &host.engine.ports().store;
    let record = store.thread(&thread).await.unwrap().unwrap().record;
    let status = ThreadStatus::Interrupted;
    let record = Some(ThreadRecord { status, expires_ms: Some(0), ..record });
    store.append(&thread, Batch { record, ..Batch::default() }).await.await.unwrap();
}

#[tokio::test]
async fn expired_thread_is_not_found_but_can_be_deleted_and_replaced() {
    let host = Host::new();
    let id = expired_thread(&host).await;
    for path in ["", "/state", "/history", "/runs"] {
        assert_eq!(host.get(&format!("/threads/{id}{path}")).await.status, 404, "{path}");
    }
    let new = host.post("/threads", json!({ "thread_id": id })).await.ok();
    assert_eq!((&new["thread_id"], &new["status"]), (&json!(id), &json!("idle")));
    let id = expired_thread(&host).await;
    assert_eq!(host.call("DELETE", &format!("/threads/{id}"), None).await.status, 204);
    let store = &host.engine.ports().store;
    assert!(store.thread(&ThreadId::new(&id).unwrap()).await.unwrap().is_none());
}

#[tokio::test]
async fn expired_threads_are_neither_found_nor_counted() {
    let host = Host::new();
    let (old, new) = (expired_thread(&host).await, host.thread().await);
    for search in [json!({}), json!({ "ids": [old, new] })] {
        let found = host.post("/threads/search", search).await;
        assert_eq!(found.header("x-pagination-total"), "1");
        assert_eq!(found.ok()[0]["thread_id"], json!(new));
    }
    assert_eq!(host.post("/threads/search", json!({ "ids": [old] })).await.ok(), json!([]));
    assert_eq!(host.post("/threads/count", json!({})).await.ok(), 1);
}

#[tokio::test]
async fn copy_has_the_history_of_the_original() {
    let host = Host::new();
    let id = host.thread().await;
    let run = json!({ "assistant_id": "slow", "input": { "word": "a" } });
    host.post(&format!("/threads/{id}/runs/wait"), run).await.ok();
    let copy = host.call("POST", &format!("/threads/{id}/copy"), None).await.ok();
    assert_eq!(copy["values"], json!({ "items": ["a"], "word": "a" }));
    assert_ne!(copy["thread_id"], json!(id));
    let history = async |id: &Value, wanted: Value| {
        let path = format!("/threads/{}/history", id.as_str().unwrap());
        host.post(&path, wanted).await.ok()
    };
    let run = |state: &Value| state["metadata"]["run_id"].clone();
    let all = json!({ "limit": 9 });
    let (old, new) =
        (history(&json!(id), all.clone()).await, history(&copy["thread_id"], all).await);
    let runs = |states: &Value| states.as_array().unwrap().iter().map(run).collect::<Vec<_>>();
    assert_eq!(runs(&new), runs(&old), "the states have the run ids of the original");
    let wanted = json!({ "limit": 9, "metadata": { "run_id": run(&old[0]) } });
    assert_eq!(history(&copy["thread_id"], wanted).await, new);
    let foreign = json!({ "limit": 9, "metadata": { "run_id": "nobody's" } });
    assert_eq!(history(&copy["thread_id"], foreign).await, json!([]));
    // A copy of the copy also has the run ids of the original.
    let path = format!("/threads/{}/copy", copy["thread_id"].as_str().unwrap());
    let again = host.call("POST", &path, None).await.ok();
    let states = history(&again["thread_id"], json!({ "limit": 9 })).await;
    assert_eq!(runs(&states), runs(&old));
}

#[tokio::test]
async fn prune_deletes_threads_or_their_history() {
    let host = Host::new();
    let (one, other) = (host.thread().await, host.thread().await);
    for id in [&one, &other] {
        let run = json!({ "assistant_id": "slow", "input": { "word": "a" } });
        host.post(&format!("/threads/{id}/runs/wait"), run).await.ok();
    }
    let prune = async |id: &str, strategy: &str| {
        host.post("/threads/prune", json!({ "thread_ids": [id], "strategy": strategy })).await
    };
    assert_eq!(prune(&one, "keep_latest").await.ok(), json!({ "pruned_count": 1 }));
    let history = host.post(&format!("/threads/{one}/history"), json!({ "limit": 9 })).await.ok();
    assert_eq!(history.as_array().unwrap().len(), 1);
    assert_eq!(prune(&other, "delete").await.ok(), json!({ "pruned_count": 1 }));
    assert_eq!(host.get(&format!("/threads/{other}")).await.status, 404);
    assert_eq!(prune(&other, "delete").await.ok(), json!({ "pruned_count": 0 }));
    assert_eq!(prune(&one, "odd").await.status, 422);
    // If one id is invalid, or the request names too many ids, no thread is changed.
    let no_ids = json!({ "thread_ids": [one, "mine"], "strategy": "delete" });
    assert_eq!(host.post("/threads/prune", no_ids).await.status, 422);
    let many = json!({ "thread_ids": vec![&one; 1_001], "strategy": "delete" });
    assert_eq!(host.post("/threads/prune", many).await.status, 422);
    host.get(&format!("/threads/{one}")).await.ok();
}

#[tokio::test]
async fn metadata_of_a_thread_has_a_limit() {
    let host = Host::new();
    let facts = |name: &str, bytes: usize| json!({ "metadata": { name: "x".repeat(bytes) } });
    let refused = host.post("/threads", facts("a", 70 << 10)).await;
    assert_eq!(refused.status, 422);
    assert!(refused.json()["detail"].as_str().unwrap().contains("65536"), "{}", refused.text);
    let path = format!("/threads/{}", host.thread().await);
    let patch = async |facts: Value| host.call("PATCH", &path, Some(facts)).await.status;
    assert_eq!(patch(facts("a", 40 << 10)).await, 200);
    assert_eq!(patch(facts("b", 40 << 10)).await, 422, "too large in total");
    assert_eq!(patch(facts("a", 60 << 10)).await, 200);
}

#[tokio::test]
async fn metadata_limit_applies_to_runs_and_edits_of_both_apis() {
    let host = Host::new();
    let id = host.thread().await;
    let path = format!("/threads/{id}");
    let large = json!({ "a": "x".repeat(40 << 10) });
    host.call("PATCH", &path, Some(json!({ "metadata": large }))).await.ok();
    let further = json!({ "b": "x".repeat(40 << 10) });
    let refused = |response: &TestResponse| {
        assert_eq!(response.status, 422, "{}", response.text);
        assert!(response.text.contains("`metadata` would have"), "{}", response.text);
        assert!(response.text.contains("limit of 65536"), "{}", response.text);
    };
    // The limit applies to a run of the native API and to an edit.
    let run = |metadata: &Value| {
        json!({
            "graph": "slow", "input": { "word": "a" }, "thread_id": id, "wait": true,
            "metadata": metadata,
        })
    };
    let response = host.post("/api/v1/apps/test/runs", run(&further)).await;
    refused(&response);
    let error = &response.json()["details"];
    assert_eq!((&error["limit"], &error["field"]), (&json!("metadata_bytes"), &json!("metadata")));
    assert_eq!(
        (&error["limit_bytes"], error["bytes"].as_u64() > Some(80 << 10)),
        (&json!(65_536), true)
    );
    host.post("/api/v1/apps/test/runs", run(&json!({ "c": 1 }))).await.ok();
    let edit = json!({
        "supersteps": [[{ "values": { "word": "b" } }]],
        "metadata": { "a": "x".repeat(70 << 10) },
    });
    refused(&host.call("POST", &format!("/api/v1/threads/{id}/edits"), Some(edit)).await);
    // The limit also applies to the metadata of a run, and of a thread with a running run.
    let run = |metadata: Value| json!({ "assistant_id": "slow", "input": { "word": "a" }, "metadata": metadata });
    let runs = format!("{path}/runs");
    refused(&host.post(&runs, run(json!({ "a": "x".repeat(70 << 10) }))).await);
    host.hold();
    let begun = *host.started.borrow();
    host.post(&runs, run(json!({}))).await.ok();
    host.wait_for_started(begun + 1).await;
    refused(&host.call("PATCH", &path, Some(json!({ "metadata": further }))).await);
    host.call("PATCH", &path, Some(json!({ "metadata": { "d": 1 } }))).await.ok();
    host.release.send_replace(true);
}

#[tokio::test]
async fn too_large_response_is_rejected_and_not_truncated() {
    let host = Host::new();
    let id = host.thread().await;
    // The state has the text twice: as the word, and as an item.
    let run = json!({ "assistant_id": "slow", "input": { "word": "x".repeat(4 << 20) } });
    assert_eq!(host.post(&format!("/threads/{id}/runs/wait"), run).await.status, 200);
    for _ in 0..4 {
        assert_eq!(host.call("POST", &format!("/threads/{id}/copy"), None).await.status, 200);
    }
    let search = async |body: Value| host.post("/threads/search", body).await;
    let refused = search(json!({})).await;
    assert_eq!(refused.status, 422, "{}", refused.text.len());
    let detail = refused.json()["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains("`select`, or set `limit` to 3 or less"), "{detail}");
    assert_eq!(search(json!({ "limit": 3 })).await.status, 200);
    let found = search(json!({ "select": ["thread_id", "status"] })).await.ok();
    assert_eq!(found.as_array().unwrap().len(), 5);
}

#[tokio::test]
async fn metadata_can_change_during_a_run() {
    let host = Host::new();
    host.hold();
    let id = host.thread().await;
    let path = format!("/threads/{id}");
    let run = json!({ "assistant_id": "slow", "input": { "word": "a" } });
    let run = host.post(&format!("{path}/runs"), run).await;
    host.wait_for_started(1).await;
    let patch = json!({ "metadata": { "title": "t" }, "ttl": { "ttl": 5 } });
    let changed = host.call("PATCH", &path, Some(patch)).await.ok();
    assert_eq!((&changed["status"], &changed["metadata"]["title"]), (&json!("busy"), &json!("t")));
    let found = host.post("/threads/search", json!({ "metadata": { "title": "t" } })).await.ok();
    assert_eq!(found.as_array().unwrap().len(), 1);
    host.release.send_replace(true);
    host.get(&format!("{}/join", run.header("content-location"))).await.ok();
    let read = host.get(&path).await.ok();
    assert_eq!(read["status"], "idle");
    assert_eq!((&read["metadata"]["title"], &read["ttl"]["ttl"]), (&json!("t"), &json!(5.0)));
    assert_eq!(read["metadata"]["graph_id"], "slow", "the metadata that the run added stays too");
    let again = json!({ "assistant_id": "slow", "input": { "word": "b" } });
    host.post(&format!("{path}/runs/wait"), again).await.ok();
    assert_eq!(host.get(&path).await.ok()["metadata"]["title"], "t");
}

#[tokio::test]
async fn extract_returns_values_by_path() {
    let host = Host::new();
    let id = host.thread().await;
    let run = json!({ "assistant_id": "agent", "input": { "messages": "hi" } });
    host.post(&format!("/threads/{id}/runs/wait"), run).await.ok();
    let search = async |extract: Value| {
        let body = json!({ "ids": [id], "select": ["thread_id"], "extract": extract });
        host.post("/threads/search", body).await
    };
    let paths = json!({ "last": "values.messages[-1].content", "none": "values.messages[9]",
        "graph": "metadata.graph_id" });
    let found = search(paths).await.ok();
    let extracted = json!({ "last": "Hello", "none": null, "graph": "agent" });
    assert_eq!(found, json!([{ "thread_id": id, "extracted": extracted }]));
    let refused = search(json!({ "x": "secrets.key" })).await;
    assert_eq!(refused.status, 422, "{}", refused.text);
}

#[tokio::test]
async fn page_of_a_search_by_values_has_the_next_offset() {
    let host = Host::new();
    for word in ["a", "a", "b", "a"] {
        let id = host.thread().await;
        let run = json!({ "assistant_id": "slow", "input": { "word": word } });
        host.post(&format!("/threads/{id}/runs/wait"), run).await.ok();
    }
    let page = async |offset: usize| {
        let body = json!({ "values": { "word": "a" }, "limit": 1, "offset": offset });
        let found = host.post("/threads/search", body).await;
        assert_eq!(found.ok().as_array().unwrap().len(), 1);
        found.headers.get("x-pagination-next").map(|next| next.to_str().unwrap().to_owned())
    };
    assert_eq!(page(0).await.as_deref(), Some("1"));
    assert_eq!(page(1).await.as_deref(), Some("2"));
    assert_eq!(page(2).await, None);
    let count = host.post("/threads/count", json!({ "values": { "word": "a" } })).await.ok();
    assert_eq!(count, 3);
}

#[tokio::test]
async fn search_by_values_does_not_count_as_a_control_request() {
    let limits = Limits { open: 1, ..Limits::default() };
    let host = Host::with_config(ApiConfig { limits, ..ApiConfig::default() });
    let id = host.thread().await;
    let search = async |body: Value| host.post("/threads/search", body).await;
    let by_values = || json!({ "values": { "word": "a" } });
    let stream = host.raw(request("GET", &format!("/threads/{id}/stream"), None)).await;
    assert_eq!(stream.status(), 200);
    search(json!({})).await.ok();
    search(json!({ "values": {} })).await.ok();
    let refused = search(by_values()).await;
    assert_eq!((refused.status, refused.header("retry-after")), (429, "1"), "{}", refused.text);
    drop(stream);
    search(by_values()).await.ok();
}

#[tokio::test]
async fn supersteps_create_the_history_of_a_new_thread() {
    let host = Host::new();
    let id = "01a1ffdc-22ab-744e-a2fc-8bb051a654f8";
    let steps = json!([
        { "updates": [{ "values": { "word": "a", "mood": 1 }, "command": null,
            "as_node": "__start__" }] },
        { "updates": [{ "values": null, "command": { "update": { "items": ["a"], "x": 1 } },
            "as_node": "hold" }] },
    ]);
    let wish = |metadata: Value, supersteps: &Value| json!({ "thread_id": id, "metadata": metadata, "supersteps": supersteps });
    let of_slow = json!({ "graph_id": "slow" });
    let nowhere = host.post("/threads", wish(json!({}), &steps)).await;
    assert_eq!(nowhere.status, 400, "{}", nowhere.text);
    let wrong = json!([{ "updates": [{ "values": { "word": "a" }, "as_node": "nowhere" }] }]);
    assert_eq!(host.post("/threads", wish(of_slow.clone(), &wrong)).await.status, 422);
    let goto = json!([{ "updates": [{ "command": { "goto": "hold" }, "as_node": "hold" }] }]);
    assert_eq!(host.post("/threads", wish(of_slow.clone(), &goto)).await.status, 422);
    assert_eq!(host.get(&format!("/threads/{id}")).await.status, 404, "the thread was deleted");
    let made = host.post("/threads", wish(of_slow, &steps)).await;
    let ignored = "values.mood, command.update.x";
    assert_eq!(made.header("x-wattle-ignored-keys"), ignored);
    let made = made.ok();
    assert_eq!(made["values"], json!({ "word": "a", "items": ["a"] }));
    assert_eq!((&made["status"], &made["thread_id"]), (&json!("idle"), &json!(id)));
    let run = json!({ "assistant_id": "slow", "input": { "word": "b" } });
    let values = host.post(&format!("/threads/{id}/runs/wait"), run).await.ok();
    assert_eq!(values["items"], json!(["a", "b"]));
}

/// Creates a thread of `slow` whose supersteps have the given values and nodes. Returns the thread
/// and its history.
async fn thread_with_history(host: &Host, steps: &[(Value, &str)]) -> (Value, Vec<Value>) {
    let step = |(values, node): &(Value, &str)| json!({ "updates": [{ "values": values, "as_node": node }] });
    let steps: Vec<Value> = steps.iter().map(step).collect();
    let new = json!({ "metadata": { "graph_id": "slow" }, "supersteps": steps });
    let thread = host.post("/threads", new).await.ok();
    let path = format!("/threads/{}/history", thread["thread_id"].as_str().unwrap());
    let history = host.post(&path, json!({ "limit": 99 })).await.ok();
    (thread, history.as_array().unwrap().clone())
}

/// Returns source, step and next nodes of states.
fn summaries(history: &[Value]) -> Value {
    let summaries = history.iter().map(|state| {
        json!([state["metadata"]["source"], state["metadata"]["step"], state["next"]])
    });
    summaries.collect()
}

#[tokio::test]
async fn supersteps_with_inputs_have_the_history_of_runs() {
    let host = Host::new();
    let input = json!({ "word": "a", "items": ["x"] });
    let (thread, history) = thread_with_history(
        &host,
        &[
            (input.clone(), "__input__"),
            (input, "__start__"),
            (json!({ "items": ["a"] }), "hold"),
            (json!({ "word": "b" }), "__input__"),
            (json!({ "word": "b" }), "__start__"),
            (json!({ "items": ["b"] }), "hold"),
        ],
    )
    .await;
    assert_eq!(thread["values"], json!({ "word": "b", "items": ["x", "a", "b"] }));
    let expected = json!([
        ["update", 3, []],
        ["input", 2, ["hold"]],
        ["input", 1, ["__start__"]],
        ["update", 1, []],
        ["input", 0, ["hold"]],
        ["input", -1, ["__start__"]],
    ]);
    assert_eq!(summaries(&history), expected);
    assert_eq!(history[5]["values"], json!({}));
    // Another input can replace the first input, as on a thread with runs.
    let again = json!({ "assistant_id": "slow", "input": { "word": "c" },
        "checkpoint_id": history[5]["checkpoint_id"] });
    let path = format!("/threads/{}/runs/wait", thread["thread_id"].as_str().unwrap());
    let values = host.post(&path, again).await.ok();
    assert_eq!(values, json!({ "word": "c", "items": ["c"] }));
}

#[tokio::test]
async fn first_superstep_makes_the_first_state() {
    let host = Host::new();
    let (word, items) = (json!({ "word": "a" }), json!({ "items": ["a"] }));
    let (_, history) =
        thread_with_history(&host, &[(word.clone(), "__input__"), (items.clone(), "hold")]).await;
    let expected = json!([["update", 1, []], ["input", 0, ["hold"]], ["input", -1, ["__start__"]]]);
    assert_eq!(summaries(&history), expected);
    let (_, history) = thread_with_history(&host, &[(word, "__start__"), (items, "hold")]).await;
    assert_eq!(summaries(&history), json!([["update", 1, []], ["update", 0, ["hold"]]]));
}
