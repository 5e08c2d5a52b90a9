//! Default assistants of graphs, assistants that clients create, and the health of the server.

use std::path::Path;

use serde_json::{Value, json};
use wattle_api::ApiConfig;
use wattle_graph::id::AppName;
use wattle_run::catalog::LoadingItem;

use crate::host::{Host, request};

#[tokio::test]
async fn graph_has_a_default_assistant() {
    let host = Host::new();
    let found = host.post("/assistants/search", json!({ "limit": 2 })).await;
    assert_eq!(found.header("x-pagination-total"), "5");
    assert_eq!(found.header("x-pagination-next"), "2");
    let found = host.post("/assistants/search", json!({ "graph_id": "agent" })).await.ok();
    let agent = &found[0];
    assert_eq!(agent["assistant_id"], "fe096781-5601-53d2-b2f6-0d3403f7e9ca");
    assert_eq!(agent["metadata"], json!({ "created_by": "system" }));
    for id in ["agent", "test/agent", "fe096781-5601-53d2-b2f6-0d3403f7e9ca"] {
        assert_eq!(&host.get(&format!("/assistants/{}", id.replace('/', "%2F"))).await.ok(), agent);
    }
    let missing = host.get("/assistants/01a1ffdc-22ab-744e-a2fc-8bb051a654f8").await;
    assert_eq!(missing.status, 404);
    assert_eq!(host.post("/assistants/count", json!({ "name": "AGENT" })).await.ok(), 1);
}

#[tokio::test]
async fn graph_has_a_drawing_and_schemas() {
    let host = Host::new();
    let drawn = host.get("/assistants/agent/graph").await.ok();
    let nodes: Vec<_> = drawn["nodes"].as_array().unwrap().iter().map(|it| &it["id"]).collect();
    assert_eq!(nodes, ["__start__", "ask", "greet", "__end__"]);
    assert_eq!(
        drawn["edges"],
        json!([
            { "source": "__start__", "target": "greet" },
            { "source": "greet", "target": "ask" },
            { "source": "ask", "target": "__end__" },
        ])
    );
    let schemas = host.get("/assistants/agent/schemas").await.ok();
    assert!(schemas["input_schema"]["properties"]["messages"].is_object());
    assert!(schemas["config_schema"].is_null() && schemas["context_schema"].is_null());
    let schemas = host.get("/assistants/context/schemas").await.ok();
    let declared = json!({ "type": "object", "properties": { "user": { "type": "string" } } });
    assert_eq!((&schemas["config_schema"], &schemas["context_schema"]), (&declared, &declared));
}

#[tokio::test]
async fn health_and_version_are_reported() {
    let host = Host::new();
    assert_eq!(host.get("/ok").await.ok(), json!({ "ok": true, "services": {} }));
    assert!(host.get("/info").await.ok()["version"].is_string());
    assert_eq!(host.call("PUT", "/threads", None).await.status, 405);
}

#[tokio::test]
async fn subgraph_has_a_drawing_and_schemas() {
    let host = Host::new();
    let drawn = host.get("/assistants/outer/graph?xray=true").await.ok();
    let nodes: Vec<_> = drawn["nodes"].as_array().unwrap().iter().map(|it| &it["id"]).collect();
    assert_eq!(nodes, ["__start__", "inner:ask", "inner:greet", "__end__"]);
    assert_eq!(
        drawn["edges"],
        json!([
            { "source": "__start__", "target": "inner:greet" },
            { "source": "inner:ask", "target": "__end__" },
            { "source": "inner:greet", "target": "inner:ask" },
        ])
    );
    let flat = host.get("/assistants/outer/graph?xray=0").await.ok();
    assert_eq!(flat["nodes"][1]["id"], "inner");
    let inside = host.get("/assistants/outer/subgraphs?recurse=true").await.ok();
    assert_eq!(inside["inner"]["graph_id"], "agent");
    assert_eq!(host.get("/assistants/outer/subgraphs/inner").await.ok(), inside);
    assert_eq!(host.get("/assistants/outer/subgraphs/other").await.ok(), json!({}));
    assert_eq!(host.get("/assistants/agent/subgraphs").await.ok(), json!({}));
}

async fn make(host: &Host, body: Value) -> Value {
    host.post("/assistants", body).await.ok()
}

