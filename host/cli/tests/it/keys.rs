//! Keys that are created while a server runs: scopes, limits and expiry.

use std::collections::BTreeSet;
use std::time::Duration;

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use wattle_api::guard::limits::MAX_TENANT_KEYS;

use crate::fixture::{Fixture, answer};

/// Timeout for an event that occurs soon.
const SOON: Duration = Duration::from_secs(10);

/// Creates a request with an API key in the header `x-api-key`.
pub(crate) fn with(fixture: &Fixture, key: &str, method: &str, path: &str) -> RequestBuilder {
    let method = Method::from_bytes(method.as_bytes()).unwrap();
    fixture.client.request(method, fixture.url(path)).header("x-api-key", key)
}

/// Creates a key and returns its id and the key.
pub(crate) async fn make(fixture: &Fixture, by: &str, wanted: Value) -> (String, String) {
    let (status, made) = answer(with(fixture, by, "POST", "/api/v1/keys").json(&wanted)).await;
    assert_eq!(status, 201, "{made}");
    let text = |field: &str| made[field].as_str().unwrap().to_owned();
    (text("id"), text("key"))
}

/// Starts a server with a key of the operator.
pub(crate) async fn start(toml: &str) -> (Fixture, String) {
    let fixture = Fixture::start(toml).await;
    let wanted = json!({ "name": "operator", "scopes": ["admin"] });
    let (_, operator) = make(&fixture, "of-nobody", wanted).await;
    (fixture, operator)
}

#[tokio::test]
async fn the_first_key_closes_the_server_and_a_revoked_key_is_refused() {
    let fixture = Fixture::start("").await;
    assert_eq!(fixture.get("/api/v1/keys").await, (200, json!([])));
    let wanted = json!({ "name": "operator", "scopes": ["admin"] });
    let (_, operator) = make(&fixture, "of-nobody", wanted).await;
    let (status, problem) = fixture.get("/api/v1/apps").await;
    assert_eq!((status, &problem["code"]), (401, &json!("unauthorized")));
    assert_eq!(fixture.get("/threads/x").await.0, 401);
    assert_eq!(fixture.get("/healthz").await.0, 200);

    let (id, key) = make(&fixture, &operator, json!({ "name": "ci" })).await;
    assert!(key.starts_with(&format!("wtl_{id}_")), "{key}");
    let apps = || answer(with(&fixture, &key, "GET", "/api/v1/apps"));
    assert_eq!(apps().await.0, 200);
    let bearer = fixture.client.get(fixture.url("/api/v1/apps")).bearer_auth(&key);
    assert_eq!(answer(bearer).await.0, 200);

    let (_, keys) = answer(with(&fixture, &operator, "GET", "/api/v1/keys")).await;
    assert_eq!((&keys[0]["name"], &keys[1]["name"]), (&json!("operator"), &json!("ci")));
    assert_eq!((&keys[1]["id"], &keys[1]["scopes"]), (&json!(id), &json!(["write"])));
    assert!(keys[1]["used_ms"].is_i64(), "{keys}");
    assert!(!keys.to_string().contains(&key), "a key is shown once");

    let revoke = || answer(with(&fixture, &operator, "DELETE", &format!("/api/v1/keys/{id}")));
    assert_eq!(revoke().await, (200, json!({ "revoked": [id], "left": [] })));
    assert_eq!(apps().await.0, 401);
    assert_eq!(revoke().await.0, 404);
}

