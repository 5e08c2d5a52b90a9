//! What a host answers while it starts.

use axum::http::Uri;
use axum::routing::get;
use axum::{Json, Router};
use tokio::sync::watch;
use wattle_graph::failure::{Failure, code};

use crate::document::Health;
use crate::problem::Problem;

/// Says that the host lives. Everything else may be asked for later, for a reason that may change.
pub fn router(reason: watch::Receiver<&'static str>) -> Router {
    Router::new()
        .route("/healthz", get(health))
        .route("/api/v1/health", get(health))
        .fallback(async move |uri: Uri| unavailable(&uri, *reason.borrow()))
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

fn unavailable(uri: &Uri, reason: &'static str) -> Problem {
    let failure = Failure::new(code::UNAVAILABLE, reason).retryable();
    Problem::from(failure).at(uri.path())
}
