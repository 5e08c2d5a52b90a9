//! A question to a person, which waits in the inbox.

use anyhow::Result;
use serde_json::json;

use super::run::{calls, ended, script, start};
use crate::host::Host;
use crate::tour::{APPROVED_TOOL, GRAPH};

/// The message of the run that needs approval.
const ASKS: &str = "Repeat that the shop closes at noon";

/// Makes a run that waits for approval of a tool call.
pub(super) async fn ask(host: &Host) -> Result<()> {
    let arguments = json!({ "text": "The shop closes at noon." });
    let contents = json!([calls(APPROVED_TOOL, &arguments), "I have said it."]);
    script(host, ASKS, &contents).await?;
    ended(&start(host, GRAPH, "studio-inbox", ASKS).await?, "interrupted")?;
    Ok(())
}
