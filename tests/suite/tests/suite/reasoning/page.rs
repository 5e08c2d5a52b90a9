//! The page, as it is served and as a real browser shows it.

use wattle_kit::standin::{Fault, FaultRule, Pattern};
use wattle_suite::answer::Answer;
use wattle_suite::browser;
use wattle_suite::server::{Setup, TestServer};

/// The page below the main address. Without the `/` at its end it works as well.
const PAGE: &str = "/apps/reasoning/";

/// A server whose application has an address of its own, too.
async fn served() -> TestServer {
    let table = "[apps.reasoning]\n";
    let own = format!("{table}listen = \"127.0.0.1:0\"\n");
    Setup::reasoning().await.replace(table, &own).start().await
}

/// The application's own address.
fn own_address(server: &TestServer) -> String {
    let address = server.running.app_addrs.values().next().expect("an address of its own");
    format!("http://{address}")
}

/// Has a user at a browser do something, if there is a browser.
async fn at_a_browser(scenario: &str, url: &str) {
    browser::at_a_browser("page.mjs", scenario, url).await;
}

#[tokio::test]
async fn s1_69_the_page_is_served_at_both_addresses_and_may_load_nothing_else() {
    let server = served().await;
    let (main, own) = (server.url("/apps/reasoning"), own_address(&server));
    let urls = [
        main.clone(),
        format!("{main}/"),
        format!("{main}/ui"),
        format!("{own}/"),
        format!("{own}/ui"),
    ];
    let mut policies = Vec::new();
    for url in urls {
        let page = Answer::of(server.client.get(&url)).await;
        assert_eq!(page.status, 200, "{url}");
        assert_eq!(page.header("content-type"), "text/html; charset=utf-8", "{url}");
        assert_eq!(page.header("cache-control"), "no-store", "{url}");
        assert_eq!(page.header("x-content-type-options"), "nosniff", "{url}");
        let policy = page.header("content-security-policy").to_owned();
        assert!(policy.starts_with("default-src 'none'; "), "{url}: {policy}");
        assert!(!policy.contains("unsafe") && !policy.contains('*'), "{url}: {policy}");
        let nonce = policy.split("script-src 'nonce-").nth(1).unwrap().split('\'').next().unwrap();
        assert_eq!(nonce.len(), 32, "{policy}");
        let text = page.body.as_str().unwrap();
        assert!(text.contains(&format!("<script type=\"module\" nonce=\"{nonce}\">")), "{url}");
        assert!(!policies.contains(&policy), "every answer has a nonce of its own");
        policies.push(policy);
    }
    let posted = Answer::of(server.client.post(format!("{own}/"))).await;
    assert_eq!((posted.status, posted.header("allow")), (405, "GET"));
}

#[tokio::test]
async fn s1_69_s1_71_a_browser_shows_answers_and_the_audit_trail() {
    let server = served().await;
    at_a_browser("completes", &server.url(PAGE)).await;
}

#[tokio::test]
async fn s1_69_s1_70_the_next_message_answers_what_was_asked_back() {
    let server = served().await;
    at_a_browser("clarifies", &format!("{}/ui", own_address(&server))).await;
}

#[tokio::test]
async fn s1_69_s1_75_a_browser_shows_why_there_is_no_answer() {
    let server = served().await;
    let down = Fault::Status { status: 500, retry_after: None, body: None };
    server.standin().fault(FaultRule::new(Pattern::model("reasoning"), down));
    at_a_browser("fails", &server.url("/apps/reasoning")).await;
}
