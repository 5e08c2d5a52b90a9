//! The whole server against its OpenAPI document: valid and invalid requests are generated from the
//! document, and each response must conform to it.

use std::convert::Infallible;
use std::process::Stdio;
use std::time::Duration;

use reqwest::Client;
use reqwest::header::HeaderMap;
use serde_json::{Value, json};
use tokio::process::Command;
use wattle_kit::need;
use wattle_kit::needs::{self, clients};
use wattle_suite::answer::Answer;
use wattle_suite::guests;
use wattle_suite::server::TestServer;

use super::setup;

/// Maximum duration of all requests, less than the timeout of the test runner.
const PATIENCE: Duration = Duration::from_secs(160);

/// Requests per operation. `WATTLE_EXAMPLES` sets another number.
const EXAMPLES: u32 = 2;

/// Threads that requests may write.
const THREADS: usize = 24;

/// Milliseconds between two steps of the server's clock.
const TICK_MS: u32 = 100;

/// The header with the API key.
const HEADER: &str = "x-api-key";
const KEY: &str = "suite-operator-key";

/// Starts a server with one API key, which stays the same. Without keys, the first key that a
/// request creates would lock out the others.
async fn locked() -> TestServer {
    let mut server = setup().await.with_keys(KEY).start().await;
    let key = [(HEADER.parse().unwrap(), KEY.parse().unwrap())];
    let client = Client::builder().no_proxy().default_headers(HeaderMap::from_iter(key));
    server.client = client.build().unwrap();
    server
}

/// Creates resources for the requests and returns their ids by the names of path parameters.
async fn scene(server: &TestServer) -> Value {
    let post = async |path: &str, body: Value| server.post(path, &body).await.expect(200);
    let thread = text(&post("/threads", json!({})).await, "thread_id");
    let asks = json!({ "assistant_id": "agent", "input": { "messages": "hi" } });
    let run = text(&post(&format!("/threads/{thread}/runs"), asks).await, "run_id");
    server.get(&format!("/threads/{thread}/runs/{run}/join")).await.expect(200);
    let state = server.get(&format!("/threads/{thread}/state")).await.expect(200);
    let mut threads = Vec::new();
    for _ in 0..THREADS {
        threads.push(text(
            &post("/threads", json!({ "metadata": { "graph_id": "agent" } })).await,
            "thread_id",
        ));
    }
    let assistant = post("/assistants", json!({ "graph_id": "agent" })).await;
    let new_year = json!({ "assistant_id": "agent", "schedule": "0 0 1 1 *", "input": {} });
    let cron = post("/runs/crons", new_year).await;
    json!({
        "thread": thread,
        "threads": threads.join(","),
        "run": run,
        "checkpoint": text(&state, "checkpoint_id"),
        "assistant": text(&assistant, "assistant_id"),
        "cron": text(&cron, "cron_id"),
        "app": "reference",
        "graph": "agent",
        "plugin": "std",
        "namespace": "run_subgraph",
    })
}

/// Advances the server's clock in real time.
async fn pass_time(server: &TestServer) -> Infallible {
    loop {
        tokio::time::sleep(Duration::from_millis(TICK_MS.into())).await;
        server.clock().advance_ms(TICK_MS);
    }
}

fn text(document: &Value, field: &str) -> String {
    document[field].as_str().unwrap_or_else(|| panic!("no `{field}` in {document:#}")).to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn responses_conform_to_the_openapi_document() {
    let program = need!(clients::python("schemathesis", "schemathesis"));
    let server = locked().await;
    let scene = scene(&server).await;
    let own = guests::root().join("tests/clients/schemathesis");
    let examples = needs::setting("WATTLE_EXAMPLES").unwrap_or(EXAMPLES).to_string();
    let mut command = Command::new(program);
    command
        .args(["--no-color", "--config-file"])
        .arg(own.join("schemathesis.toml"))
        .args(["run", &server.url("/openapi.json"), "--max-examples", &examples])
        .args(["--header", &format!("{HEADER}: {KEY}")])
        .env("SCHEMATHESIS_HOOKS", own.join("hooks.py"))
        .env("SCENE", scene.to_string())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("NO_PROXY", "*")
        // The program writes notes to its current folder.
        .current_dir(server.setup.workspace.root())
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let ended = tokio::select! {
        ended = tokio::time::timeout(PATIENCE, command.output()) => ended.unwrap().unwrap(),
        // Delayed runs start when they are due.
        never = pass_time(&server) => match never {},
    };
    let report = String::from_utf8_lossy(&ended.stdout);
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{report}\n{said}");
    // The server is healthy after all requests.
    assert_eq!(server.get("/ok").await.expect(200)["ok"], true);
}

/// An optional header.
type Header = Option<(&'static str, &'static str)>;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn endless_streams_refuse_invalid_requests() {
    let server = setup().await.start().await;
    let thread = server.post("/threads", &json!({})).await.expect(200);
    let own = format!("/threads/{}/stream", text(&thread, "thread_id"));
    let nobodys = "/threads/01a1ffdc-22ab-744e-a2fc-8bb051a654f8/stream".to_owned();
    let events = format!("{own}/events");
    let none: Header = None;
    for (method, path, header, body, status) in [
        ("GET", nobodys, none, None, 404),
        ("GET", "/threads/mine%00/stream".to_owned(), none, None, 422),
        ("GET", format!("{own}?stream_modes=nothing"), none, None, 422),
        ("GET", own, Some(("last-event-id", "yesterday")), None, 422),
        ("POST", events.clone(), none, Some(json!({})), 400),
        ("POST", events.clone(), none, Some(json!({ "channels": ["nothing"] })), 400),
        ("POST", events.clone(), none, Some(json!({ "channels": 7 })), 422),
        ("POST", events.clone(), none, Some(json!({ "channels": ["values"], "since": -1 })), 422),
        ("POST", events, none, Some(json!([])), 422),
        ("GET", "/api/v1/threads/nobody/events".to_owned(), none, None, 404),
        ("GET", "/api/v1/threads/nobody/events?until=never".to_owned(), none, None, 400),
    ] {
        let mut request = server.request(method, &path);
        if let Some((name, value)) = header {
            request = request.header(name, value);
        }
        if let Some(body) = &body {
            request = request.json(body);
        }
        let answer = Answer::of(request).await;
        assert_eq!(answer.status, status, "{method} {path} {body:?}: {:#}", answer.body);
        let is_native = path.starts_with("/api/");
        let form = if is_native { "application/problem+json" } else { "application/json" };
        assert_eq!(answer.header("content-type"), form, "{method} {path}");
        assert!(answer.body["detail"].is_string(), "{method} {path}: {:#}", answer.body);
    }
}
