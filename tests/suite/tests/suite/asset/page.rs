//! The page, as the host serves it and as a real browser shows it.

use serde_json::{Value, json};
use wattle_kit::need;
use wattle_kit::needs::{LeftOut, clients};
use wattle_kit::standin::{Fault, FaultRule, Pattern};
use wattle_suite::answer::Answer;
use wattle_suite::asset::{open_sqlite, picture, sqlite_rows};
use wattle_suite::scene::Scene;
use wattle_suite::server::{Setup, TestServer};
use wattle_suite::{browser, workspace};

/// The default path of the application.
const PREFIX: &str = "/apps/asset/";

/// Half an hour.
const TTL_MS: u32 = 30 * 60 * 1_000;

/// Runs a scenario of a user at a browser.
async fn at_a_browser(server: &TestServer, scenario: &str, path: &str) -> Result<(), LeftOut> {
    clients::page("asset")?;
    browser::at_a_browser("asset.js", scenario, &server.url(path)).await
}

/// Matches requests that extract trades.
fn extraction() -> Pattern {
    Pattern { body_contains: Some("OperationParseSchema".to_owned()), ..Pattern::any() }
}

/// Makes every extraction return these rows.
fn extracts(server: &TestServer, rows: &[Value]) {
    let text = json!({ "operations": rows }).to_string();
    server.standin().fault(FaultRule::new(extraction(), Fault::Content { text }));
}

fn trade(name: &str, ticker: Option<&str>) -> Value {
    json!({ "ticker": ticker, "name": name, "action": "buy", "quantity": 1, "quantityUnit": "share",
            "price": 2, "tradedAt": null, "memo": null })
}

/// Runs a scenario with a chat model that responds when the scenario orders it.
async fn with_gate(server: &TestServer, scenario: &str) -> Result<(), LeftOut> {
    clients::page("asset")?;
    let gate = server.standin().gate(Pattern::model("chat"));
    browser::with_gate("asset.js", scenario, &server.url(PREFIX), gate).await
}

#[tokio::test]
async fn s0_86_the_page_is_served_with_a_strict_content_security_policy() {
    need!(clients::page("asset"));
    let server = Setup::asset().await.start().await;
    for path in ["/", PREFIX] {
        let page = Answer::of(server.client.get(server.url(path))).await;
        assert_eq!(page.status, 200, "{path}");
        let text = page.body.as_str().unwrap();
        assert!(text.contains("<base href=\""), "{path}: {text}");
        let policy = page.header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    }
}

#[tokio::test]
async fn s0_86_s0_87_s0_89_s0_90_s0_91_s0_93_a_sentence_is_confirmed_and_listed() {
    let server = Setup::asset().await.start().await;
    need!(at_a_browser(&server, "adds", PREFIX).await);
}

#[tokio::test]
async fn text_of_a_link_is_shown_and_not_sent() {
    let server = Setup::asset().await.start().await;
    need!(
        at_a_browser(&server, "suggests", "/apps/asset/?initial=%E6%8C%81%E6%9C%89%20%3Cb%3E")
            .await
    );
}

#[tokio::test]
async fn s0_86_the_page_works_where_the_app_is_mounted() {
    let server = Setup::asset().await.start().await;
    need!(at_a_browser(&server, "twice", "/").await);
}

#[tokio::test]
async fn s0_88_s0_89_missing_cells_are_red_and_checked_by_column() {
    let server = Setup::asset().await.start().await;
    need!(at_a_browser(&server, "completes", PREFIX).await);
}

#[tokio::test]
async fn s0_58_s0_87_s0_88_an_unknown_input_has_an_empty_table() {
    let server = Setup::asset().await.start().await;
    need!(at_a_browser(&server, "unknown", PREFIX).await);
}

#[tokio::test]
async fn s0_93_a_screenshot_is_pasted_or_dropped_checked_and_previewed() {
    let server = Setup::asset().await.start().await;
    let url = picture("持有贵州茅台 200 股，成本 1500", 0);
    let base64 = url.split(',').nth(1).unwrap();
    let query = base64.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D");
    need!(at_a_browser(&server, "pictures", &format!("{PREFIX}?picture={query}")).await);
}

