//! Plugins that the operator installs over the API: who may, what is refused, and that nothing is
//! left of what was refused.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::Request;
use axum::http::request::Builder;
use futures::stream;
use reqwest::RequestBuilder;
use serde_json::{Value, json};
use tower::ServiceExt as _;
use wattle::host::Host;
use wattle_api::guard::limits::INSTALL_BYTES;
use wattle_api::{Operator, unguarded_router};
use wattle_run::free_disk::DiskSpace;
use wattle_run::limit::FREE_DISK_BYTES;

use crate::fixture::{Fixture, answer, config, options, write_app};
use crate::keys::{make, start, with};
use crate::loading::{SlowSandbox, serve};

const INSTALL: &str = "[server]\ninstall = true\n";

const SHARED: &str = "/api/v1/plugins/shared";

/// Creates a request with a component.
fn put(fixture: &Fixture, key: &str, path: &str, component: &'static str) -> RequestBuilder {
    as_wasm(with(fixture, key, "PUT", path)).body(component)
}

fn as_wasm(request: RequestBuilder) -> RequestBuilder {
    request.header("content-type", "application/wasm")
}

/// Returns the names of the entries of the plugins folder.
fn installed(fixture: &Fixture) -> Vec<String> {
    let entries = std::fs::read_dir(plugins(fixture)).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn plugins(fixture: &Fixture) -> PathBuf {
    fixture.folder.path().join("plugins")
}

#[tokio::test]
async fn only_an_operator_with_a_key_installs_on_a_host_that_allows_it() {
    let (fixture, operator) = start("").await;
    let (status, off) = answer(put(&fixture, &operator, SHARED, "native")).await;
    assert_eq!(status, 403, "{off}");
    assert!(off["detail"].as_str().unwrap().contains("`install = true` under `[server]`"), "{off}");

    let keyless = Fixture::start(INSTALL).await;
    let (status, refused) = answer(put(&keyless, "of-nobody", SHARED, "native")).await;
    assert_eq!(status, 403, "{refused}");
    assert!(refused["detail"].as_str().unwrap().contains("needs an API key"), "{refused}");
    assert_eq!(keyless.get("/api/v1/access").await.1["install"], false);

    let (fixture, operator) = start(INSTALL).await;
    let wanted = [
        json!({ "name": "w", "scopes": ["write"] }),
        json!({ "name": "acme", "tenant": "acme", "scopes": ["admin"] }),
    ];
    for wanted in wanted {
        let (_, key) = make(&fixture, &operator, wanted).await;
        for request in [
            put(&fixture, &key, SHARED, "native"),
            as_wasm(with(&fixture, &key, "POST", "/api/v1/plugins/shared/check")).body("native"),
            with(&fixture, &key, "DELETE", SHARED),
        ] {
            assert_eq!(answer(request).await.0, 403);
        }
        let (_, access) = answer(with(&fixture, &key, "GET", "/api/v1/access")).await;
        assert_eq!(access["install"], false, "{access}");
    }
    let (_, access) = answer(with(&fixture, &operator, "GET", "/api/v1/access")).await;
    assert_eq!(access["install"], true, "{access}");
    assert_eq!(installed(&fixture), ["greeter"]);
}

/// Sends a request to a router in this process, and returns the status and the JSON body.
async fn send(
    router: &Router,
    is_operator: bool,
    request: Builder,
    body: impl Into<Body>,
) -> (u16, Value) {
    let request = if is_operator { request.extension(Operator) } else { request };
    let request = request.body(body.into()).unwrap();
    let response = router.clone().oneshot(request).await.unwrap();
    let status = response.status().as_u16();
    let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    (status, serde_json::from_slice(&bytes).unwrap())
}

#[tokio::test]
async fn the_operator_in_the_same_process_installs_without_a_key() {
    for (toml, allows_install) in [("", false), (INSTALL, true)] {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("plugins")).unwrap();
        let config = config(folder.path(), toml);
        let host = Box::pin(Host::open(config, options().overrides)).await.unwrap();
        let router = unguarded_router(host.api_state().unwrap());
        for is_operator in [true, false] {
            let may_install = allows_install && is_operator;
            let request = Request::get("/api/v1/access");
            let (_, access) = send(&router, is_operator, request, "").await;
            assert_eq!(access["install"], may_install, "{access}");
            let request = Request::post(format!("{SHARED}/check"));
            let request = request.header("content-type", "application/wasm");
            let (status, checked) = send(&router, is_operator, request, "native").await;
            assert_eq!(status, if may_install { 200 } else { 403 }, "{checked}");
        }
        host.close().await;
    }
}

