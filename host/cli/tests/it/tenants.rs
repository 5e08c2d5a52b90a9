//! Tenants by key and by header, and their own model routes.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;
use wattle::server::{Server, ServerOptions};

use crate::fixture::{Fixture, answer, config, options, write_app};
use crate::keys::with;

const TOML: &str = r#"
[server]
tenant_header = "x-tenant"
default_tenant = "default"
[auth]
keys_env = "KEYS"
[tenants.acme]
keys_env = "ACME_KEYS"
[tenants.globex]
keys_env = "GLOBEX_KEYS"
"#;

async fn start() -> Fixture {
    let folder = tempfile::tempdir().unwrap();
    write_app(&folder.path().join("plugins"), "greeter");
    let mut with_keys: ServerOptions = options();
    let env = |name: &str| match name {
        "KEYS" => Some("k-operator".to_owned()),
        "ACME_KEYS" => Some("k-acme, k-acme-2".to_owned()),
        "GLOBEX_KEYS" => Some("k-globex".to_owned()),
        _ => None,
    };
    with_keys.overrides.env = Some(Arc::new(env));
    let server = Server::start(config(folder.path(), TOML), with_keys).await.unwrap();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    Fixture { server, client, folder }
}

#[tokio::test]
async fn a_key_or_a_header_selects_the_tenant() {
    let fixture = start().await;
    let echo = |key: &str, tenant: Option<&str>| {
        let request = fixture.client.get(fixture.url("/apps/greeter/echo/x"));
        let request = request.header("x-api-key", key.to_owned());
        tenant.into_iter().fold(request, |it, tenant| it.header("x-tenant", tenant.to_owned()))
    };
    for (key, named, wanted) in [
        ("k-acme", None, json!("acme")),
        ("k-acme-2", Some("acme"), json!("acme")),
        ("k-globex", None, json!("globex")),
        ("k-operator", Some("acme"), json!("acme")),
        ("k-operator", None, json!("default")),
    ] {
        let (status, found) = answer(echo(key, named)).await;
        assert_eq!((status, &found["tenant"]), (200, &wanted), "{key} {named:?}");
    }
    assert_eq!(answer(echo("k-acme", Some("globex"))).await.0, 403);
    assert_eq!(answer(echo("k-nobody", None)).await.0, 401);
    assert_eq!(answer(echo("k-operator", Some("a b"))).await.0, 400);

    // Threads belong to the tenant.
    let body = json!({ "input": { "name": "A" }, "thread_id": "t", "wait": true });
    let start = fixture.client.post(fixture.url("/api/v1/apps/greeter/runs")).json(&body);
    assert_eq!(answer(start.header("x-api-key", "k-acme")).await.0, 200);
    let thread = |key: &str| {
        let request = fixture.client.get(fixture.url("/api/v1/threads/t"));
        request.header("authorization", format!("Bearer {key}"))
    };
    assert_eq!(answer(thread("k-acme")).await.0, 200);
    assert_eq!(answer(thread("k-globex")).await.0, 404);
}

#[tokio::test]
async fn a_tenant_sets_its_own_routes_and_their_keys_are_hidden() {
    let fixture = start().await;
    let path = |tenant: &str| fixture.url(&format!("/api/v1/tenants/{tenant}/routes/chat"));
    let as_key = |request: reqwest::RequestBuilder, key: &str| {
        answer(request.header("x-api-key", key.to_owned()))
    };
    let document = json!({
        "provider": "openai", "model": "acme-model", "api_key": "sk-acme-secret",
        "base_url": "https://models.acme.example/v1/", "timeout_ms": 5000,
    });
    let put = |tenant: &str| fixture.client.put(path(tenant)).json(&document);
    let get = |tenant: &str| fixture.client.get(path(tenant));

    assert_eq!(as_key(get("acme"), "k-acme").await.0, 404);
    let (status, shown) = as_key(put("acme"), "k-acme").await;
    assert_eq!((status, &shown["model"]), (200, &json!("acme-model")), "{shown}");
    assert!(!shown.to_string().contains("sk-acme-secret"), "{shown}");
    let (status, shown) = as_key(get("acme"), "k-acme").await;
    assert_eq!((status, &shown["has_api_key"]), (200, &json!(true)), "{shown}");
    assert!(!shown.to_string().contains("sk-acme-secret"), "{shown}");

    // A tenant cannot access another one, and problems do not reveal keys.
    assert_eq!(as_key(get("acme"), "k-globex").await.0, 403);
    assert_eq!(as_key(put("acme"), "k-globex").await.0, 403);
    assert_eq!(as_key(get("globex"), "k-globex").await.0, 404);
    let bad = fixture.client.put(path("acme")).json(&json!({ "model": 1, "api_key": "sk-x" }));
    let (status, problem) = as_key(bad, "k-acme").await;
    assert_eq!(status, 400, "{problem}");
    assert!(!problem.to_string().contains("sk-x"), "{problem}");

    assert_eq!(as_key(fixture.client.delete(path("acme")), "k-acme").await.0, 204);
    assert_eq!(as_key(get("acme"), "k-acme").await.0, 404);
    assert_eq!(as_key(fixture.client.delete(path("acme")), "k-acme").await.0, 204);
}