#[tokio::test]
async fn assistant_is_created_changed_and_deleted() {
    let host = Host::new();
    let wish = json!({ "graph_id": "agent", "name": "mine", "metadata": { "team": "a" },
        "context": { "x": 1 } });
    let made = make(&host, wish).await;
    let id = made["assistant_id"].as_str().unwrap();
    let path = format!("/assistants/{id}");
    assert_eq!((&made["version"], &made["graph_id"]), (&json!(1), &json!("agent")));
    assert_eq!(
        made["config"],
        json!({ "configurable": { "x": 1 } }),
        "`configurable` has the values of the context"
    );
    assert_eq!(host.get(&path).await.ok(), made);
    let change = json!({ "metadata": { "label": 7 }, "config": { "tags": ["t"] } });
    let changed = host.call("PATCH", &path, Some(change)).await.ok();
    assert_eq!(changed["version"], 2);
    assert_eq!(changed["metadata"], json!({ "team": "a", "label": 7 }));
    assert_eq!(changed["config"], json!({ "tags": ["t"], "configurable": { "x": 1 } }));
    assert_eq!((&changed["name"], &changed["context"]), (&made["name"], &made["context"]));
    let found = host.post("/assistants/search", json!({ "metadata": { "label": 7 } })).await.ok();
    assert_eq!(found, json!([changed]));
    assert_eq!(host.post("/assistants/count", json!({ "graph_id": "agent" })).await.ok(), 2);
    let gone = host.call("DELETE", &path, None).await;
    assert_eq!((gone.status, gone.text.as_str()), (204, ""));
    assert_eq!(host.get(&path).await.status, 404);
    assert_eq!(host.call("DELETE", &path, None).await.status, 404);
}

#[tokio::test]
async fn create_with_an_existing_id_fails_or_returns_the_assistant() {
    let host = Host::new();
    let id = "01a1ffdc-22ab-744e-a2fc-8bb051a654f8";
    let wish = |if_exists: &str| json!({ "graph_id": "agent", "assistant_id": id, "if_exists": if_exists });
    let made = make(&host, wish("raise")).await;
    assert_eq!((&made["assistant_id"], &made["name"]), (&json!(id), &json!("Untitled")));
    assert_eq!(host.post("/assistants", wish("raise")).await.status, 409);
    assert_eq!(make(&host, wish("do_nothing")).await, made);
    for (body, status) in [
        (json!({ "graph_id": "nothing" }), 404),
        (json!({ "name": "mine" }), 422),
        (json!({ "graph_id": "agent", "assistant_id": "mine" }), 422),
        (json!({ "graph_id": "agent", "config": { "recursion_limit": "x" } }), 422),
        (
            json!({ "graph_id": "agent", "context": { "a": 1 },
                "config": { "configurable": { "b": 1 } } }),
            400,
        ),
    ] {
        let refused = host.post("/assistants", body).await;
        assert_eq!(refused.status, status, "{}", refused.text);
    }
    let change = json!({ "graph_id": "nothing" });
    let refused = host.call("PATCH", &format!("/assistants/{id}"), Some(change)).await;
    assert_eq!(refused.status, 404, "{}", refused.text);
    assert!(refused.text.contains("no graph `nothing`"), "{}", refused.text);
    let misspelt = host.post("/assistants", json!({ "graph_id": "agnet" })).await;
    assert_eq!(misspelt.status, 404, "{}", misspelt.text);
    assert!(misspelt.text.contains("did you mean `agent`?"), "{}", misspelt.text);
}

#[tokio::test]
async fn default_assistant_cannot_be_changed() {
    let host = Host::new();
    let id = "fe096781-5601-53d2-b2f6-0d3403f7e9ca";
    let taken = json!({ "graph_id": "agent", "assistant_id": id });
    assert_eq!(host.post("/assistants", taken).await.status, 409);
    for (method, path, body) in [
        ("PATCH", format!("/assistants/{id}"), json!({ "name": "x" })),
        ("DELETE", "/assistants/agent".to_owned(), Value::Null),
    ] {
        let refused = host.call(method, &path, Some(body)).await;
        assert_eq!(refused.status, 409, "{}", refused.text);
        assert!(refused.text.contains("default assistant of graph `agent`"), "{}", refused.text);
    }
    let versions = host.post(&format!("/assistants/{id}/versions"), json!({})).await.ok();
    assert_eq!(versions.as_array().unwrap().len(), 1);
    let latest = format!("/assistants/{id}/latest");
    assert_eq!(host.post(&latest, json!({ "version": 1 })).await.ok()["version"], 1);
    assert_eq!(host.post(&latest, json!({ "version": 2 })).await.status, 404);
}

