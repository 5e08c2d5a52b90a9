//! Tools and nodes that clients run alone, and threads that become tests.

use serde_json::{Value, json};
use wattle_graph::event::Event;
use wattle_run::export::Export;
use wattle_suite::desk::Desk;
use wattle_suite::server::{Setup, TestServer};

/// A graph whose nodes count, one after the other.
const COUNT: &str = r#"
[graphs.main]
entry = "counter"
[graphs.main.channels.number]
schema = { type = "integer" }
[graphs.main.nodes.counter]
[graphs.main.nodes.again]
node = "counter"
[[graphs.main.edges]]
from = "counter"
to = "again"
"#;

const RUNS: &str = "/api/v1/apps/misdeeds/runs";

/// Creates a server with an app whose tools may call the tools `net` and `echo`.
async fn desk() -> Setup {
    let nested = "[\"tools/net\", \"tools/echo\"]".to_owned();
    Setup::desk(&Desk { nested, ..Desk::default() }).await
}

fn path_of(tool: &str) -> String {
    format!("/api/v1/apps/desk/tools/{}/call", tool.replace('/', "%2F"))
}

async fn call(server: &TestServer, tool: &str, input: Value) -> Value {
    server.post(&path_of(tool), &json!({ "input": input })).await.expect(200)
}

/// Returns the arguments with which the tool `nested` calls `net`.
fn fetching(url: &str) -> Value {
    json!({ "calls": [{ "tool": "net", "arguments": { "url": url } }] })
}

/// Returns depth and function of each call.
fn outline(end: &Value) -> Vec<(u64, &str)> {
    let calls = end["calls"].as_array().unwrap().iter();
    let outline = calls.map(|it| (it["depth"].as_u64().unwrap(), it["function"].as_str().unwrap()));
    outline.collect()
}

#[tokio::test]
async fn tools_of_an_app_are_listed_with_their_schemas() {
    let server = desk().await.start().await;
    let tools = server.get("/api/v1/apps/desk/tools").await.expect(200);
    let add = tools.as_array().unwrap().iter().find(|it| it["tool"] == "tools/add").unwrap();
    assert_eq!((&add["plugin"], &add["name"]), (&json!("tools"), &json!("add")));
    assert_eq!((&add["read_only"], &add["idempotent"]), (&json!(false), &json!(true)));
    assert_eq!(add["input_schema"]["required"], json!(["a", "b"]));
    assert_eq!(add["description"], "Adds two numbers.");
    assert_eq!(server.get("/api/v1/apps/desks/tools").await.status, 404);
}

#[tokio::test]
async fn a_tool_is_called_without_a_run() {
    let server = desk().await.start().await;
    let end = call(&server, "tools/add", json!({ "a": 1, "b": 2 })).await;
    assert_eq!(end["output"]["structured"], json!({ "sum": 3 }));
    assert_eq!((&end["calls"], end.get("failure")), (&json!([]), None));
    assert!(end["duration_us"].as_u64().unwrap() > 0, "{end}");
    let known = call(&server, "whoami", json!({})).await["output"]["structured"].clone();
    assert_eq!((&known["tool"], &known["thread_id"]), (&json!("whoami"), &Value::Null));
    assert_eq!(server.get("/api/v1/threads").await.body["items"], json!([]));
}

#[tokio::test]
async fn calls_of_a_tool_and_of_its_tools_are_listed() {
    let server = desk().await.start().await;
    let url = format!("{}/status/200", server.standin().base_url);
    let end = call(&server, "nested", fetching(&url)).await;
    assert_eq!(outline(&end), [(0, "tools.call"), (1, "http.send")]);
    assert_eq!((&end["calls"][0]["summary"], &end["omitted_calls"]), (&json!("net"), &json!(0)));
    for made in end["calls"].as_array().unwrap() {
        assert!(made["duration_us"].is_u64() && made.get("failure").is_none(), "{made}");
    }
    let end = call(&server, "nested", fetching("https://example.com/")).await;
    let denied = &end["calls"][1]["failure"];
    assert_eq!(denied["code"], "denied");
    let message = denied["message"].as_str().unwrap();
    assert!(message.contains("`[grants.tools]` in wattle.toml"), "{message}");
    let end = call(&server, "nested", json!({ "calls": [{ "tool": "spin" }] })).await;
    let message = end["calls"][0]["failure"]["message"].as_str().unwrap();
    assert!(message.contains("add `tools = [\"tools/spin\"]` under `[grants.tools]`"), "{message}");
}

