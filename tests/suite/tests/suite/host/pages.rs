//! The pages of apps, as the host serves them: their paths, headers and refusals.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use wattle_suite::answer::Answer;
use wattle_suite::server::{Setup, TestServer};

const INDEX: &str = "<!doctype html><html><head><title>Notes</title></head><body></body></html>";

const APP: &str = r#"
[app]
name = "notes"
version = "0.1.0"
doc = "shows notes"
[page]
title = "Notes"
folder = "page/dist"
paths = ["/", "/note/{id}"]
examples = ["write this down"]
"#;

/// Creates a server with an app that has only a page.
async fn setup() -> Setup {
    let setup = Setup::bare().await;
    let file = |name: &str, content: &str| {
        setup.workspace.write(&format!("plugins/notes/{name}"), content);
    };
    file("app.toml", APP);
    file("page/dist/index.html", INDEX);
    file("page/dist/assets/main-1a2b.js", "plain");
    file("page/dist/assets/main-1a2b.js.br", "brotli");
    file("page/dist/assets/main-1a2b.js.gz", "gzip");
    file("page/dist/icon.svg", "<svg/>");
    setup
}

async fn get(server: &TestServer, path: &str) -> Answer {
    Answer::of(server.client.get(server.url(path))).await
}

/// Returns a response as it arrives on the connection. An HTTP client would resolve dots in the
/// path and decompress the body.
async fn raw(server: &TestServer, path: &str, headers: &str) -> String {
    let address = server.running.addr;
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    let request =
        format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).await.expect("the request is sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.expect("a response");
    String::from_utf8(answer).expect("text")
}

/// Returns the base of relative URLs in a document.
fn base(page: &Answer) -> &str {
    let text = page.body.as_str().expect("a document");
    text.split("<head><base href=\"").nth(1).expect("a base").split('"').next().unwrap_or_default()
}

#[tokio::test]
async fn the_entry_document_is_served_at_its_paths_with_a_base_and_a_strict_policy() {
    let server = setup().await.start().await;
    for (path, expected) in
        [("/apps/notes/", "./"), ("/apps/notes", "notes/"), ("/apps/notes/note/7", "../")]
    {
        let page = get(&server, path).await;
        assert_eq!(page.status, 200, "{path}");
        assert_eq!(base(&page), expected, "{path}");
        assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
        assert_eq!(page.header("cache-control"), "no-cache");
        assert_eq!(page.header("x-content-type-options"), "nosniff");
        let policy = page.header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'; script-src 'self';"), "{policy}");
        assert!(!policy.contains("unsafe") && !policy.contains('*'), "{policy}");
    }
    for path in ["/apps/notes/other", "/apps/notes/note/7/8", "/apps/notes/note/"] {
        assert_eq!(get(&server, path).await.status, 404, "{path}");
    }
    let posted = Answer::of(server.client.post(server.url("/apps/notes/"))).await;
    assert_eq!(posted.status, 404);
}

#[tokio::test]
async fn files_are_precompressed_immutable_and_have_an_etag() {
    let server = setup().await.start().await;
    let path = "/apps/notes/assets/main-1a2b.js";
    for (accepted, encoding, body) in
        [("br, gzip", "br", "brotli"), ("gzip", "gzip", "gzip"), ("identity", "", "plain")]
    {
        let accept = format!("accept-encoding: {accepted}\r\n");
        let answer = raw(&server, path, &accept).await;
        let header = |name: &str| {
            let mut lines = answer.lines();
            lines.find_map(|line| line.strip_prefix(&format!("{name}: "))).unwrap_or_default()
        };
        assert_eq!(header("content-encoding"), encoding, "{answer}");
        assert_eq!(header("content-type"), "text/javascript; charset=utf-8");
        assert_eq!(header("cache-control"), "public, max-age=31536000, immutable");
        assert_eq!(header("vary"), "accept-encoding");
        assert!(answer.ends_with(&format!("\r\n\r\n{body}")), "{answer}");
        let known = format!("{accept}if-none-match: {}\r\n", header("etag"));
        let again = raw(&server, path, &known).await;
        assert!(again.starts_with("HTTP/1.1 304"), "{again}");
    }
    let icon = get(&server, "/apps/notes/icon.svg").await;
    assert_eq!((icon.status, icon.header("cache-control")), (200, "no-cache"));
    assert_eq!(icon.header("content-type"), "image/svg+xml");
}

