//! Event logs as streams. Each wire format has a file; [`client_tail`] reads the log for all of
//! them.

pub mod ag_ui;
pub mod ai_sdk;
pub mod client_tail;
pub mod custom;
pub mod disconnect;
pub mod event_view;
pub mod parts;
mod run_encoder;
pub mod sse;

use bytes::Bytes;
use serde::Serialize;
use wattle_graph::failure::Failure;

use crate::problem::Problem;

/// Formats a message without an event name. JSON text has no line breaks, so the message needs only
/// one `data` line.
fn json_message(document: &impl Serialize) -> Bytes {
    let data = serde_json::to_string(document).unwrap_or_else(|error| {
        // Not reachable, because all maps in the messages have string keys.
        serde_json::json!({ "type": "error", "errorText": error.to_string() }).to_string()
    });
    format!("data: {data}\n\n").into()
}

/// Formats the message that ends a stream after an error. The message has no number, so a client
/// that reconnects resumes after the last event that it received.
fn error_message(failure: Failure) -> Bytes {
    let problem = Problem::from(failure);
    let data = serde_json::to_string(&*problem.0).unwrap_or_default();
    format!("event: error\ndata: {data}\n\n").into()
}