#[tokio::test]
async fn earlier_version_can_be_selected() {
    let host = Host::new();
    let made = make(&host, json!({ "graph_id": "context", "context": { "n": 1 } })).await;
    let path = format!("/assistants/{}", made["assistant_id"].as_str().unwrap());
    for n in [2, 3] {
        let change = json!({ "context": { "n": n }, "metadata": { "even": n % 2 == 0 } });
        host.call("PATCH", &path, Some(change)).await.ok();
    }
    let versions = async |body: Value| host.post(&format!("{path}/versions"), body).await.ok();
    let numbers = |found: &Value| -> Vec<Value> {
        found.as_array().unwrap().iter().map(|it| it["version"].clone()).collect()
    };
    assert_eq!(numbers(&versions(json!({})).await), [3, 2, 1]);
    assert_eq!(numbers(&versions(json!({ "limit": 1, "offset": 1 })).await), [2]);
    assert_eq!(numbers(&versions(json!({ "metadata": { "even": true } })).await), [2]);
    let back = host.post(&format!("{path}/latest"), json!({ "version": 2 })).await.ok();
    assert_eq!((&back["version"], &back["context"]), (&json!(2), &json!({ "n": 2 })));
    assert_eq!(host.get(&path).await.ok(), back);
    let next = host.call("PATCH", &path, Some(json!({ "name": "four" }))).await.ok();
    assert_eq!((&next["version"], &next["context"]), (&json!(4), &json!({ "n": 2 })));
    assert_eq!(host.post(&format!("{path}/latest"), json!({ "version": 9 })).await.status, 404);
}

#[tokio::test]
async fn unknown_assistant_returns_503_while_an_app_that_may_have_it_is_loading() {
    let host = Host::new();
    let made = make(&host, json!({ "graph_id": "agent" })).await;
    let own = format!("/assistants/{}", made["assistant_id"].as_str().unwrap());
    let unknown = "/assistants/01a1ffdc-22ab-744e-a2fc-8bb051a654f8";
    let requests = [
        ("GET", "/assistants/nope".to_owned(), json!({}), 422),
        ("GET", "/assistants/nope/graph".to_owned(), json!({}), 422),
        ("GET", "/assistants/late%2Fnope".to_owned(), json!({}), 422),
        ("PATCH", "/assistants/nope".to_owned(), json!({}), 422),
        ("GET", unknown.to_owned(), json!({}), 404),
        ("GET", format!("{unknown}/graph"), json!({}), 404),
        ("PATCH", unknown.to_owned(), json!({}), 404),
        ("DELETE", unknown.to_owned(), json!({}), 404),
        ("POST", format!("{unknown}/versions"), json!({}), 404),
        ("POST", format!("{unknown}/latest"), json!({ "version": 1 }), 404),
        ("POST", "/assistants".to_owned(), json!({ "graph_id": "nope" }), 404),
    ];
    let status = async |method: &str, path: &str, body: &Value| {
        host.call(method, path, Some(body.clone())).await.status
    };
    let (catalog, path) = (host.engine.catalog(), Path::new("plugins/late"));
    let late = LoadingItem::App { name: AppName::new("late").unwrap(), mount: None };
    catalog.begin_loading(path, late.clone());
    for (method, path, body, _) in &requests {
        assert_eq!(status(method, path, body).await, 503, "{method} {path}");
    }
    assert_eq!(status("GET", "/assistants/other%2Fnope", &json!({})).await, 422);
    assert_eq!(status("GET", &own, &json!({})).await, 200);
    assert_eq!(status("PATCH", &own, &json!({ "name": "own" })).await, 200);
    catalog.end_loading(path);
    for (method, path, body, expected) in &requests {
        assert_eq!(status(method, path, body).await, *expected, "{method} {path}");
    }
    // The graph of a stored assistant may also be in the app that is being loaded.
    catalog.remove(&AppName::new("test").unwrap());
    catalog.begin_loading(path, late);
    assert_eq!(status("GET", &format!("{own}/graph"), &json!({})).await, 503);
    catalog.end_loading(path);
    assert_eq!(status("GET", &format!("{own}/graph"), &json!({})).await, 409);
}

