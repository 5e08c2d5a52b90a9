//! The front page: an app that is nothing but a page, on the real host in a real browser.

use wattle_kit::need;
use wattle_kit::needs::{LeftOut, clients};
use wattle_suite::server::{Setup, TestServer};
use wattle_suite::{browser, guests};

/// The front page below the main address.
const PAGE: &str = "/apps/welcome/";

/// An app of somebody else, dropped into the plugins folder.
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

/// The expense application, the front page with more of its configuration, and a sixth app.
async fn served(more: &str) -> Result<TestServer, LeftOut> {
    clients::page("welcome")?;
    let setup = Setup::expense().await;
    setup.place.write("plugins/notes/app.toml", NOTES);
    setup.place.write("plugins/notes/page/dist/index.html", "<!doctype html><html><head></head>");
    let path = guests::root().join("plugins/apps/welcome");
    let table = format!("[apps.welcome]\npath = \"{}\"\n{more}", path.display());
    Ok(setup.with(&table).start().await)
}

#[tokio::test]
async fn the_front_page_shows_all_applications_and_what_to_try() {
    let server = need!(served("").await);
    need!(browser::at_a_browser("welcome.mjs", "shows", &server.url(PAGE)).await);
}

#[tokio::test]
async fn the_front_page_is_of_use_without_its_server() {
    let server = need!(served("").await);
    need!(browser::at_a_browser("welcome.mjs", "away", &server.url(PAGE)).await);
}

/// On an address of its own only the app answers, so the list of apps is out of reach.
#[tokio::test]
async fn the_front_page_is_of_use_where_the_list_of_apps_is_out_of_reach() {
    let server = need!(served("listen = \"127.0.0.1:0\"\n").await);
    let address = server.running.app_addrs.values().next().expect("an address of its own");
    need!(browser::at_a_browser("welcome.mjs", "locked", &format!("http://{address}/")).await);
}
