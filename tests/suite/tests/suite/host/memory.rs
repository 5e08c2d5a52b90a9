//! Long-term memory with a real component, the API, tenants and a restart.

use serde_json::{Value, json};
use wattle_suite::answer::Answer;
use wattle_suite::server::{Setup, TestServer};

const GRAPHS: &str = r#"
[graphs.remember]
entry = "remember"
[graphs.remember.channels.namespace]
[graphs.remember.channels.key]
[graphs.remember.channels.document]
[graphs.remember.channels.ttl_ms]
[graphs.remember.channels.refreshed]
[graphs.remember.channels.found]
[graphs.remember.nodes.remember]
[graphs.forget]
entry = "forget"
[graphs.forget.channels.namespace]
[graphs.forget.channels.key]
[graphs.forget.channels.document]
[graphs.forget.channels.ttl_ms]
[graphs.forget.channels.refreshed]
[graphs.forget.channels.found]
[graphs.forget.nodes.forget]
[graphs.recall]
entry = "recall"
[graphs.recall.channels.prefix]
[graphs.recall.channels.filter]
[graphs.recall.channels.words]
[graphs.recall.channels.found]
[graphs.recall.channels.namespaces]
[graphs.recall.nodes.recall]
"#;

const ITEMS: &str = "/api/v1/memory/items";
const SEARCH: &str = "/api/v1/memory/search";

fn tea() -> Value {
    json!({ "namespace": ["users", "42"], "key": "tea", "document": { "text": "green tea", "n": 1 } })
}

async fn send(
    server: &TestServer,
    tenant: Option<&str>,
    method: &str,
    path: &str,
    body: Option<Value>,
) -> Answer {
    let mut request = server.request_of(tenant, method, path);
    if let Some(body) = body {
        request = request.json(&body);
    }
    Answer::of(request).await
}

/// Runs a graph of the misdeeds guest for a tenant.
async fn run(server: &TestServer, tenant: Option<&str>, graph: &str, input: Value) -> Value {
    let start = json!({ "graph": graph, "input": input, "wait": true });
    send(server, tenant, "POST", "/api/v1/apps/misdeeds/runs", Some(start)).await.expect(200)
}

#[tokio::test]
async fn documents_of_a_component_are_found_by_other_threads_and_the_operator() {
    let server = Setup::misdeeds(GRAPHS).await.start().await;
    let ended = run(&server, None, "remember", tea()).await;
    assert_eq!(ended["state"]["found"], json!([{ "text": "green tea", "n": 1 }]), "{ended}");
    let wish = json!({ "prefix": ["users"], "words": "TEA", "filter": { "n": { "$lt": 2 } } });
    let ended = run(&server, None, "recall", wish.clone()).await;
    assert_eq!(ended["state"]["found"], json!([{ "text": "green tea", "n": 1 }]), "{ended}");
    assert_eq!(ended["state"]["namespaces"], json!([["users", "42"]]));

    let found = send(&server, None, "POST", SEARCH, Some(json!({ "query": "green" }))).await;
    assert_eq!(found.expect(200)["items"][0]["score"], 1.0);
    let one = format!("{ITEMS}?namespace=users&namespace=42&key=tea");
    assert_eq!(server.get(&one).await.expect(200)["value"]["n"], 1);
    let place = json!({ "namespace": ["users", "42"], "key": "tea" });
    let ended = run(&server, None, "forget", place).await;
    assert_eq!(ended["state"]["found"], json!([]), "{ended}");
    assert_eq!(server.get(&one).await.status, 404);
}

#[tokio::test]
async fn a_component_has_access_to_its_granted_namespaces() {
    let server = Setup::misdeeds(GRAPHS).await.start().await;
    let place = json!({ "namespace": ["facts"], "key": "k", "document": 1 });
    let ended = run(&server, None, "remember", place).await;
    assert_eq!(ended["failure"]["code"], "denied", "{ended}");
    let ended = run(&server, None, "recall", json!({ "prefix": ["facts"] })).await;
    assert_eq!(ended["state"]["found"], json!([]), "{ended}");
    let ended = run(&server, None, "recall", json!({ "prefix": [] })).await;
    assert_eq!(ended["failure"]["code"], "denied", "{ended}");
    let unknown = json!({ "prefix": ["users"], "filter": { "n": { "$in": [1] } } });
    let ended = run(&server, None, "recall", unknown).await;
    assert_eq!(ended["failure"]["code"], "invalid", "{ended}");
    let plugin = server.get("/api/v1/plugins/misdeeds").await.expect(200);
    assert_eq!(
        plugin[0]["grants"]["memory"],
        json!([
            { "namespace": ["facts"], "access": "read" },
            { "namespace": ["users"], "access": "read-write" },
        ])
    );
    let used = &plugin[0]["use"];
    assert_eq!(
        (&used["calls"], &used["failed"], &used["denied"]),
        (&json!(4), &json!(3), &json!(2))
    );
    let measured = ["cpu_ms", "memory_peak_bytes"].map(|name| used[name].as_u64());
    assert!(measured.iter().all(|value| value.is_some_and(|value| value > 0)), "{used}");
}