#[tokio::test]
async fn failures_of_a_tool_are_in_the_response() {
    let server = desk().await.start().await;
    let failure = call(&server, "fail", json!({ "retryable": true })).await["failure"].clone();
    assert_eq!((&failure["code"], &failure["retryable"]), (&json!("misdeed"), &json!(true)));
    let spin = call(&server, "spin", json!({})).await["failure"].clone();
    assert_eq!((&spin["code"], &spin["details"]["limit"]), (&json!("limit"), &json!("cpu")));
    let huge = call(&server, "huge", json!({ "mib": 2 })).await["failure"].clone();
    assert_eq!(huge["code"], "limit", "{huge}");
    assert_eq!(call(&server, "trap", json!({})).await["failure"]["code"], "trap");
    let asked = call(&server, "ask_first", json!({ "question": "sure?" })).await;
    assert_eq!(asked["failure"]["code"], "unsupported");
    call(&server, "tools/add", json!({ "a": 1, "b": 2 })).await;
    let used = server.get("/api/v1/plugins/tools").await.expect(200)[0]["use"].clone();
    assert_eq!((&used["calls"], &used["failed"]), (&json!(6), &json!(5)), "{used}");
}

#[tokio::test]
async fn calls_that_cannot_begin_are_refused() {
    let server = desk().await.start().await;
    let refused = async |tool: &str, body: Value| server.post(&path_of(tool), &body).await;
    let unknown = refused("tools/ad", json!({ "input": {} })).await.expect(404);
    let detail = unknown["detail"].as_str().unwrap();
    assert!(detail.contains("did you mean `tools/add`?"), "{detail}");
    let invalid = refused("add", json!({ "input": { "a": "x" } })).await.expect(400);
    assert!(!invalid["details"]["violations"].as_array().unwrap().is_empty(), "{invalid}");
    let flagged = call(&server, "flagged", json!({ "number": "x" })).await;
    assert_eq!(flagged["output"]["structured"]["violations"].as_array().unwrap().len(), 1);
    for body in [json!({}), json!({ "input": {}, "x": 1 }), json!({ "input": {}, "tenant": "*" })] {
        refused("echo", body).await.expect(400);
    }
}

#[tokio::test]
async fn tools_are_called_for_the_tenant_of_the_request() {
    let server = desk().await.with_tenants().with_keys("operator").start().await;
    let post = async |header: Option<&str>, tool: &str, body: Value| {
        server.post_as("operator", header, &path_of(tool), &body).await
    };
    let whoami = json!({ "input": {} });
    let own = post(Some("red"), "whoami", whoami.clone()).await.expect(200);
    assert_eq!(own["output"]["structured"]["tenant"], "red");
    post(None, "whoami", whoami).await.expect(401);
    let of_blue = json!({ "input": {}, "tenant": "blue" });
    let named = post(None, "whoami", of_blue.clone()).await.expect(200);
    assert_eq!(named["output"]["structured"]["tenant"], "blue");
    post(Some("red"), "whoami", of_blue).await.expect(403);

    let denied = fetching("https://example.com/");
    let for_operator = json!({ "input": denied.clone(), "tenant": "blue" });
    let shown = post(None, "nested", for_operator).await.expect(200);
    assert!(shown["calls"][1]["failure"]["message"].to_string().contains("[grants.tools]"));
    let shown = post(Some("red"), "nested", json!({ "input": denied })).await.expect(200);
    assert_eq!(shown["calls"][1]["failure"]["code"], "denied");
    assert!(!shown["calls"].to_string().contains("[grants."), "{shown}");
}

