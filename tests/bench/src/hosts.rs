//! Three hosts on one PostgreSQL: shares of runs, throughput, order of the runs of a thread, and
//! the delay by a killed host.

use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use futures::{StreamExt as _, TryStreamExt as _};
use serde_json::{Value, json};
use tokio::runtime::Builder;
use tokio::time::Instant;
use wattle_kit::postgres::Postgres;
use wattle_suite::load::Client;

use crate::print_line;
use crate::served::Served;

/// Number of hosts that share the database.
const HOSTS: usize = 3;

/// Number of long runs that are requested on one host.
const LASTING: usize = 60;

/// Minimum share of these runs for each host.
const LEAST_SHARE: f64 = 0.2;

/// Number of clients that each request one run at a time.
const CLIENTS: usize = 32;

/// Interval of polls.
const PAUSE: Duration = Duration::from_millis(20);

/// Timeout of each wait.
const PATIENCE: Duration = Duration::from_mins(2);

/// The path to which runs are posted.
const RUNS: &str = "/api/v1/apps/reference/runs";

/// Options of the command line.
struct Options {
    seconds: f64,
    threads: usize,
    runs: usize,
}

impl Options {
    fn read(words: &[&str]) -> Result<Self> {
        let mut options = Self { seconds: 10.0, threads: 200, runs: 2_000 };
        for pair in words.chunks(2) {
            let [name, value] = pair else { bail!("`{}` needs a value", pair[0]) };
            let unreadable = || format!("invalid value `{value}` for `{name}`");
            match *name {
                "--seconds" => options.seconds = value.parse().with_context(unreadable)?,
                "--threads" => options.threads = value.parse().with_context(unreadable)?,
                "--runs" => options.runs = value.parse().with_context(unreadable)?,
                other => bail!("unknown option `{other}`; use --seconds, --threads or --runs"),
            }
        }
        ensure!(options.threads > 0 && options.runs >= options.threads, "too few threads or runs");
        Ok(options)
    }
}

/// Measures the hosts and prints the results.
///
/// # Errors
///
/// If the share of a host is too small, a run is lost or fails, or the runs of a thread are not in
/// the order of their requests.
pub(crate) fn table(words: &[&str]) -> Result<()> {
    let options = Options::read(words)?;
    let runtime = Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(measure(options))
}

async fn measure(options: Options) -> Result<()> {
    let seconds = Duration::from_secs_f64(options.seconds);
    let postgres = Postgres::start()?;
    let store = format!("url = \"{}\"", postgres.url());
    let first = Served::start_on(&store).await?;
    let alone = throughput(&first, seconds).await?;
    print_line(&format!("one host, {CLIENTS} clients: {alone:.1} runs a second"));
    let mut hosts = vec![first];
    while hosts.len() < HOSTS {
        hosts.push(Served::start_on(&store).await?);
    }
    acquainted(&hosts).await?;
    let together = throughput(&hosts[0], seconds).await?;
    print_line(&format!(
        "{HOSTS} hosts, {CLIENTS} clients on one of them: {together:.1} runs a second, {:.2} times \
         as many",
        together / alone
    ));
    shares(&hosts).await?;
    order(&hosts, options.threads, options.runs).await?;
    kill(hosts).await
}

/// Returns a client for each host.
fn clients(hosts: &[Served]) -> Result<Vec<Client>> {
    hosts.iter().map(|host| Client::new(&host.url)).collect()
}

/// Polls until a condition is met.
async fn until<T>(what: &str, look: impl AsyncFn() -> Result<Option<T>>) -> Result<T> {
    let begun = Instant::now();
    loop {
        if let Some(found) = look().await? {
            return Ok(found);
        }
        ensure!(begun.elapsed() < PATIENCE, "timeout while waiting for {what}");
        tokio::time::sleep(PAUSE).await;
    }
}

/// Waits until each host knows all others.
async fn acquainted(hosts: &[Served]) -> Result<()> {
    for client in clients(hosts)? {
        until("a host that knows all others", async || {
            let known = client.get("/api/v1/hosts").await?;
            Ok((known.as_array().map(Vec::len) == Some(hosts.len())).then_some(()))
        })
        .await?;
    }
    Ok(())
}

/// Returns a run that ends quickly.
fn short() -> Value {
    json!({ "graph": "subgraph", "input": {} })
}

/// Requests a run and returns its id.
async fn ask(client: &Client, run: &Value) -> Result<String> {
    let response = client.request(reqwest::Method::POST, RUNS).json(run).send().await?;
    let (status, run) = (response.status(), response.json::<Value>().await?);
    ensure!(status.is_success(), "the request for a run failed with {status}: {run}");
    run["run"].as_str().map(str::to_owned).with_context(|| format!("no run: {run}"))
}

/// Returns completed runs per second. Each client waits for the end of a run before it requests the
/// next one.
async fn throughput(host: &Served, time: Duration) -> Result<f64> {
    let client = Client::new(&host.url)?;
    let (begun, waiting) = (Instant::now(), json!({ "wait": true }));
    let mut run = short();
    run.as_object_mut()
        .context("an object")?
        .extend(waiting.as_object().cloned().unwrap_or_default());
    let lanes = (0..CLIENTS).map(|_| async {
        let mut ended = 0_usize;
        while begun.elapsed() < time {
            ask(&client, &run).await?;
            ended += 1;
        }
        anyhow::Ok(ended)
    });
    let ended: usize = futures::future::try_join_all(lanes).await?.into_iter().sum();
    Ok(ended as f64 / begun.elapsed().as_secs_f64())
}

