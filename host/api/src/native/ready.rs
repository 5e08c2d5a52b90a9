//! Readiness of the host.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use utoipa::ToSchema;
use wattle_graph::failure::{Failure, code};
use wattle_run::engine::Engine;

use crate::document::{LoadingDocument, RecoveryDocument};
use crate::problem::{Problem, ProblemDocument};

/// Timeout for a small write of the store. A working disk is much faster.
const READY_TIMEOUT: Duration = Duration::from_secs(5);

/// The host is ready: runs can start.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Ready {
    /// Always `ready`.
    pub status: String,
    /// Instance id of the server. Each start generates a new id.
    pub instance: String,
    /// Progress of the recovery of runs that a crash or shutdown interrupted. Absent if the
    /// recovery is complete, no thread is set aside and no run waits until its app is loaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery: Option<RecoveryDocument>,
    /// Apps and plugins that are being loaded. Absent if all are loaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loading: Option<LoadingDocument>,
}

/// Reports whether the host can start runs. To find out, the store writes and flushes a few bytes,
/// at most once a second. No key is needed.
#[utoipa::path(get, path = "/api/v1/ready",
    extensions(("x-wattle-access" = json!({ "scope": "none", "share": "control" }))), tag = "host",
    responses(
        (status = 200, body = Ready),
        (status = 503, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn ready(
    State(engine): State<Engine>,
    State(instance): State<Arc<str>>,
    State(stopping): State<watch::Receiver<bool>>,
) -> Result<Json<Ready>, Problem> {
    if *stopping.borrow() {
        return Err(Problem::new(code::UNAVAILABLE, "the host is shutting down"));
    }
    match tokio::time::timeout(READY_TIMEOUT, engine.ports().store.check_writable()).await {
        Ok(Ok(())) => Ok(Json(Ready {
            status: "ready".into(),
            instance: instance.to_string(),
            recovery: RecoveryDocument::new(engine.recovery()),
            loading: LoadingDocument::new(&engine.catalog().loading()),
        })),
        Ok(Err(error)) => Err(unavailable(error.to_string())),
        Err(_) => {
            let seconds = READY_TIMEOUT.as_secs();
            Err(unavailable(format!("the store completed no write within {seconds} s")))
        }
    }
}

/// The failure is retryable, because the store can become available again.
fn unavailable(detail: String) -> Problem {
    Failure::new(code::UNAVAILABLE, detail).retryable().into()
}
