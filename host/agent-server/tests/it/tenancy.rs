//! Tenants and API keys. The resources of another tenant are not found.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use axum::Router;
use serde_json::{Value, json};
use tokio::sync::watch;
use tower::ServiceExt as _;
use wattle_agent_server::AgentServer;
use wattle_api::{ApiConfig, ApiState, Operator, router_with, unguarded_router};
use wattle_graph::failure::{Failure, code};
use wattle_run::catalog::Catalog;
use wattle_run::engine::{Engine, EngineConfig};
use wattle_run::ports::memory::{Item, ListNamespaces, MemoryScope, MemorySearch, PutItem};
use wattle_run::ports::{Clock, Memory, Ports};

use crate::host::{Host, TestResponse, read, request};

/// Creates a host with two tenants, whose keys are `k-a` and `k-b`.
fn two_tenants() -> Host {
    let keys = [("k-a", "a"), ("k-b", "b")];
    let keys = keys.map(|(key, tenant)| (ApiConfig::key_digest(key), tenant.to_owned()));
    Host::with_config(ApiConfig { tenant_keys: keys.into(), ..ApiConfig::default() })
}

async fn with_key(
    host: &Host,
    key: &str,
    method: &str,
    path: &str,
    body: Option<Value>,
) -> TestResponse {
    let mut request = request(method, path, body);
    request.headers_mut().insert("x-api-key", key.parse().unwrap());
    host.send(request).await
}

/// Creates a thread of the first tenant with a run that has ended.
async fn thread_with_run(host: &Host) -> (String, String) {
    let made = with_key(host, "k-a", "POST", "/threads", Some(json!({}))).await.ok();
    let thread = format!("/threads/{}", made["thread_id"].as_str().unwrap());
    let wait = json!({ "assistant_id": "slow", "input": { "word": "a" } });
    let ended = with_key(host, "k-a", "POST", &format!("{thread}/runs/wait"), Some(wait)).await;
    assert_eq!(ended.status, 200, "{}", ended.text);
    let run = ended.header("content-location").to_owned();
    (thread, run)
}

#[tokio::test]
async fn thread_resources_of_another_tenant_are_not_found() {
    let host = two_tenants();
    let (thread, run) = thread_with_run(&host).await;
    let state = with_key(&host, "k-a", "GET", &format!("{thread}/state"), None).await.ok();
    let checkpoint = state["checkpoint"]["checkpoint_id"].as_str().unwrap().to_owned();
    let place = json!({ "checkpoint": { "checkpoint_id": checkpoint } });
    let start = json!({ "assistant_id": "slow", "input": {} });
    let requests = [
        ("GET", thread.clone(), None),
        ("PATCH", thread.clone(), Some(json!({ "metadata": { "mine": true } }))),
        ("POST", format!("{thread}/copy"), None),
        ("GET", format!("{thread}/state"), None),
        ("GET", format!("{thread}/state/{checkpoint}"), None),
        ("POST", format!("{thread}/state/checkpoint"), Some(place)),
        ("POST", format!("{thread}/state"), Some(json!({ "values": { "word": "b" } }))),
        ("GET", format!("{thread}/history"), None),
        ("POST", format!("{thread}/history"), Some(json!({}))),
        ("GET", format!("{thread}/runs"), None),
        ("POST", format!("{thread}/runs"), Some(start.clone())),
        ("POST", format!("{thread}/runs/wait"), Some(start.clone())),
        ("POST", format!("{thread}/runs/stream"), Some(start)),
        ("GET", run.clone(), None),
        ("GET", format!("{run}/join"), None),
        ("GET", format!("{run}/stream"), None),
        ("POST", format!("{run}/cancel"), None),
        ("DELETE", run.clone(), None),
        ("GET", format!("{thread}/storage"), None),
        ("GET", format!("{thread}/stream"), None),
        ("POST", format!("{thread}/stream/events"), Some(json!({ "channels": ["values"] }))),
        ("POST", format!("{thread}/commands"), Some(json!({ "id": 1, "method": "agent.getTree" }))),
        (
            "POST",
            format!("{thread}/runs/crons"),
            Some(json!({ "assistant_id": "slow", "schedule": "0 0 * * *", "input": {} })),
        ),
        ("DELETE", thread.clone(), None),
    ];
    for (method, path, body) in requests {
        let response = with_key(&host, "k-b", method, &path, body).await;
        assert_eq!(response.status, 404, "{method} {path}: {}", response.text);
        assert!(response.json()["detail"].is_string(), "{}", response.text);
    }
    for path in ["/threads/search", "/threads/count"] {
        let found = with_key(&host, "k-b", "POST", path, Some(json!({}))).await.ok();
        assert!(found == json!([]) || found == json!(0), "{path}: {found}");
    }
    // The resources of the first tenant still exist.
    let kept = with_key(&host, "k-a", "GET", &run, None).await.ok();
    assert_eq!(kept["status"], "success");
    let state = with_key(&host, "k-a", "GET", &format!("{thread}/state"), None).await.ok();
    assert_eq!(state["values"]["items"], json!(["a"]));
}

