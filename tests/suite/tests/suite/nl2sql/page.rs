//! Tests of the page in a real browser. The scenarios are in `tests/clients/page/nl2sql.ts`.

use wattle_kit::need;
use wattle_kit::needs::{LeftOut, clients};
use wattle_suite::scene::Scene;
use wattle_suite::server::Setup;
use wattle_suite::{browser, nl2sql, workspace};

/// The path of the page on the main address.
const PAGE: &str = "/apps/nl2sql/";

/// Runs a scenario of a user at a browser. The scenario sets faults of the stand-in, whose address
/// it reads from a parameter that the page ignores.
async fn at_a_browser(scenario: &str) -> Result<(), LeftOut> {
    clients::page("nl2sql")?;
    let server = Setup::nl2sql().await.start().await;
    let url = format!("{}?standin={}", server.url(PAGE), server.standin().base_url);
    browser::at_a_browser("nl2sql.js", scenario, &url).await
}

#[tokio::test]
async fn s4_49_a_browser_shows_steps_answer_chart_table_and_statement() {
    need!(at_a_browser("answers").await);
}

#[tokio::test]
async fn s4_29_s4_31_s4_41_failures_and_repairs_are_shown() {
    need!(at_a_browser("repairs").await);
}

#[tokio::test]
async fn s4_42_a_thousand_rows_can_be_shown_sorted_and_saved() {
    need!(at_a_browser("lists").await);
}

#[tokio::test]
async fn s4_50_sessions_are_listed_opened_cleared_and_deleted() {
    need!(at_a_browser("remembers").await);
}

#[tokio::test]
async fn s4_49_s4_50_a_reload_during_a_question_shows_its_answer() {
    need!(at_a_browser("reloads").await);
}

#[tokio::test]
async fn s4_22_s4_43_a_failed_workflow_shows_its_reason() {
    need!(at_a_browser("fails").await);
}

#[tokio::test]
async fn markup_in_questions_answers_and_results_is_shown_as_text() {
    need!(at_a_browser("isHarmless").await);
}

#[tokio::test]
async fn a_page_reports_a_lost_server_and_continues() {
    need!(at_a_browser("survives").await);
}

#[tokio::test]
async fn a_page_reports_a_killed_server_and_continues() {
    need!(clients::page("nl2sql"));
    let scene = Scene::new(|_, standin| {
        let app = nl2sql::toml("sqlite:nl2sql.db", "sqlite:business.db");
        [workspace::base_toml(standin), app].concat()
    });
    let scene = scene.await;
    need!(browser::with_kills("nl2sql.js", "outlives", &scene, PAGE).await);
}

#[tokio::test]
async fn a_double_click_sends_one_question() {
    need!(at_a_browser("submitsOnce").await);
}

#[tokio::test]
async fn two_tabs_show_the_same_session() {
    need!(at_a_browser("agrees").await);
}
