//! The data sets of the applications, run by `wattle eval` through the real host: with models that
//! answer as they are asked to, and with models that do not.
//!
//! The floors are the shares of cases that must end as expected while a third of all answers is
//! distorted, over all kinds of imprecision together: three points below what was measured.

mod bench;

use wattle_suite::server::Setup;

use self::bench::Bench;

#[tokio::test]
async fn asset_with_precise_models() {
    Bench::start("asset", Setup::asset().await).await.precise().await;
}

#[tokio::test]
async fn asset_with_imprecise_models() {
    Bench::start("asset", Setup::asset().await).await.imprecise(0.81).await;
}

#[tokio::test]
async fn travel_with_precise_models() {
    Bench::start("travel", Setup::travel().await).await.precise().await;
}

#[tokio::test]
async fn travel_with_imprecise_models() {
    Bench::start("travel", Setup::travel().await).await.imprecise(0.79).await;
}

#[tokio::test]
async fn nl2sql_with_precise_models() {
    Bench::start("nl2sql", Setup::nl2sql().await).await.precise().await;
}

#[tokio::test]
async fn nl2sql_with_imprecise_models() {
    Bench::start("nl2sql", Setup::nl2sql().await).await.imprecise(0.87).await;
}

#[tokio::test]
async fn expense_with_precise_models() {
    Bench::start("expense", Setup::expense().await).await.precise().await;
}

#[tokio::test]
async fn expense_with_imprecise_models() {
    Bench::start("expense", Setup::expense().await).await.imprecise(0.8).await;
}

#[tokio::test]
async fn reasoning_with_precise_models() {
    Bench::start("reasoning", Setup::reasoning().await).await.precise().await;
}

#[tokio::test]
async fn reasoning_with_imprecise_models() {
    Bench::start("reasoning", Setup::reasoning().await).await.imprecise(0.81).await;
}
