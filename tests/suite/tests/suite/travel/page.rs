//! Tests of the page as the host serves it and as a real browser shows it.

use wattle_kit::need;
use wattle_kit::needs::{LeftOut, clients};
use wattle_suite::answer::Answer;
use wattle_suite::server::{Setup, TestServer};
use wattle_suite::{browser, travel};

/// A grace period longer than any reload or lost connection of a scenario.
const GRACE: &str = "disconnect_grace_ms = 60000";

/// The root path, where the configuration of the suite mounts the application.
const ROOT: &str = "/";

/// The default path of the application.
const PREFIX: &str = "/apps/travel/";

/// Starts a server whose runs wait for a page to reconnect.
async fn served() -> TestServer {
    Setup::travel().await.replace("disconnect_grace_ms = 0", GRACE).start().await
}

/// Runs a scenario of a user at a browser. The scenario delays responses of the stand-in, so it
/// receives the address of the stand-in.
async fn at_a_browser(server: &TestServer, scenario: &str, path: &str) -> Result<(), LeftOut> {
    clients::page("travel")?;
    let url = server.url(&format!("{path}?standin={}", server.standin().base_url));
    browser::at_a_browser("travel.js", &format!("travel-{scenario}"), &url).await
}

#[tokio::test]
async fn s3_03_the_page_is_served_at_the_root_and_at_sessions() {
    need!(clients::page("travel"));
    let server = served().await;
    let places = [("/", "./"), ("/session/any", "../"), ("/apps/travel/session/any", "../")];
    for (path, base) in places {
        let page = Answer::of(server.client.get(server.url(path))).await;
        assert_eq!(page.status, 200, "{path}");
        let text = page.body.as_str().unwrap();
        assert!(text.contains(&format!("<base href=\"{base}\">")), "{path}: {text}");
        let policy = page.header("content-security-policy");
        assert!(!policy.contains("unsafe"), "{path}: {policy}");
    }
}

#[tokio::test]
async fn s3_57_s3_58_s3_59_s3_60_s3_61_s3_62_s3_68_a_guide_is_made_on_the_page() {
    need!(at_a_browser(&served().await, "guide", ROOT).await);
}

#[tokio::test]
async fn s3_03_s3_63_the_message_of_an_address_is_sent_once_and_the_link_shared() {
    need!(at_a_browser(&served().await, "initial", PREFIX).await);
}

#[tokio::test]
async fn s3_52_edits_are_saved_after_a_pause_and_shown_in_other_tabs() {
    need!(at_a_browser(&served().await, "edits", PREFIX).await);
}

#[tokio::test]
async fn s3_65_a_run_can_be_stopped_and_continued() {
    need!(at_a_browser(&served().await, "stop", ROOT).await);
}

#[tokio::test]
async fn s3_66_a_reload_and_a_second_tab_follow_the_run() {
    need!(at_a_browser(&served().await, "reload", ROOT).await);
}

#[tokio::test]
async fn s3_63_the_panel_can_be_dragged() {
    need!(at_a_browser(&served().await, "panel", PREFIX).await);
}

#[tokio::test]
async fn s3_57_s3_64_markup_is_shown_as_text() {
    need!(at_a_browser(&served().await, "hostile", ROOT).await);
}

#[tokio::test]
async fn s3_52_s3_65_a_page_continues_when_its_server_is_available_again() {
    need!(at_a_browser(&served().await, "away", ROOT).await);
}

#[tokio::test]
async fn s3_09_s3_52_a_page_reports_a_killed_server_and_continues() {
    need!(clients::page("travel"));
    let scene = travel::scene().await;
    need!(browser::with_kills("travel.js", "travel-outlives", &scene, ROOT).await);
}

#[tokio::test]
async fn s3_57_s3_67_a_failed_tool_shows_its_error() {
    need!(at_a_browser(&served().await, "fails", ROOT).await);
}
