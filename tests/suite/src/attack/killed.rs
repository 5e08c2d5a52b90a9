//! A store with a run that a power cut ended in the middle of a superstep of as many tasks as one
//! may have.

use std::path::Path;

use anyhow::{Result, ensure};
use serde_json::json;
use wattle_kit::standin::{Gate, Pattern};

use super::app::{APP, AT_ONCE};
use super::host::{Host, Prepared};

/// Tasks of the superstep, the limit `step_tasks`.
pub const TASKS: usize = 10_000;

/// Tasks that have finished when the host is killed.
pub const FINISHED: usize = 4_000;

/// Tasks that wait for a service when the host is killed. The graph runs no more at once, so no
/// later task has begun.
pub const HELD: usize = AT_ONCE;

/// Waits at the gate, each of which ends after half a minute. On a busy machine thousands of tasks
/// may take longer.
const WAITS: usize = 4;

/// The path of the service.
const SERVICE: &str = "/echo";

/// A folder with a store after the kill.
pub struct Killed {
    /// The folder, and the services of its configuration.
    pub prepared: Prepared,
    /// The run. All tasks of the superstep but the held ones add one to `number`.
    pub run: String,
    /// The gate that holds tasks. Before it opens, the run cannot complete.
    pub gate: Gate,
}

/// Starts a run, and kills the host when some tasks of a superstep have finished, some wait for a
/// service, and the others have not begun.
///
/// # Errors
///
/// If the host cannot be started or killed, or the tasks do not get so far.
pub async fn amid_tasks(binary: &Path) -> Result<Killed> {
    let host = Host::start(binary).await?;
    let gate = host.standin.gate(Pattern::path(SERVICE));
    let url = format!("{}{SERVICE}", host.standin.base_url);
    let groups = json!([
        { "node": "early", "input": {}, "tasks": FINISHED },
        { "node": "held", "input": { "url": url }, "tasks": HELD },
        { "node": "later", "input": {}, "tasks": TASKS - FINISHED - HELD },
    ]);
    let start = json!({ "graph": "fan_out", "input": { "groups": groups } });
    let (status, run) = host.post(&format!("/api/v1/apps/{APP}/runs"), &start).await?;
    ensure!(status == 202, "{status}: {run}");
    let run = run["run"].as_str().unwrap_or_default().to_owned();
    held(&gate, HELD).await?;
    Ok(Killed { prepared: host.kill().await?, run, gate })
}

/// Waits until the gate has held this many requests.
///
/// # Errors
///
/// If they do not arrive in time.
pub async fn held(gate: &Gate, requests: usize) -> Result<()> {
    for _ in 1..WAITS {
        if gate.arrived(requests).await.is_ok() {
            return Ok(());
        }
    }
    Ok(gate.arrived(requests).await?)
}
