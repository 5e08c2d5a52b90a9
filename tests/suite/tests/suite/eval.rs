//! The data sets of the applications, which `wattle eval` runs through the real host.
//!
//! `cargo xtask test` runs them once with models that follow their prompts. `cargo xtask eval` also
//! runs them with models that do not, which takes minutes.

mod bench;

/// Models that follow their prompts.
mod precise {
    use wattle_suite::server::Setup;

    use super::bench::Bench;

    #[tokio::test]
    async fn asset() {
        Bench::start("asset", Setup::asset().await).await.precise().await;
    }

    #[tokio::test]
    async fn travel() {
        Bench::start("travel", Setup::travel().await).await.precise().await;
    }

    #[tokio::test]
    async fn nl2sql() {
        Bench::start("nl2sql", Setup::nl2sql().await).await.precise().await;
    }

    #[tokio::test]
    async fn expense() {
        Bench::start("expense", Setup::expense().await).await.precise().await;
    }

    #[tokio::test]
    async fn reasoning() {
        Bench::start("reasoning", Setup::reasoning().await).await.precise().await;
    }
}

/// Models of whose completions a third is distorted, in each kind of imprecision.
///
/// Each floor is the minimum share of cases that end as expected, over all kinds together: three
/// points below the measured share.
mod imprecise {
    use wattle_suite::server::Setup;

    use super::bench::Bench;
    use crate::nl2sql::imprecise;

    #[tokio::test]
    async fn asset() {
        Bench::start("asset", Setup::asset().await).await.imprecise(0.81).await;
    }

    #[tokio::test]
    async fn travel() {
        Bench::start("travel", Setup::travel().await).await.imprecise(0.79).await;
    }

    #[tokio::test]
    async fn nl2sql() {
        Bench::start("nl2sql", Setup::nl2sql().await).await.imprecise(0.87).await;
    }

    #[tokio::test]
    async fn nl2sql_mappings() {
        imprecise::all_survive(imprecise::QUESTIONS.len()).await;
    }

    #[tokio::test]
    async fn expense() {
        Bench::start("expense", Setup::expense().await).await.imprecise(0.8).await;
    }

    #[tokio::test]
    async fn reasoning() {
        Bench::start("reasoning", Setup::reasoning().await).await.imprecise(0.81).await;
    }
}
