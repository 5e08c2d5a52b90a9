//! Whether the host lives.

use axum::Json;
use axum::extract::State;
use wattle_run::engine::recover::Recovery;

use crate::document::{Health, RecoveryDocument};
use crate::state::ApiState;

/// Says that the host lives. Needs no key.
#[utoipa::path(get, path = "/api/v1/health",
    extensions(("x-wattle-access" = json!({ "scope": "none", "share": "control" }))), tag = "host", responses((status = 200, body = Health)))]
pub async fn health(State(state): State<ApiState>) -> Json<Health> {
    Json(Health {
        status: "ok".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        instance: state.instance.to_string(),
        recovery: recovery(state.engine.recovery()),
    })
}

fn recovery(recovery: Recovery) -> Option<RecoveryDocument> {
    let Recovery { is_over, found, recovered, set_aside } = recovery;
    let is_done = is_over && set_aside == 0;
    (!is_done).then_some(RecoveryDocument { over: is_over, found, recovered, set_aside })
}
