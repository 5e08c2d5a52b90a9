//! Liveness of the host.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use wattle_run::engine::Engine;

use crate::document::{Health, RecoveryDocument};

/// Reports that the host is running. No key is needed.
#[utoipa::path(get, path = "/api/v1/health",
    extensions(("x-wattle-access" = json!({ "scope": "none", "share": "control" }))), tag = "host",
    responses((status = 200, body = Health)))]
pub async fn health(
    State(engine): State<Engine>,
    State(instance): State<Arc<str>>,
) -> Json<Health> {
    let problems = engine.catalog().problem_count();
    Json(Health {
        status: "ok".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        instance: instance.to_string(),
        recovery: RecoveryDocument::new(engine.recovery()),
        problems: (problems > 0).then_some(problems),
    })
}
