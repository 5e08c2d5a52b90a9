//! An outage of the database. Runs continue after the outage, and requests during the outage get
//! 503 with `retry-after`.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use wattle_api::ApiConfig;
use wattle_graph::event::EventKind;
use wattle_graph::id::ThreadId;
use wattle_kit::link::Link;
use wattle_kit::need;
use wattle_kit::postgres::Postgres;
use wattle_run::ports::Store as _;
use wattle_store::{PostgresConfig, PostgresStore};

use crate::host::{Host, HostOptions};

/// Lease duration. It is much longer than the outage, so that no lease expires.
const LEASE: Duration = Duration::from_mins(5);

/// Number of runs that are executed during the outage.
const RUNS: usize = 4;

#[tokio::test]
async fn runs_survive_a_database_outage_and_requests_get_503() {
    let postgres = need!(Postgres::for_test());
    let link = Link::to(postgres.port()).await.unwrap();
    let url = format!("postgres://postgres@127.0.0.1:{}/postgres", link.port());
    let config = PostgresConfig::new(url).with_lease(LEASE);
    let store = Arc::new(PostgresStore::open(&config).await.unwrap());
    let options = HostOptions { store: store.clone(), ..HostOptions::default() };
    let host = Host::with_options(ApiConfig::default(), options);
    host.hold();
    let start =
        |thread: &str| json!({ "graph": "slow", "input": { "word": "w" }, "thread_id": thread });
    let mut runs = Vec::new();
    for place in 0..RUNS {
        let thread = ThreadId::new(format!("t{place}")).unwrap();
        let begun = host.post("/api/v1/apps/test/runs", start(thread.as_str())).await;
        assert_eq!(begun.status, 202, "{}", begun.text);
        runs.push((thread, begun.json()["run"].as_str().unwrap().to_owned()));
    }
    host.wait_for_started(RUNS).await;

    link.turn_away();
    host.release.send_replace(true);
    let (shown, started) = tokio::join!(
        host.get("/api/v1/threads/t0"),
        host.post("/api/v1/apps/test/runs", start("another")),
    );
    for refused in [shown, started] {
        let facts = (refused.status, refused.header("retry-after"));
        assert_eq!(facts, (503, "1"), "{}", refused.text);
    }

    link.admit();
    for (thread, run) in runs {
        let ended = host.get(&format!("/api/v1/runs/{run}/wait")).await.ok();
        assert_eq!(ended["status"], "completed", "{ended}");
        let events = store.events(&thread, 0, usize::MAX).await.unwrap();
        let is_start = |kind: &EventKind| matches!(kind, EventKind::RunStarted(_));
        let starts = events.iter().filter(|event| is_start(&event.kind)).count();
        assert_eq!(starts, 1, "the run of {thread} was started again");
    }
    assert_eq!(*host.started.borrow(), RUNS, "a node was executed again");
}