#[tokio::test]
async fn plugin_is_refused_below_the_floor_of_free_disk_space_before_its_body_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let plugins = folder.path().join("plugins");
    std::fs::create_dir(&plugins).unwrap();
    let mut overrides = options().overrides;
    let full = || -> io::Result<DiskSpace> {
        Ok(DiskSpace { total_bytes: 1 << 40, free_bytes: FREE_DISK_BYTES - 1 })
    };
    overrides.disk_space = Some(Arc::new(full));
    let config = config(folder.path(), INSTALL);
    let host = Box::pin(Host::open(config, overrides)).await.unwrap();
    let router = unguarded_router(host.api_state().unwrap());
    let request = Request::put(SHARED).header("content-type", "application/wasm");
    let unreadable = stream::iter([Err::<&str, _>(io::Error::other("the body is read"))]);
    let (status, refused) = send(&router, true, request, Body::from_stream(unreadable)).await;
    assert_eq!((status, &refused["code"]), (503, &json!("unavailable")), "{refused}");
    assert_eq!(refused["details"]["limit"], "free_disk");
    assert_eq!(std::fs::read_dir(&plugins).unwrap().count(), 0);
    host.close().await;
}

#[tokio::test]
async fn a_plugin_is_checked_installed_replaced_and_removed() {
    let (fixture, key) = start(INSTALL).await;
    let component = "native\nllm = [\"chat\"]\n";
    let line = json!([{ "need": "llm", "line": "llm = [\"chat\"]", "table": "grants.shared" }]);
    let path = format!("{SHARED}/check");
    let check = as_wasm(with(&fixture, &key, "POST", &path)).body(component);
    let (status, checked) = answer(check).await;
    assert_eq!((status, &checked["plugin"]["missing"]), (200, &line), "{checked}");
    assert_eq!(installed(&fixture), ["greeter"], "a check installs nothing");

    let (status, first) = answer(put(&fixture, &key, SHARED, component)).await;
    assert_eq!((status, first.get("replaces")), (200, None), "{first}");
    let (_, found) = answer(with(&fixture, &key, "GET", SHARED)).await;
    assert_eq!((&found[0]["missing"], &found[0]["digest"]), (&line, &first["plugin"]["digest"]));
    let (status, second) = answer(put(&fixture, &key, SHARED, "native too")).await;
    assert_eq!((status, &second["replaces"]), (200, &first["plugin"]["digest"]), "{second}");

    let (status, broken) = answer(put(&fixture, &key, SHARED, "text")).await;
    assert_eq!((status, &broken["details"]["reason"]), (400, &json!("not-wasm")), "{broken}");
    let (_, found) = answer(with(&fixture, &key, "GET", SHARED)).await;
    assert_eq!(found[0]["digest"], second["plugin"]["digest"], "the old version remains");
    assert_eq!(installed(&fixture), ["greeter", "shared.wasm"]);

    let remove = || answer_without_body(with(&fixture, &key, "DELETE", SHARED));
    assert_eq!((remove().await, remove().await), (204, 404));
    assert_eq!(answer(with(&fixture, &key, "GET", SHARED)).await.0, 404);
    assert_eq!(installed(&fixture), ["greeter"]);
}

/// Returns the status of a response.
async fn answer_without_body(request: RequestBuilder) -> u16 {
    request.send().await.unwrap().status().as_u16()
}

#[tokio::test]
async fn what_has_a_name_of_something_else_is_refused() {
    let (fixture, key) = start(INSTALL).await;
    let plugins = plugins(&fixture);
    for path in ["%2E%2E%2Fevil", "..%2F..%2Fevil", ".hidden", "a%2Fb", "a%00b", "%D0%B0sset", "1"]
    {
        let path = format!("/api/v1/plugins/{path}");
        let status = answer_without_body(put(&fixture, &key, &path, "native")).await;
        assert_eq!(status, 400, "{path}");
    }
    let (status, taken) = answer(put(&fixture, &key, "/api/v1/plugins/greeter", "native")).await;
    assert_eq!(status, 409, "the grants of the app would have two owners: {taken}");

    std::fs::create_dir(plugins.join("tools")).unwrap();
    std::fs::write(plugins.join("tools/shared.wasm"), "native shared").unwrap();
    fixture.server.reload().await;
    let (status, elsewhere) = answer(put(&fixture, &key, SHARED, "native")).await;
    assert_eq!(status, 409, "{elsewhere}");
    assert!(elsewhere["detail"].as_str().unwrap().contains("tools/shared.wasm"), "{elsewhere}");
    assert_eq!(answer_without_body(with(&fixture, &key, "DELETE", SHARED)).await, 409);
    assert_eq!(installed(&fixture), ["greeter", "tools"]);
}

