//! Liveness of the host.

use axum::Json;
use axum::extract::State;

use crate::document::{Health, RecoveryDocument};
use crate::state::ApiState;

/// Reports that the host is running. No key is needed.
#[utoipa::path(get, path = "/api/v1/health",
    extensions(("x-wattle-access" = json!({ "scope": "none", "share": "control" }))), tag = "host",
    responses((status = 200, body = Health)))]
pub async fn health(State(state): State<ApiState>) -> Json<Health> {
    let problems = state.engine.catalog().problem_count();
    Json(Health {
        status: "ok".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        instance: state.instance.to_string(),
        recovery: RecoveryDocument::new(state.engine.recovery()),
        problems: (problems > 0).then_some(problems),
    })
}
