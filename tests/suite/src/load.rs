//! Many open streams and many runs at once, as the official clients have them, against any server
//! with the reference graphs; and whether a single event was lost.
//!
//! Runs are begun at a rate, whether earlier ones have ended or not, each with a stream of its own,
//! in turn on threads whose streams are open all the time. Clients remember a digest of each frame.
//! When all runs have ended, everything is read once more from its beginning, and all readings must
//! be the same; and no checkpoint of the log may be missing in them.
//!
//! # Layout
//!
//! * `client`: requests, and answers that are streams; `frame`: their frames.
//! * `graph`: what runs, and how to see whose run it was.
//! * `held`: a stream of a thread; `run`: a run with its own stream.
//! * `tally`: how two readings differ; `check`: all of them.
//! * `times`: how long things took.

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

/// Requests at once before and after the load, when nothing is measured.
const AT_ONCE: usize = 16;

/// The work of a load.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Streams that stay open, each of a thread of its own.
    pub streams: usize,
    /// Runs, in turn on these threads.
    pub runs: usize,
    /// Runs begun in a second.
    pub rate: f64,
}

/// Threads with an open stream each, and no runs yet.
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

/// What clients saw.
#[derive(Debug)]
pub struct Seen {
    client: Client,
    threads: Vec<Thread>,
    runs: Vec<Followed>,
    /// From the first run's beginning to the last one's end.
    pub elapsed: Duration,
    /// The longest time that a run was begun too late: the load is less than it says if this is
    /// much.
    pub late: Duration,
}

impl Load {
    /// Makes the threads and opens their streams, which are of one kind and the other in turn.
    ///
    /// # Errors
    ///
    /// If the server does not answer as it should.
    pub async fn open(url: &str, plan: Plan) -> Result<Self> {
        let client = Client::new(url)?;
        let threads = futures::stream::iter(0..plan.streams)
            .map(|index| open_thread(&client, index))
            .buffered(AT_ONCE)
            .try_collect()
            .await?;
        Ok(Self { client, plan, threads })
    }

    /// Begins all runs, each at its time, and follows them to their ends.
    ///
    /// # Errors
    ///
    /// If a client breaks down. The report lists the mistakes of the server.
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
    /// Reads everything once more and compares it with what was seen.
    ///
    /// # Errors
    ///
    /// If the server does not answer as it should.
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
