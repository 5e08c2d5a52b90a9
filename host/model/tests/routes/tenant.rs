//! Tenant routes.

use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde_json::{Value, json};
use wattle_graph::failure::Failure;
use wattle_graph::llm::{Completion, Delta};
use wattle_kit::standin::{Config, Fault, FaultRule, Handle, Pattern, Server, redact};
use wattle_model::{ModelConfig, Routes, TenantRoutesConfig};
use wattle_run::caller_id::CallerId;
use wattle_run::lookups::current_owner;
use wattle_run::ports::model::{DeltaSink, DiscardDeltas, RouteInfo};
use wattle_run::ports::{Caller, Model};

use crate::support::{Blobs, KEY, ask, caller, table};

/// The key of a tenant. Only the tenant's provider must receive it.
const OWN_KEY: &str = "sk-own-0123456789";

async fn standin() -> Handle {
    Server::start(Config::default()).await.unwrap()
}

fn of(tenant: Option<&str>) -> Caller {
    Caller { tenant: tenant.map(str::to_owned), ..caller() }
}

fn everywhere(_: IpAddr) -> bool {
    true
}

fn public(address: IpAddr) -> bool {
    !address.is_loopback() && address != IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1))
}

/// Creates the operator's routes to a stand-in, with tenant routes in `file`.
fn open(server: &Handle, file: Option<PathBuf>, reachable: fn(IpAddr) -> bool) -> Routes {
    let mut config = table("openai", &base(server), &json!({}), &json!({}));
    config["providers"]["second"] =
        json!({ "kind": "openai", "base_url": base(server), "key_env": "SECOND_KEY" });
    let config: ModelConfig = serde_json::from_value(config).unwrap();
    let routes = Routes::new(config, &|_| Some(KEY.to_owned())).unwrap();
    routes.with_tenants(TenantRoutesConfig { file, reachable }).unwrap()
}

fn base(server: &Handle) -> String {
    format!("{}/v1", server.base_url)
}

async fn call(routes: &Routes, caller: &Caller) -> Result<Completion, Failure> {
    routes.complete(caller, &ask("hi"), &Blobs::default(), &DiscardDeltas).await
}

fn info(provider: &str, model: &str, has_fallback: bool) -> RouteInfo {
    let candidates = 1 + u32::from(has_fallback);
    RouteInfo { provider: provider.into(), model: model.into(), has_fallback, candidates }
}

#[tokio::test]
async fn tenant_route_overrides_the_operators_route() {
    let server = standin().await;
    let routes = open(&server, None, everywhere);
    let own = json!({
        "provider": "openai", "model": "own-1", "api_key": OWN_KEY, "base_url": base(&server),
        "timeout_ms": 4000, "enable_thinking": false, "extra_json": "{\"top_k\": 3}",
    });
    let acme = of(Some("acme"));
    routes.set_route(&acme, "chat", own).await.unwrap();
    assert_eq!(routes.route(&acme, "chat"), Some(info("openai", "own-1", false)));
    assert_eq!(routes.route(&of(None), "chat"), Some(info("first", "m-1", false)));
    assert_eq!(routes.route(&of(Some("other")), "chat"), Some(info("first", "m-1", false)));

    assert_eq!(call(&routes, &acme).await.unwrap().model, "own-1");
    assert_eq!(call(&routes, &of(None)).await.unwrap().model, "m-1");
    let sent = server.requests();
    assert_eq!(sent[0].headers["authorization"], redact(&format!("Bearer {OWN_KEY}")));
    assert_eq!(sent[1].headers["authorization"], redact(&format!("Bearer {KEY}")));
    let body = sent[0].body.as_ref().unwrap();
    assert_eq!(body["thinking"], json!({ "type": "disabled" }));
    assert_eq!(body["top_k"], 3);

    let shown = routes.get_route(&acme, "chat").await.unwrap().unwrap();
    assert_eq!(shown["has_api_key"], true);
    assert!(!shown.to_string().contains(OWN_KEY), "{shown}");
    assert_eq!(routes.get_route(&of(None), "chat").await.unwrap(), None);

    // A client can send the redacted object back, and the host keeps the key.
    routes.set_route(&acme, "chat", shown.clone()).await.unwrap();
    assert_eq!(routes.get_route(&acme, "chat").await.unwrap(), Some(shown));

    routes.remove_route(&acme, "chat").await.unwrap();
    routes.remove_route(&acme, "chat").await.unwrap();
    assert_eq!(call(&routes, &acme).await.unwrap().model, "m-1");
}

#[tokio::test]
async fn requests_without_a_tenant_use_the_default_tenant() {
    let server = standin().await;
    let routes = open(&server, None, everywhere);
    let own = json!({ "provider": "first", "model": "own-1" });
    routes.set_route(&of(None), "extra", own).await.unwrap();
    assert!(routes.has_route(&of(Some("default")), "extra"));
    assert!(!routes.has_route(&of(Some("acme")), "extra"));
    assert_eq!(routes.route(&of(Some("default")), "extra"), Some(info("first", "own-1", false)));
}