#[tokio::test]
async fn documents_with_a_sliding_expiry_are_kept_while_they_are_read() {
    let server = Setup::misdeeds(GRAPHS).await.start().await;
    for (key, refreshed) in [("kept", true), ("brief", false)] {
        let note = json!({
            "namespace": ["users", "42"], "key": key, "document": key, "ttl_ms": 60_000,
            "refreshed": refreshed,
        });
        assert_eq!(run(&server, None, "remember", note).await["status"], "completed");
    }
    let recall = async || {
        let ended = run(&server, None, "recall", json!({ "prefix": ["users"] })).await;
        ended["state"]["found"].as_array().map_or(0, Vec::len)
    };
    server.clock().advance_ms(50_000);
    assert_eq!(recall().await, 2);
    server.clock().advance_ms(50_000);
    assert_eq!(recall().await, 1, "the search extended one expiry only");
    server.clock().advance_ms(60_000);
    assert_eq!(recall().await, 0);
}

#[tokio::test]
async fn tenants_have_separate_memories() {
    let setup = Setup::misdeeds(GRAPHS).await;
    let server = setup.with_tenants().start().await;
    run(&server, Some("red"), "remember", tea()).await;
    for (tenant, wanted) in [("red", 1), ("blue", 0)] {
        let ended = run(&server, Some(tenant), "recall", json!({ "prefix": ["users"] })).await;
        assert_eq!(ended["state"]["found"].as_array().unwrap().len(), wanted, "{tenant}");
        let found = send(&server, Some(tenant), "POST", SEARCH, Some(json!({}))).await.expect(200);
        assert_eq!(found["items"].as_array().unwrap().len(), wanted, "{tenant}");
        let one = format!("{ITEMS}?namespace=users&namespace=42&key=tea");
        let status = if wanted == 1 { 200 } else { 404 };
        assert_eq!(send(&server, Some(tenant), "GET", &one, None).await.status, status);
        let names = "/api/v1/memory/namespaces";
        let names = send(&server, Some(tenant), "GET", names, None).await.expect(200);
        assert_eq!(names["items"].as_array().unwrap().len(), wanted, "{tenant}");
    }
    let all = "/api/v1/memory/namespaces?prefix=users";
    let gone = send(&server, Some("blue"), "DELETE", all, None).await.expect(200);
    assert_eq!(gone, json!({ "deleted": 0 }));
    let gone = send(&server, Some("red"), "DELETE", all, None).await.expect(200);
    assert_eq!(gone, json!({ "deleted": 1 }));
}

#[tokio::test]
async fn operators_put_search_list_and_delete_documents() {
    let server = Setup::misdeeds(GRAPHS).await.start().await;
    for n in 0..5 {
        let item = json!({ "namespace": ["a", n.to_string()], "key": "k", "value": { "n": n } });
        assert_eq!(send(&server, None, "PUT", ITEMS, Some(item)).await.status, 204);
    }
    let search = json!({ "prefix": ["a"], "filter": { "n": { "$gte": 1 } }, "limit": 3 });
    let page = send(&server, None, "POST", SEARCH, Some(search)).await.expect(200);
    assert_eq!((page["items"].as_array().unwrap().len(), &page["next_offset"]), (3, &json!(3)));
    let names = server.get("/api/v1/memory/namespaces?prefix=*&suffix=3").await.expect(200);
    assert_eq!(names["items"], json!([["a", "3"]]));
    let names = server.get("/api/v1/memory/namespaces?max_depth=1").await.expect(200);
    assert_eq!(names, json!({ "items": [["a"]] }));
    let one = format!("{ITEMS}?namespace=a&namespace=3&key=k");
    for _ in 0..2 {
        assert_eq!(send(&server, None, "DELETE", &one, None).await.status, 204);
    }
    assert_eq!(server.get(&one).await.status, 404);
}

#[tokio::test]
async fn invalid_requests_are_refused() {
    let server = Setup::misdeeds(GRAPHS).await.start().await;
    for (method, path, body, status) in [
        ("GET", "/api/v1/memory/items?namespace=a", None, 400),
        ("GET", "/api/v1/memory/items?namespace=a&key=k&x=1", None, 400),
        ("GET", "/api/v1/memory/namespaces?limit=x", None, 400),
        ("GET", "/api/v1/memory/namespaces?max_depth=0", None, 400),
        ("DELETE", "/api/v1/memory/namespaces", None, 400),
        ("PUT", ITEMS, Some(json!({ "namespace": [], "key": "k", "value": 1 })), 400),
        ("PUT", ITEMS, Some(json!({ "namespace": ["a"], "key": "k" })), 400),
        (
            "PUT",
            ITEMS,
            Some(json!({ "namespace": ["a"], "key": "k".repeat(600), "value": 1 })),
            422,
        ),
        ("POST", SEARCH, Some(json!({ "filter": { "a": { "$where": "1" } } })), 400),
        ("POST", SEARCH, Some(json!({ "filtre": {} })), 400),
    ] {
        let answer = send(&server, None, method, path, body).await;
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.body);
    }
}

#[tokio::test]
async fn documents_survive_a_restart_until_they_expire() {
    let setup = Setup::misdeeds(GRAPHS).await;
    let clock = setup.clock.clone();
    let server = setup.start().await;
    let mut soon = tea();
    (soon["key"], soon["ttl_ms"]) = (json!("soon"), json!(60_000));
    run(&server, None, "remember", soon).await;
    run(&server, None, "remember", tea()).await;
    let found = send(&server, None, "POST", SEARCH, Some(json!({}))).await.expect(200);
    assert_eq!(found["items"].as_array().unwrap().len(), 2);
    clock.advance_ms(60_000);
    let server = server.restart().await;
    let found = send(&server, None, "POST", SEARCH, Some(json!({}))).await.expect(200);
    assert_eq!(found["items"].as_array().unwrap().len(), 1, "{found}");
    assert_eq!(found["items"][0]["key"], "tea");
}
