//! Many concurrent streams and runs without a time limit. `cargo xtask bench load` does the same
//! with more of both on a separate server.

use wattle_suite::load::{Load, Plan};

use super::setup;

/// Three runs per thread, sequential or, on a slow machine, queued.
const PLAN: Plan = Plan { streams: 20, runs: 60, rate: 20.0 };

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_event_is_lost_while_many_streams_are_open() {
    let server = setup().await.start().await;
    let load = Load::open(&server.url(""), PLAN).await.unwrap();
    let report = load.run().await.unwrap().check().await.unwrap();
    assert!(report.is_whole(), "{report:#?}");
    assert_eq!((report.streams, report.runs), (PLAN.streams, PLAN.runs));
    // All kinds of streams were read, and all of them showed each run.
    for tally in [report.own, report.threads, report.typed, report.log] {
        assert!(tally.delivered >= PLAN.runs, "{report:#?}");
    }
}
