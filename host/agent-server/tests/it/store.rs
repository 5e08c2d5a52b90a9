//! Items of the long-term memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use serde_json::{Value, json};
use wattle_api::ApiConfig;
use wattle_run::ports::Clock;
use wattle_run::ports::memory::MemoryScope;

use crate::host::{Host, HostOptions, TestResponse, request};

/// A clock that a test sets.
pub(crate) struct Hand(pub(crate) AtomicI64);

impl Hand {
    pub(crate) fn at(ms: i64) -> Arc<Self> {
        Arc::new(Self(AtomicI64::new(ms)))
    }

    pub(crate) fn advance(&self, ms: i64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Clock for Hand {
    fn now_ms(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }

    fn monotonic_ns(&self) -> u64 {
        u64::try_from(self.now_ms()).unwrap() * 1_000_000
    }

    fn time_zone(&self) -> &'static str {
        "UTC"
    }
}

/// Sends a request with the key of a tenant.
pub(crate) async fn with_key(
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

/// A server with the tenants `a` and `b`, whose keys are `k-a` and `k-b`.
pub(crate) fn two_tenants(options: HostOptions) -> Host {
    let keys = [("k-a", "a"), ("k-b", "b")];
    let keys = keys.map(|(key, tenant)| (ApiConfig::key_digest(key), tenant.to_owned()));
    Host::with_options(ApiConfig { tenant_keys: keys.into(), ..ApiConfig::default() }, options)
}

async fn put(host: &Host, namespace: &[&str], key: &str, value: Value) {
    let item = json!({ "namespace": namespace, "key": key, "value": value });
    let response = host.call("PUT", "/store/items", Some(item)).await;
    assert_eq!((response.status, response.text.as_str()), (204, ""));
}

#[tokio::test]
async fn item_is_written_read_and_deleted() {
    let host = Host::new();
    put(&host, &["users", "4 2"], "likes", json!({ "fruit": "plum" })).await;
    let place = "/store/items?namespace=users.4%202&key=likes";
    let item = host.get(place).await.ok();
    assert_eq!(item["namespace"], json!(["users", "4 2"]));
    assert_eq!(item["key"], "likes");
    assert_eq!(item["value"], json!({ "fruit": "plum" }));
    assert_eq!(item["created_at"], item["updated_at"]);
    assert!(item["created_at"].as_str().unwrap().ends_with("+00:00"), "{item}");
    assert_eq!(item.as_object().unwrap().len(), 5);
    let namespace = ["users".to_owned(), "4 2".to_owned()];
    let ports = host.engine.ports();
    let of_agents =
        ports.memory.get(&MemoryScope::Tenant(None), &namespace, "likes", ports.clock.now_ms());
    assert_eq!(of_agents.await.unwrap().unwrap().value["fruit"], "plum");
    let gone = json!({ "namespace": namespace, "key": "likes" });
    for _ in 0..2 {
        let deleted = host.call("DELETE", "/store/items", Some(gone.clone())).await;
        assert_eq!(deleted.status, 204, "{}", deleted.text);
    }
    assert_eq!(host.get(place).await.ok(), Value::Null);
}

#[tokio::test]
async fn items_are_found_by_namespace_fields_and_words() {
    let host = Host::new();
    put(&host, &["facts", "a"], "1", json!({ "kind": "fruit", "text": "plums are blue" })).await;
    put(&host, &["facts", "b"], "2", json!({ "kind": "fruit", "text": "pears are green" })).await;
    put(&host, &["facts", "b"], "3", json!({ "kind": "tool", "text": "a blue hammer" })).await;
    put(&host, &["other"], "4", json!({ "kind": "fruit" })).await;
    let found = async |search: Value| {
        let response = host.post("/store/items/search", search).await.ok();
        let items = response["items"].as_array().unwrap().clone();
        let mut keys: Vec<_> =
            items.iter().map(|it| it["key"].as_str().unwrap().to_owned()).collect();
        keys.sort();
        (keys.join(","), items)
    };
    assert_eq!(found(json!({ "namespace_prefix": ["facts"] })).await.0, "1,2,3");
    assert_eq!(found(json!({ "namespace_prefix": [] })).await.0, "1,2,3,4");
    let fruit = json!({ "namespace_prefix": ["facts"], "filter": { "kind": "fruit" } });
    assert_eq!(found(fruit).await.0, "1,2");
    let (blue, items) = found(json!({
        "namespace_prefix": ["facts"], "query": "blue", "refresh_ttl": false, "limit": 10,
    }))
    .await;
    assert_eq!(blue, "1,3");
    assert!(items.iter().all(|item| item["score"].as_f64().is_some()), "{items:?}");
    let (_, page) = found(json!({ "namespace_prefix": ["facts"], "limit": 2, "offset": 2 })).await;
    assert_eq!(page.len(), 1);
    assert_eq!(page[0]["score"], Value::Null);
}

#[tokio::test]
async fn namespaces_are_listed() {
    let host = Host::new();
    for namespace in [&["users", "1", "notes"][..], &["users", "2", "notes"], &["facts"]] {
        put(&host, namespace, "k", json!({})).await;
    }
    let list = async |wanted: Value| host.post("/store/namespaces", wanted).await.ok();
    assert_eq!(
        list(json!({})).await,
        json!({ "namespaces": [["facts"], ["users", "1", "notes"], ["users", "2", "notes"]] })
    );
    let prefix = json!({ "prefix": ["users", "*"], "suffix": ["notes"], "max_depth": 1 });
    assert_eq!(list(prefix).await, json!({ "namespaces": [["users"]] }));
    let page = json!({ "limit": 1, "offset": 1, "prefix": null, "suffix": null });
    assert_eq!(list(page).await, json!({ "namespaces": [["users", "1", "notes"]] }));
}

#[tokio::test]
async fn read_restarts_the_expiry_of_an_item() {
    let clock = Hand::at(1_736_908_245_123);
    let options = HostOptions { clock: clock.clone(), ..HostOptions::default() };
    let host = Host::with_options(ApiConfig::default(), options);
    let item = json!({ "namespace": ["a"], "key": "k", "value": {}, "ttl": 2, "index": false });
    assert_eq!(host.call("PUT", "/store/items", Some(item)).await.status, 204);
    let place = "/store/items?namespace=a&key=k";
    for _ in 0..3 {
        clock.advance(90_000);
        assert_eq!(host.get(place).await.ok()["key"], "k");
    }
    clock.advance(121_000);
    assert_eq!(host.get(place).await.ok(), Value::Null);
}

#[tokio::test]
async fn read_without_refresh_ttl_keeps_the_expiry() {
    let clock = Hand::at(1_736_908_245_123);
    let options = HostOptions { clock: clock.clone(), ..HostOptions::default() };
    let host = Host::with_options(ApiConfig::default(), options);
    let item = json!({ "namespace": ["a"], "key": "k", "value": {}, "ttl": 2 });
    assert_eq!(host.call("PUT", "/store/items", Some(item)).await.status, 204);
    let read = async |refresh: &str| {
        host.get(&format!("/store/items?namespace=a&key=k{refresh}")).await.ok()["key"].clone()
    };
    let search = async |refresh: Value| {
        let search = json!({ "namespace_prefix": ["a"], "refresh_ttl": refresh });
        host.post("/store/items/search", search).await.ok()["items"].as_array().unwrap().len()
    };
    clock.advance(60_000);
    assert_eq!((read("&refresh_ttl=true").await, search(json!(null)).await), (json!("k"), 1));
    clock.advance(119_000);
    assert_eq!((read("&refresh_ttl=false").await, search(json!(false)).await), (json!("k"), 1));
    clock.advance(2_000);
    assert_eq!((read("").await, search(json!(true)).await), (Value::Null, 0));
}

#[tokio::test]
async fn invalid_namespace_key_or_value_is_rejected() {
    let host = Host::new();
    let item = |namespace: Value, key: &str, value: Value| json!({ "namespace": namespace, "key": key, "value": value });
    for body in [
        item(json!(["a.b"]), "k", json!({})),
        item(json!(["a", ""]), "k", json!({})),
        item(json!([]), "k", json!({})),
        item(json!(["a"]), "", json!({})),
        item(json!(["a"]), "k", json!([1])),
        json!({ "namespace": ["a"], "key": "k", "value": {}, "ttl": -1 }),
    ] {
        let response = host.call("PUT", "/store/items", Some(body.clone())).await;
        assert_eq!(response.status, 422, "{body}: {}", response.text);
        assert!(response.json()["detail"].is_string());
    }
    for path in ["/store/items", "/store/items?namespace=a", "/store/items?namespace=&key=k"] {
        assert_eq!(host.get(path).await.status, 422, "{path}");
    }
    let search = json!({ "namespace_prefix": ["a.b"] });
    assert_eq!(host.post("/store/items/search", search).await.status, 422);
    let odd = json!({ "namespace_prefix": [], "filter": { "a": { "$near": 1 } } });
    assert_eq!(host.post("/store/items/search", odd).await.status, 422);
}

#[tokio::test]
async fn tenants_have_separate_memories() {
    let host = two_tenants(HostOptions::default());
    let item = json!({ "namespace": ["a"], "key": "k", "value": { "of": "a" } });
    let put = with_key(&host, "k-a", "PUT", "/store/items", Some(item)).await;
    assert_eq!(put.status, 204, "{}", put.text);
    let place = "/store/items?namespace=a&key=k";
    assert_eq!(with_key(&host, "k-a", "GET", place, None).await.ok()["value"]["of"], "a");
    assert_eq!(with_key(&host, "k-b", "GET", place, None).await.ok(), Value::Null);
    let all = || Some(json!({ "namespace_prefix": [] }));
    let found = with_key(&host, "k-b", "POST", "/store/items/search", all()).await.ok();
    assert_eq!(found, json!({ "items": [] }));
    let namespaces =
        with_key(&host, "k-b", "POST", "/store/namespaces", Some(json!({}))).await.ok();
    assert_eq!(namespaces, json!({ "namespaces": [] }));
}

#[tokio::test]
async fn storage_sizes_of_a_thread_are_reported() {
    let host = Host::new();
    let id = host.thread().await;
    let before = host.get(&format!("/threads/{id}/storage")).await.ok();
    let run = json!({ "assistant_id": "slow", "input": { "word": "plum" } });
    host.post(&format!("/threads/{id}/runs/wait"), run).await.ok();
    let after = host.get(&format!("/threads/{id}/storage")).await.ok();
    assert!(before["total_bytes"].as_u64() < after["total_bytes"].as_u64(), "{before} {after}");
    assert_eq!(after["channels"], json!({ "items": 8, "word": 6 }));
    assert_eq!(host.get("/info").await.ok()["flags"]["crons"], true);
    let missing = "/threads/01a1ffdc-22ab-744e-a2fc-8bb051a654f8/storage";
    assert_eq!(host.get(missing).await.status, 404);
}
