//! The studio as a server serves it: paths, headers, keys, and its own address.

use std::path::Path;
use std::sync::Arc;

use reqwest::header::HeaderMap;
use serde_json::{Value, json};
use wattle::error::Error;
use wattle::server::{Server, ServerOptions};

use crate::fixture::{Fixture, answer, config, options, write_app};
use crate::keys::{make, with};
use crate::loading::{SlowSandbox, serve};

const INDEX: &str = "<!doctype html><html><head><title>Studio</title></head></html>";

/// The configuration of a host with keys.
const WITH_KEYS: &str = "[auth]\nkeys_env = \"KEYS\"\n";

/// The key of the host of [`WITH_KEYS`].
const KEY: &str = "k-operator";

/// Writes the files of a built studio.
fn build(base: &Path) {
    let dist = base.join("studio/dist");
    std::fs::create_dir_all(dist.join("assets")).unwrap();
    std::fs::write(dist.join("index.html"), INDEX).unwrap();
    std::fs::write(dist.join("assets/main-1a2b.js"), "run()").unwrap();
}

/// Returns the options of a server with the studio of a folder. [`KEY`] is the value of `KEYS`.
fn with_studio(base: &Path) -> ServerOptions {
    let mut options = options();
    options.overrides.studio = Some(base.join("studio"));
    options.overrides.env = Some(Arc::new(|name: &str| (name == "KEYS").then(|| KEY.to_owned())));
    options
}

/// Starts a server with a built studio and an app.
async fn start(app: &str, toml: &str) -> Fixture {
    let folder = tempfile::tempdir().unwrap();
    write_app(&folder.path().join("plugins"), app);
    build(folder.path());
    let options = with_studio(folder.path());
    Fixture::start_as(folder, toml, options).await
}

/// Returns status, headers and text of a page.
async fn page(fixture: &Fixture, url: String) -> (u16, HeaderMap, String) {
    let response = fixture.client.get(url).send().await.unwrap();
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    (status, headers, response.text().await.unwrap())
}

/// Returns true if a text is the index document and has the base URL `base`.
fn is_index(text: &str, base: &str) -> bool {
    text == INDEX.replace("<head>", &format!("<head><base href=\"{base}\">"))
}

#[tokio::test]
async fn every_path_of_the_studio_returns_the_document_with_a_base_and_a_strict_policy() {
    let fixture = start("greeter", "").await;
    for (path, base) in [
        ("/", "./studio/"),
        ("/studio", "studio/"),
        ("/studio/", "./"),
        ("/studio/threads", "./"),
        ("/studio/threads/a%2Fb", "../"),
        ("/studio/threads/t/runs/r?view=graph", "../../../"),
        ("/studio/index.html", "./"),
    ] {
        let (status, headers, text) = page(&fixture, fixture.url(path)).await;
        assert_eq!(status, 200, "{path}");
        assert!(is_index(&text, base), "{path}: {text}");
        assert_eq!(headers["content-type"], "text/html; charset=utf-8");
        assert_eq!(headers["cache-control"], "no-cache");
        assert_eq!(headers["x-content-type-options"], "nosniff");
        let policy = headers["content-security-policy"].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'self';"), "{policy}");
        assert!(policy.contains("frame-ancestors 'none'") && !policy.contains("frame-src"));
        assert!(!policy.contains("unsafe") && !policy.contains('*'), "{policy}");
    }
    let head = fixture.client.head(fixture.url("/")).send().await.unwrap();
    assert_eq!((head.status().as_u16(), head.text().await.unwrap().as_str()), (200, ""));
    let url = fixture.server.studio_url().unwrap();
    assert_eq!(url, fixture.url("/studio/"));
}

#[tokio::test]
async fn files_are_immutable_and_files_of_another_version_are_missing() {
    let fixture = start("greeter", "").await;
    let (status, headers, text) = page(&fixture, fixture.url("/studio/assets/main-1a2b.js")).await;
    assert_eq!((status, text.as_str()), (200, "run()"));
    assert_eq!(headers["content-type"], "text/javascript; charset=utf-8");
    assert_eq!(headers["cache-control"], "public, max-age=31536000, immutable");
    for path in ["/studio/assets/main-0000.js", "/studio/assets/"] {
        let (status, problem) = fixture.get(path).await;
        assert_eq!((status, &problem["code"]), (404, &json!("not-found")), "{path}");
        assert!(problem["detail"].as_str().unwrap().contains("reload the page"), "{problem}");
    }
}