#[tokio::test]
async fn stateless_runs_of_another_tenant_are_not_found() {
    let host = two_tenants();
    let start = json!({
        "assistant_id": "slow", "input": { "word": "a" }, "on_completion": "keep",
    });
    let ended = with_key(&host, "k-a", "POST", "/runs/wait", Some(start)).await;
    let run = ended.header("content-location").to_owned();
    assert_eq!(with_key(&host, "k-a", "GET", &run, None).await.status, 200);
    for (method, path) in [
        ("GET", run.clone()),
        ("GET", format!("{run}/join")),
        ("GET", format!("{run}/stream")),
        ("POST", format!("{run}/cancel")),
    ] {
        let response = with_key(&host, "k-b", method, &path, None).await;
        assert_eq!(response.status, 404, "{method} {path}: {}", response.text);
    }
}

#[tokio::test]
async fn assistants_and_crons_of_another_tenant_are_not_found() {
    let host = two_tenants();
    let wanted = json!({ "graph_id": "slow", "name": "own" });
    let made = with_key(&host, "k-a", "POST", "/assistants", Some(wanted)).await.ok();
    let assistant = format!("/assistants/{}", made["assistant_id"].as_str().unwrap());
    let wanted = json!({ "assistant_id": "slow", "schedule": "0 0 * * *", "input": {} });
    let made = with_key(&host, "k-a", "POST", "/runs/crons", Some(wanted)).await.ok();
    let cron = format!("/runs/crons/{}", made["cron_id"].as_str().unwrap());
    for (method, path, body) in [
        ("GET", assistant.clone(), None),
        ("PATCH", assistant.clone(), Some(json!({ "name": "theirs" }))),
        ("GET", format!("{assistant}/graph"), None),
        ("GET", format!("{assistant}/schemas"), None),
        ("GET", format!("{assistant}/subgraphs"), None),
        ("POST", format!("{assistant}/versions"), Some(json!({}))),
        ("POST", format!("{assistant}/latest"), Some(json!({ "version": 1 }))),
        ("DELETE", assistant.clone(), None),
        ("GET", cron.clone(), None),
        ("PATCH", cron.clone(), Some(json!({ "enabled": false }))),
        ("DELETE", cron.clone(), None),
    ] {
        let response = with_key(&host, "k-b", method, &path, body).await;
        assert_eq!(response.status, 404, "{method} {path}: {}", response.text);
    }
    let named = json!({ "name": "own" });
    let found = with_key(&host, "k-b", "POST", "/assistants/search", Some(named)).await.ok();
    assert_eq!(found, json!([]));
    let found = with_key(&host, "k-b", "POST", "/runs/crons/search", Some(json!({}))).await.ok();
    assert_eq!(found, json!([]));
    assert_eq!(with_key(&host, "k-a", "GET", &assistant, None).await.ok()["name"], "own");
    assert_eq!(with_key(&host, "k-a", "GET", &cron, None).await.ok()["enabled"], true);
}

#[tokio::test]
async fn documents_of_another_tenant_are_not_found() {
    let host = two_tenants();
    let item = json!({ "namespace": ["users"], "key": "k", "value": { "own": true } });
    let put = with_key(&host, "k-a", "PUT", "/store/items", Some(item)).await;
    assert_eq!(put.status, 204, "{}", put.text);
    let place = "/store/items?namespace=users&key=k";
    let delete = json!({ "namespace": ["users"], "key": "k" });
    assert_eq!(with_key(&host, "k-b", "GET", place, None).await.ok(), json!(null));
    let deleted = with_key(&host, "k-b", "DELETE", "/store/items", Some(delete)).await;
    assert_eq!(deleted.status, 204);
    let search = Some(json!({ "namespace_prefix": [] }));
    let found = with_key(&host, "k-b", "POST", "/store/items/search", search).await.ok();
    assert_eq!(found, json!({ "items": [] }));
    let own = with_key(&host, "k-a", "GET", place, None).await.ok();
    assert_eq!(own["value"], json!({ "own": true }));
}

