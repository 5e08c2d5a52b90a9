//! Whether the server lives, and what it can do.

use axum::Json;
use serde_json::{Value, json};

/// Whether it lives.
pub(super) async fn ok() -> Json<Value> {
    Json(json!({ "ok": true, "services": {} }))
}

/// What it can do.
pub(super) async fn info() -> Json<Value> {
    Json(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "flags": { "assistants": true, "crons": true, "langsmith": false },
        "host": { "kind": "wattle" },
    }))
}
