//! What an operator looks after: a cron, and a webhook that cannot be delivered.

use anyhow::Result;
use serde_json::json;

use super::run::{input, script, text};
use crate::host::Host;
use crate::tour::GRAPH;

/// The message of the run with a webhook.
const TELLS: &str = "Tell the office when this is over";

/// The message of the runs of the cron.
const WEEKLY: &str = "Write the weekly report";

/// Makes a run whose webhook is refused, and returns its thread.
pub(super) async fn webhook(host: &Host) -> Result<String> {
    script(host, TELLS, &json!(["It is over."])).await?;
    let thread = host.post("/threads", &json!({})).await?;
    let thread = text(&thread["thread_id"])?;
    let hook = format!("{}/status/503", host.standins);
    let run = json!({ "assistant_id": GRAPH, "input": input(TELLS), "webhook": hook });
    host.post(&format!("/threads/{thread}/runs/wait"), &run).await?;
    Ok(thread.to_owned())
}

/// Makes a cron, and returns its id.
pub(super) async fn cron(host: &Host) -> Result<String> {
    let cron = json!({ "assistant_id": GRAPH, "schedule": "0 9 * * 1", "input": input(WEEKLY) });
    let made = host.post("/runs/crons", &cron).await?;
    Ok(text(&made["cron_id"])?.to_owned())
}
