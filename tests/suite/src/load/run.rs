//! A run with a stream of its own.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use reqwest::Method;
use tokio::time::Instant;

use crate::load::client::Client;
use crate::load::frame::Mark;
use crate::load::graph::Graph;

/// Maximum duration of a run. A longer run is reported as stuck.
const PATIENCE: Duration = Duration::from_mins(2);

/// What a client received of a run.
#[derive(Debug, Default)]
pub(super) struct Followed {
    /// The number of the run among all runs.
    pub(super) number: usize,
    /// The id of the run, or `None` if it did not start.
    pub(super) run: Option<String>,
    /// The server-sent events of its stream.
    pub(super) marks: Vec<Mark>,
    /// Time from the planned start to the first event of the graph.
    pub(super) first: Option<Duration>,
    /// Time from the planned start to the end of the stream.
    pub(super) whole: Duration,
    /// The failure, if there was one.
    pub(super) failure: Option<String>,
}

/// Returns the text of a run, which differs from those of all other runs.
pub(super) fn said(number: usize) -> String {
    format!("r{number}")
}

/// Starts a run and reads its stream to the end. Times count from the planned start `due`.
pub(super) async fn follow(
    client: &Client,
    thread: &str,
    graph: Graph,
    number: usize,
    due: Instant,
) -> Followed {
    let mut followed = Followed { number, ..Followed::default() };
    let read = tokio::time::timeout(PATIENCE, followed.read(client, thread, graph, due)).await;
    let read = read.context("the stream does not end").and_then(|read| read);
    followed.whole = due.elapsed();
    followed.failure = read.err().map(|error| format!("{error:#}"));
    followed
}

impl Followed {
    async fn read(
        &mut self,
        client: &Client,
        thread: &str,
        graph: Graph,
        due: Instant,
    ) -> Result<()> {
        let said = said(self.number);
        let request = client.request(Method::POST, &format!("/threads/{thread}/runs/stream"));
        let mut frames = client.stream(request.json(&graph.request(&said))).await?;
        self.run = frames.run().map(str::to_owned);
        let proof = graph.proof(&said);
        let mut is_proven = false;
        while let Some(frame) = frames.next().await? {
            if frame.event != "metadata" && self.first.is_none() {
                self.first = Some(due.elapsed());
            }
            ensure!(frame.event != "error", "the run failed: {}", frame.data);
            if frame.event == "values" {
                is_proven = frame.data.contains(&proof);
            }
            self.marks.extend(frame.mark());
        }
        ensure!(is_proven, "the last state does not contain the run's text");
        Ok(())
    }
}
