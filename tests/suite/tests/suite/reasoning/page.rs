//! Tests of the page as the host serves it and as a real browser shows it.

use serde_json::json;
use wattle_kit::need;
use wattle_kit::needs::{LeftOut, clients};
use wattle_kit::standin::{Fault, FaultRule, Pattern};
use wattle_suite::answer::Answer;
use wattle_suite::reasoning::{self, deciding};
use wattle_suite::scene::Scene;
use wattle_suite::server::{Setup, TestServer};
use wattle_suite::{browser, workspace};

/// The path of the page on the main address. The path without the final `/` also works.
const PAGE: &str = "/apps/reasoning/";

/// Starts a server whose application also has its own address.
async fn served() -> TestServer {
    let table = "[apps.reasoning]\n";
    let own = format!("{table}listen = \"127.0.0.1:0\"\n");
    Setup::reasoning().await.replace(table, &own).start().await
}

/// Returns the application's own address.
fn own_address(server: &TestServer) -> String {
    let address = server.running.app_addrs.values().next().expect("the app has its own address");
    format!("http://{address}")
}

/// Matches the requests of questions with the word for slowly.
fn slowly() -> Pattern {
    Pattern { body_contains: Some("慢慢".to_owned()), ..Pattern::model("reasoning") }
}

/// Runs a scenario of a user at a browser.
async fn at_a_browser(scenario: &str, url: &str) -> Result<(), LeftOut> {
    clients::page("reasoning")?;
    browser::at_a_browser("reasoning.js", scenario, url).await
}

#[tokio::test]
async fn s1_69_both_addresses_serve_the_page_with_a_strict_policy() {
    need!(clients::page("reasoning"));
    let server = served().await;
    let (main, own) = (server.url("/apps/reasoning"), own_address(&server));
    for url in
        [main.clone(), format!("{main}/"), format!("{main}/ui"), own.clone(), format!("{own}/ui")]
    {
        let page = Answer::of(server.client.get(&url)).await;
        assert_eq!(page.status, 200, "{url}");
        assert!(page.header("content-type").starts_with("text/html"), "{url}");
        assert_eq!(page.header("x-content-type-options"), "nosniff", "{url}");
        let policy = page.header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; "), "{url}: {policy}");
        assert!(!policy.contains("unsafe") && !policy.contains('*'), "{url}: {policy}");
        assert!(!policy.contains("http"), "{url}: {policy}");
        let text = page.body.as_str().unwrap();
        assert!(text.contains("<div id=\"root\">"), "{url}: {text}");
        for elsewhere in ["http:", "https:", "<style", "style=", " on"] {
            assert!(!text.contains(elsewhere), "{url} has {elsewhere}: {text}");
        }
    }
    let posted = Answer::of(server.client.post(format!("{own}/"))).await;
    assert_eq!(posted.status, 404, "a page accepts only read requests");
}

#[tokio::test]
async fn s1_69_s1_71_s1_72_a_browser_shows_answers_and_the_audit_trail() {
    let server = served().await;
    need!(at_a_browser("completes", &server.url(PAGE)).await);
}

#[tokio::test]
async fn s1_69_s1_70_s1_73_the_next_message_answers_the_question() {
    let server = served().await;
    need!(at_a_browser("clarifies", &format!("{}/ui", own_address(&server))).await);
}

#[tokio::test]
async fn s1_69_s1_75_a_browser_shows_the_reason_of_a_failure() {
    let server = served().await;
    let down = Fault::Status { status: 500, retry_after: None, body: None };
    server.standin().fault(FaultRule::new(Pattern::model("reasoning"), down));
    need!(at_a_browser("fails", &server.url("/apps/reasoning")).await);
}

#[tokio::test]
async fn s1_14_a_stopped_run_closes_its_session_and_the_next_message_starts_another() {
    let server = served().await;
    let _gate = server.standin().gate(slowly());
    need!(at_a_browser("stops", &server.url(PAGE)).await);
}

#[tokio::test]
async fn s1_69_a_reload_continues_the_session_and_tabs_agree() {
    let server = served().await;
    need!(at_a_browser("reloads", &format!("{}/", own_address(&server))).await);
}

#[tokio::test]
async fn s1_69_a_reload_during_a_run_shows_its_end() {
    let server = served().await;
    need!(clients::page("reasoning"));
    let gate = server.standin().gate(slowly());
    let url = server.url(PAGE);
    need!(browser::with_gate("reasoning.js", "midway", &url, gate).await);
}

#[tokio::test]
async fn s1_69_a_page_reports_a_lost_server_and_continues() {
    let server = served().await;
    need!(at_a_browser("away", &server.url(PAGE)).await);
}

#[tokio::test]
async fn s1_69_a_page_reports_a_killed_server_and_continues() {
    need!(clients::page("reasoning"));
    let scene = Scene::new(|_, standin| {
        [workspace::base_toml(standin), reasoning::toml(standin, "sqlite:reasoning.db")].concat()
    });
    let scene = scene.await;
    need!(browser::with_kills("reasoning.js", "outlives", &scene, PAGE).await);
}

#[tokio::test]
async fn s1_69_a_double_click_sends_once() {
    let server = served().await;
    need!(at_a_browser("twice", &server.url(PAGE)).await);
    let sessions = server.reasoning_rows("reasoning_session").await.len();
    assert_eq!(server.reasoning_rows("reasoning_turn").await.len(), sessions);
}

#[tokio::test]
async fn s1_69_the_page_can_be_used_by_keyboard_alone() {
    let server = served().await;
    need!(at_a_browser("keyboard", &server.url(PAGE)).await);
}

#[tokio::test]
async fn s1_69_markup_in_answers_is_shown_as_text() {
    let server = served().await;
    let says = |purpose: &str, content: serde_json::Value| {
        let fault = Fault::Content { text: content.to_string() };
        server.standin().fault(FaultRule::new(deciding(purpose), fault));
    };
    let markup = "<script>alert(1)</script><img src=x onerror=alert(1)>";
    says("reasoning_summary", json!({ "summary": markup }));
    let filters = json!([{ "field": "<svg onload=alert(2)>", "op": "eq", "value": markup }]);
    says("reasoning_plan", json!({ "mode": "query", "page_size": 3, "filters": filters }));
    need!(at_a_browser("hostile", &server.url(PAGE)).await);
}
