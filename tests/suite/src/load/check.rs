//! Checks that clients received everything.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context as _, Result};
use futures::{StreamExt as _, TryStreamExt as _};
use reqwest::Method;
use serde_json::Value;

use crate::load::client::Client;
use crate::load::held::{Kind, Reading};
use crate::load::run::{Followed, said};
use crate::load::tally::Tally;
use crate::load::times::Times;
use crate::load::{AT_ONCE, Seen, Thread};

/// Maximum number of server-sent events per log event. The server numbers each server-sent event by
/// its log event and its position among the server-sent events of the log event.
const FRAMES_PER_EVENT: u64 = 1_000;

/// Maximum number of runs in a page of the server's list.
const PAGE_RUNS: usize = 1_000;

/// The result of a load.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Streams that were open during the whole load.
    pub streams: usize,
    /// Runs that were requested.
    pub runs: usize,
    /// Failures of runs, one entry each.
    pub failures: Vec<String>,
    /// Events of the streams of runs.
    pub own: Tally,
    /// Events of the streams of threads.
    pub threads: Tally,
    /// Typed events of threads.
    pub typed: Tally,
    /// States and ends of runs in the log, and whether the streams showed them.
    pub log: Tally,
    /// Time from the planned start of a run to the first event of its graph.
    pub first_event: Times,
    /// Time from the planned start of a run to the end of its stream.
    pub whole_run: Times,
    /// Time from the start of the first run to the end of the last one.
    pub elapsed: Duration,
    /// Longest delay of a start.
    pub late: Duration,
}

impl Report {
    /// Returns whether all runs succeeded, and no event was lost or duplicated.
    pub fn is_whole(&self) -> bool {
        let tallies = [&self.own, &self.threads, &self.typed, &self.log];
        self.failures.is_empty() && tallies.into_iter().all(Tally::is_whole)
    }

    fn add(&mut self, other: Self) {
        self.failures.extend(other.failures);
        self.own += other.own;
        self.threads += other.threads;
        self.typed += other.typed;
        self.log += other.log;
    }
}

/// Checks everything that the clients received.
pub(super) async fn all(seen: Seen) -> Result<Report> {
    let Seen { client, threads, runs, elapsed, late } = seen;
    let mut report = Report {
        streams: threads.len(),
        runs: runs.len(),
        first_event: runs.iter().filter_map(|run| run.first).collect(),
        whole_run: runs.iter().map(|run| run.whole).collect(),
        elapsed,
        late,
        ..Report::default()
    };
    let mut by_thread: BTreeMap<usize, Vec<Followed>> = BTreeMap::new();
    for run in runs {
        by_thread.entry(run.number % threads.len()).or_default().push(run);
    }
    let pairs: Vec<_> = threads
        .into_iter()
        .enumerate()
        .map(|(place, thread)| (thread, by_thread.remove(&place).unwrap_or_default()))
        .collect();
    let mut checked = futures::stream::iter(pairs)
        .map(|(thread, runs)| check_thread(&client, thread, runs))
        .buffer_unordered(AT_ONCE);
    while let Some(part) = checked.try_next().await? {
        report.add(part);
    }
    Ok(report)
}

async fn check_thread(client: &Client, thread: Thread, runs: Vec<Followed>) -> Result<Report> {
    let Thread { id, graph, held } = thread;
    let kind = held.kind;
    let ends = runs.iter().filter(|run| run.run.is_some()).count();
    let seen = held.close(ends).await?;
    let truth = Reading::again(client, &id, Kind::Runs, ends).await?;
    let mut report = Report::default();
    if kind == Kind::Runs {
        report.threads = Tally::of(&seen.marks, &truth.marks);
    } else {
        let typed = Reading::again(client, &id, kind, ends).await?;
        report.typed = Tally::of(&seen.marks, &typed.marks);
    }
    let of_run: BTreeMap<&str, _> =
        truth.runs.iter().map(|(run, frames)| (run.as_str(), frames.clone())).collect();
    let mut last = None;
    for run in &runs {
        let number = run.number;
        report.failures.extend(run.failure.iter().map(|why| format!("run {number}: {why}")));
        let Some(begun) = &run.run else { continue };
        let frames = of_run.get(begun.as_str()).cloned().unwrap_or_default();
        report.own += Tally::of(&run.marks, &truth.marks[frames]);
        if truth.runs.last().is_some_and(|(last, _)| last == begun) {
            last = Some(number);
        }
    }
    report.log = shown(client, &id, &truth).await?;
    report.failures.extend(unsuccessful(client, &id, ends).await?);
    if let Some(number) = last {
        let state = client.get(&format!("/threads/{id}/state")).await?;
        if !state["values"].to_string().contains(&graph.proof(&said(number))) {
            report.failures.push(format!("run {number}: the thread's state is not of it"));
        }
    }
    Ok(report)
}

/// Compares a reading with the log from which streams are made: every state and every end of a run
/// in the log must be in the reading.
async fn shown(client: &Client, thread: &str, truth: &Reading) -> Result<Tally> {
    let path = format!("/api/v1/threads/{thread}/events?until=idle");
    let mut log = client.stream(client.request(Method::GET, &path)).await?;
    let states: BTreeSet<u64> = truth.states.iter().map(|it| it / FRAMES_PER_EVENT).collect();
    let (mut tally, mut ends) = (Tally::default(), 0);
    while let Some(event) = log.next().await? {
        if !matches!(event.event.as_str(), "checkpointed" | "run_ended") {
            continue;
        }
        let data: Value = serde_json::from_str(&event.data)?;
        if data["namespace"].as_str().is_some_and(|namespace| !namespace.is_empty()) {
            continue;
        }
        tally.expected += 1;
        let is_shown = if event.event == "run_ended" {
            ends += 1;
            ends <= truth.runs.len()
        } else {
            states.contains(&event.id.parse()?)
        };
        tally.delivered += usize::from(is_shown);
        tally.lost += usize::from(!is_shown);
    }
    Ok(tally)
}

/// Returns the runs without the status `success`, and the number of runs if it differs from
/// `begun`.
async fn unsuccessful(client: &Client, thread: &str, begun: usize) -> Result<Vec<String>> {
    let listed = client.get(&format!("/threads/{thread}/runs?limit={PAGE_RUNS}")).await?;
    let listed = listed.as_array().context("no list of runs")?;
    let mut failures: Vec<String> = listed
        .iter()
        .filter(|run| run["status"] != "success")
        .map(|run| format!("run {} is said to be {}", run["run_id"], run["status"]))
        .collect();
    if listed.len() != begun.min(PAGE_RUNS) {
        failures.push(format!("thread {thread} has {} runs, not {begun}", listed.len()));
    }
    Ok(failures)
}