#[tokio::test]
async fn a_node_runs_alone() {
    let server = Setup::misdeeds(COUNT).await.start().await;
    let start = |thread: &str, node: &str, input: Value| {
        json!({
            "input": {}, "thread_id": thread, "goto": [{ "node": node, "input": input }],
            "options": { "interrupt_after": "*" }, "wait": true,
        })
    };
    let last = server.post(RUNS, &start("a", "again", json!({ "number": 41 }))).await.expect(200);
    assert_eq!((&last["status"], &last["state"]["number"]), (&json!("completed"), &json!(42)));
    let first = server.post(RUNS, &start("b", "counter", json!({ "number": 1 }))).await;
    let first = first.expect(200);
    assert_eq!((&first["status"], &first["state"]["number"]), (&json!("interrupted"), &json!(2)));
    assert_eq!(first["next"], json!(["again"]));
    let nodes: Vec<Value> = server.events("b").await.into_iter().map(|it| it.data).collect();
    let finished = nodes.iter().filter(|event| event["type"] == "task_finished");
    assert_eq!(finished.count(), 1, "{nodes:?}");

    // Without an input of its own, a node reads the values of the run's input.
    let of_state = json!({
        "input": { "number": 6 }, "goto": [{ "node": "again" }], "wait": true,
    });
    let run = server.post(RUNS, &of_state).await.expect(200);
    assert_eq!(run["state"]["number"], 7);

    let unknown = server.post(RUNS, &start("c", "agin", json!({}))).await.expect(400);
    assert!(unknown["detail"].as_str().unwrap().contains("has no node `agin`"), "{unknown}");
    let none = json!({ "input": null, "goto": [{ "node": "again" }] });
    server.post(RUNS, &none).await.expect(400);
    let threads = server.get("/api/v1/threads").await.expect(200);
    assert_eq!(threads["items"].as_array().map(Vec::len), Some(3), "refused runs leave no thread");
}

/// Returns true if a line of an export has a field with a value, at any depth.
fn has_field(export: &Value, name: &str) -> bool {
    fn has(document: &Value, name: &str) -> bool {
        match document {
            Value::Array(items) => items.iter().any(|item| has(item, name)),
            Value::Object(fields) => fields
                .iter()
                .any(|(field, value)| (field == name && !value.is_null()) || has(value, name)),
            _ => false,
        }
    }
    let mut lines = export.as_str().unwrap().lines();
    lines.any(|line| has(&serde_json::from_str(line).unwrap(), name))
}

#[tokio::test]
async fn a_thread_is_exported_as_a_test() {
    let server = Setup::misdeeds(COUNT).await.start().await;
    let start = json!({
        "input": { "number": 1 }, "thread_id": "t", "metadata": { "customer": "Ada" }, "wait": true,
    });
    server.post(RUNS, &start).await.expect(200);
    let whole = server.get("/api/v1/threads/t/export?code=false").await.expect(200);
    let test = server.get("/api/v1/threads/t/test").await;
    assert_eq!(test.header("content-type"), "application/x-ndjson");
    let test = test.expect(200);
    let mut expected = Export::read(whole.as_str().unwrap()).unwrap();
    let header = &mut expected.header;
    header.thread.metadata.clear();
    header.runs.iter_mut().for_each(|run| run.spec = None);
    (header.code, header.seal) = (None, None);
    for batch in &mut expected.batches {
        batch.seal = None;
        batch.events.iter_mut().for_each(Event::make_anonymous);
        if let Some(checkpoint) = &mut batch.checkpoint {
            checkpoint.metadata.clear();
        }
    }
    assert_eq!(Export::read(test.as_str().unwrap()), Ok(expected));
    assert!(!test.to_string().contains("Ada"), "{test}");
    assert!(has_field(&whole, "seal"), "{whole}");
    for name in ["principal", "seal", "pruned_seal", "spec", "plugins"] {
        assert!(!has_field(&test, name), "{name}: {test}");
    }
    assert_eq!(server.get("/api/v1/threads/u/test").await.status, 404);
}