#[tokio::test]
async fn disabled_tenant_route_falls_back_to_the_operators_route() {
    let server = standin().await;
    let routes = open(&server, None, everywhere);
    let own = json!({ "provider": "first", "model": "own-1", "status": "disabled" });
    routes.set_route(&of(Some("acme")), "chat", own).await.unwrap();
    assert_eq!(routes.route(&of(Some("acme")), "chat"), Some(info("first", "m-1", false)));
}

#[tokio::test]
async fn failure_of_a_tenant_route_names_its_fallback() {
    let server = standin().await;
    let gone = Fault::Status { status: 401, retry_after: None, body: None };
    server.fault(FaultRule::new(Pattern::model("own-1"), gone));
    let routes = open(&server, None, everywhere);
    let acme = of(Some("acme"));
    let own = json!({
        "provider": "first", "model": "own-1", "api_key": OWN_KEY,
        "fallback_provider": "second", "fallback_model": "own-2",
    });
    routes.set_route(&acme, "chat", own).await.unwrap();
    assert_eq!(routes.route(&acme, "chat"), Some(info("first", "own-1", true)));
    let answer = call(&routes, &acme).await.unwrap();
    assert_eq!(answer.model, "own-2");
    let failure = answer.attempts[0].error.as_ref().unwrap();
    assert!(failure.message.contains("tenant's route"), "{failure}");
    assert!(!failure.message.contains(OWN_KEY));
    assert_eq!(
        (answer.attempts[1].provider.as_str(), &answer.attempts[1].error),
        ("second", &None)
    );
}

#[tokio::test]
async fn operators_key_is_not_sent_to_the_base_url_of_a_tenant() {
    let server = standin().await;
    let routes = open(&server, None, everywhere);
    let acme = of(Some("acme"));
    let own = json!({ "provider": "first", "model": "m", "base_url": base(&server) });
    routes.set_route(&acme, "chat", own).await.unwrap();
    let failure = call(&routes, &acme).await.unwrap_err();
    assert!(failure.message.contains("requires a key"), "{failure}");
    assert!(!server.requests()[0].headers.contains_key("authorization"));

    // The key of a tenant is not sent to another base URL either.
    let keyed = json!({
        "provider": "first", "model": "m", "base_url": base(&server), "api_key": OWN_KEY,
    });
    routes.set_route(&acme, "chat", keyed).await.unwrap();
    let moved = json!({ "provider": "first", "model": "m", "base_url": server.base_url });
    routes.set_route(&acme, "chat", moved).await.unwrap();
    let shown = routes.get_route(&acme, "chat").await.unwrap().unwrap();
    assert_eq!(shown["has_api_key"], false);
}

#[tokio::test]
async fn tenant_url_cannot_reach_private_addresses() {
    let server = standin().await;
    let routes = open(&server, None, public);
    let acme = of(Some("acme"));
    let lead = |url: &str| json!({ "provider": "openai", "model": "m", "base_url": url });
    for url in ["http://127.0.0.1:1/", "http://10.0.0.1/v1", "http://localhost/", "http://[::1]/"] {
        let failure = routes.set_route(&acme, "chat", lead(url)).await.unwrap_err();
        assert_eq!(failure.code, "invalid", "{url}");
        assert!(failure.message.contains("tenant_private"), "{failure}");
    }
    // A host name is checked when it is used, because it may resolve to another address than when
    // the route was set.
    let host = gethostname();
    let url = format!("http://{host}:{}/v1", server.addr.port());
    let leads_here = tokio::net::lookup_host((host.as_str(), 0)).await;
    if leads_here.is_ok_and(|mut found| found.all(|found| found.ip().is_loopback())) {
        routes.set_route(&acme, "chat", lead(&url)).await.unwrap();
        let failure = call(&routes, &acme).await.unwrap_err();
        assert_eq!(failure.code, "unavailable");
        assert!(server.requests().is_empty());
    }
}

/// Records the caller for whom names are looked up while a completion arrives.
#[derive(Default)]
struct LookupOwner(Mutex<Option<CallerId>>);

impl DeltaSink for LookupOwner {
    fn push(&self, _: Delta) {
        *self.0.lock().unwrap() = Some(current_owner());
    }
}

#[tokio::test]
async fn lookups_count_for_the_caller_of_a_completion() {
    let server = standin().await;
    let routes = open(&server, None, everywhere);
    let one = Caller { owner: CallerId::of_key("one"), ..caller() };
    let sink = LookupOwner::default();
    routes.complete(&one, &ask("hi"), &Blobs::default(), &sink).await.unwrap();
    assert_eq!(*sink.0.lock().unwrap(), Some(one.owner));
}

/// Returns a name that `/etc/hosts` may resolve to this machine.
fn gethostname() -> String {
    std::fs::read_to_string("/etc/hostname").unwrap_or_default().trim().to_owned()
}

