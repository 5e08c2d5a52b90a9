//! Threads and runs that clients use through both this API and the native API.

use serde_json::{Value, json};
use wattle_api::ApiConfig;
use wattle_graph::failure::code;
use wattle_graph::id::{AppName, RunId};
use wattle_run::engine::threads::NewThread;
use wattle_run::hostcall::runs::{CreateRun, Multitask, RunService as _, StartRun, ThreadCreation};
use wattle_run::ports::store::{LeaseHolder, RunOptions};

use crate::host::{Host, request};

/// A time that the clock of no test reaches, in milliseconds since 1970.
const NEVER_MS: i64 = 4_102_444_800_000;

fn start(run: &str) -> StartRun {
    StartRun {
        graph: Some("slow".parse().unwrap()),
        run: Some(RunId::new(run).unwrap()),
        ..StartRun::new(AppName::new("test").unwrap(), json!({ "word": "a" }))
    }
}

#[tokio::test]
async fn run_id_cannot_be_used_twice() {
    let host = Host::new();
    host.hold();
    let run = host.engine.start(start("mine")).await.unwrap();
    assert_eq!(run.run.as_str(), "mine");
    let twice = host.engine.start(start("mine")).await.unwrap_err();
    assert_eq!(twice.code, code::CONFLICT, "while the run is running");
    host.release.send_replace(true);
    host.engine.wait(&run).await.unwrap();
    let twice = host.engine.start(start("mine")).await.unwrap_err();
    assert_eq!(twice.code, code::CONFLICT, "when the run has ended");
}

#[tokio::test]
async fn ids_of_any_text_are_encoded_in_paths() {
    let host = Host::new();
    let thread = Some("case 1/2?\u{e9}".parse().unwrap());
    let run = host.engine.start(StartRun { thread, ..start("a#1") }).await.unwrap();
    host.engine.wait(&run).await.unwrap();
    let place = "/threads/case%201%2F2%3F%C3%A9/runs/a%231";
    assert_eq!(host.get(place).await.ok()["run_id"], "a#1");
    let joined = host.get(&format!("{place}/join")).await;
    assert_eq!(joined.header("content-location"), place);
    assert_eq!(joined.header("location"), format!("{place}/join"));
    let joined = host.get(&format!("{place}/stream")).await;
    assert_eq!(joined.header("location"), format!("{place}/stream"));
}

#[tokio::test]
async fn first_run_of_any_api_binds_an_unbound_thread() {
    let host = Host::new();
    let made = json!({ "metadata": { "user": "u" } });
    let id = host.post("/threads", made).await.ok()["thread_id"].as_str().unwrap().to_owned();
    let path = format!("/api/v1/threads/{id}");
    assert_eq!(host.get(&path).await.ok()["app"], "blank");
    let run = json!({ "graph": "slow", "input": { "word": "a" }, "thread_id": id, "wait": true });
    host.post("/api/v1/apps/test/runs", run).await.ok();
    let thread = host.get(&path).await.ok();
    assert_eq!((&thread["app"], &thread["graph"]), (&json!("test"), &json!("slow")));
    assert_eq!(thread["metadata"]["user"], "u");
    let shown = host.get(&format!("/threads/{id}")).await.ok();
    assert_eq!(shown["values"]["items"], json!(["a"]));
    let runs = host.get(&format!("/threads/{id}/runs")).await.ok();
    assert_eq!(runs[0]["status"], "success", "also runs of the other API are listed");
}

/// Requests a pending run on a new thread.
async fn request_later(host: &Host, thread: &str) {
    let spec = json!({
        "kind": { "kind": "start", "input": { "word": "a" } }, "app": "test", "graph": "slow",
        "due_ms": NEVER_MS,
    });
    let later = CreateRun {
        thread: Some(thread.parse().unwrap()),
        creation: ThreadCreation::IfMissing,
        run: None,
        tenant: None,
        strategy: Multitask::Enqueue,
        options: RunOptions::default(),
        may_stay_pending: false,
        spec: serde_json::from_value(spec).unwrap(),
    };
    host.engine.create_run(later).await.unwrap();
}

#[tokio::test]
async fn lists_have_the_graph_that_a_pending_run_requests() {
    let host = Host::new();
    let later = json!({ "assistant_id": "slow", "input": { "word": "a" }, "after_seconds": 3_600 });
    request_later(&host, "new").await;
    host.post("/runs", later.clone()).await.ok();
    let id = host.thread().await;
    let runs = format!("/threads/{id}/runs");
    let run = host.post(&runs, later).await.ok();
    for list in ["threads", "runs"] {
        let path = format!("/api/v1/{list}");
        let found = host.get(&format!("{path}?app=test&graph=slow")).await.ok();
        let items = found["items"].as_array().unwrap();
        assert_eq!(items.len(), 3, "{list}: {found}");
        let is_slow = |item: &Value| item["app"] == "test" && item["graph"] == "slow";
        assert!(items.iter().all(is_slow), "{list}: {found}");
        assert_eq!(host.get(&format!("{path}?app=blank")).await.ok()["items"], json!([]));
    }
    // The pending run does not bind the thread.
    let run = run["run_id"].as_str().unwrap();
    assert_eq!(host.post(&format!("{runs}/{run}/cancel"), json!({})).await.status, 202);
    host.post(&runs, json!({ "assistant_id": "broken", "input": {} })).await.ok();
    assert_eq!(host.get(&format!("/api/v1/threads/{id}")).await.ok()["graph"], "broken");
}