#[tokio::test]
async fn a_studio_that_is_not_built_says_how_to_build_it() {
    let folder = tempfile::tempdir().unwrap();
    let options = with_studio(folder.path());
    let fixture = Fixture::start_as(folder, "", options).await;
    for path in ["/", "/studio/", "/studio/assets/main-1a2b.js"] {
        let (status, headers, text) = page(&fixture, fixture.url(path)).await;
        assert_eq!(status, 404, "{path}");
        assert_eq!(headers["content-type"], "text/html; charset=utf-8");
        assert!(text.contains("<code>cargo xtask pages</code>"), "{text}");
        assert!(headers.contains_key("content-security-policy"));
    }
    build(fixture.folder.path());
    let (status, _, text) = page(&fixture, fixture.url("/studio/")).await;
    assert_eq!(status, 200);
    assert!(is_index(&text, "./"), "{text}");
}

#[tokio::test]
async fn a_host_without_the_studio_serves_no_path_of_the_studio() {
    let fixture = start("greeter", "[server]\nstudio = false\n").await;
    for path in ["/", "/studio", "/studio/", "/studio/assets/main-1a2b.js"] {
        assert_eq!(fixture.get(path).await.1["code"], "not-found", "{path}");
    }
    assert_eq!(fixture.server.studio_url(), None);
}

#[tokio::test]
async fn files_need_no_key_and_data_needs_one() {
    let fixture = start("greeter", WITH_KEYS).await;
    for path in ["/", "/studio/", "/studio/threads/t", "/studio/assets/main-1a2b.js"] {
        assert_eq!(page(&fixture, fixture.url(path)).await.0, 200, "{path}");
        let foreign = fixture.client.get(fixture.url(path)).header("host", "evil.example");
        assert_eq!(answer(foreign).await.0, 421, "{path}");
    }
    for path in ["/api/v1/access", "/api/v1/threads", "/apps/greeter/echo/x", "/echo/x"] {
        assert_eq!(fixture.get(path).await.0, 401, "{path}");
    }
    let post = || fixture.client.post(fixture.url("/studio/"));
    assert_eq!(answer(post()).await.0, 401);
    assert_eq!(answer(post().bearer_auth(KEY)).await.0, 405);
    let post = fixture.client.post(fixture.url("/"));
    assert_eq!(answer(post).await.0, 401);
}

#[tokio::test]
async fn the_root_of_a_mounted_app_stays_behind_its_key() {
    let mount = "[apps.rooted]\nmount = \"/\"\n";
    let fixture = start("rooted", mount).await;
    assert_eq!(fixture.get("/").await.1["path"], "/");
    let (status, _, text) = page(&fixture, fixture.url("/studio/")).await;
    assert!(status == 200 && is_index(&text, "./"), "{text}");

    let fixture = start("rooted", &format!("{mount}{WITH_KEYS}")).await;
    for method in ["GET", "HEAD"] {
        let method = method.parse().unwrap();
        let request = fixture.client.request(method, fixture.url("/"));
        assert_eq!(request.send().await.unwrap().status(), 401);
    }
    let (status, echo) = answer(with(&fixture, KEY, "GET", "/")).await;
    assert_eq!((status, &echo["path"]), (200, &json!("/")));

    // An app that is mounted at `/` and has no endpoint there leaves the path `/` to the studio.
    let fixture = start("greeter", "[apps.greeter]\nmount = \"/\"\n").await;
    assert_eq!(fixture.get("/echo/x").await.1["word"], "x");
    assert!(is_index(&page(&fixture, fixture.url("/")).await.2, "./studio/"));
}

#[tokio::test]
async fn the_root_of_an_app_that_is_being_loaded_stays_behind_its_key() {
    let (slow, folder) = (SlowSandbox::new(), tempfile::tempdir().unwrap());
    let plugins = folder.path().join("plugins");
    write_app(&plugins, "rooted");
    std::fs::write(plugins.join("rooted/rooted.wasm"), "native slow rooted").unwrap();
    let fixture = serve(folder, "[apps.rooted]\nmount = \"/\"\n", &slow).await;
    let wanted = json!({ "name": "operator", "scopes": ["admin"] });
    let (_, operator) = make(&fixture, "of-nobody", wanted).await;
    slow.compiles(1).await;
    assert_eq!(fixture.get("/").await.0, 401);
    assert_eq!(answer(with(&fixture, &operator, "GET", "/")).await.0, 503);
    slow.release(1);
    loop {
        match answer(with(&fixture, &operator, "GET", "/")).await.0 {
            200 => break,
            status => assert_eq!(status, 503),
        }
    }
    assert_eq!(fixture.get("/").await.0, 401);
}