#[tokio::test]
async fn rejections_have_the_error_body_of_the_protocol() {
    let host = two_tenants();
    for (response, status) in [
        (host.get("/threads/x").await, 401),
        (with_key(&host, "k-nobody", "POST", "/threads", Some(json!({}))).await, 401),
    ] {
        assert_eq!(response.status, status);
        assert_eq!(response.json().as_object().unwrap().len(), 1, "{}", response.text);
        assert_eq!(response.header("www-authenticate"), "Bearer");
    }
    let mut foreign = request("POST", "/threads", Some(json!({})));
    foreign.headers_mut().insert("origin", "https://evil.example".parse().unwrap());
    let refused = host.send(foreign).await;
    assert_eq!(refused.status, 403);
    assert_eq!(refused.json().as_object().unwrap().len(), 1, "{}", refused.text);
    let native = host.get("/api/v1/threads").await;
    assert_eq!((native.status, &native.json()["code"]), (401, &json!("unauthorized")));
}

/// A clock that a test advances.
#[derive(Default)]
struct Stepped(AtomicU64);

impl Clock for Stepped {
    fn now_ms(&self) -> i64 {
        i64::try_from(self.0.load(Ordering::SeqCst)).unwrap()
    }

    fn monotonic_ns(&self) -> u64 {
        self.0.load(Ordering::SeqCst) * 1_000_000
    }

    fn time_zone(&self) -> &'static str {
        "UTC"
    }
}

/// Creates another host with the same database and a separate cache of API keys.
fn another(ports: &Ports) -> (ApiState, Router) {
    let engine = Engine::new(ports.clone(), Catalog::new(), EngineConfig::default());
    let state = ApiState::new(engine, ApiConfig::default(), watch::channel(false).1);
    let further = wattle_agent_server::router(AgentServer::new(&state));
    (state.clone(), router_with(state, further))
}

#[tokio::test]
async fn revoked_key_is_accepted_by_other_hosts_for_at_most_two_seconds() {
    let clock = Arc::new(Stepped::default());
    let ports = Ports { clock: clock.clone(), ..Host::new().engine.ports().clone() };
    let ((first, _), (_, second)) = (another(&ports), another(&ports));
    let own = unguarded_router(first);
    let as_operator = async |method: &str, path: &str, body: Option<Value>| {
        let mut request = request(method, path, body);
        request.extensions_mut().insert(Operator);
        read(own.clone().oneshot(request).await.unwrap()).await
    };
    let made = as_operator("POST", "/api/v1/keys", Some(json!({ "name": "k" }))).await;
    assert_eq!(made.status, 201, "{}", made.text);
    let (key, id) = (made.json()["key"].clone(), made.json()["id"].clone());
    let (key, id) = (key.as_str().unwrap(), id.as_str().unwrap());
    let elsewhere = async |key: &str| {
        let mut request = request("POST", "/threads/search", Some(json!({})));
        request.headers_mut().insert("x-api-key", key.parse().unwrap());
        read(second.clone().oneshot(request).await.unwrap()).await.status
    };
    assert_eq!(elsewhere(key).await, 200);
    assert_eq!(elsewhere("nobody's").await, 401);
    let path = format!("/api/v1/keys/{id}");
    let refused = as_operator("DELETE", &path, None).await;
    assert_eq!((refused.status, &refused.json()["code"]), (409, &json!("conflict")));
    assert!(refused.json()["detail"].as_str().unwrap().contains("`--open`"), "{}", refused.text);
    assert_eq!(
        elsewhere("nobody's").await,
        401,
        "the host still requires keys after the rejected request"
    );
    let revoked = as_operator("DELETE", &format!("{path}?open=true"), None).await;
    assert_eq!(revoked.ok(), json!({ "revoked": [id], "left": [] }));
    clock.0.fetch_add(1_999, Ordering::SeqCst);
    assert_eq!(elsewhere(key).await, 200);
    clock.0.fetch_add(1, Ordering::SeqCst);
    // The last key is revoked, so this host now accepts requests without keys.
    assert_eq!(as_operator("GET", "/api/v1/keys", None).await.json(), json!([]));
    assert_eq!(elsewhere(key).await, 200);
    let other = as_operator("POST", "/api/v1/keys", Some(json!({ "name": "other" }))).await;
    assert_eq!(other.status, 201);
    clock.0.fetch_add(2_000, Ordering::SeqCst);
    assert_eq!(elsewhere(key).await, 401);
}

