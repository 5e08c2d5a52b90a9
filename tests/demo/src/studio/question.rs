//! Questions to people, which wait in the inbox: the review of `asset`, the approval of a deletion
//! in `notes`, and that of a tool call in `tour`.

use anyhow::{Result, ensure};
use serde_json::json;

use super::run::{calls, ended, input, script, start};
use crate::host::Host;
use crate::tour::{APPROVED_TOOL, GRAPH};

/// The message of the run that needs approval.
const ASKS: &str = "Repeat that the shop closes at noon";

/// A sentence with a holding, which nobody confirms.
const SENTENCE: &str = "持有 英伟达 10 股 成本 120";

/// The messages of a user of `notes`: one that adds a note, and one that deletes it.
const NOTES: [(&str, &str); 2] = [
    ("Note that the tea is in the kitchen.", "completed"),
    ("Delete the note: the tea", "interrupted"),
];

/// Makes a run of each app that waits for an answer.
pub(super) async fn ask(host: &Host) -> Result<()> {
    let arguments = json!({ "text": "The shop closes at noon." });
    let contents = json!([calls(APPROVED_TOOL, &arguments), "I have said it."]);
    script(host, ASKS, &contents).await?;
    ended(&start(host, GRAPH, "studio-inbox", ASKS).await?, "interrupted")?;

    for (said, status) in NOTES {
        let note = json!({ "input": input(said), "thread_id": "studio-notes", "wait": true });
        ended(&host.post("/api/v1/apps/notes/runs", &note).await?, status)?;
    }

    let sentence = json!({ "textInput": SENTENCE });
    let review = host.post("/apps/asset/api/ai/asset-graph/invoke", &sentence).await?;
    ensure!(review["reviewPayload"].is_object(), "there is no review: {review}");
    Ok(())
}