#[tokio::test]
async fn a_key_permits_the_requests_of_its_scopes() {
    let (fixture, operator) = start("").await;
    let (_, reader) = make(&fixture, &operator, json!({ "name": "r", "scopes": ["read"] })).await;
    let (_, writer) = make(&fixture, &operator, json!({ "name": "w", "scopes": ["write"] })).await;
    let run = json!({ "input": { "name": "A" }, "wait": true });
    let search = json!({ "prefix": [] });
    for (method, path, body, needed) in [
        ("GET", "/api/v1/apps", None, "read"),
        ("POST", "/api/v1/memory/search", Some(&search), "read"),
        ("POST", "/api/v1/apps/greeter/runs", Some(&run), "write"),
        ("GET", "/api/v1/plugins", None, "admin"),
        ("GET", "/api/v1/keys", None, "admin"),
        ("GET", "/metrics", None, "admin"),
        ("GET", "/api/v1/models", None, "admin"),
        ("GET", "/api/v1/statistics", None, "admin"),
        ("GET", "/api/v1/queue", None, "admin"),
        ("GET", "/api/v1/webhooks", None, "admin"),
        ("GET", "/api/v1/crons", None, "read"),
        ("GET", "/api/v1/store/sizes", None, "admin"),
        ("POST", "/api/v1/store/compact", None, "admin"),
    ] {
        let scopes = ["read", "write", "admin"];
        let rank = |scope: &str| scopes.iter().position(|known| *known == scope);
        for (scope, key) in [("read", &reader), ("write", &writer), ("admin", &operator)] {
            let request = with(&fixture, key, method, path);
            let (status, answered) =
                answer(body.into_iter().fold(request, reqwest::RequestBuilder::json)).await;
            if rank(scope) >= rank(needed) {
                assert_eq!(status, 200, "{scope} {path}: {answered}");
            } else {
                let missing = &answered["details"]["missing_scope"];
                assert_eq!((status, missing), (403, &json!(needed)), "{scope} {path}");
            }
        }
    }
    // Clients of the Agent Server API get an error in their format.
    let (status, refused) =
        answer(with(&fixture, &reader, "POST", "/threads").json(&json!({}))).await;
    assert_eq!((status, refused.as_object().unwrap().len()), (403, 1), "{refused}");
    assert!(refused["detail"].as_str().unwrap().contains("scope `write`"), "{refused}");
    let found = with(&fixture, &reader, "POST", "/threads/search").json(&json!({}));
    assert_eq!(answer(found).await.0, 200);
}

/// Operations that only read, although their method is not GET: their conditions are in a body.
const READS: [&str; 13] = [
    "POST /api/v1/memory/search",
    "POST /assistants/count",
    "POST /assistants/search",
    "POST /assistants/{id}/versions",
    "POST /runs/crons/count",
    "POST /runs/crons/search",
    "POST /store/items/search",
    "POST /store/namespaces",
    "POST /threads/count",
    "POST /threads/search",
    "POST /threads/{id}/history",
    "POST /threads/{id}/state/checkpoint",
    "POST /threads/{id}/stream/events",
];

/// Returns a path in which each parameter has a value.
fn with_values(path: &str) -> String {
    let parts = path.split('/').map(|part| if part.starts_with('{') { "x" } else { part });
    parts.collect::<Vec<_>>().join("/")
}

#[tokio::test]
async fn a_key_that_may_only_read_changes_nothing() {
    let (fixture, operator) = start("").await;
    let (_, reader) = make(&fixture, &operator, json!({ "name": "r", "scopes": ["read"] })).await;
    let (_, document) = answer(with(&fixture, &operator, "GET", "/openapi.json")).await;
    let (mut reads, mut refused) = (Vec::new(), 0);
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let method = method.to_uppercase();
            let scope = operation["x-wattle-access"]["scope"].as_str();
            match scope.unwrap_or_else(|| panic!("{method} {path} has no scope")) {
                "read" | "none" if method == "GET" => {}
                "read" | "none" => reads.push(format!("{method} {path}")),
                needed => {
                    let request = with(&fixture, &reader, &method, &with_values(path));
                    let (status, problem) = answer(request).await;
                    let detail = problem["detail"].as_str().unwrap_or_default();
                    let says = detail.contains(&format!("does not have the scope `{needed}`"));
                    assert!(status == 403 && says, "{method} {path}: {status} {problem}");
                    refused += 1;
                }
            }
        }
    }
    reads.sort();
    assert_eq!(reads, READS);
    assert!(refused > 50, "{refused} operations change something");
}

#[tokio::test]
async fn a_key_has_a_rate_limit() {
    let (fixture, operator) = start("[server.limits]\nrate = \"1000/s\"\n").await;
    let (_, slow) = make(&fixture, &operator, json!({ "name": "slow", "rate": "2/h" })).await;
    for path in ["/api/v1/apps", "/assistants/x"] {
        assert_ne!(with(&fixture, &slow, "GET", path).send().await.unwrap().status(), 429);
    }
    for (path, form) in [("/api/v1/apps", "code"), ("/assistants/x", "detail")] {
        let refused = with(&fixture, &slow, "GET", path).send().await.unwrap();
        assert_eq!(refused.status(), 429, "{path}");
        let wait: u64 = refused.headers()["retry-after"].to_str().unwrap().parse().unwrap();
        assert!((1..=1_800).contains(&wait), "{wait}");
        let body: Value = refused.json().await.unwrap();
        assert!(body[form].is_string(), "{body}");
    }
    assert_eq!(answer(with(&fixture, &operator, "GET", "/api/v1/apps")).await.0, 200);
    assert_eq!(cut(&fixture, &operator).await, json!({ "rate": 2 }));
}

