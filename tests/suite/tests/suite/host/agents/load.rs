//! Many streams and runs at once, without a condition on time; `cargo xtask bench load` is the same
//! with more of both, against a server of its own.

use wattle_suite::load::{Load, Plan};

use super::setup;

/// Three runs on each thread, one after the other or, where the machine is slow, in a queue.
const PLAN: Plan = Plan { streams: 20, runs: 60, rate: 20.0 };

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_event_is_lost_while_many_streams_are_open() {
    let server = setup().await.start().await;
    let load = Load::open(&server.url(""), PLAN).await.unwrap();
    let report = load.run().await.unwrap().check().await.unwrap();
    assert!(report.is_whole(), "{report:#?}");
    assert_eq!((report.streams, report.runs), (PLAN.streams, PLAN.runs));
    // All kinds of streams were read, and each run was shown by all of them.
    for tally in [report.own, report.threads, report.typed, report.log] {
        assert!(tally.delivered >= PLAN.runs, "{report:#?}");
    }
}
