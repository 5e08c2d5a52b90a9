//! The page, as a real browser shows it. The scenarios stand in `tests/clients/page/nl2sql.mjs`.

use wattle_kit::need;
use wattle_kit::needs::{LeftOut, clients};
use wattle_suite::scene::Scene;
use wattle_suite::server::Setup;
use wattle_suite::{binary, browser, nl2sql, place};

/// The page below the main address.
const PAGE: &str = "/apps/nl2sql/";

/// Has a user at a browser do something. The program orders faults of the
/// stand-in, whose address is a parameter that means nothing to the page.
async fn at_a_browser(scenario: &str) -> Result<(), LeftOut> {
    clients::page("nl2sql")?;
    let server = Setup::nl2sql().await.start().await;
    let url = format!("{}?standin={}", server.url(PAGE), server.standin().base_url);
    browser::at_a_browser("nl2sql.mjs", scenario, &url).await
}

#[tokio::test]
async fn s4_49_a_question_becomes_steps_words_a_plot_a_table_and_its_statement() {
    need!(at_a_browser("answers").await);
}

#[tokio::test]
async fn s4_29_s4_31_s4_41_failures_and_repairs_can_be_seen() {
    need!(at_a_browser("repairs").await);
}

#[tokio::test]
async fn s4_42_a_thousand_rows_are_shown_sorted_and_saved() {
    need!(at_a_browser("lists").await);
}

#[tokio::test]
async fn s4_50_sessions_are_listed_opened_cleared_and_deleted() {
    need!(at_a_browser("remembers").await);
}

#[tokio::test]
async fn s4_49_s4_50_a_reload_in_the_middle_goes_on_to_the_answer() {
    need!(at_a_browser("reloads").await);
}

#[tokio::test]
async fn s4_22_s4_43_a_workflow_that_fails_says_why() {
    need!(at_a_browser("fails").await);
}

#[tokio::test]
async fn markup_in_questions_answers_and_results_is_text() {
    need!(at_a_browser("isHarmless").await);
}

#[tokio::test]
async fn a_page_that_loses_its_server_says_so_and_goes_on() {
    need!(at_a_browser("survives").await);
}

#[tokio::test]
async fn a_page_whose_server_is_killed_says_so_and_goes_on() {
    need!(clients::page("nl2sql"));
    let scene = Scene::new(|_, standin| {
        let app = nl2sql::toml("sqlite:nl2sql.db", "sqlite:business.db");
        [place::base_toml(standin), app].concat()
    });
    let scene = scene.await;
    let first = scene.serve_on_lasting_port().await;
    let address = first.url.clone();
    let url = format!("{address}{PAGE}?standin={}", scene.standin.base_url);
    let mut server = Some(first);
    let visited = browser::with_orders("nl2sql.mjs", "outlives", &url, async |order| match order {
        "kill" => {
            let mut killed = server.take().expect("a server that runs");
            killed.program.kill().await.expect("a program that can be killed");
        }
        "start" => {
            let started = binary::serve(&scene.place).await;
            assert_eq!(started.url, address, "the page finds it again");
            server = Some(started);
        }
        other => panic!("no order `{other}`"),
    });
    need!(visited.await);
}

#[tokio::test]
async fn a_double_click_asks_once() {
    need!(at_a_browser("submitsOnce").await);
}

#[tokio::test]
async fn two_tabs_on_one_session_agree() {
    need!(at_a_browser("agrees").await);
}
