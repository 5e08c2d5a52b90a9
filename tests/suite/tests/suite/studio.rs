//! Tests of the studio on the real host in a real browser: login, navigation and the list of
//! threads.

use serde_json::json;
use wattle_kit::need;
use wattle_kit::needs::{LeftOut, clients};
use wattle_suite::answer::Answer;
use wattle_suite::browser;
use wattle_suite::server::{Setup, TestServer};

/// The program of the browser.
const PROGRAM: &str = "studio-shell.js";

/// The path of the studio.
const STUDIO: &str = "/studio/";

/// The key of the configuration, which the program knows, too.
const KEY: &str = "studio-operator-key";

/// A thread whose id reads backwards from its second word on.
const HOSTILE: &str = "<img src=x onerror=alert(1)> \u{202e}gnp";

const GRAPHS: &str = r#"
[graphs.count]
entry = "counter"
[graphs.count.channels.number]
schema = { type = "integer" }
[graphs.count.nodes.counter]
"#;

/// Starts a server that needs these keys, if there are any, with a thread of a hostile user and a
/// plain one.
async fn served(keys: &'static str) -> Result<TestServer, LeftOut> {
    clients::studio()?;
    let mut setup = Setup::misdeeds(GRAPHS).await;
    if !keys.is_empty() {
        setup.keys = keys;
        setup = setup.with("[auth]\nkeys_env = \"SUITE_KEYS\"\n");
    }
    let server = setup.start().await;
    for thread in [HOSTILE, "plain"] {
        let start = json!({
            "graph": "count",
            "input": { "number": 1 },
            "thread_id": thread,
            "metadata": { "note": "<script>alert(2)</script>" },
            "wait": true,
        });
        let request = server.request("POST", "/api/v1/apps/misdeeds/runs").json(&start);
        Answer::of(request.bearer_auth(KEY)).await.expect(200);
    }
    Ok(server)
}

#[tokio::test]
async fn the_studio_shows_the_host_and_its_threads() {
    let server = need!(served("").await);
    need!(browser::at_a_browser(PROGRAM, "shows", &server.url(STUDIO)).await);
}

#[tokio::test]
async fn the_studio_is_also_at_the_root_of_a_host_without_a_page_there() {
    let server = need!(served("").await);
    need!(browser::at_a_browser(PROGRAM, "enters", &server.url("/")).await);
}

#[tokio::test]
async fn the_studio_asks_for_a_key_and_hands_it_to_other_tabs() {
    let server = need!(served(KEY).await);
    need!(browser::at_a_browser(PROGRAM, "logs_in", &server.url(STUDIO)).await);
}

#[tokio::test]
async fn the_studio_hides_what_a_key_forbids() {
    let server = need!(served(KEY).await);
    let new = json!({ "name": "reader", "scopes": ["read"] });
    let request = server.request("POST", "/api/v1/keys").json(&new);
    let made = Answer::of(request.bearer_auth(KEY)).await.expect(201);
    let key = made["key"].as_str().expect("a key");
    let url = server.url(&format!("{STUDIO}?reader={key}"));
    need!(browser::at_a_browser(PROGRAM, "reads", &url).await);
}

#[tokio::test]
async fn the_studio_says_that_its_server_is_away() {
    let server = need!(served("").await);
    need!(browser::at_a_browser(PROGRAM, "away", &server.url(STUDIO)).await);
}