#[tokio::test]
async fn run_has_the_settings_of_its_assistant() {
    let host = Host::new();
    let wish = json!({ "graph_id": "context", "context": { "x": 1, "y": 2 },
        "metadata": { "team": "a" } });
    let made = make(&host, wish).await;
    let assistant = made["assistant_id"].clone();
    let id = host.thread().await;
    let wait = format!("/threads/{id}/runs/wait");
    let run = json!({ "assistant_id": assistant, "input": {}, "context": { "y": 3 } });
    assert_eq!(host.post(&wait, run).await.ok()["value"], json!({ "x": 1, "y": 3 }));
    let patch = json!({ "context": { "x": 7 } });
    let path = format!("/assistants/{}", assistant.as_str().unwrap());
    host.call("PATCH", &path, Some(patch)).await.ok();
    let run = json!({ "assistant_id": assistant, "input": {},
        "config": { "configurable": { "z": 1 } }, "metadata": { "own": true } });
    assert_eq!(host.post(&wait, run).await.ok()["value"], json!({ "x": 7, "z": 1 }));
    let runs = host.get(&format!("/threads/{id}/runs")).await.ok();
    assert_eq!(runs[0]["assistant_id"], assistant);
    let metadata = json!({ "team": "a", "own": true, "graph_id": "context",
        "assistant_id": assistant });
    assert_eq!(runs[0]["metadata"], metadata);
    assert_eq!(runs[0]["kwargs"]["context"], json!({ "x": 7, "z": 1 }));
    let thread = host.get(&format!("/threads/{id}")).await.ok();
    assert_eq!(thread["metadata"]["assistant_id"], assistant);
    let alone = json!({ "assistant_id": assistant, "input": {} });
    assert_eq!(host.post("/runs/wait", alone).await.ok()["value"], json!({ "x": 7 }));
}

#[tokio::test]
async fn delete_threads_deletes_the_threads_of_an_assistant() {
    let host = Host::new();
    for (query, status) in [("", 200), ("?delete_threads=true", 404)] {
        let made = make(&host, json!({ "graph_id": "slow" })).await;
        let assistant = made["assistant_id"].as_str().unwrap();
        let id = host.thread().await;
        let run = json!({ "assistant_id": assistant, "input": { "word": "a" } });
        host.post(&format!("/threads/{id}/runs/wait"), run).await.ok();
        let path = format!("/assistants/{assistant}{query}");
        assert_eq!(host.call("DELETE", &path, None).await.status, 204);
        assert_eq!(host.get(&format!("/threads/{id}")).await.status, status, "{query}");
    }
}

#[tokio::test]
async fn assistants_of_other_tenants_are_not_found() {
    let keys = [("k-a", "a"), ("k-b", "b")];
    let keys = keys.map(|(key, tenant)| (ApiConfig::key_digest(key), tenant.to_owned()));
    let host = Host::with_config(ApiConfig { tenant_keys: keys.into(), ..ApiConfig::default() });
    let with_key = async |key: &str, method: &str, path: &str, body: Value| {
        let mut request = request(method, path, Some(body));
        request.headers_mut().insert("x-api-key", key.parse().unwrap());
        host.send(request).await
    };
    let made = with_key("k-a", "POST", "/assistants", json!({ "graph_id": "slow" })).await.ok();
    let assistant = made["assistant_id"].as_str().unwrap();
    let path = format!("/assistants/{assistant}");
    assert_eq!(with_key("k-a", "GET", &path, json!({})).await.status, 200);
    for (method, path) in [
        ("GET", path.clone()),
        ("PATCH", path.clone()),
        ("DELETE", path.clone()),
        ("GET", format!("{path}/graph")),
        ("POST", format!("{path}/versions")),
    ] {
        assert_eq!(with_key("k-b", method, &path, json!({})).await.status, 404, "{method} {path}");
    }
    let run = json!({ "assistant_id": assistant, "input": {} });
    assert_eq!(with_key("k-b", "POST", "/runs/wait", run).await.status, 404);
    let wanted = json!({ "graph_id": "slow" });
    assert_eq!(with_key("k-b", "POST", "/assistants/count", wanted).await.ok(), 1);
}
