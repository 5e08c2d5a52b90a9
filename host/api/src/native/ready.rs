//! Whether runs can begin.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use wattle_graph::failure::{Failure, code};

use crate::document::RecoveryDocument;
use crate::problem::{Problem, ProblemDocument};
use crate::state::ApiState;

/// How long the store may take to write a few bytes: far longer than any disk does that works.
const READY_TIMEOUT: Duration = Duration::from_secs(5);

/// That runs can begin.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Ready {
    /// Always `ready`.
    pub status: String,
    /// Which server this is: another one after each start.
    pub instance: String,
    /// How far the host is with runs that were cut before its start; absent when all of them go on
    /// or have ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery: Option<RecoveryDocument>,
}

/// Says whether runs can begin: the store writes and flushes a few bytes for it, at most once a
/// second however often it is asked. Needs no key.
#[utoipa::path(get, path = "/api/v1/ready",
    extensions(("x-wattle-access" = json!({ "scope": "none", "share": "control" }))), tag = "host", responses(
    (status = 200, body = Ready),
    (status = 503, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn ready(State(state): State<ApiState>) -> Result<Json<Ready>, Problem> {
    if *state.stopping.borrow() {
        return Err(Problem::new(code::UNAVAILABLE, "the host is shutting down"));
    }
    match tokio::time::timeout(READY_TIMEOUT, state.engine.ports().store.prove()).await {
        Ok(Ok(())) => Ok(Json(Ready {
            status: "ready".into(),
            instance: state.instance.to_string(),
            recovery: RecoveryDocument::of(state.engine.recovery()),
        })),
        Ok(Err(error)) => Err(unavailable(error.to_string())),
        Err(_) => {
            let seconds = READY_TIMEOUT.as_secs();
            Err(unavailable(format!("the store did not write anything in {seconds} s")))
        }
    }
}

/// A store that cannot be written now may be written later.
fn unavailable(detail: String) -> Problem {
    Failure::new(code::UNAVAILABLE, detail).retryable().into()
}