#[tokio::test]
async fn only_the_operator_has_access_to_data_outside_of_tenants() {
    let fixture = start().await;
    let compact = |key: &str, tenant: Option<&str>| {
        let request = fixture.client.post(fixture.url("/api/v1/store/compact"));
        let request = request.header("x-api-key", key.to_owned());
        tenant.into_iter().fold(request, |it, tenant| it.header("x-tenant", tenant.to_owned()))
    };
    assert_eq!(answer(compact("k-operator", None)).await.0, 200);
    for (key, tenant) in [("k-operator", Some("acme")), ("k-acme", None), ("k-acme", Some("acme"))]
    {
        let (status, problem) = answer(compact(key, tenant)).await;
        assert_eq!((status, &problem["code"]), (403, &json!("denied")), "{key} {tenant:?}");
    }

    // Only the operator can access secrets, files and runs of all tenants.
    for path in [
        "/metrics",
        "/api/v1/problems",
        "/api/v1/hosts",
        "/api/v1/models",
        "/api/v1/store/sizes",
        "/api/v1/plugins",
        "/api/v1/plugins/greeter",
    ] {
        let get = |key: &str, tenant: Option<&str>| {
            let request = fixture.client.get(fixture.url(path)).header("x-api-key", key.to_owned());
            tenant.into_iter().fold(request, |it, tenant| it.header("x-tenant", tenant.to_owned()))
        };
        assert_eq!(answer(get("k-operator", None)).await.0, 200, "{path}");
        assert_eq!(answer(get("k-operator", Some("acme"))).await.0, 403, "{path}");
        assert_eq!(answer(get("k-acme", None)).await.0, 403, "{path}");
        assert_eq!(answer(get("k-nobody", None)).await.0, 401, "{path}");
    }

    let place = "namespace=users&key=language";
    let document = json!({ "namespace": ["users"], "key": "language", "value": "de" });
    let put = |key: &str, query: &str| {
        let put = fixture.client.put(fixture.url(&format!("/api/v1/memory/items{query}")));
        put.header("x-api-key", key.to_owned()).json(&document)
    };
    let get = |key: &str, query: &str| {
        let path = format!("/api/v1/memory/items?{place}{query}");
        fixture.client.get(fixture.url(&path)).header("x-api-key", key.to_owned())
    };
    assert_eq!(answer(put("k-operator", "?tenant=acme")).await.0, 204);
    assert_eq!(answer(get("k-acme", "")).await.0, 200);
    assert_eq!(answer(get("k-operator", "&tenant=acme")).await.0, 200);
    assert_eq!(answer(get("k-operator", "")).await.0, 404);
    assert_eq!(answer(get("k-globex", "&tenant=acme")).await.0, 403);
    assert_eq!(answer(put("k-globex", "?tenant=acme")).await.0, 403);
}

/// A text in the data of `acme`.
const SECRET: &str = "for acme alone";

/// Parameters of paths to a resource of one tenant.
const OWNED: [&str; 6] = ["{thread}", "{id}", "{run}", "{cron}", "{tenant}", "{digest}"];

