//! Responses of a host that is starting.

use axum::http::Uri;
use axum::routing::get;
use axum::{Json, Router};
use tokio::sync::watch;
use wattle_graph::failure::{Failure, code};

use crate::document::Health;
use crate::problem::Problem;

/// Returns the router of a starting host. It serves the health endpoint, and rejects all other
/// requests as `unavailable` with the current reason.
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
        // With an empty id, CLI commands do not use this host as the server of its data folder
        // before the store is open.
        instance: String::new(),
        recovery: None,
        problems: None,
    })
}

fn unavailable(uri: &Uri, reason: &'static str) -> Problem {
    let failure = Failure::new(code::UNAVAILABLE, reason).retryable();
    Problem::from(failure).with_instance(uri.path())
}
