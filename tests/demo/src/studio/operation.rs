//! What an operator looks after: runs that reached a limit or called what is not granted, a run
//! that starts later, a cron, and a webhook that cannot be delivered.

use anyhow::Result;
use serde_json::json;

use super::run::{RUNS, calls, failed_with, input, message, script, start, text};
use crate::host::Host;
use crate::tour::{EFFECT_TOOL, GRAPH, UNGRANTED_GRAPH};

/// The message of the run that reaches a limit.
const ENDLESS: &str = "Announce the news again and again";

/// Supersteps that this run may take: the model asks for a tool, and the tool is called.
const STEPS: u32 = 2;

/// The message of the run that calls a model without a grant.
const DRAFTS: &str = "Draft a letter to the neighbours";

/// The message of the run with a webhook.
const TELLS: &str = "Tell the office when this is over";

/// The message of the run that starts later.
const LATER: &str = "Close the shop";

/// Time until this run starts, in seconds.
const LATER_SECONDS: u32 = 86_400;

/// The message of the runs of the cron.
const WEEKLY: &str = "Write the weekly report";

/// Thread of the run that reaches a limit.
pub(super) const LIMITED_THREAD: &str = "studio-limit";

/// Thread of the run that calls a model without a grant.
pub(super) const REFUSED_THREAD: &str = "studio-refused";

/// Makes a run that ends at its limit of supersteps, and returns its id.
pub(super) async fn limited(host: &Host) -> Result<String> {
    script(host, ENDLESS, &json!([calls(EFFECT_TOOL, &json!({}))])).await?;
    let mut endless = message(GRAPH, LIMITED_THREAD, ENDLESS);
    endless["options"] = json!({ "recursion_limit": STEPS });
    endless["wait"] = json!(true);
    failed_with(&host.post(RUNS, &endless).await?, "limit")
}

/// Makes a run whose model call is denied, and returns its id.
pub(super) async fn refused(host: &Host) -> Result<String> {
    let run = start(host, UNGRANTED_GRAPH, REFUSED_THREAD, DRAFTS).await?;
    failed_with(&run, "denied")
}

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

/// Makes a run that waits in the queue until tomorrow.
pub(super) async fn later(host: &Host) -> Result<()> {
    let input = input(LATER);
    let run = json!({ "assistant_id": GRAPH, "input": input, "after_seconds": LATER_SECONDS });
    host.post("/runs", &run).await.map(|_| ())
}

/// Makes a cron, and returns its id.
pub(super) async fn cron(host: &Host) -> Result<String> {
    let cron = json!({ "assistant_id": GRAPH, "schedule": "0 9 * * 1", "input": input(WEEKLY) });
    let made = host.post("/runs/crons", &cron).await?;
    Ok(text(&made["cron_id"])?.to_owned())
}
