//! Streams of a log that cannot be read end with an error. Searches leave out threads that cannot
//! be read.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use serde_json::{Value, json};
use wattle_api::ApiConfig;
use wattle_graph::id::ThreadId;
use wattle_kit::layer::{Layer, Layered};
use wattle_run::ports::store::{Store, StoreError};
use wattle_store::InMemoryStore;

use crate::host::{Host, HostOptions, TestResponse, request};

/// A store whose logs or thread records can become unreadable.
struct Damaged {
    below: Arc<dyn Store>,
    is_damaged: AtomicBool,
    has_no_records: AtomicBool,
}

#[async_trait]
impl Layer for Damaged {
    fn over(below: Arc<dyn Store>) -> Self {
        Self { below, is_damaged: AtomicBool::new(false), has_no_records: AtomicBool::new(false) }
    }

    fn below(&self) -> &dyn Store {
        &*self.below
    }

    async fn reading(&self, read: &'static str) -> Result<(), StoreError> {
        let is_damaged = match read {
            "events" => &self.is_damaged,
            "thread" => &self.has_no_records,
            _ => return Ok(()),
        };
        if is_damaged.load(Ordering::SeqCst) {
            let what = "event 3 of thread `t`".to_owned();
            return Err(StoreError::Corrupt { what, message: "its checksum differs".to_owned() });
        }
        Ok(())
    }
}

/// Returns the JSON data of the events in a stream.
fn documents(text: &str) -> Vec<Value> {
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    data.filter_map(|data| serde_json::from_str(data).ok()).collect()
}

fn host() -> (Host, Arc<Layered<Damaged>>) {
    host_of(ApiConfig::default())
}

fn host_of(config: ApiConfig) -> (Host, Arc<Layered<Damaged>>) {
    let store = Arc::new(Layered::<Damaged>::over(Arc::new(InMemoryStore::new())));
    let options = HostOptions { store: store.clone(), ..HostOptions::default() };
    (Host::with_options(config, options), store)
}

#[tokio::test]
async fn stream_of_an_unreadable_log_ends_with_an_error() {
    let (host, store) = host();
    let start = json!({
        "graph": "agent", "input": { "value": "v" }, "thread_id": "t", "wait": true,
    });
    host.post("/api/v1/apps/test/runs", start).await.ok();
    store.is_damaged.store(true, Ordering::SeqCst);
    let path = "/api/v1/threads/t/events?until=idle";

    let own = host.get(path).await;
    let (name, problem) = own.text.split_once('\n').unwrap();
    assert_eq!(name, "event: error");
    let problem: Value = serde_json::from_str(problem.trim_start_matches("data: ").trim()).unwrap();
    assert_eq!((&problem["code"], &problem["status"]), (&json!("broken"), &json!(500)));
    assert!(problem["detail"].as_str().unwrap().contains("checksum"), "{problem}");

    let chat = host.get(&format!("{path}&format=ai-sdk")).await.text;
    assert_eq!(documents(&chat)[0]["type"], "error", "{chat}");
    assert!(chat.ends_with("data: [DONE]\n\n"), "{chat}");

    let agent = host.get(&format!("{path}&format=ag-ui")).await.text;
    let error = &documents(&agent)[0];
    assert_eq!(
        (&error["type"], &error["code"]),
        (&json!("RUN_ERROR"), &json!("broken")),
        "{agent}"
    );
}

/// Requests all server-sent events of a stream.
async fn from_the_beginning(host: &Host, path: &str) -> TestResponse {
    let mut request = request("GET", path, None);
    request.headers_mut().insert("last-event-id", "-1".parse().unwrap());
    host.send(request).await
}