#[cfg(unix)]
#[tokio::test]
async fn nothing_is_written_through_a_link() {
    let (fixture, key) = start(INSTALL).await;
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("secret");
    std::fs::write(&secret, "kept").unwrap();
    std::os::unix::fs::symlink(&secret, plugins(&fixture).join("shared.wasm")).unwrap();
    let (status, link) = answer(put(&fixture, &key, SHARED, "native")).await;
    assert_eq!(status, 409, "{link}");
    assert!(link["detail"].as_str().unwrap().contains("no regular file"), "{link}");
    assert_eq!(std::fs::read_to_string(secret).unwrap(), "kept");
}

#[tokio::test]
async fn what_is_too_large_compressed_or_no_component_is_refused() {
    let (fixture, key) = start(&format!("{INSTALL}body_limit = \"1KiB\"\n")).await;
    let request = || with(&fixture, &key, "PUT", SHARED);
    let large = as_wasm(request()).body(vec![0_u8; INSTALL_BYTES + 1]);
    let (status, refused) = answer(large).await;
    assert_eq!(status, 413, "{refused}");
    // A body that the host would have to decompress is not read.
    let bomb = as_wasm(request()).header("content-encoding", "gzip").body("native");
    assert_eq!(answer(bomb).await.0, 415);
    for media_type in ["application/json", "application/gzip", "text/plain"] {
        let other = request().header("content-type", media_type).body("native");
        assert_eq!(answer(other).await.0, 415, "{media_type}");
    }
    assert_eq!(installed(&fixture), ["greeter"]);
    // The limit of other bodies does not apply.
    let larger = as_wasm(request()).body(format!("native{}", " ".repeat(2_000)));
    assert_eq!(answer(larger).await.0, 200);
}

#[tokio::test]
async fn of_two_installations_at_once_one_is_told_to_try_again() {
    let (slow, folder) = (SlowSandbox::new(), tempfile::tempdir().unwrap());
    std::fs::create_dir(folder.path().join("plugins")).unwrap();
    let fixture = serve(folder, INSTALL, &slow).await;
    let wanted = json!({ "name": "operator", "scopes": ["admin"] });
    let (_, key) = make(&fixture, "of-nobody", wanted).await;
    let first = tokio::spawn(answer(put(&fixture, &key, SHARED, "native slow")));
    slow.compiles(1).await;
    assert!(installed(&fixture).is_empty(), "nothing is written before the component is compiled");
    let (status, busy) = answer(put(&fixture, &key, "/api/v1/plugins/other", "native")).await;
    assert_eq!((status, &busy["code"]), (409, &json!("busy")), "{busy}");
    slow.release(1);
    let (status, done) = first.await.unwrap();
    assert_eq!(status, 200, "{done}");
    assert_eq!(answer(put(&fixture, &key, "/api/v1/plugins/other", "native")).await.0, 200);
    assert_eq!(installed(&fixture), ["other.wasm", "shared.wasm"]);
}

#[tokio::test]
async fn an_app_gets_the_installed_version_of_its_plugin_which_cannot_be_removed() {
    let folder = tempfile::tempdir().unwrap();
    let plugins = folder.path().join("plugins");
    write_app(&plugins, "greeter");
    std::fs::write(plugins.join("shared.wasm"), "native shared").unwrap();
    let graph = "[graphs.G]\nentry = \"greet\"\n[graphs.G.nodes.greet]\nplugin = \"shared\"\n";
    std::fs::write(plugins.join("greeter/graph.toml"), graph).unwrap();
    let fixture = Fixture::start_in(folder, INSTALL).await;
    let wanted = json!({ "name": "operator", "scopes": ["admin"] });
    let (_, key) = make(&fixture, "of-nobody", wanted).await;
    let used = answer(with(&fixture, &key, "DELETE", SHARED)).await;
    assert_eq!(used.0, 409, "{}", used.1);
    assert!(used.1["detail"].as_str().unwrap().contains("the app `greeter` uses"), "{}", used.1);
    let (status, newer) = answer(put(&fixture, &key, SHARED, "native and new")).await;
    assert_eq!(status, 200, "{newer}");
    // The app is read again in the background.
    let used = async || {
        let (_, found) = answer(with(&fixture, &key, "GET", SHARED)).await;
        found[0]["digest"].clone()
    };
    while used().await != newer["plugin"]["digest"] {}
}