/// Creates a thread, a document, a blob and a model route of `acme`. Returns a value for each
/// parameter of a path, which names one of these where it can.
async fn parameters_of_acme(fixture: &Fixture) -> BTreeMap<&'static str, String> {
    let ports = fixture.server.engine.ports();
    let blob = ports.blobs.put("pixels".into(), "image/png").await.unwrap();
    let link = ports.links.path(Some("acme"), blob);
    let (thread, digest) = ("thread-of-acme", blob.0.to_string());
    let run = json!({
        "input": { "name": blob }, "thread_id": thread, "metadata": { "note": SECRET },
        "wait": true,
    });
    let start = with(fixture, "k-acme", "POST", "/api/v1/apps/greeter/runs").json(&run);
    let (status, run) = answer(start).await;
    assert_eq!(status, 200, "{run}");
    let item = json!({ "namespace": ["users"], "key": "own", "value": SECRET });
    let put = with(fixture, "k-operator", "PUT", "/api/v1/memory/items?tenant=acme").json(&item);
    assert_eq!(answer(put).await.0, 204);
    let route = json!({
        "provider": "openai", "model": "acme-model", "api_key": "sk-acme-secret",
        "base_url": "https://models.acme.example/v1/", "timeout_ms": 5000,
    });
    let put = with(fixture, "k-acme", "PUT", "/api/v1/tenants/acme/routes/chat").json(&route);
    assert_eq!(answer(put).await.0, 200);
    let values = [
        ("app", "greeter"),
        ("graph", "Greet"),
        ("plugin", "greeter"),
        ("thread", thread),
        ("id", thread),
        ("run", run["run"].as_str().unwrap()),
        ("checkpoint", "latest"),
        ("digest", digest.as_str()),
        ("tenant", "acme"),
        ("route", "chat"),
        ("name", link.rsplit('/').next().unwrap()),
        ("cron", "00000000-0000-4000-8000-000000000000"),
        ("namespace", "x"),
        ("word", "x"),
    ];
    values.into_iter().map(|(name, value)| (name, value.to_owned())).collect()
}

/// Returns a path of the OpenAPI document with values in place of its parameters.
fn filled(path: &str, values: &BTreeMap<&str, String>) -> String {
    let fill = |part: &str| match part.strip_prefix('{').and_then(|it| it.strip_suffix('}')) {
        Some(name) => {
            let value = values.get(name);
            value.unwrap_or_else(|| panic!("no value for `{name}` of {path}")).clone()
        }
        None => part.to_owned(),
    };
    path.split('/').map(fill).collect::<Vec<_>>().join("/")
}

#[tokio::test]
async fn no_path_returns_data_of_another_tenant() {
    let fixture = start().await;
    let values = parameters_of_acme(&fixture).await;
    let (_, document) = answer(with(&fixture, "k-globex", "GET", "/openapi.json")).await;
    let (mut owned, mut unseen) = (0, Vec::new());
    for (path, operations) in document["paths"].as_object().unwrap() {
        // The endpoints of the app are code of this test.
        if operations["get"].is_null() || path.starts_with("/apps/") {
            continue;
        }
        let query = if path.ends_with("/items") { "?namespace=users&key=own" } else { "" };
        let place = format!("{}{query}", filled(path, &values));
        let is_owned = OWNED.iter().any(|parameter| path.contains(parameter));
        let found = with(&fixture, "k-globex", "GET", &place).send().await.unwrap();
        let status = found.status();
        // A stream that is not refused does not end.
        assert!(!is_owned || status.is_client_error(), "{path}: {status}");
        let text = found.text().await.unwrap();
        assert!(!text.contains(SECRET), "{path}: {text}");
        if !is_owned {
            let ids = [&values["thread"], &values["run"]];
            assert!(!ids.into_iter().any(|id| text.contains(id)), "{path}: {text}");
            continue;
        }
        owned += 1;
        // Otherwise the other tenant would find nothing because there is nothing. The paths of the
        // Agent Server have such tests with resources of their own.
        let own = with(&fixture, "k-acme", "GET", &place).send().await.unwrap();
        let is_native = path.starts_with("/api/") || path.starts_with("/blobs/");
        if is_native && !own.status().is_success() {
            unseen.push(path.as_str());
        }
    }
    // Only the operator reads blobs by their digests alone.
    assert_eq!(unseen, ["/api/v1/blobs/{digest}"]);
    assert!(owned > 30, "{owned} paths lead to resources of a tenant");
    for list in ["/api/v1/threads", "/api/v1/memory/items?namespace=users&key=own"] {
        let (_, own) = answer(with(&fixture, "k-acme", "GET", list)).await;
        assert!(own.to_string().contains(SECRET), "{list}: {own}");
    }
}
