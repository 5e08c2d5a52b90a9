//! A client that takes as many places for runs, or as many guests for web handlers, as it can, and
//! keeps them.

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use futures::StreamExt as _;
use futures::future::try_join_all;
use futures::stream::FuturesUnordered;
use serde_json::json;
use wattle_kit::standin::Pattern;

use super::app::{CROWD, PLACES};
use super::host::Host;

/// The path of the service for which runs and web handlers wait.
const HELD: &str = "/echo";

/// Runs that the client starts: more than the host has places.
const RUNS: usize = PLACES + PLACES / 2;

/// Guests of web handlers that one caller may have: half of those of all web handlers.
const GUESTS: usize = 250;

/// Requests to a web handler: more than the client may have guests.
const REQUESTS: usize = GUESTS + 50;

/// Calls a web handler that makes host calls until a limit ends the handler. Then sends requests
/// until one caller has the maximum number of guests for web handlers, checks that further requests
/// get status 503, and disconnects. The guests must count until their handlers end, and meanwhile
/// honest work goes on.
pub(super) async fn handlers(host: Arc<Host>) -> Result<()> {
    let (status, ended) = host.get(&format!("/apps/{CROWD}/clock")).await?;
    let limit = &ended["details"]["limit"];
    // The handlers of the last strike may not have ended yet.
    ensure!(limit == "host_calls" || limit == "handlers", "{status}: {ended}");
    let gate = host.standin.gate(Pattern::path(HELD));
    let path = format!("/apps/{CROWD}/wait?url={}{HELD}", host.standin.base_url);
    let mut answers: FuturesUnordered<_> = (0..REQUESTS).map(|_| host.get(&path)).collect();
    for _ in GUESTS..REQUESTS {
        let (status, refused) = answers.next().await.context("no response")??;
        ensure!(status == 503 && refused["details"]["limit"] == "handlers", "{status}: {refused}");
    }
    drop(answers);
    let (status, refused) = host.get(&path).await?;
    ensure!(
        status == 503,
        "the guests of a disconnected client must still count: {status}: {refused}"
    );
    host.honest.goes_on().await?;
    gate.open();
    Ok(())
}

/// Calls a web handler that searches for threads until a limit ends the handler.
pub(super) async fn searches(host: Arc<Host>) -> Result<()> {
    let (status, ended) = host.get(&format!("/apps/{CROWD}/threads")).await?;
    ensure!(ended["details"]["limit"] == "host_calls", "{status}: {ended}");
    Ok(())
}

/// Takes as many places for runs as one caller may, and starts more runs. Meanwhile honest work goes
/// on.
pub(super) async fn waiting_runs(host: Arc<Host>) -> Result<()> {
    let gate = host.standin.gate(Pattern::path(HELD));
    let input = json!({ "url": format!("{}{HELD}", host.standin.base_url) });
    let start = json!({ "graph": "wait", "input": input });
    let path = format!("/api/v1/apps/{CROWD}/runs");
    let runs = try_join_all((0..RUNS).map(|_| host.post(&path, &start))).await?;
    for (status, run) in &runs {
        ensure!(*status == 202, "{status}: {run}");
    }
    let waiting = runs.iter().filter(|(_, run)| run["status"] == "pending").count();
    ensure!(waiting >= RUNS - PLACES, "{waiting} runs wait");
    host.honest.goes_on().await?;
    gate.open();
    for (_, run) in runs {
        let id = run["run"].as_str().unwrap_or_default();
        let (status, ended) = host.get(&format!("/api/v1/runs/{id}/wait")).await?;
        ensure!(status == 200, "{status}: {ended}");
    }
    Ok(())
}
