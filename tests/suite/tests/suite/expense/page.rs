//! The page in a real browser, on the real host and the real components.

use serde_json::{Value, json};
use wattle_kit::need;
use wattle_kit::needs::{LeftOut, clients};
use wattle_kit::standin::{Fault, FaultRule, Pattern, feishu_refusal};
use wattle_suite::expense::{self, MODEL_PATH, SEARCH_PATH};
use wattle_suite::scene::Scene;
use wattle_suite::server::{Setup, TestServer};
use wattle_suite::{browser, workspace};

/// The path of the page on the main address. The application is mounted at `/` as well.
const PAGE: &str = "/apps/expense/";

/// The beginning of 2025-01-14 in Shanghai.
const DAY_MS: i64 = 1_736_784_000_000;

async fn served() -> TestServer {
    Setup::expense().await.start().await
}

/// Runs a scenario of a user at a browser.
async fn at_a_browser(scenario: &str, server: &TestServer) -> Result<(), LeftOut> {
    clients::page("expense")?;
    browser::at_a_browser("expense.js", scenario, &server.url(PAGE)).await
}

/// Runs a scenario with a model that responds when the scenario orders it.
async fn with_gate(scenario: &str, server: &TestServer) -> Result<(), LeftOut> {
    clients::page("expense")?;
    let gate = server.standin().gate(Pattern::path(MODEL_PATH));
    browser::with_gate("expense.js", scenario, &server.url(PAGE), gate).await
}

fn record(remark: &str, category: &str, kind: &str, date_ms: i64) -> Value {
    json!({ "备注": remark, "分类": category, "金额": 12.5, "收支": kind, "日期": date_ms })
}

#[tokio::test]
async fn s2_34_s2_40_a_browser_shows_the_steps_the_reply_and_the_book() {
    let server = served().await;
    need!(at_a_browser("books", &server).await);
}

#[tokio::test]
async fn s2_36_a_question_of_the_model_is_answered_in_the_same_conversation() {
    let server = served().await;
    need!(at_a_browser("asks", &server).await);
}

#[tokio::test]
async fn a_double_click_books_once() {
    let server = served().await;
    need!(at_a_browser("twice", &server).await);
}

#[tokio::test]
async fn hostile_content_is_shown_as_text() {
    let server = served().await;
    let bad = "<script>alert(2)</script>";
    server.fill_table(&[record(bad, bad, "支出", DAY_MS)]).await;
    need!(at_a_browser("hostile", &server).await);
}

#[tokio::test]
async fn a_failed_reply_can_be_retried() {
    let server = served().await;
    let down = Fault::Status { status: 401, retry_after: None, body: None };
    server.standin().fault(FaultRule::new(Pattern::path(MODEL_PATH), down).times(1));
    need!(at_a_browser("fails", &server).await);
    assert!(server.booked().len() <= 1);
}

#[tokio::test]
async fn a_reloaded_page_joins_the_current_reply() {
    let server = served().await;
    need!(with_gate("reloads", &server).await);
}

#[tokio::test]
async fn a_page_shows_a_reply_that_ends_during_its_load() {
    let server = served().await;
    need!(with_gate("misses", &server).await);
}

#[tokio::test]
async fn a_lost_server_is_reported_and_reconnected() {
    let server = served().await;
    let slow = Fault::Slow { ms: 700 };
    server.standin().fault(FaultRule::new(Pattern::path(MODEL_PATH), slow));
    need!(at_a_browser("away", &server).await);
}

#[tokio::test]
async fn a_killed_server_is_reported_and_the_conversation_continues() {
    need!(clients::page("expense"));
    let scene = Scene::new(|workspace, standin| {
        expense::put(workspace);
        [workspace::base_toml(standin), expense::configuration(standin).to_string()].concat()
    });
    let scene = scene.await;
    need!(browser::with_kills("expense.js", "outlives", &scene, PAGE).await);
    assert_eq!(scene.standin.feishu_records().len(), 2, "each expense is booked once");
}

#[tokio::test]
async fn two_tabs_show_the_same_conversation() {
    let server = served().await;
    need!(at_a_browser("tabs", &server).await);
}

#[tokio::test]
async fn a_deleted_conversation_is_replaced_by_a_new_one() {
    let server = served().await;
    need!(at_a_browser("gone", &server).await);
}

#[tokio::test]
async fn an_unreadable_book_shows_the_reason() {
    let server = served().await;
    let refused = FaultRule::new(Pattern::path(SEARCH_PATH), feishu_refusal(403));
    server.standin().fault(refused.times(1));
    need!(at_a_browser("unread", &server).await);
}

#[tokio::test]
async fn a_full_month_has_a_plot_and_the_previous_month_can_be_opened() {
    let server = served().await;
    let spent = [
        "交通",
        "零食",
        "日用品",
        "餐饮",
        "教育",
        "娱乐",
        "旅游",
        "衣服",
        "房租",
        "购物",
        "礼物",
        "蔬果",
        "个人护理",
        "医疗",
    ];
    let days = (0..13).map(|day| DAY_MS - day * 86_400_000).cycle();
    let mut records: Vec<Value> = spent
        .iter()
        .take(14)
        .cycle()
        .zip(days)
        .take(200)
        .map(|(category, day)| {
            let remark = "一笔备注很长很长的支出，用来看它会不会撑破页面";
            record(remark, category, "支出", day)
        })
        .collect();
    records.push(record("工资", "工资", "收入", DAY_MS));
    records.push(record("年货", "购物", "支出", DAY_MS - 20 * 86_400_000));
    server.fill_table(&records).await;
    need!(at_a_browser("months", &server).await);
}