#[tokio::test]
async fn an_app_cannot_be_mounted_at_the_path_of_the_studio() {
    let folder = tempfile::tempdir().unwrap();
    write_app(&folder.path().join("plugins"), "greeter");
    let mount = "[apps.greeter]\nmount = \"/studio\"\n";
    let refused = Server::start(config(folder.path(), mount), options()).await.err().unwrap();
    assert!(matches!(refused, Error::Mount(_)));
    let text = refused.to_string();
    assert!(text.contains("`greeter` claims `/studio/start`"), "{text}");
    assert!(text.contains("set `studio = false`"), "{text}");
    let fixture = start("greeter", &format!("[server]\nstudio = false\n{mount}")).await;
    assert_eq!(fixture.get("/studio/echo/x").await.1["word"], "x");
}

#[tokio::test]
async fn the_separate_address_serves_the_api_and_the_studio_without_apps() {
    let toml = "[server]\nstudio_listen = \"127.0.0.1:0\"\n[apps.greeter]\nmount = \"/\"\n";
    let fixture = start("greeter", toml).await;
    let own = fixture.server.studio_addr.unwrap();
    let at = |path: &str| format!("http://{own}{path}");
    for (path, base) in [("/", "./studio/"), ("/studio/", "./"), ("/studio/threads/t", "../")] {
        let (status, _, text) = page(&fixture, at(path)).await;
        assert!(status == 200 && is_index(&text, base), "{path}: {text}");
        assert_eq!(fixture.get(path).await.0, 404, "{path} of the main address");
    }
    assert_eq!(fixture.server.studio_url(), Some(at("/studio/")));
    let get = async |path: &str| answer(fixture.client.get(at(path))).await;
    assert_eq!(get("/api/v1/access").await.1["apps"], false);
    assert_eq!(fixture.get("/api/v1/access").await.1["apps"], true);
    assert_eq!(get("/ok").await.0, 200, "the Agent Server");
    assert_eq!(get("/api/v1/apps").await.1[0]["name"], "greeter");
    for path in ["/apps/greeter/echo/x", "/echo/x", "/apps/greeter/"] {
        assert_eq!(get(path).await.1["code"], "not-found", "{path}");
    }
    assert_eq!(fixture.get("/echo/x").await.0, 200);
    let described = |document: &Value| {
        document["paths"].as_object().unwrap().keys().any(|path| path.starts_with("/apps/"))
    };
    assert!(!described(&get("/openapi.json").await.1));
    assert!(described(&fixture.get("/openapi.json").await.1));
}

#[tokio::test]
async fn the_operator_is_warned_if_pages_have_the_origin_of_the_studio() {
    for (toml, is_warned) in [
        (WITH_KEYS.to_owned(), true),
        (String::new(), false),
        (format!("{WITH_KEYS}[apps.notes]\n"), false),
        (format!("{WITH_KEYS}[server]\nstudio = false\n"), false),
        (format!("{WITH_KEYS}[server]\nstudio_listen = \"127.0.0.1:0\"\n"), false),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let notes = folder.path().join("plugins/notes");
        std::fs::create_dir_all(&notes).unwrap();
        let manifest = "[app]\nname = \"notes\"\nversion = \"0.1.0\"\ndoc = \"shows notes\"\n\
                        [page]\ntitle = \"Notes\"\nfolder = \"page\"\n";
        std::fs::write(notes.join("app.toml"), manifest).unwrap();
        let options = with_studio(folder.path());
        let fixture = Fixture::start_as(folder, &toml, options).await;
        let warnings = fixture.server.warnings();
        let is_found =
            |warning: &String| warning.contains("`notes`") && warning.contains("`studio_listen`");
        assert_eq!(warnings.iter().any(is_found), is_warned, "{toml}: {warnings:?}");
    }
}
