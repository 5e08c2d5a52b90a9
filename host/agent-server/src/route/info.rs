//! Health and capabilities of the server.

use axum::Json;
use serde_json::{Value, json};

use crate::wire::schemas::{Alive, Info};

/// Reports that the server is running.
#[utoipa::path(get, path = "/ok",
    extensions(("x-wattle-access" = json!({ "scope": "none", "share": "control" }))), operation_id = "agent_ok", tag = "agent-server",
    responses((status = 200, body = Alive)))]
pub(super) async fn ok() -> Json<Value> {
    Json(json!({ "ok": true, "services": {} }))
}

/// Returns the version and the capabilities of the server.
#[utoipa::path(get, path = "/info", operation_id = "agent_info", tag = "agent-server",
    responses((status = 200, body = Info)))]
pub(super) async fn info() -> Json<Value> {
    Json(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "flags": { "assistants": true, "crons": true, "langsmith": false, "strict_resume": true },
        "host": { "kind": "wattle" },
    }))
}
