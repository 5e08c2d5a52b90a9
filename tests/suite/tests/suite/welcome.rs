//! Tests of the front page, an app without a component, on the real host in a real browser.

use wattle_kit::need;
use wattle_kit::needs::{LeftOut, clients};
use wattle_suite::server::{Setup, TestServer};
use wattle_suite::{browser, guests};

/// The path of the front page on the main address.
const PAGE: &str = "/apps/welcome/";

/// The manifest of a third-party app in the plugins folder.
const NOTES: &str = r#"
[app]
name = "notes"
version = "0.1.0"
doc = "<img src=x onerror=alert(1)>"
[page]
title = "<b>Notes</b>"
folder = "page/dist"
examples = ["write this down"]
"#;

/// Starts a server with the expense application, the front page with further configuration, and
/// another app.
async fn served(more: &str) -> Result<TestServer, LeftOut> {
    clients::page("welcome")?;
    let setup = Setup::expense().await;
    setup.workspace.write("plugins/notes/app.toml", NOTES);
    setup
        .workspace
        .write("plugins/notes/page/dist/index.html", "<!doctype html><html><head></head>");
    let path = guests::root().join("plugins/apps/welcome");
    let table = format!("[apps.welcome]\npath = \"{}\"\n{more}", path.display());
    Ok(setup.with(&table).start().await)
}

#[tokio::test]
async fn the_front_page_shows_all_applications_and_examples() {
    let server = need!(served("").await);
    need!(browser::at_a_browser("welcome.js", "shows", &server.url(PAGE)).await);
}

#[tokio::test]
async fn the_front_page_is_in_the_language_of_the_browser() {
    let server = need!(served("").await);
    need!(browser::at_a_browser("welcome.js", "speaks", &server.url(PAGE)).await);
}

#[tokio::test]
async fn the_front_page_works_without_its_server() {
    let server = need!(served("").await);
    need!(browser::at_a_browser("welcome.js", "away", &server.url(PAGE)).await);
}

/// The app's own address serves only the app, so the list of apps is unavailable there.
#[tokio::test]
async fn the_front_page_works_without_the_list_of_apps() {
    let server = need!(served("listen = \"127.0.0.1:0\"\n").await);
    let address = server.running.app_addrs.values().next().expect("the app has its own address");
    need!(browser::at_a_browser("welcome.js", "locked", &format!("http://{address}/")).await);
}
