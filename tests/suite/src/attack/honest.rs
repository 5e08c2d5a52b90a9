//! What must hold during every attack: the host responds, honest runs complete, and the control
//! plane works.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use anyhow::{Context as _, Result, ensure};
use reqwest::{Client, RequestBuilder};
use serde_json::{Value, json};

use super::app::{APP, HONEST};

/// Number of rounds of an honest caller in [`Honest::goes_on`].
pub const ROUNDS: u32 = 3;

/// An honest caller of a host. The app `misdeeds` of the host must have the graph `honest`, which
/// adds one to `number`.
pub struct Honest {
    client: Client,
    base: String,
    threads: AtomicU64,
}

impl Honest {
    /// Creates a caller of the host at a base URL.
    ///
    /// # Errors
    ///
    /// If no client can be created.
    pub fn new(base: String) -> Result<Self> {
        Ok(Self { client: Client::builder().no_proxy().build()?, base, threads: AtomicU64::new(0) })
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// Checks that the host is healthy.
    ///
    /// # Errors
    ///
    /// If it does not respond with 200.
    pub async fn ok(&self) -> Result<()> {
        let (status, body) = answer(self.client.get(self.url("/ok"))).await?;
        ensure!(status == 200, "/ok: {status}: {body}");
        Ok(())
    }

    /// Returns the value of a metric, named with its labels as in the text of all metrics.
    ///
    /// # Errors
    ///
    /// If the host does not report it.
    pub async fn metric(&self, name: &str) -> Result<u64> {
        let (status, body) = answer(self.client.get(self.url("/metrics"))).await?;
        let mut lines = body.as_str().unwrap_or_default().lines();
        let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        let value = value.with_context(|| format!("no metric `{name}`: {status}: {body}"))?;
        Ok(value.parse()?)
    }

    /// Starts a run and checks that it completes.
    ///
    /// # Errors
    ///
    /// If it does not complete.
    pub async fn run(&self) -> Result<()> {
        let start = json!({ "graph": HONEST, "input": { "number": 1 }, "wait": true });
        let request = self.client.post(self.url(&format!("/api/v1/apps/{APP}/runs")));
        let (status, run) = answer(request.json(&start)).await?;
        let is_whole = run["status"] == "completed" && run["state"]["number"] == 2;
        ensure!(status == 200 && is_whole, "an honest run: {status}: {run}");
        Ok(())
    }

    /// Checks that honest work goes on: runs complete, the control plane works, and the host
    /// responds to a health check before [`ROUNDS`] rounds of both have ended. The health check is
    /// bounded by this work and not by time, because it is less work on every machine, however busy.
    ///
    /// # Errors
    ///
    /// If a request fails, or the health check has no response when the rounds have ended.
    pub async fn goes_on(&self) -> Result<()> {
        let is_healthy = AtomicBool::new(false);
        let health = async {
            self.ok().await?;
            is_healthy.store(true, Ordering::Relaxed);
            anyhow::Ok(())
        };
        let rounds = async {
            for _ in 0..ROUNDS {
                self.run().await?;
                self.control_plane().await?;
            }
            ensure!(is_healthy.load(Ordering::Relaxed), "/ok takes longer than {ROUNDS} rounds");
            anyhow::Ok(())
        };
        tokio::try_join!(health, rounds)?;
        Ok(())
    }

    /// Lists threads, starts a run, cancels it and deletes its thread.
    ///
    /// # Errors
    ///
    /// If the host refuses one of the requests.
    pub async fn control_plane(&self) -> Result<()> {
        let (status, body) = answer(self.client.get(self.url("/api/v1/threads?limit=1"))).await?;
        ensure!(status == 200, "list: {status}: {body}");
        let thread = format!("honest-{}", self.threads.fetch_add(1, Ordering::Relaxed));
        let start = json!({ "graph": HONEST, "input": { "number": 1 }, "thread_id": thread });
        let request = self.client.post(self.url(&format!("/api/v1/apps/{APP}/runs")));
        let (status, run) = answer(request.json(&start)).await?;
        ensure!(status == 202, "start: {status}: {run}");
        let run = run["run"].as_str().unwrap_or_default().to_owned();
        let request = self.client.post(self.url(&format!("/api/v1/runs/{run}/cancel")));
        let (status, body) = answer(request).await?;
        ensure!(status == 202, "cancel: {status}: {body}");
        let request = self.client.delete(self.url(&format!("/api/v1/threads/{thread}")));
        let (status, body) = answer(request).await?;
        ensure!(status == 204, "delete: {status}: {body}");
        Ok(())
    }
}

/// Sends a request and returns the status and the document of the response.
pub(super) async fn answer(request: RequestBuilder) -> Result<(u16, Value)> {
    let response = request.send().await?;
    let status = response.status().as_u16();
    let text = response.text().await?;
    Ok((status, serde_json::from_str(&text).unwrap_or(Value::String(text))))
}
