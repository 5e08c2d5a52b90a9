//! What a host answers while it waits for the database of its store.

use axum::http::Uri;
use axum::routing::get;
use axum::{Json, Router};
use wattle_graph::failure::{Failure, code};

use crate::document::Health;
use crate::problem::Problem;

/// Says that the host lives. Everything else may be asked for later.
pub fn router() -> Router {
    Router::new()
        .route("/healthz", get(health))
        .route("/api/v1/health", get(health))
        .fallback(unavailable)
}

async fn health() -> Json<Health> {
    Json(Health {
        status: "ok".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        // No command takes it for the server of its data folder yet.
        instance: String::new(),
        recovery: None,
    })
}

async fn unavailable(uri: Uri) -> Problem {
    let text = "the host waits for the database of its store; try again";
    let failure = Failure::new(code::UNAVAILABLE, text).retryable();
    Problem::from(failure).at(uri.path())
}