/// Returns how many requests and connections the host rejected or closed, by reason.
async fn cut(fixture: &Fixture, operator: &str) -> Value {
    let (status, mut hosts) = answer(with(fixture, operator, "GET", "/api/v1/hosts")).await;
    assert_eq!(status, 200, "{hosts}");
    hosts[0]["cut"].take()
}

#[tokio::test]
async fn an_address_without_a_key_has_a_rate_limit() {
    let fixture = Fixture::start("[server.limits]\naddress_rate = \"2/h\"\n").await;
    assert_eq!(fixture.get("/api/v1/apps").await.0, 200);
    assert_eq!(fixture.get("/api/v1/apps").await.0, 200);
    let (status, problem) = fixture.get("/api/v1/apps").await;
    assert_eq!((status, &problem["code"]), (429, &json!("rate-limited")));
    assert_eq!(fixture.get("/threads/x").await.0, 429);
    for _ in 0..5 {
        assert_eq!(fixture.get("/healthz").await.0, 200);
    }
}

#[tokio::test]
async fn a_key_has_a_body_limit() {
    let (fixture, operator) = start("").await;
    let wanted = json!({ "name": "small", "body_limit_bytes": 100 });
    let (_, small) = make(&fixture, &operator, wanted).await;
    let run = json!({ "input": { "name": "A".repeat(100) } });
    let native = with(&fixture, &small, "POST", "/api/v1/apps/greeter/runs").json(&run);
    let (status, problem) = answer(native).await;
    assert_eq!((status, &problem["code"]), (413, &json!("too-large")));
    assert!(problem["detail"].as_str().unwrap().contains("of the API key"), "{problem}");
    let metadata = json!({ "metadata": { "name": "A".repeat(100) } });
    let agent = with(&fixture, &small, "POST", "/threads").json(&metadata);
    let (status, refused) = answer(agent).await;
    assert_eq!((status, refused.as_object().unwrap().len()), (413, 1), "{refused}");
    let fits = with(&fixture, &small, "POST", "/threads").json(&json!({}));
    assert_eq!(answer(fits).await.0, 200);
    assert_eq!(cut(&fixture, &operator).await, json!({ "size": 2 }));
}

/// Creates a thread whose event stream does not end.
async fn thread(fixture: &Fixture, key: &str) -> String {
    let run = json!({ "input": { "name": "A" }, "thread_id": "t", "wait": true });
    let started = with(fixture, key, "POST", "/api/v1/apps/greeter/runs").json(&run);
    assert_eq!(answer(started).await.0, 200);
    "/api/v1/threads/t/events".to_owned()
}

#[tokio::test]
async fn a_key_has_a_limit_of_open_requests() {
    let (fixture, operator) = start("[server.limits]\nopen = 1\n").await;
    let (_, key) = make(&fixture, &operator, json!({ "name": "one" })).await;
    let events = thread(&fixture, &key).await;
    let stream = with(&fixture, &key, "GET", &events).send().await.unwrap();
    assert_eq!(stream.status(), 200);
    let second = with(&fixture, &key, "GET", "/api/v1/apps").send().await.unwrap();
    assert_eq!(
        (second.status().as_u16(), &second.headers()["retry-after"]),
        (429, &"1".parse().unwrap())
    );
    assert_eq!(answer(with(&fixture, &operator, "GET", "/api/v1/apps")).await.0, 200);
    drop(stream);
}

#[tokio::test]
async fn streams_of_a_revoked_key_end() {
    let (fixture, operator) = start("").await;
    let (id, key) = make(&fixture, &operator, json!({ "name": "gone" })).await;
    let events = thread(&fixture, &key).await;
    let stream = with(&fixture, &key, "GET", &events).send().await.unwrap();
    let revoked = with(&fixture, &operator, "DELETE", &format!("/api/v1/keys/{id}"));
    assert_eq!(answer(revoked).await.0, 200);
    let all = tokio::time::timeout(SOON, stream.text()).await.unwrap().unwrap();
    assert!(all.contains("event: run_started"), "{all}");
}

#[tokio::test]
async fn an_expired_key_is_reported_as_expired() {
    let (fixture, operator) = start("").await;
    let (id, key) = make(&fixture, &operator, json!({ "name": "brief", "expires_in_ms": 1 })).await;
    let wait_for_refusal = async {
        loop {
            let (status, problem) = answer(with(&fixture, &key, "GET", "/api/v1/apps")).await;
            if status == 401 {
                return problem;
            }
        }
    };
    let problem = tokio::time::timeout(SOON, wait_for_refusal).await.unwrap();
    let wanted = format!("the key `{id}` has expired");
    assert!(problem["detail"].as_str().unwrap().contains(&wanted), "{problem}");
}

