//! A run of a graph with a subgraph and a replayed completion, and a reply that streams slowly.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::run::{MODEL_PATH, ended, script, start};
use crate::host::Host;
use crate::tour::{EFFECT_TOOL, PARENT_GRAPH};

/// The message of the run.
const REPORTS: &str = "Announce the summer and the winter fair, and report it";

/// The message whose reply streams slowly.
const SLOWLY: &str = "Tell me slowly";

/// Pause between two pieces of this reply, in milliseconds.
const PAUSE_MS: u32 = 500;

/// Thread of the run.
pub(super) const SUBGRAPH_THREAD: &str = "studio-subgraph";

/// Makes a run with two parallel tool calls in a subgraph. The node after it asks the model for
/// a text and for a document. It fails at the document, and its second attempt replays the text.
/// Returns the id of the run.
pub(super) async fn reported(host: &Host) -> Result<String> {
    let announce = json!({ "name": EFFECT_TOOL, "arguments": {} });
    let contents = json!([
        { "tool_calls": [announce, announce] },
        "Both fairs are announced.",
        "I have announced two fairs.",
        // The host asks once more after a document that is not valid, and then the attempt fails.
        "Two fairs.",
        "Two fairs.",
        { "announced": 2, "summary": "The summer fair and the winter fair are announced." },
    ]);
    script(host, REPORTS, &contents).await?;
    let run = start(host, PARENT_GRAPH, SUBGRAPH_THREAD, REPORTS).await?;
    ensure!(run["state"]["report"]["announced"] == 2, "there is no report: {run}");
    let id = ended(&run, "completed")?;
    let attempts = attempts(host).await?;
    ensure!(attempts == 2, "the node that reports has {attempts} attempts");
    Ok(id)
}

/// Returns the largest number of attempts of a task of the run.
async fn attempts(host: &Host) -> Result<u64> {
    let log =
        host.get(&format!("/api/v1/threads/{SUBGRAPH_THREAD}/log?types=task_started")).await?;
    let started = log["items"].as_array().into_iter().flatten();
    let attempts = started.filter_map(|event: &Value| event["attempt"].as_u64());
    attempts.max().with_context(|| format!("no task: {log}"))
}

/// Slows down the reply of the model to a message that a user may send.
pub(super) async fn slow_reply(host: &Host) -> Result<()> {
    let fault = json!({ "kind": "stream", "pause_ms": PAUSE_MS });
    let rule = json!({ "path": MODEL_PATH, "body_contains": SLOWLY, "fault": fault });
    host.order("/__faults", &rule).await
}