#[tokio::test]
async fn use_of_a_key_is_recorded_once_a_minute() {
    let clock = Arc::new(Stepped(AtomicU64::new(1_000)));
    let ports = Ports { clock: clock.clone(), ..Host::new().engine.ports().clone() };
    let (state, router) = another(&ports);
    let own = unguarded_router(state);
    let as_operator = async |method: &str, body: Option<Value>| {
        let mut request = request(method, "/api/v1/keys", body);
        request.extensions_mut().insert(Operator);
        read(own.clone().oneshot(request).await.unwrap()).await.json()
    };
    let made = as_operator("POST", Some(json!({ "name": "k" }))).await;
    let key = made["key"].as_str().unwrap();
    let used = async |at_ms: u64| {
        clock.0.store(at_ms, Ordering::SeqCst);
        let mut request = request("POST", "/threads/search", Some(json!({})));
        request.headers_mut().insert("x-api-key", key.parse().unwrap());
        assert_eq!(router.clone().oneshot(request).await.unwrap().status(), 200);
        as_operator("GET", None).await[0]["used_ms"].clone()
    };
    assert_eq!(as_operator("GET", None).await[0]["used_ms"], json!(null));
    assert_eq!(used(2_000).await, json!(2_000));
    assert_eq!(used(61_999).await, json!(2_000));
    assert_eq!(used(62_000).await, json!(62_000));
}

/// A memory whose database is unavailable.
struct Gone;

fn gone() -> Failure {
    Failure::new(code::UNAVAILABLE, "the database is gone")
}

#[async_trait]
impl Memory for Gone {
    async fn usage(&self, _: &MemoryScope, _: &[String]) -> Result<u64, Failure> {
        Err(gone())
    }

    async fn get(
        &self,
        _: &MemoryScope,
        _: &[String],
        _: &str,
        _: i64,
    ) -> Result<Option<Item>, Failure> {
        Err(gone())
    }

    async fn peek(
        &self,
        _: &MemoryScope,
        _: &[String],
        _: &str,
        _: i64,
    ) -> Result<Option<Item>, Failure> {
        Err(gone())
    }

    async fn put(&self, _: &MemoryScope, _: PutItem, _: i64) -> Result<(), Failure> {
        Err(gone())
    }

    async fn compare_and_set(
        &self,
        _: &MemoryScope,
        _: Option<&Value>,
        _: PutItem,
        _: i64,
    ) -> Result<bool, Failure> {
        Err(gone())
    }

    async fn compare_and_delete(
        &self,
        _: &MemoryScope,
        _: &[String],
        _: &str,
        _: &Value,
        _: i64,
    ) -> Result<bool, Failure> {
        Err(gone())
    }

    async fn list(
        &self,
        _: &MemoryScope,
        _: &[String],
        _: &str,
        _: usize,
        _: i64,
    ) -> Result<Vec<Item>, Failure> {
        Err(gone())
    }

    async fn delete(&self, _: &MemoryScope, _: &[String], _: &str) -> Result<(), Failure> {
        Err(gone())
    }

    async fn search(
        &self,
        _: &MemoryScope,
        _: &MemorySearch,
        _: i64,
    ) -> Result<Vec<Item>, Failure> {
        Err(gone())
    }

    async fn namespaces(
        &self,
        _: &MemoryScope,
        _: &ListNamespaces,
        _: i64,
    ) -> Result<Vec<Vec<String>>, Failure> {
        Err(gone())
    }

    async fn clear(&self, _: &MemoryScope, _: &[String]) -> Result<usize, Failure> {
        Err(gone())
    }

    async fn sweep(&self, _: i64) -> Result<usize, Failure> {
        Err(gone())
    }
}

#[tokio::test]
async fn only_configured_keys_are_accepted_while_stored_keys_are_unreadable() {
    let ports = Ports { memory: Arc::new(Gone), ..Host::new().engine.ports().clone() };
    let engine = Engine::new(ports, Catalog::new(), EngineConfig::default());
    let config =
        ApiConfig { keys: [ApiConfig::key_digest("k-env")].into(), ..ApiConfig::default() };
    let state = ApiState::new(engine, config, watch::channel(false).1);
    let further = wattle_agent_server::router(AgentServer::new(&state));
    let router = router_with(state, further);
    let status = async |path: &str, key: Option<&str>| {
        let mut request = request("GET", path, None);
        if let Some(key) = key {
            request.headers_mut().insert("x-api-key", key.parse().unwrap());
        }
        router.clone().oneshot(request).await.unwrap().status().as_u16()
    };
    for path in ["/api/v1/apps", "/info"] {
        assert_eq!(status(path, None).await, 503, "{path}");
        assert_eq!(status(path, Some("wtl_unknown_key")).await, 503, "{path}");
        assert_eq!(status(path, Some("k-env")).await, 200, "{path}");
    }
    assert_eq!(status("/ok", None).await, 200);
}
