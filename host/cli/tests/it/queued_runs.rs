//! Pending runs on hosts that share a database.

use serde_json::json;
use wattle::server::{RunningServer, Server};
use wattle_kit::clock::ManualClock;
use wattle_kit::need;
use wattle_kit::postgres::Postgres;

use crate::crons::{NOW_MS, at, executions, host, post, runs};
use crate::fixture::answer;

const HOUR_MS: u32 = 3_600_000;

/// Requests a run that is due in an hour. Returns the paths of its thread and of the run.
async fn begin_later(server: &RunningServer) -> (String, String) {
    let thread = post(server, "/threads", json!({})).await["thread_id"].clone();
    let thread = thread.as_str().unwrap().to_owned();
    let later = json!({
        "assistant_id": "Greet", "input": { "name": "Ada" }, "after_seconds": 3_600,
    });
    let made = post(server, &format!("/threads/{thread}/runs"), later).await;
    let run = format!("/threads/{thread}/runs/{}", made["run_id"].as_str().unwrap());
    (thread, run)
}

#[tokio::test]
async fn other_hosts_cancel_and_start_pending_runs() {
    let database = need!(Postgres::for_test());
    let clock = ManualClock::at_ms(NOW_MS);
    let folders = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let one = Server::start(host(&folders[0], &database), at(&clock)).await.unwrap();
    let two = Server::start(host(&folders[1], &database), at(&clock)).await.unwrap();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let (_, cancelled) = begin_later(&one).await;
    let cancel = client.post(format!("{}{cancelled}/cancel", two.url())).send().await.unwrap();
    assert_eq!(cancel.status(), 202);
    for server in [&one, &two] {
        let (status, run) = answer(client.get(format!("{}{cancelled}", server.url()))).await;
        assert_eq!((status, run["status"].as_str()), (200, Some("interrupted")), "{run}");
    }
    let (thread, _) = begin_later(&one).await;
    one.shutdown().await;
    clock.advance_ms(HOUR_MS);
    let three = Server::start(host(&folders[2], &database), at(&clock)).await.unwrap();
    let begun = runs(&two, &thread, 1).await;
    assert_eq!((begun.len(), begun[0]["status"].as_str()), (1, Some("success")), "{begun:#?}");
    assert_eq!(executions(&two, &thread).await, 1);
    two.shutdown().await;
    three.shutdown().await;
}
