//! Nodes that clients call without a graph.

use serde_json::{Value, json};
use wattle_suite::desk::Desk;
use wattle_suite::server::{Setup, TestServer};

/// A graph that needs one node. Calls of nodes do not use it.
const COUNT: &str = r#"
[graphs.main]
entry = "counter"
[graphs.main.channels.number]
schema = { type = "integer" }
[graphs.main.nodes.counter]
"#;

fn path_of(app: &str, node: &str) -> String {
    format!("/api/v1/apps/{app}/nodes/{}/call", node.replace('/', "%2F"))
}

/// Calls a node of the app of misdeeds, and returns the end.
async fn call(server: &TestServer, node: &str, input: Value) -> Value {
    server.post(&path_of("misdeeds", node), &json!({ "input": input })).await.expect(200)
}

#[tokio::test]
async fn a_node_is_called_without_a_run() {
    let server = Setup::misdeeds(COUNT).await.start().await;
    let end = call(&server, "misdeeds/counter", json!({ "number": 41 })).await;
    assert_eq!(end["outcome"], json!({ "writes": [{ "channel": "number", "value": 42 }] }));
    assert_eq!((&end["calls"], &end["logs"], end.get("failure")), (&json!([]), &json!([]), None));
    assert!(end["duration_us"].as_u64().unwrap() > 0, "{end}");
    let gone = call(&server, "jump", json!({ "jumps": 2 })).await;
    assert_eq!(gone["outcome"]["goto"], json!(["jump", "jump"]), "{gone}");
    let raised = call(&server, "escalate", json!({ "number": 1 })).await;
    assert_eq!(raised["outcome"]["for_parent"], true, "{raised}");
    assert_eq!(server.get("/api/v1/threads").await.body["items"], json!([]));
}

#[tokio::test]
async fn interrupts_of_a_node_end_its_call() {
    let server = Setup::misdeeds(COUNT).await.start().await;
    let schema = json!({ "type": "boolean" });
    let end = call(&server, "ask_shaped", json!({ "schema": schema })).await;
    let raised = json!([{ "payload": { "question": "anything" }, "response_schema": schema }]);
    assert_eq!(end["interrupts"], raised, "{end}");
    assert_eq!((end.get("outcome"), end.get("failure")), (None, None), "{end}");
    let invalid = call(&server, "ask_shaped", json!({ "schema": { "type": 1 } })).await;
    assert_eq!(invalid["failure"]["code"], "invalid", "{invalid}");
    assert_eq!(server.get("/api/v1/threads").await.body["items"], json!([]));
    let used = server.get("/api/v1/plugins/misdeeds").await.expect(200)[0]["use"].clone();
    assert_eq!((&used["calls"], &used["failed"]), (&json!(2), &json!(1)), "{used}");
}

#[tokio::test]
async fn failures_of_a_node_are_in_the_response() {
    let server = Setup::misdeeds(COUNT).await.start().await;
    let words = json!({ "code": "own-code", "message": "it went wrong" });
    let failed = call(&server, "fail_as", words).await;
    assert_eq!(failed["failure"]["code"], "own-code", "{failed}");
    assert_eq!(call(&server, "trap", json!({})).await["failure"]["code"], "trap");
    let spin = call(&server, "spin", json!({})).await["failure"].clone();
    assert_eq!((&spin["code"], &spin["details"]["limit"]), (&json!("limit"), &json!("cpu")));
    let fetched = call(&server, "ungranted_http", json!({ "url": "https://example.com/" })).await;
    let denied = &fetched["calls"][0];
    assert_eq!(
        (&denied["function"], &denied["failure"]["code"]),
        (&json!("http.send"), &json!("denied"))
    );
    let message = denied["failure"]["message"].as_str().unwrap();
    assert!(message.contains("`[grants.misdeeds]` in wattle.toml"), "{message}");
    let errand = json!({ "errand": { "graph": "main", "input": {} } });
    let alone = call(&server, "delegate", errand).await["failure"].clone();
    assert_eq!(alone["code"], "unsupported", "{alone}");
}

