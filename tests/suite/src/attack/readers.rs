//! Clients that read much of one thread at once.

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use futures::future::try_join_all;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use wattle_run::limit::HISTORY_BYTES;

use super::app::APP;
use super::clients::{send, status};
use super::host::Host;

/// Supersteps of the run that is read. Each has two events or more, so the log has more events than
/// [`READERS`].
const STEPS: usize = 60;

/// Size of the text in the event of each superstep, and of what it adds to the state, in bytes.
/// All events of the run fit into a page by their number, and a few of them by their bytes.
const TEXT_BYTES: usize = 500_000;

/// Streams that read the log, each from a position of its own.
const READERS: usize = 80;

/// Bytes that each stream receives before it is left unread. The rest of its page stays in memory.
const FIRST_BYTES: usize = 16 << 10;

/// Requests for the states of a thread at once.
const REQUESTS: usize = 2;

/// Pages of states that are read one after the other.
const PAGES: usize = 3;

/// Runs a graph that writes a large event in each superstep, and whose state grows by it. Returns
/// the thread.
async fn grown(host: &Host) -> Result<String> {
    let start = json!({
        "graph": "grow",
        "input": { "size": TEXT_BYTES },
        "options": { "recursion_limit": STEPS },
        "wait": true,
    });
    let (code, run) = host.post(&format!("/api/v1/apps/{APP}/runs"), &start).await?;
    let failure = &run["failure"];
    ensure!(code == 200 && failure["details"]["limit"] == "recursion", "{code}: {failure}");
    Ok(run["thread"].as_str().context("a run has a thread")?.to_owned())
}

/// Opens streams at different positions of a log with large events, which no other stream shares,
/// and leaves them unread. Meanwhile honest work goes on.
pub(super) async fn large_events(host: Arc<Host>) -> Result<()> {
    let thread = grown(&host).await?;
    let requests = (0..READERS).map(|after| {
        format!(
            "GET /api/v1/threads/{thread}/events?after={after} HTTP/1.1\r\nhost: localhost\r\n\r\n"
        )
    });
    let readers = try_join_all(requests.map(|request| unread(&host, request))).await?;
    host.honest.goes_on().await?;
    drop(readers);
    Ok(())
}

/// Opens a stream, receives the first part of its page and leaves the rest unread.
async fn unread(host: &Host, request: String) -> Result<TcpStream> {
    let mut socket = send(host, &request).await?;
    let code = status(&mut socket).await?;
    ensure!(code == 200, "a stream: {code}");
    socket.read_exact(&mut vec![0; FIRST_BYTES]).await?;
    Ok(socket)
}

/// Requests as many states of a thread as a page may have, which are large, and the list of all its
/// checkpoints without their states.
pub(super) async fn history(host: Arc<Host>) -> Result<()> {
    let path = format!("/api/v1/threads/{}/history?limit=500", grown(&host).await?);
    let all = checkpoints(&host, &path).await?;
    ensure!(all.len() > STEPS, "{} checkpoints", all.len());
    ensure!(all.iter().all(|checkpoint| checkpoint["state"].is_null()), "a state was read");
    let path = format!("{path}&state=true");
    let newest = try_join_all((0..REQUESTS).map(|_| checkpoints(&host, &path))).await?;
    ensure!(newest.iter().all(|page| is_bounded(page)), "a page of the newest states");
    // A reader continues from a checkpoint whose state is half as large.
    let mut next = STEPS / 2;
    for _ in 0..PAGES {
        let before = &all[next - 1]["id"];
        let page = checkpoints(&host, &format!("{path}&before={before}")).await?;
        ensure!(is_bounded(&page) && page.len() > 1, "{} states", page.len());
        ensure!(page[0]["id"] == all[next]["id"], "a gap after checkpoint {before}");
        next += page.len();
    }
    Ok(())
}

/// Returns a page of the checkpoints of a thread.
async fn checkpoints(host: &Host, path: &str) -> Result<Vec<Value>> {
    match host.get(path).await? {
        (200, Value::Array(page)) => Ok(page),
        (code, answer) => anyhow::bail!("{code}: {answer}"),
    }
}

/// Returns whether the states of a page have no more bytes than they may have. One state may always
/// be read.
fn is_bounded(page: &[Value]) -> bool {
    let texts = |checkpoint: &Value| checkpoint["state"]["text"].as_array().map_or(0, Vec::len);
    let bytes = page.iter().map(texts).sum::<usize>() * TEXT_BYTES;
    page.len() == 1 || (!page.is_empty() && bytes as u64 <= HISTORY_BYTES)
}
