//! Many open streams and concurrent runs, like those of the official clients, against any server
//! with the reference graphs; and a check that no event was lost.
//!
//! Runs start at a fixed rate, whether or not earlier runs have ended. Each run has a stream of its
//! own, and the runs take turns on threads whose streams are open all the time. Clients keep a
//! digest of each server-sent event. After the last run, everything is read again from its
//! beginning. All readings must be equal, and they must contain every checkpoint of the log.
//!
//! # Layout
//!
//! * `client`: requests and streams; `frame`: the server-sent events of streams.
//! * `graph`: the graphs that run, and how a state identifies its run.
//! * `held`: a stream of a thread; `run`: a run with its own stream.
//! * `tally`: the differences of two readings; `check`: all comparisons.
//! * `times`: measured durations.

mod check;
mod client;
mod frame;
mod graph;
mod held;
mod run;
mod tally;
mod times;

use std::time::Duration;

use anyhow::Result;
use futures::{StreamExt as _, TryStreamExt as _};
use tokio::time::Instant;

pub use self::check::Report;
pub use self::client::{Client, Frames};
pub use self::frame::Frame;
pub use self::graph::Graph;
pub use self::tally::Tally;
pub use self::times::Times;

use self::held::{Held, Kind};
use self::run::Followed;

/// Concurrent requests before and after the load, when nothing is measured.
const AT_ONCE: usize = 16;

/// The size of a load.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Streams that stay open, each of a thread of its own.
    pub streams: usize,
    /// Runs, which take turns on these threads.
    pub runs: usize,
    /// Runs started per second.
    pub rate: f64,
}

/// Threads with an open stream each, and without runs.
#[derive(Debug)]
pub struct Load {
    client: Client,
    plan: Plan,
    threads: Vec<Thread>,
}

/// A thread whose stream is open.
#[derive(Debug)]
struct Thread {
    id: String,
    graph: Graph,
    held: Held,
}

/// Everything that clients received.
#[derive(Debug)]
pub struct Seen {
    client: Client,
    threads: Vec<Thread>,
    runs: Vec<Followed>,
    /// Time from the start of the first run to the end of the last one.
    pub elapsed: Duration,
    /// Longest delay of a start. If it is large, the load was lower than planned.
    pub late: Duration,
}

impl Load {
    /// Creates the threads and opens their streams, which alternate between the two kinds.
    ///
    /// # Errors
    ///
    /// If the server returns an unexpected response.
    pub async fn open(url: &str, plan: Plan) -> Result<Self> {
        let client = Client::new(url)?;
        let threads = futures::stream::iter(0..plan.streams)
            .map(|index| open_thread(&client, index))
            .buffered(AT_ONCE)
            .try_collect()
            .await?;
        Ok(Self { client, plan, threads })
    }

    /// Starts all runs, each at its time, and reads their streams to the end.
    ///
    /// # Errors
    ///
    /// If a client panics. Failures of the server are part of the report.
    pub async fn run(self) -> Result<Seen> {
        let began = Instant::now();
        let mut late = Duration::ZERO;
        let mut under_way = Vec::with_capacity(self.plan.runs);
        for number in 0..self.plan.runs {
            let due = began + Duration::from_secs_f64(number as f64 / self.plan.rate);
            tokio::time::sleep_until(due).await;
            late = late.max(due.elapsed());
            let thread = &self.threads[number % self.threads.len()];
            let (client, id, graph) = (self.client.clone(), thread.id.clone(), thread.graph);
            under_way.push(tokio::spawn(async move {
                run::follow(&client, &id, graph, number, due).await
            }));
        }
        let mut runs = Vec::with_capacity(under_way.len());
        for run in under_way {
            runs.push(run.await?);
        }
        let elapsed = began.elapsed();
        Ok(Seen { client: self.client, threads: self.threads, runs, elapsed, late })
    }
}

impl Seen {
    /// Reads everything again and compares it with what the clients received.
    ///
    /// # Errors
    ///
    /// If the server returns an unexpected response.
    pub async fn check(self) -> Result<Report> {
        check::all(self).await
    }
}

async fn open_thread(client: &Client, index: usize) -> Result<Thread> {
    let id = client.create_thread().await?;
    // Each graph has streams of both kinds.
    let kind = if index.is_multiple_of(2) { Kind::Runs } else { Kind::Typed };
    let graph = if (index / 2).is_multiple_of(2) { Graph::Echo } else { Graph::Talk };
    let held = Held::open(client, &id, kind).await?;
    Ok(Thread { id, graph, held })
}