#[tokio::test]
async fn error_for_an_invalid_route_document_names_the_field() {
    let server = standin().await;
    let routes = open(&server, None, everywhere);
    let cases = [
        (json!({ "provider": "first", "model": "m", "colour": 1 }), "`colour`"),
        (json!({ "provider": "first" }), "`model`"),
        (json!({ "provider": "first", "model": " " }), "`model`"),
        (json!({ "provider": "acme", "model": "m" }), "`provider`"),
        (json!({ "provider": "first", "model": "m", "base_url": "ftp://x" }), "`base_url`"),
        (json!({ "provider": "first", "model": "m", "timeout_ms": 0 }), "`timeout_ms`"),
        (json!({ "provider": "gemini", "model": "m", "enable_thinking": true }), "`enable_thin"),
        (json!({ "provider": "first", "model": "m", "extra_json": "[1]" }), "`extra_json`"),
        (json!({ "provider": "first", "model": "m", "extra_json": "{" }), "`extra_json`"),
        (json!({ "provider": "first", "model": "m", "extra_json": { "n": 1 } }), "`n`"),
        (json!({ "provider": "first", "model": "m", "fallback_provider": "x" }), "`fallback_model"),
        (
            json!({ "provider": "first", "model": "m", "fallback_provider": "x", "fallback_model": "y" }),
            "`fallback_provider`",
        ),
        (json!({ "provider": "first", "model": "m", "status": "gone" }), "`gone`"),
        (json!({ "provider": "first", "model": "m".repeat(20_000) }), "bytes"),
    ];
    for (document, word) in cases {
        let failure = routes.set_route(&of(None), "chat", document).await.unwrap_err();
        assert_eq!(failure.code, "invalid", "{failure}");
        assert!(failure.message.contains(word), "{failure}");
    }
    let fine = json!({ "provider": "first", "model": "m" });
    let failure = routes.set_route(&of(None), "no/name", fine).await.unwrap_err();
    assert_eq!(failure.code, "invalid");
    assert_eq!(routes.get_route(&of(None), "chat").await.unwrap(), None);
}

fn file(folder: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(folder.join("tenant-routes.json")).unwrap()).unwrap()
}

#[tokio::test]
async fn tenant_routes_survive_a_restart_in_a_private_file() {
    let server = standin().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tenant-routes.json");
    let routes = open(&server, Some(path.clone()), everywhere);
    assert!(!path.exists());
    let own = json!({ "provider": "second", "model": "own-1", "api_key": OWN_KEY });
    for tenant in ["acme", "bolt"] {
        routes.set_route(&of(Some(tenant)), "chat", own.clone()).await.unwrap();
    }
    routes.remove_route(&of(Some("bolt")), "chat").await.unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    assert_eq!(file(folder.path())["routes"].as_array().unwrap().len(), 1);

    let again = open(&server, Some(path.clone()), everywhere);
    assert_eq!(call(&again, &of(Some("acme"))).await.unwrap().model, "own-1");
    assert_eq!(again.configured_models("chat"), ["m-1"], "none of the tenant");
    assert_eq!(again.route(&of(Some("bolt")), "chat"), Some(info("first", "m-1", false)));

    // The operator removed the provider, so the call fails. The tenant does not get another model.
    let config = table("openai", &base(&server), &json!({}), &json!({}));
    let config: ModelConfig = serde_json::from_value(config).unwrap();
    let less = Routes::new(config, &|_| Some(KEY.to_owned())).unwrap();
    let less =
        less.with_tenants(TenantRoutesConfig { file: Some(path.clone()), reachable: everywhere });
    let less = less.unwrap();
    assert!(less.startup_warnings()[0].contains("`acme`"), "{:?}", less.startup_warnings());
    let failure = call(&less, &of(Some("acme"))).await.unwrap_err();
    assert_eq!(failure.code, "unavailable");
    assert!(failure.message.contains("`second`"), "{failure}");

    std::fs::write(&path, "{}").unwrap();
    let config = ModelConfig::default();
    let broken = Routes::new(config, &|_| None).unwrap();
    let error = broken.with_tenants(TenantRoutesConfig { file: Some(path), reachable: everywhere });
    assert!(error.unwrap_err().to_string().contains("tenant-routes.json"));
}

#[test]
fn error_for_a_folder_in_place_of_the_file_of_routes_has_advice() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tenant-routes.json");
    std::fs::create_dir(&path).unwrap();
    let routes = Routes::new(ModelConfig::default(), &|_| None).unwrap();
    let error = routes.with_tenants(TenantRoutesConfig { file: Some(path), reachable: everywhere });
    let error = error.unwrap_err().to_string();
    assert!(error.contains("tenant-routes.json`: it is a folder"), "{error}");
    assert!(error.contains("move the folder away"), "{error}");
}

#[tokio::test]
async fn tenant_routes_are_unsupported_unless_enabled() {
    let routes = Routes::new(ModelConfig::default(), &|_| None).unwrap();
    let own = json!({ "provider": "openai", "model": "m" });
    let failure = routes.set_route(&of(None), "chat", own).await.unwrap_err();
    assert_eq!(failure.code, "unsupported");
}