#[tokio::test]
async fn lists_have_the_graph_of_a_pending_run_although_another_host_uses_the_thread() {
    let host = Host::new();
    let id = host.thread().await;
    let (store, other) = (&host.engine.ports().store, LeaseHolder("other".to_owned()));
    store.heartbeat(&other).await.unwrap();
    store.acquire_lease(&id.parse().unwrap(), &other).await.unwrap();
    let later = json!({ "assistant_id": "slow", "input": { "word": "a" }, "after_seconds": 3_600 });
    host.post(&format!("/threads/{id}/runs"), later).await.ok();
    let found = host.get("/api/v1/threads?app=test&graph=slow").await.ok();
    assert_eq!(found["items"].as_array().unwrap().len(), 1, "{found}");
}

#[tokio::test]
async fn thread_id_cannot_be_used_twice() {
    let host = Host::new();
    let new = || NewThread { thread: Some("t".parse().unwrap()), ..NewThread::default() };
    host.engine.create_thread(new()).await.unwrap();
    assert_eq!(host.engine.create_thread(new()).await.unwrap_err().code, code::CONFLICT);
}

#[tokio::test]
async fn thread_id_of_the_native_api_is_found() {
    let host = Host::new();
    let run = json!({
        "graph": "slow", "input": { "word": "a" }, "thread_id": "case 7", "wait": true,
    });
    host.post("/api/v1/apps/test/runs", run).await.ok();
    let thread = host.get("/threads/case%207").await.ok();
    assert_eq!(thread["thread_id"], "case 7");
    let again = json!({ "assistant_id": "slow", "input": { "word": "b" } });
    let ended = host.post("/threads/case%207/runs/wait", again).await.ok();
    assert_eq!(ended["items"], json!(["a", "b"]));
}

#[tokio::test]
async fn cors_exposes_pagination_headers() {
    let origins = ["https://ui.example".to_owned()].into();
    let host = Host::with_config(ApiConfig { origins, ..ApiConfig::default() });
    let mut search = request("POST", "/threads/search", Some(json!({})));
    search.headers_mut().insert("origin", "https://ui.example".parse().unwrap());
    let response = host.send(search).await;
    let exposed = response.header("access-control-expose-headers");
    for name in ["location", "content-location", "x-pagination-total", "x-pagination-next"] {
        assert!(exposed.split(", ").any(|it| it == name), "{name} of {exposed}");
    }
}

#[tokio::test]
async fn settings_of_a_run_are_passed_to_the_engine() {
    let host = Host::new();
    let id = host.thread().await;
    let run = json!({
        "assistant_id": "agent",
        "input": { "value": 1 },
        "config": { "recursion_limit": 1 },
        "durability": "exit",
    });
    let ended = host.post(&format!("/threads/{id}/runs/wait"), run).await.ok();
    assert_eq!(ended["__error__"]["error"], "GraphRecursionError", "{ended}");
}

#[tokio::test]
async fn unbound_thread_is_exported_without_code() {
    let host = Host::new();
    let id = host.thread().await;
    let export = host.get(&format!("/api/v1/threads/{id}/export?code=true")).await;
    assert_eq!(export.status, 200, "{}", export.text);
    let first: Value = serde_json::from_str(export.text.lines().next().unwrap()).unwrap();
    assert_eq!(first["parts"]["code"], false, "{first:#}");
}

#[tokio::test]
async fn run_deleted_by_the_native_api_is_not_found() {
    let host = Host::new();
    let id = host.thread().await;
    let run = json!({ "assistant_id": "slow", "input": { "word": "a" } });
    for _ in 0..2 {
        host.post(&format!("/threads/{id}/runs/wait"), run.clone()).await.ok();
    }
    let runs = format!("/threads/{id}/runs");
    let newest = host.get(&runs).await.ok()[0]["run_id"].as_str().unwrap().to_owned();
    let native = format!("/api/v1/threads/{id}/runs/{newest}");
    assert_eq!(host.call("DELETE", &native, None).await.status, 204);
    assert_eq!(host.get(&format!("{runs}/{newest}")).await.status, 404);
    assert_eq!(host.get(&runs).await.ok().as_array().unwrap().len(), 1);
}
