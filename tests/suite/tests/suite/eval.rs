//! The data sets of the applications, run by `wattle eval` through the real host: with models that
//! answer as they are asked to, and with models that do not.

mod bench;

use wattle_kit::standin::Imprecision;
use wattle_suite::server::Setup;

use self::bench::Bench;

/// Share of the cases that must end as expected while a third of all answers is distorted, over
/// all kinds together.
const FLOOR: f64 = 0.5;

#[tokio::test]
async fn asset_with_precise_models() {
    Bench::start("asset", Setup::asset().await).await.precise().await;
}

#[tokio::test]
async fn asset_with_imprecise_models() {
    let bench = Bench::start("asset", Setup::asset().await).await;
    bench.imprecise(&Imprecision::ALL, FLOOR).await;
}
