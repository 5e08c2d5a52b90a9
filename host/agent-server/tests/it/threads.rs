//! Threads: make, read, change, find, delete.

use serde_json::{Value, json};

use crate::host::{Host, request};

#[tokio::test]
async fn a_thread_is_there_before_its_first_run() {
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
async fn a_chosen_id_is_a_uuid_and_free() {
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
async fn ids_that_are_none_are_told_from_those_that_name_nothing() {
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
async fn facts_of_a_thread_are_added_to() {
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
async fn a_deleted_thread_is_gone_with_its_runs() {
    let host = Host::new();
    let id = host.thread().await;
    let run = json!({ "assistant_id": "slow", "input": { "word": "a" } });
    host.post(&format!("/threads/{id}/runs/wait"), run).await.ok();
    let gone = host.call("DELETE", &format!("/threads/{id}"), None).await;
    assert_eq!((gone.status, gone.text.as_str()), (204, ""));
    assert_eq!(host.get(&format!("/threads/{id}")).await.status, 404);
}

#[tokio::test]
async fn threads_are_found_by_what_is_said_of_them() {
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

#[tokio::test]
async fn a_copy_has_the_past_of_its_origin() {
    let host = Host::new();
    let id = host.thread().await;
    let run = json!({ "assistant_id": "slow", "input": { "word": "a" } });
    host.post(&format!("/threads/{id}/runs/wait"), run).await.ok();
    let copy = host.call("POST", &format!("/threads/{id}/copy"), None).await.ok();
    assert_eq!(copy["values"], json!({ "items": ["a"], "word": "a" }));
    assert_ne!(copy["thread_id"], json!(id));
}

#[tokio::test]
async fn several_threads_are_pruned() {
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
}
