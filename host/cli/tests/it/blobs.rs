//! Blobs over HTTP: by links without a key, by thread, and by digest for the operator.

use std::sync::Arc;

use serde_json::json;
use wattle::config::StoreKind;
use wattle::server::{RunningServer, Server, ServerOptions};
use wattle_run::ports::blob::BlobRef;

use crate::fixture::{Fixture, answer, config, options, write_app};

const TOML: &str = r#"
[server]
tenant_header = "x-tenant"
[auth]
keys_env = "KEYS"
[tenants.acme]
keys_env = "ACME_KEYS"
[tenants.globex]
keys_env = "GLOBEX_KEYS"
[apps.greeter]
listen = "127.0.0.1:0"
"#;

/// Starts a host with two tenants. Its app has its own listen address.
async fn with_tenants() -> Fixture {
    let folder = tempfile::tempdir().unwrap();
    write_app(&folder.path().join("plugins"), "greeter");
    let mut with_keys: ServerOptions = options();
    let env = |name: &str| match name {
        "KEYS" => Some("k-operator".to_owned()),
        "ACME_KEYS" => Some("k-acme".to_owned()),
        "GLOBEX_KEYS" => Some("k-globex".to_owned()),
        _ => None,
    };
    with_keys.overrides.env = Some(Arc::new(env));
    let server = Server::start(config(folder.path(), TOML), with_keys).await.unwrap();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    Fixture { server, client, folder }
}

async fn put(server: &RunningServer, bytes: &'static str) -> BlobRef {
    let blobs = server.engine.ports().blobs.clone();
    blobs.put(bytes.into(), "image/png").await.unwrap()
}

#[tokio::test]
async fn a_link_returns_the_image_on_every_address() {
    let fixture = with_tenants().await;
    let blob = put(&fixture.server, "0123456789").await;
    let path = fixture.server.engine.ports().links.path(Some("acme"), blob);
    let own = fixture.server.app_addrs.values().next().unwrap();
    for base in [fixture.server.url(), format!("http://{own}")] {
        let url = format!("{base}{path}");
        let whole = fixture.client.get(&url).send().await.unwrap();
        assert_eq!(whole.status(), 200, "no key is needed");
        for (name, value) in [
            ("content-type", "image/png"),
            ("content-length", "10"),
            ("cache-control", "private, max-age=31536000, immutable"),
            ("x-content-type-options", "nosniff"),
            ("content-security-policy", "sandbox; default-src 'none'"),
            ("accept-ranges", "bytes"),
        ] {
            assert_eq!(whole.headers()[name], value, "{name}");
        }
        let etag = whole.headers()["etag"].clone();
        assert_eq!(whole.text().await.unwrap(), "0123456789");
        let part = fixture.client.get(&url).header("range", "bytes=-3").send().await.unwrap();
        assert_eq!((part.status().as_u16(), &*part.text().await.unwrap()), (206, "789"));
        let known = fixture.client.get(&url).header("if-none-match", etag).send().await.unwrap();
        assert_eq!(known.status(), 304);
        let head = fixture.client.head(&url).send().await.unwrap();
        assert_eq!(head.status(), 200);
        assert_eq!(head.headers()["content-length"], "10");
        assert_eq!(head.text().await.unwrap(), "");
        let foreign = fixture.client.get(&url).header("host", "evil.example").send().await.unwrap();
        assert_eq!(foreign.status(), 421, "the host name is checked all the same");
        assert_eq!(answer(fixture.client.post(&url)).await.0, 401, "a link is read-only");
    }
}

#[tokio::test]
async fn a_link_belongs_to_one_tenant_and_cannot_be_changed() {
    let fixture = with_tenants().await;
    let blob = put(&fixture.server, "pixels").await;
    let links = &fixture.server.engine.ports().links;
    let (path, of_nobody) = (links.path(Some("acme"), blob), links.path(None, blob));
    let get = |path: &str| fixture.client.get(fixture.url(path));
    let status = |request: reqwest::RequestBuilder| async { answer(request).await.0 };
    assert_eq!(status(get(&path).header("x-api-key", "k-acme")).await, 200);
    assert_eq!(status(get(&path).header("x-tenant", "acme")).await, 200);
    assert_eq!(status(get(&path).header("x-api-key", "k-operator")).await, 200);
    assert_eq!(status(get(&of_nobody)).await, 200);
    let (found, problem) = answer(get(&path).header("x-api-key", "k-globex")).await;
    assert_eq!((found, &problem["code"]), (404, &json!("not-found")));
    assert_eq!(status(get(&path).header("x-tenant", "globex")).await, 404);
    assert_eq!(status(get(&of_nobody).header("x-tenant", "globex")).await, 404);
    let both = get(&path).header("x-api-key", "k-acme").header("x-tenant", "globex");
    assert_eq!(status(both).await, 404);
    for wrong in [
        path.replace("/acme/", "/globex/"),
        path.replace("/acme/", "/~/"),
        format!("{path}x"),
        path.rsplit_once('.').unwrap().0.to_owned(),
        "/blobs/~/x.y".to_owned(),
    ] {
        let response = get(&wrong).send().await.unwrap();
        assert_eq!(response.status(), 404, "{wrong}");
        assert_eq!(response.headers()["content-type"], "application/problem+json");
    }
    let gone = links.path(None, BlobRef("0".repeat(64).parse().unwrap()));
    assert_eq!(status(get(&gone)).await, 404);
}

#[tokio::test]
async fn a_tenant_reads_blobs_that_its_threads_mention() {
    let fixture = with_tenants().await;
    let [named, other] = [put(&fixture.server, "named").await, put(&fixture.server, "other").await];
    let start = json!({ "input": { "name": named }, "thread_id": "t", "wait": true });
    let runs = fixture.client.post(fixture.url("/api/v1/apps/greeter/runs")).json(&start);
    assert_eq!(answer(runs.header("x-api-key", "k-acme")).await.0, 200);
    let get = |path: String, key: &str| {
        let request = fixture.client.get(fixture.url(&path)).header("x-api-key", key.to_owned());
        answer(request)
    };
    let of_thread = |blob: BlobRef| format!("/api/v1/threads/t/blobs/{}", blob.0);
    assert_eq!(get(of_thread(named), "k-acme").await, (200, json!("named")));
    assert_eq!(get(of_thread(other), "k-acme").await.0, 404);
    assert_eq!(get(of_thread(named), "k-globex").await.0, 404);
    assert_eq!(get(format!("/api/v1/blobs/{}", named.0), "k-acme").await.0, 404);
    assert_eq!(get("/api/v1/threads/t/blobs/zz".to_owned(), "k-acme").await.0, 400);
    assert_eq!(answer(fixture.client.get(fixture.url(&of_thread(named)))).await.0, 401);
}

#[tokio::test]
async fn links_outlive_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    write_app(&folder.path().join("plugins"), "greeter");
    let mut config = config(folder.path(), "");
    config.store.kind = StoreKind::Redb;
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let server = Server::start(config.clone(), options()).await.unwrap();
    let path = server.engine.ports().links.path(None, put(&server, "pixels").await);
    server.shutdown().await;
    let server = Server::start(config, options()).await.unwrap();
    let found = answer(client.get(format!("{}{path}", server.url()))).await;
    assert_eq!(found, (200, json!("pixels")));
    server.shutdown().await;
}