#[tokio::test]
async fn agent_server_streams_of_an_unreadable_log_end_with_an_error() {
    let (host, store) = host();
    let id = host.thread().await;
    let start = json!({ "assistant_id": "slow", "input": { "word": "a" } });
    host.post(&format!("/threads/{id}/runs/wait"), start).await.ok();
    let runs = host.get(&format!("/threads/{id}/runs")).await.ok();
    let run = runs[0]["run_id"].as_str().unwrap();
    store.is_damaged.store(true, Ordering::SeqCst);
    for path in [format!("/threads/{id}/runs/{run}/stream"), format!("/threads/{id}/stream")] {
        let frames = from_the_beginning(&host, &path).await.frames();
        let (kind, error, number) = frames.last().unwrap();
        assert_eq!((kind.as_str(), &error["error"]), ("error", &json!("broken")), "{path}");
        assert!(error["message"].as_str().unwrap().contains("checksum"), "{path}: {error}");
        assert_eq!(number, "", "{path}");
    }
    let wanted = json!({ "channels": ["lifecycle"] });
    let frames = host.post(&format!("/threads/{id}/stream/events"), wanted).await.frames();
    let (kind, error, _) = frames.last().unwrap();
    assert_eq!((kind.as_str(), &error["type"]), ("error", &json!("error")), "{error}");
}

#[tokio::test]
async fn search_leaves_out_a_listed_thread_whose_record_cannot_be_read() {
    let (host, store) = host();
    let id = host.thread().await;
    let start = json!({ "assistant_id": "slow", "input": { "word": "a" } });
    host.post(&format!("/threads/{id}/runs/wait"), start).await.ok();
    let with_values = json!({ "values": { "word": "a" } });
    let searches = [json!({}), with_values.clone()];
    for search in &searches {
        let found = host.post("/threads/search", search.clone()).await.ok();
        assert_eq!(found[0]["thread_id"], json!(id), "{search}");
    }
    // The list of the threads has the key nevertheless.
    store.has_no_records.store(true, Ordering::SeqCst);
    for search in searches {
        let found = host.post("/threads/search", search.clone()).await.ok();
        assert_eq!(found, json!([]), "{search}");
    }
    assert_eq!(host.post("/threads/count", with_values).await.ok(), json!(0));
}

async fn delete(host: &Host, path: &str, key: Option<&str>) -> TestResponse {
    let mut request = request("DELETE", path, None);
    if let Some(key) = key {
        request.headers_mut().insert("x-api-key", key.parse().unwrap());
    }
    host.send(request).await
}

#[tokio::test]
async fn only_the_operator_deletes_an_unreadable_thread() {
    for path in ["/api/v1/threads/t", "/threads/t"] {
        deletes_what_cannot_be_read(path).await;
    }
}

async fn deletes_what_cannot_be_read(path: &str) {
    let tenants = [(ApiConfig::key_digest("k-acme"), "acme".to_owned())].into();
    let config = ApiConfig {
        keys: [ApiConfig::key_digest("k-operator")].into(),
        tenant_keys: tenants,
        ..ApiConfig::default()
    };
    let (host, store) = host_of(config);
    let start = json!({
        "graph": "agent", "input": { "value": "v" }, "thread_id": "t", "wait": true,
    });
    let mut request = request("POST", "/api/v1/apps/test/runs", Some(start));
    request.headers_mut().insert("x-api-key", "k-acme".parse().unwrap());
    assert_eq!(host.send(request).await.status, 200);
    store.has_no_records.store(true, Ordering::SeqCst);
    let refused = delete(&host, path, Some("k-acme")).await;
    assert!(refused.status == 500 && refused.text.contains("checksum differs"), "{path}");
    assert_eq!(delete(&host, path, None).await.status, 401, "{path}");
    store.has_no_records.store(false, Ordering::SeqCst);
    let thread = ThreadId::new("t").unwrap();
    assert!(store.below.thread(&thread).await.unwrap().is_some());
    store.has_no_records.store(true, Ordering::SeqCst);
    assert_eq!(delete(&host, path, Some("k-operator")).await.status, 204, "{path}");
    assert!(store.below.thread(&thread).await.unwrap().is_none(), "{path}");
}