#[tokio::test]
async fn calls_of_nodes_that_cannot_begin_are_refused() {
    let server = Setup::desk(&Desk::default()).await.start().await;
    let refused = async |node: &str, body: Value| server.post(&path_of("desk", node), &body).await;
    let unknown = refused("std/agnt", json!({ "input": {} })).await.expect(404);
    let detail = unknown["detail"].as_str().unwrap();
    assert!(detail.contains("did you mean `std/agent`?"), "{detail}");
    let config = json!({ "input": {}, "config": { "route": 1 } });
    let invalid = refused("agent", config).await.expect(400);
    assert!(!invalid["details"]["violations"].as_array().unwrap().is_empty(), "{invalid}");
    refused("agent", json!({ "input": {} })).await.expect(400);
    for body in [json!({}), json!({ "input": {}, "x": 1 }), json!({ "input": {}, "tenant": "*" })] {
        refused("agent", body).await.expect(400);
    }
    let misdeeds = Setup::misdeeds(COUNT).await.start().await;
    let config = json!({ "input": {}, "config": { "a": 1 } });
    let none = misdeeds.post(&path_of("misdeeds", "counter"), &config).await.expect(400);
    assert!(none["detail"].as_str().unwrap().contains("takes no configuration"), "{none}");
}

#[tokio::test]
async fn a_called_node_continues_the_conversation_of_its_input() {
    let server = Setup::desk(&Desk::default()).await.start().await;
    let messages = json!([{ "id": "m1", "role": "user", "content": "hello" }]);
    let body = json!({ "input": { "messages": messages }, "config": { "route": "chat" } });
    let end = server.post(&path_of("desk", "agent"), &body).await.expect(200);
    let writes = end["outcome"]["writes"].as_array().unwrap();
    assert!(writes.iter().any(|write| write["channel"] == "messages"), "{end}");
    let calls = end["calls"].as_array().unwrap();
    let is_completion = |call: &Value| call["function"].as_str().unwrap().starts_with("llm.");
    assert!(calls.iter().any(is_completion), "{end}");
}

#[tokio::test]
async fn only_the_operator_chooses_a_configuration() {
    let setup = Setup::desk(&Desk::default()).await.with_tenants();
    let server = setup.with_keys("operator").start().await;
    let post = async |header: Option<&str>, body: Value| {
        server.post_as("operator", header, &path_of("desk", "agent"), &body).await
    };
    for body in [json!({ "input": {}, "config": { "route": "chat" } }), json!({ "input": {} })] {
        let refused = post(Some("red"), body).await.expect(403);
        assert!(refused["detail"].as_str().unwrap().contains("takes a configuration"), "{refused}");
    }
    let own = json!({ "input": {}, "config": { "route": "chat" }, "tenant": "blue" });
    post(None, own).await.expect(200);
}

#[tokio::test]
async fn nodes_are_called_for_the_tenant_of_the_request() {
    let setup = Setup::misdeeds(COUNT).await.with_tenants();
    let server = setup.with_keys("operator").start().await;
    let post = async |header: Option<&str>, node: &str, body: Value| {
        server.post_as("operator", header, &path_of("misdeeds", node), &body).await
    };
    let count = json!({ "input": { "number": 1 } });
    post(Some("red"), "counter", count.clone()).await.expect(200);
    post(None, "counter", count).await.expect(401);
    let of_blue = json!({ "input": { "number": 1 }, "tenant": "blue" });
    post(None, "counter", of_blue.clone()).await.expect(200);
    post(Some("red"), "counter", of_blue).await.expect(403);
    let denied = json!({ "input": { "url": "https://example.com/" } });
    let shown = post(Some("red"), "ungranted_http", denied).await.expect(200);
    assert_eq!(shown["calls"][0]["failure"]["code"], "denied", "{shown}");
    assert!(!shown["calls"].to_string().contains("[grants."), "{shown}");
}