#[tokio::test]
async fn s0_89_a_new_input_starts_a_new_thread() {
    let server = Setup::asset().await.start().await;
    need!(at_a_browser(&server, "again", PREFIX).await);
}

#[tokio::test]
async fn s0_86_a_reload_continues_the_thread() {
    let server = Setup::asset().await.start().await;
    need!(with_gate(&server, "reloads").await);
}

#[tokio::test]
async fn s0_85_a_page_reopened_on_an_expired_thread_starts_over_silently() {
    let server = Setup::asset().await.start().await;
    let review = server.invoke_text("昨天买入腾讯 100 股 320").await;
    server.clock().advance_ms(TTL_MS);
    need!(at_a_browser(&server, "reopens", &format!("{PREFIX}?thread={}", review.thread)).await);
}

#[tokio::test]
async fn s0_73_s0_85_confirming_an_expired_review_shows_the_expiry() {
    let server = Setup::asset().await.start().await;
    need!(at_a_browser(&server, "expires", PREFIX).await);
    assert_eq!(server.counts().await, [0, 0, 0]);
}

#[tokio::test]
async fn s0_78_a_model_failure_is_shown_and_the_text_is_kept() {
    let server = Setup::asset().await.start().await;
    let down = Fault::Status { status: 500, retry_after: Some("0".into()), body: None };
    server.standin().fault(FaultRule::new(Pattern::model("chat"), down));
    need!(at_a_browser(&server, "fails", PREFIX).await);
}

#[tokio::test]
async fn s0_77_a_double_click_stores_once() {
    let server = Setup::asset().await.start().await;
    need!(at_a_browser(&server, "twice", PREFIX).await);
    assert_eq!(server.counts().await, [1, 0, 1]);
}

#[tokio::test]
async fn s0_77_two_tabs_on_one_thread_store_once() {
    let server = Setup::asset().await.start().await;
    need!(at_a_browser(&server, "tabs", PREFIX).await);
    assert_eq!(server.counts().await, [1, 0, 1]);
}

#[tokio::test]
async fn a_page_reports_a_lost_server_and_continues() {
    let server = Setup::asset().await.start().await;
    need!(at_a_browser(&server, "away", PREFIX).await);
}

#[tokio::test]
async fn a_page_reports_a_killed_server_and_continues() {
    need!(clients::page("asset"));
    let scene = Scene::new(|_, standin| {
        [workspace::base_toml(standin), workspace::asset_toml(standin, "sqlite:asset.db")].concat()
    });
    let scene = scene.await;
    need!(browser::with_kills("asset.js", "outlives", &scene, PREFIX).await);
    let mut database = open_sqlite(&scene.workspace.data().join("asset.db")).await;
    let stored = sqlite_rows(&mut database, "Operation").await;
    assert_eq!(stored.len(), 1, "the trade is stored once: {stored:?}");
}

#[tokio::test]
async fn hostile_names_are_shown_as_text() {
    let server = Setup::asset().await.start().await;
    let rows =
        [trade("<img src=x onerror=alert(1)>", None), trade("<script>alert(2)</script>", None)];
    extracts(&server, &rows);
    need!(at_a_browser(&server, "hostile", PREFIX).await);
}

#[tokio::test]
async fn a_table_of_200_rows_is_shown_in_part_and_stored_completely() {
    let server = Setup::asset().await.start().await;
    let rows: Vec<Value> = (0..200).map(|_| trade("苹果", Some("AAPL"))).collect();
    extracts(&server, &rows);
    need!(at_a_browser(&server, "many", PREFIX).await);
}

#[tokio::test]
async fn s0_86_s0_93_the_page_works_with_the_keyboard_alone() {
    let server = Setup::asset().await.start().await;
    need!(at_a_browser(&server, "keyboard", PREFIX).await);
}