#[tokio::test]
async fn only_the_files_of_the_page_are_served() {
    let server = setup().await.start().await;
    for path in [
        "/apps/notes/app.toml",
        "/apps/notes/../notes/app.toml",
        "/apps/notes/assets/../../../app.toml",
        "/apps/notes/assets/%2e%2e/%2e%2e/%2e%2e/app.toml",
        "/apps/notes/..%2f..%2fapp.toml",
        "/apps/notes/assets/main-1a2b.js.br",
        "/apps/notes/assets/",
        "/apps/notes/index.html",
        "/apps/notes//icon.svg",
    ] {
        let answer = raw(&server, path, "").await;
        assert!(answer.starts_with("HTTP/1.1 404"), "{path}: {answer}");
    }
}

#[tokio::test]
async fn a_page_is_also_served_at_its_mount_and_on_its_own_address() {
    let table = "[apps.notes]\npath = \"plugins/notes\"\nmount = \"/\"\nlisten = \"127.0.0.1:0\"\n";
    let server = setup().await.with(table).start().await;
    assert_eq!(base(&get(&server, "/").await), "./");
    assert_eq!(base(&get(&server, "/note/7").await), "../");
    assert_eq!(get(&server, "/icon.svg").await.status, 200);
    let own = server.running.app_addrs.values().next().expect("an address of the app");
    let page = Answer::of(server.client.get(format!("http://{own}/note/7"))).await;
    assert_eq!((page.status, base(&page)), (200, "../"));
    let apps = get(&server, "/api/v1/apps").await;
    let page = &apps.body[0]["page"];
    assert_eq!(page["title"], "Notes");
    assert_eq!(page["path"], "/");
    assert_eq!(page["examples"][0], "write this down");
    assert_eq!(page["built"], true);
}

#[tokio::test]
async fn a_page_that_is_not_built_names_the_build_command() {
    let setup = setup().await;
    std::fs::remove_dir_all(setup.workspace.plugins().join("notes/page")).expect("removed");
    let server = setup.start().await;
    let page = get(&server, "/apps/notes/").await;
    assert_eq!(page.status, 404);
    let detail = page.body["detail"].as_str().unwrap_or_default();
    assert!(detail.contains("cargo xtask pages"), "{detail}");
    assert_eq!(get(&server, "/api/v1/apps/notes").await.body["page"]["built"], false);
}

#[tokio::test]
async fn a_new_build_is_served_after_a_reload() {
    let server = setup().await.start().await;
    server.setup.workspace.write("plugins/notes/page/dist/assets/main-3c4d.js", "new");
    assert_eq!(get(&server, "/apps/notes/assets/main-3c4d.js").await.status, 404);
    assert_eq!(server.running.reload().await.len(), 1);
    assert_eq!(get(&server, "/apps/notes/assets/main-3c4d.js").await.status, 200);
}

#[tokio::test]
async fn a_page_with_a_link_or_outside_of_its_folder_does_not_load() {
    for (from, to, expected) in [
        ("page/dist", "../notes", "not inside"),
        ("page/dist", "page/link", "leads out"),
        ("\"/note/{id}\"", "\"note\"", "does not begin with"),
    ] {
        let setup = setup().await;
        let notes = setup.workspace.plugins().join("notes");
        std::os::unix::fs::symlink("/usr", notes.join("page/link")).expect("a link");
        setup.workspace.write("plugins/notes/app.toml", APP.replace(from, to));
        let server = setup.start().await;
        let problems = get(&server, "/api/v1/problems").await;
        let message = problems.body[0]["message"].as_str().unwrap_or_default();
        assert!(message.contains(expected), "{message}");
        assert_eq!(get(&server, "/apps/notes/").await.status, 404);
    }
}
