//! A client that makes many threads with large states.

use std::sync::Arc;

use anyhow::{Result, ensure};
use futures::future::try_join_all;
use serde_json::json;
use wattle_run::memory_budget::DEFAULT_BUDGET;

use super::app::APP;
use super::host::Host;

/// Threads that one strike makes.
const THREADS: usize = 80;

/// Threads that are made, or read, at the same time.
const AT_ONCE: usize = 16;

/// Size of the text in the state of each thread, in bytes.
const TEXT_BYTES: usize = 1 << 20;

// The host cannot keep the states of all threads in memory.
const _: () = assert!((THREADS * TEXT_BYTES) as u64 > DEFAULT_BUDGET.caches.states_bytes);

/// Makes the threads, and then reads the state of each. None is lost.
pub(super) async fn many_states(host: Arc<Host>) -> Result<()> {
    let mut threads = Vec::new();
    for _ in 0..THREADS / AT_ONCE {
        threads.push(try_join_all((0..AT_ONCE).map(|_| grown(&host))).await?);
    }
    for made in threads {
        try_join_all(made.into_iter().map(|thread| is_whole(&host, thread))).await?;
    }
    Ok(())
}

/// Makes a thread with a large state. Returns its id.
async fn grown(host: &Host) -> Result<String> {
    let run = host.run(APP, "huge_output", json!({ "size": TEXT_BYTES })).await?;
    ensure!(run["status"] == "completed", "{}: {}", run["status"], run["failure"]);
    Ok(run["thread"].as_str().unwrap_or_default().to_owned())
}

/// Checks that the state of a thread is whole.
async fn is_whole(host: &Host, thread: String) -> Result<()> {
    let (status, state) = host.get(&format!("/api/v1/threads/{thread}/state")).await?;
    let bytes = state["text"].as_str().map(str::len);
    ensure!(status == 200 && bytes == Some(TEXT_BYTES), "{status}: {bytes:?} bytes");
    Ok(())
}
