//! A run with a stream of its own.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use reqwest::Method;
use tokio::time::Instant;

use crate::load::client::Client;
use crate::load::frame::Mark;
use crate::load::graph::Graph;

/// How long a run may take. One that takes longer is reported as stuck.
const PATIENCE: Duration = Duration::from_mins(2);

/// What was seen of a run.
#[derive(Debug, Default)]
pub(super) struct Followed {
    /// Which of all runs it is.
    pub(super) number: usize,
    /// Its id; none if it did not begin.
    pub(super) run: Option<String>,
    /// Its frames.
    pub(super) marks: Vec<Mark>,
    /// From when it was to begin until its graph said something.
    pub(super) first: Option<Duration>,
    /// From when it was to begin to the end of its stream.
    pub(super) whole: Duration,
    /// What went wrong.
    pub(super) failure: Option<String>,
}

/// What a run says, which no other one does.
pub(super) fn said(number: usize) -> String {
    format!("r{number}")
}

/// Begins a run and reads its stream to the end. Time counts from when it was to begin.
pub(super) async fn follow(
    client: &Client,
    thread: &str,
    graph: Graph,
    number: usize,
    due: Instant,
) -> Followed {
    let mut followed = Followed { number, ..Followed::default() };
    let read = tokio::time::timeout(PATIENCE, followed.read(client, thread, graph, due)).await;
    let read = read.context("its stream does not end").and_then(|read| read);
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
            ensure!(frame.event != "error", "it failed: {}", frame.data);
            if frame.event == "values" {
                is_proven = frame.data.contains(&proof);
            }
            self.marks.extend(frame.mark());
        }
        ensure!(is_proven, "its last state is not its own");
        Ok(())
    }
}
