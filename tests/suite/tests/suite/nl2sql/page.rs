//! The page, as a real browser shows it. The scenarios stand in `tests/clients/page/nl2sql.mjs`.

use wattle_suite::browser;
use wattle_suite::server::Setup;

/// The page below the main address.
const PAGE: &str = "/apps/nl2sql/";

/// Has a user at a browser do something, if there is a browser. The program orders faults of the
/// stand-in, whose address is a parameter that means nothing to the page.
async fn at_a_browser(scenario: &str) {
    let server = Setup::nl2sql().await.start().await;
    let url = format!("{}?standin={}", server.url(PAGE), server.standin().base_url);
    browser::at_a_browser("nl2sql.mjs", scenario, &url).await;
}

#[tokio::test]
async fn s4_49_a_question_becomes_steps_words_a_plot_a_table_and_its_statement() {
    at_a_browser("answers").await;
}

#[tokio::test]
async fn s4_29_s4_31_s4_41_failures_and_repairs_can_be_seen() {
    at_a_browser("repairs").await;
}

#[tokio::test]
async fn s4_42_a_thousand_rows_are_shown_sorted_and_saved() {
    at_a_browser("lists").await;
}

#[tokio::test]
async fn s4_50_sessions_are_listed_opened_cleared_and_deleted() {
    at_a_browser("remembers").await;
}

#[tokio::test]
async fn s4_49_s4_50_a_reload_in_the_middle_goes_on_to_the_answer() {
    at_a_browser("reloads").await;
}

#[tokio::test]
async fn s4_22_s4_43_a_workflow_that_fails_says_why() {
    at_a_browser("fails").await;
}

#[tokio::test]
async fn markup_in_questions_answers_and_results_is_text() {
    at_a_browser("isHarmless").await;
}

#[tokio::test]
async fn a_page_that_loses_its_server_says_so_and_goes_on() {
    at_a_browser("survives").await;
}

#[tokio::test]
async fn a_double_click_asks_once() {
    at_a_browser("submitsOnce").await;
}

#[tokio::test]
async fn two_tabs_on_one_session_agree() {
    at_a_browser("agrees").await;
}
