//! Checks of requests: host names, origins, keys and tenants.

use wattle::error::Error;
use wattle::host::Overrides;
use wattle::server::{Server, ServerOptions};

use crate::fixture::{Fixture, answer, config, options};

fn with_keys(keys: &'static str) -> ServerOptions {
    let options = options();
    let env = std::sync::Arc::new(move |name: &str| (name == "KEYS").then(|| keys.to_owned()));
    ServerOptions { overrides: Overrides { env: Some(env), ..options.overrides }, watch: false }
}

#[tokio::test]
async fn foreign_host_names_and_origins_are_refused() {
    let fixture = Fixture::start("[server]\norigins = [\"https://ui.example\"]").await;
    let apps = || fixture.client.get(fixture.url("/api/v1/apps"));
    assert_eq!(answer(apps().header("host", "evil.example")).await.0, 421);
    assert_eq!(answer(apps().header("host", "localhost:1")).await.0, 200);
    let run = || fixture.client.post(fixture.url("/api/v1/runs/x/cancel"));
    assert_eq!(answer(run().header("origin", "https://evil.example")).await.0, 403);
    let allowed = run().header("origin", "https://ui.example").send().await.unwrap();
    assert_eq!(allowed.status(), 404);
    assert_eq!(allowed.headers()["access-control-allow-origin"], "https://ui.example");
    let foreign = apps().header("origin", "https://evil.example").send().await.unwrap();
    assert!(!foreign.headers().contains_key("access-control-allow-origin"));
}

#[tokio::test]
async fn configured_keys_are_required() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path(), "[auth]\nkeys_env = \"KEYS\"\n");
    let server = Server::start(config, with_keys("one, two")).await.unwrap();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let apps = || client.get(format!("{}/api/v1/apps", server.url()));
    assert_eq!(answer(apps()).await.0, 401);
    assert_eq!(answer(apps().bearer_auth("two")).await.0, 200);
    assert_eq!(answer(client.get(format!("{}/healthz", server.url()))).await.0, 200);
}

#[tokio::test]
async fn a_public_address_needs_keys() {
    let folder = tempfile::tempdir().unwrap();
    let toml = "[server]\nlisten = \"0.0.0.0:0\"\n[auth]\nkeys_env = \"KEYS\"\n";
    let refused = Server::start(config(folder.path(), toml), with_keys(" , ")).await;
    assert!(matches!(refused.err(), Some(Error::PublicAddressWithoutKeys { .. })));
    let started = Server::start(config(folder.path(), toml), with_keys("one")).await;
    assert!(started.is_ok());
}

#[tokio::test]
async fn threads_belong_to_tenants_if_tenants_are_configured() {
    let fixture = Fixture::start("[server]\ntenant_header = \"x-tenant\"").await;
    let as_tenant = |request: reqwest::RequestBuilder, tenant: &str| {
        request.header("x-tenant", tenant.to_owned())
    };
    let start = || {
        let body = serde_json::json!({ "input": { "name": "A" }, "thread_id": "t", "wait": true });
        fixture.client.post(fixture.url("/api/v1/apps/greeter/runs")).json(&body)
    };
    assert_eq!(answer(start()).await.0, 401);
    assert_eq!(answer(as_tenant(start(), "one")).await.0, 200);
    assert_eq!(answer(as_tenant(start(), "two")).await.0, 409);
    let thread = || fixture.client.get(fixture.url("/api/v1/threads/t"));
    assert_eq!(answer(as_tenant(thread(), "one")).await.0, 200);
    assert_eq!(answer(as_tenant(thread(), "two")).await.0, 404);
    let list = fixture.client.get(fixture.url("/api/v1/threads"));
    assert_eq!(answer(as_tenant(list, "two")).await.1["items"], serde_json::json!([]));
}
