//! Event logs as streams. One file for each wire form; [`follow`] reads the log for all of them.

pub mod ag_ui;
pub mod ai_sdk;
pub mod custom;
pub mod follow;
pub mod presence;
pub mod sse;
mod whole;

use bytes::Bytes;
use serde::Serialize;

/// A message without a name. JSON has no line breaks of its own, so one `data` line is enough.
fn json_message(document: &impl Serialize) -> Bytes {
    let data = serde_json::to_string(document).unwrap_or_else(|error| {
        // What is sent here has no maps but those of JSON, so this cannot be.
        serde_json::json!({ "type": "error", "errorText": error.to_string() }).to_string()
    });
    format!("data: {data}\n\n").into()
}
