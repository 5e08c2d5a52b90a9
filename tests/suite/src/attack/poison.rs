//! A store with orphaned runs that cannot be recovered.

use std::fs;
use std::path::Path;

use anyhow::{Result, ensure};
use serde_json::json;
use wattle_kit::standin::{Gate, Pattern};

use super::app::{self, APP};
use super::host::{Host, Prepared};

/// The path of the service that the runs wait for.
const HELD: &str = "/echo";

/// Returns the id of a thread that cannot be recovered.
pub fn thread(number: usize) -> String {
    format!("poisoned-{number}")
}

/// Creates a folder whose store has `threads` runs that a power cut ended and whose code is
/// missing: their app has a newer version, and the old one is deleted from the data folder. The
/// gate still holds the requests of the runs.
///
/// # Errors
///
/// If the host cannot be started or killed, or a run cannot be started.
pub async fn poisoned(binary: &Path, threads: usize) -> Result<(Prepared, Gate)> {
    let host = Host::start(binary).await?;
    let gate = host.standin.gate(Pattern::path(HELD));
    let url = format!("{}{HELD}", host.standin.base_url);
    for number in 0..threads {
        let input = json!({ "route": "chat", "url": url });
        let start =
            json!({ "graph": "call_then_wait", "input": input, "thread_id": thread(number) });
        let (status, run) = host.post(&format!("/api/v1/apps/{APP}/runs"), &start).await?;
        ensure!(status == 202, "{status}: {run}");
    }
    gate.arrived(threads).await?;
    let prepared = host.kill().await?;
    app::put_newer_app(&prepared.workspace);
    fs::remove_dir_all(prepared.workspace.data().join("versions").join(APP))?;
    Ok((prepared, gate))
}
