//! Endpoints of apps.

use serde_json::json;
use wattle::error::Error;
use wattle::server::Server;

use crate::fixture::{Fixture, answer, config, options, write_app};

#[tokio::test]
async fn endpoints_of_an_app_are_below_its_name() {
    let fixture = Fixture::start("").await;
    let echo = fixture.url("/apps/greeter/echo/a%20b?x=1&x=2&y=%C3%A9");
    let request = fixture.client.get(echo).header("authorization", "Bearer s3cret");
    let response = request.header("cookie", "a=b").send().await.unwrap();
    assert!(!response.headers().contains_key("access-control-allow-origin"));
    let echo: serde_json::Value = response.json().await.unwrap();
    assert_eq!((&echo["word"], &echo["path"]), (&json!("a b"), &json!("/echo/a%20b")));
    assert_eq!(echo["query"], json!([["x", "1"], ["x", "2"], ["y", "é"]]));
    let headers = echo["headers"].to_string();
    assert!(!headers.contains("s3cret") && !headers.contains("cookie"), "{headers}");

    let (status, ended) = fixture.post("/apps/greeter/start", &json!({ "name": "Ada" })).await;
    assert_eq!((status, &ended["status"]), (201, &json!("interrupted")), "{ended}");
    let thread = ended["thread"].as_str().unwrap();
    let stream = fixture.client.get(fixture.url(&format!("/apps/greeter/stream/{thread}")));
    assert!(stream.send().await.unwrap().text().await.unwrap().contains("event: asked"));
    let (status, failed) = fixture.get("/apps/greeter/fail").await;
    assert_eq!((status, &failed["code"]), (500, &json!("own-code")));
}

#[tokio::test]
async fn unknown_paths_and_methods_are_problems() {
    let fixture = Fixture::start("").await;
    assert_eq!(fixture.get("/apps/greeter/nothing").await.0, 404);
    assert_eq!(fixture.get("/apps/nobody/start").await.0, 404);
    assert_eq!(fixture.get("/start").await.0, 404);
    let response = fixture.client.get(fixture.url("/apps/greeter/start")).send().await.unwrap();
    assert_eq!(
        (response.status().as_u16(), &response.headers()["allow"]),
        (405, &"POST".parse().unwrap())
    );
}

#[tokio::test]
async fn endpoints_of_an_app_are_at_its_mount_and_on_its_own_address() {
    let fixture = Fixture::start("[apps.greeter]\nmount = \"/\"\nlisten = \"127.0.0.1:0\"\n").await;
    assert_eq!(fixture.get("/echo/x").await.1["word"], "x");
    assert_eq!(fixture.get("/apps/greeter/echo/x").await.1["word"], "x");
    let (_, apps) = fixture.get("/api/v1/apps").await;
    assert_eq!(apps[0]["endpoints"][0]["path"], "/start");
    let addr = fixture.server.app_addrs.values().next().unwrap();
    let own = |path: &str| fixture.client.get(format!("http://{addr}{path}"));
    assert_eq!(answer(own("/echo/y")).await.1["word"], "y");
    assert_eq!(answer(own("/api/v1/apps")).await.0, 404);
}

#[tokio::test]
async fn two_apps_with_the_same_mount_path_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    write_app(&folder.path().join("plugins"), "greeter");
    write_app(&folder.path().join("plugins"), "other");
    let toml = "[apps.greeter]\nmount = \"/\"\n[apps.other]\nmount = \"/\"\n";
    let refused = Server::start(config(folder.path(), toml), options()).await.err().unwrap();
    assert!(matches!(refused, Error::Mount(_)));
    let text = refused.to_string();
    assert!(text.contains("`greeter` and `other` both claim `POST /start`"), "{text}");
}

#[tokio::test]
async fn an_app_cannot_claim_blob_links_on_its_own_address() {
    let folder = tempfile::tempdir().unwrap();
    write_app(&folder.path().join("plugins"), "linker");
    let toml = "[apps.linker]\nlisten = \"127.0.0.1:0\"\n";
    let refused = Server::start(config(folder.path(), toml), options()).await.err().unwrap();
    assert!(matches!(refused, Error::Mount(_)));
    let text = refused.to_string();
    assert!(text.contains("`linker` claims `/blobs/{name}`"), "{text}");
}

#[tokio::test]
async fn a_blob_response_has_its_media_type() {
    let fixture = Fixture::start("").await;
    let blobs = fixture.server.engine.ports().blobs.clone();
    let blob = blobs.put("pixels".into(), "image/png").await.unwrap();
    let response = fixture.client.get(fixture.url(&format!("/apps/greeter/blob/{blob}")));
    let response = response.send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "image/png");
    assert_eq!(response.text().await.unwrap(), "pixels");
}