#[tokio::test]
async fn an_admin_key_of_a_tenant_creates_keys_of_that_tenant_only() {
    let (fixture, operator) = start("").await;
    let acme = json!({
        "name": "acme", "tenant": "acme", "scopes": ["admin"], "rate": "100/s",
        "body_limit_bytes": 5000, "expires_in_ms": 3_600_000,
    });
    let (acme_id, acme) = make(&fixture, &operator, acme).await;
    let wanted = json!({ "name": "helper", "rate": "500/s" });
    let (helper_id, helper) = make(&fixture, &acme, wanted).await;
    let (_, keys) = answer(with(&fixture, &acme, "GET", "/api/v1/keys")).await;
    let ids: Vec<_> = keys.as_array().unwrap().iter().map(|key| key["id"].clone()).collect();
    assert_eq!(ids, [json!(acme_id), json!(helper_id)]);
    let made = &keys[1];
    assert_eq!((&made["tenant"], &made["rate"]), (&json!("acme"), &json!("100/s")));
    assert_eq!(made["body_limit_bytes"], 5000);
    assert_eq!(made["expires_ms"], keys[0]["expires_ms"]);

    let foreign = json!({ "name": "x", "tenant": "globex" });
    let refused = with(&fixture, &acme, "POST", "/api/v1/keys").json(&foreign);
    assert_eq!(answer(refused).await.0, 403);
    let refused = with(&fixture, &helper, "POST", "/api/v1/keys").json(&json!({ "name": "x" }));
    assert_eq!(answer(refused).await.0, 403);
    for path in ["/api/v1/plugins", "/metrics", "/api/v1/problems", "/api/v1/hosts"] {
        assert_eq!(answer(with(&fixture, &acme, "GET", path)).await.0, 403, "{path}");
    }
    let (globex_id, globex) =
        make(&fixture, &operator, json!({ "name": "g", "tenant": "globex" })).await;
    let path = format!("/api/v1/keys/{globex_id}");
    assert_eq!(answer(with(&fixture, &acme, "DELETE", &path)).await.0, 404);

    // Threads of these keys belong to the tenant.
    thread(&fixture, &helper).await;
    assert_eq!(answer(with(&fixture, &acme, "GET", "/api/v1/threads/t")).await.0, 200);
    assert_eq!(answer(with(&fixture, &globex, "GET", "/api/v1/threads/t")).await.0, 404);
    assert_eq!(answer(with(&fixture, &operator, "GET", "/api/v1/threads/t")).await.0, 200);
}

#[tokio::test]
async fn names_of_keys_are_visible_to_the_operator_and_to_keys_of_the_same_tenant() {
    let (fixture, operator) = start("").await;
    let key = |name: &str, tenant| json!({ "name": name, "tenant": tenant, "scopes": ["read"] });
    let (acme_id, acme) = make(&fixture, &operator, key("Acme", Some("acme"))).await;
    let (globex_id, globex) = make(&fixture, &operator, key("Globex", Some("globex"))).await;
    let (_, reader) = make(&fixture, &operator, key("Reader", None)).await;
    let names = async |by: &str| {
        let (status, names) = answer(with(&fixture, by, "GET", "/api/v1/key-names")).await;
        assert_eq!(status, 200, "{names}");
        names
    };
    assert_eq!(names(&acme).await, json!([{ "id": acme_id, "name": "Acme" }]));
    assert_eq!(names(&globex).await, json!([{ "id": globex_id, "name": "Globex" }]));
    assert_eq!(names(&operator).await.as_array().unwrap().len(), 4);
    let without_tenant = names(&reader).await;
    let found = without_tenant.as_array().unwrap().iter().map(|key| key["name"].as_str().unwrap());
    assert_eq!(found.collect::<BTreeSet<_>>(), ["Reader", "operator"].into());
    assert_eq!(revoke(&fixture, &operator, &acme_id, "").await.0, 200);
    assert!(!names(&operator).await.to_string().contains("Acme"));
}

/// Revokes a key and returns the response.
async fn revoke(fixture: &Fixture, by: &str, id: &str, how: &str) -> (u16, Value) {
    answer(with(fixture, by, "DELETE", &format!("/api/v1/keys/{id}{how}"))).await
}

