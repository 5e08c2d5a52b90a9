//! Clients that repeat a request, each one at a time.

use std::time::Duration;

use anyhow::{Result, ensure};
use reqwest::Method;
use tokio::task::JoinSet;
use tokio::time::Instant;
use wattle_suite::load::{Client, Graph, Times};

/// Number of requests of each kind and client before the measurement.
const WARM_UP: usize = 3;

/// Clients of one server, each with its own connections.
pub(crate) struct Lanes {
    clients: Vec<Client>,
    seconds: f64,
}

/// The repeated requests of a client.
#[derive(Clone, Copy)]
enum Task {
    /// Creates a thread and waits for a run on it.
    RoundTrip,
    /// Streams a run on a new thread. Only the time from the request for the run to the first event
    /// counts.
    FirstEvent,
}

/// The result of a measurement.
pub(crate) struct Done {
    pub(crate) times: Times,
    count: usize,
    elapsed: Duration,
}

impl Done {
    /// Returns the number of completed tasks per second.
    pub(crate) fn per_second(&self) -> f64 {
        self.count as f64 / self.elapsed.as_secs_f64()
    }
}

impl Lanes {
    pub(crate) fn new(url: &str, clients: usize, seconds: f64) -> Result<Self> {
        let clients = (0..clients).map(|_| Client::new(url)).collect::<Result<_>>()?;
        Ok(Self { clients, seconds })
    }

    /// Measures the throughput of new threads with one run each.
    pub(crate) async fn round_trips(&self) -> Result<Done> {
        self.measure(Task::RoundTrip).await
    }

    /// Measures the time from the request for a run to the first event of its graph.
    pub(crate) async fn first_events(&self) -> Result<Done> {
        self.measure(Task::FirstEvent).await
    }

    async fn measure(&self, task: Task) -> Result<Done> {
        self.all(task, Until::Count(WARM_UP)).await?;
        let began = Instant::now();
        let end = began + Duration::from_secs_f64(self.seconds);
        let times = self.all(task, Until::Time(end)).await?;
        let (count, elapsed) = (times.len(), began.elapsed());
        Ok(Done { times: times.into_iter().collect(), count, elapsed })
    }

    async fn all(&self, task: Task, until: Until) -> Result<Vec<Duration>> {
        let mut lanes = JoinSet::new();
        for (index, client) in self.clients.iter().enumerate() {
            lanes.spawn(lane(client.clone(), index, task, until));
        }
        let mut times = Vec::new();
        while let Some(lane) = lanes.join_next().await {
            times.extend(lane??);
        }
        Ok(times)
    }
}

/// The condition under which a client stops.
#[derive(Clone, Copy)]
enum Until {
    Count(usize),
    Time(Instant),
}

async fn lane(client: Client, index: usize, task: Task, until: Until) -> Result<Vec<Duration>> {
    let mut times = Vec::new();
    loop {
        let is_over = match until {
            Until::Count(count) => times.len() >= count,
            Until::Time(end) => Instant::now() >= end,
        };
        if is_over {
            return Ok(times);
        }
        let said = format!("r{index}-{}", times.len());
        times.push(match task {
            Task::RoundTrip => round_trip(&client, &said).await?,
            Task::FirstEvent => first_event(&client, &said).await?,
        });
    }
}

async fn round_trip(client: &Client, said: &str) -> Result<Duration> {
    let began = Instant::now();
    let thread = client.create_thread().await?;
    let request = Graph::Echo.request(said);
    let ended = client.post(&format!("/threads/{thread}/runs/wait"), &request).await?;
    let took = began.elapsed();
    ensure!(ended.to_string().contains(&Graph::Echo.proof(said)), "a wrong state: {ended}");
    Ok(took)
}

async fn first_event(client: &Client, said: &str) -> Result<Duration> {
    let graph = Graph::Talk;
    let thread = client.create_thread().await?;
    let began = Instant::now();
    let request = client.request(Method::POST, &format!("/threads/{thread}/runs/stream"));
    let mut frames = client.stream(request.json(&graph.request(said))).await?;
    let (mut first, mut is_proven) = (None, false);
    while let Some(frame) = frames.next().await? {
        ensure!(frame.event != "error", "the run failed: {}", frame.data);
        // `metadata` only reports that the run exists.
        if frame.event != "metadata" {
            first.get_or_insert_with(|| began.elapsed());
        }
        is_proven |= frame.event == "values" && frame.data.contains(&graph.proof(said));
    }
    ensure!(is_proven, "the stream has no state of the run");
    Ok(first.unwrap_or_default())
}