/// Checks the distribution of long runs that were requested on one host.
async fn shares(hosts: &[Served]) -> Result<()> {
    let clients = clients(hosts)?;
    let lasting = json!({ "graph": "stalling_agent", "input": {} });
    let asked = (0..LASTING).map(|_| ask(&clients[0], &lasting));
    let runs: Vec<String> = futures::stream::iter(asked).buffer_unordered(16).try_collect().await?;
    let loads = until("the start of all runs", async || {
        let mut loads = Vec::new();
        for client in &clients {
            loads.push(load(client).await?);
        }
        Ok((loads.iter().sum::<u64>() == LASTING as u64).then_some(loads))
    })
    .await?;
    print_line(&format!(
        "{LASTING} long runs, requested on one host; runs on each host: {loads:?}"
    ));
    for run in &runs {
        let path = format!("/api/v1/runs/{run}/cancel");
        clients[1].request(reqwest::Method::POST, &path).json(&json!({})).send().await?;
    }
    let least = loads.iter().min().copied().unwrap_or_default();
    ensure!(least as f64 >= LEAST_SHARE * LASTING as f64, "a host has too small a share");
    Ok(())
}

/// Returns the number of runs that a host executes.
async fn load(client: &Client) -> Result<u64> {
    let hosts = client.get("/api/v1/hosts").await?;
    let own = hosts.as_array().into_iter().flatten().find(|host| host["is_this"] == true);
    own.and_then(|own| own["runs"].as_u64()).with_context(|| format!("no load: {hosts}"))
}

/// Requests several runs for each thread, one after the other and on alternating hosts, and checks
/// their order after all have ended.
async fn order(hosts: &[Served], threads: usize, runs: usize) -> Result<()> {
    let clients = clients(hosts)?;
    let begun = Instant::now();
    let lanes = (0..threads).map(|thread| {
        let clients = &clients;
        async move {
            let mut asked = Vec::new();
            for number in 0..runs / threads {
                let mut run = short();
                run["thread_id"] = format!("order-{thread}").into();
                asked.push(ask(&clients[(thread + number) % clients.len()], &run).await?);
            }
            anyhow::Ok((thread, asked))
        }
    });
    let asked: Vec<(usize, Vec<String>)> =
        futures::stream::iter(lanes).buffer_unordered(CLIENTS).try_collect().await?;
    for (thread, asked) in &asked {
        let path = format!("/api/v1/threads/order-{thread}/runs");
        let listed = until("the end of all runs of a thread", async || {
            let listed = clients[0].get(&path).await?;
            let is_over = |run: &Value| matches!(run["status"].as_str(), Some("completed"));
            Ok(listed.as_array().filter(|runs| runs.iter().all(is_over)).cloned())
        })
        .await?;
        let ids: Vec<&str> = listed.iter().filter_map(|run| run["run"].as_str()).collect();
        ensure!(
            ids == asked.iter().map(String::as_str).collect::<Vec<_>>(),
            "the runs are in another order: {listed:?}"
        );
        let starts: Vec<i64> = listed.iter().filter_map(|run| run["started_ms"].as_i64()).collect();
        ensure!(
            starts.is_sorted() && starts.len() == ids.len(),
            "the runs started in another order: {listed:?}"
        );
    }
    let runs = asked.iter().map(|(_, runs)| runs.len()).sum::<usize>();
    print_line(&format!(
        "{runs} runs of {threads} threads on alternating hosts: all in order, {:.1} a second",
        runs as f64 / begun.elapsed().as_secs_f64()
    ));
    Ok(())
}

/// Kills the host that received all requests while runs are running and pending, and waits for the
/// end of all runs.
async fn kill(mut hosts: Vec<Served>) -> Result<()> {
    let clients = clients(&hosts)?;
    let lanes = (0..LASTING).map(|thread| {
        let client = &clients[0];
        async move {
            let mut asked = Vec::new();
            for _ in 0..4 {
                let mut run = short();
                run["thread_id"] = format!("kill-{thread}").into();
                asked.push(ask(client, &run).await?);
            }
            anyhow::Ok(asked)
        }
    });
    let asked: Vec<Vec<String>> =
        futures::stream::iter(lanes).buffer_unordered(CLIENTS).try_collect().await?;
    hosts.remove(0).kill().await?;
    let killed = Instant::now();
    let mut longest = Duration::ZERO;
    for run in asked.iter().flatten() {
        let ended = clients[1].get(&format!("/api/v1/runs/{run}/wait")).await?;
        ensure!(ended["status"] == "completed", "a run is lost: {ended}");
        longest = longest.max(killed.elapsed());
    }
    print_line(&format!(
        "{} runs, and the host with their requests is killed: all end, the last {:.1} s later",
        asked.iter().flatten().count(),
        longest.as_secs_f64()
    ));
    for host in hosts {
        host.stop().await?;
    }
    Ok(())
}