#[tokio::test]
async fn keys_created_with_a_leaked_key_are_revoked_with_it() {
    let (fixture, operator) = start("").await;
    let admin = |name: &str| json!({ "name": name, "tenant": "acme", "scopes": ["admin"] });
    let (leaked_id, leaked) = make(&fixture, &operator, admin("leaked")).await;
    let (made_id, made) = make(&fixture, &leaked, admin("made")).await;
    let (further_id, further) = make(&fixture, &made, json!({ "name": "further" })).await;
    let (other_id, other) = make(&fixture, &operator, json!({ "name": "other" })).await;
    let (_, keys) = answer(with(&fixture, &operator, "GET", "/api/v1/keys")).await;
    let made_by: Vec<_> = keys.as_array().unwrap().iter().map(|key| &key["made_by"]).collect();
    let operator_id = keys[0]["id"].clone();
    let ids = [json!(null), operator_id.clone(), json!(leaked_id), json!(made_id), operator_id];
    assert_eq!(made_by, ids.iter().collect::<Vec<_>>());
    let opens = async |key: &str| answer(with(&fixture, key, "GET", "/api/v1/apps")).await.0;

    // Without `made`, the keys that the leaked key created remain valid, and the response lists
    // them.
    let (status, done) = revoke(&fixture, &operator, &leaked_id, "").await;
    let left = json!([made_id, further_id]);
    assert_eq!((status, done), (200, json!({ "revoked": [leaked_id], "left": left })));
    assert_eq!((opens(&leaked).await, opens(&made).await, opens(&further).await), (401, 200, 200));
    assert_eq!(revoke(&fixture, &operator, &leaked_id, "").await.0, 404);
    // With `made`, these keys are revoked, although the leaked key no longer exists.
    let (status, done) = revoke(&fixture, &operator, &leaked_id, "?made=true").await;
    assert_eq!((status, done), (200, json!({ "revoked": left, "left": [] })));
    assert_eq!((opens(&made).await, opens(&further).await, opens(&other).await), (401, 401, 200));
    assert_eq!(revoke(&fixture, &operator, &other_id, "?made=yes").await.0, 400);
}

#[tokio::test]
async fn the_last_key_is_revoked_only_with_the_parameter_open() {
    let (fixture, operator) = start("").await;
    let acme = json!({ "name": "acme", "tenant": "acme", "scopes": ["admin"] });
    let (acme_id, acme) = make(&fixture, &operator, acme).await;
    let (_, keys) = answer(with(&fixture, &operator, "GET", "/api/v1/keys")).await;
    let operator_id = keys[0]["id"].as_str().unwrap();
    let all = revoke(&fixture, &operator, operator_id, "?made=true").await;
    assert_eq!((all.0, &all.1["code"]), (409, &json!("conflict")));
    assert_eq!(revoke(&fixture, &operator, operator_id, "").await.0, 200);
    for how in ["", "?open=true"] {
        let (status, refused) = revoke(&fixture, &acme, &acme_id, how).await;
        assert_eq!((status, &refused["code"]), (403, &json!("denied")), "{refused}");
    }
    assert_eq!(fixture.get("/api/v1/apps").await.0, 401);
}

#[tokio::test]
async fn the_number_of_keys_of_a_tenant_is_limited() {
    let (fixture, operator) = start("").await;
    let acme = json!({ "name": "acme", "tenant": "acme", "scopes": ["admin"] });
    let (_, acme) = make(&fixture, &operator, acme).await;
    for n in 1..MAX_TENANT_KEYS {
        make(&fixture, &acme, json!({ "name": n.to_string() })).await;
    }
    let more = with(&fixture, &acme, "POST", "/api/v1/keys").json(&json!({ "name": "more" }));
    let (status, refused) = answer(more).await;
    assert_eq!((status, &refused["code"]), (422, &json!("limit")), "{refused}");
    // The limit applies to each tenant separately, and not to the operator.
    make(&fixture, &operator, json!({ "name": "more", "tenant": "acme" })).await;
    make(&fixture, &operator, json!({ "name": "g", "tenant": "globex" })).await;
}

#[tokio::test]
async fn invalid_requests_for_keys_are_refused() {
    let (fixture, operator) = start("").await;
    for (wanted, word) in [
        (json!({ "name": "" }), "name"),
        (json!({ "name": "x", "rate": "fast" }), "rate"),
        (json!({ "name": "x", "tenant": "a/b" }), "tenant"),
        (json!({ "name": "x", "scopes": ["all"] }), "scopes"),
        (json!({ "name": "x", "body_limit_bytes": 0 }), "limit"),
        (json!({ "name": "x", "color": "blue" }), "color"),
    ] {
        let request = with(&fixture, &operator, "POST", "/api/v1/keys").json(&wanted);
        let (status, problem) = answer(request).await;
        assert_eq!(status, 400, "{wanted}: {problem}");
        assert!(problem["detail"].as_str().unwrap().contains(word), "{problem}");
    }
}
