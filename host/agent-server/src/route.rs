//! The paths of the protocol, one resource a file.

mod assistants;
mod cancel;
mod crons;
mod drawing;
mod history;
mod info;
mod protocol;
mod runs;
mod search;
mod state;
mod stateless;
mod storage;
mod store;
mod threads;

use axum::Router;
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};

use crate::agents::Agents;

/// All of them.
pub(crate) fn all(agents: Agents) -> Router {
    Router::new()
        .route("/ok", get(info::ok))
        .route("/info", get(info::info))
        .route("/threads", post(threads::create))
        .route("/threads/search", post(search::search))
        .route("/threads/count", post(search::count))
        .route("/threads/prune", post(threads::prune))
        .route("/threads/{id}", get(threads::get).patch(threads::update).delete(threads::delete))
        .route("/threads/{id}/copy", post(threads::copy))
        .route("/threads/{id}/state", get(state::get).post(state::update))
        .route("/threads/{id}/state/checkpoint", post(state::at))
        .route("/threads/{id}/state/{checkpoint}", get(state::by_id))
        .route("/threads/{id}/history", get(history::get).post(history::post))
        .route("/threads/{id}/runs", get(runs::list).post(runs::create))
        .route("/threads/{id}/runs/wait", post(runs::wait))
        .route("/threads/{id}/runs/stream", post(runs::stream))
        .route("/threads/{id}/runs/{run}", get(runs::get).delete(runs::delete))
        .route("/threads/{id}/runs/{run}/join", get(runs::join))
        .route("/threads/{id}/runs/{run}/stream", get(runs::join_stream))
        .route("/threads/{id}/runs/{run}/cancel", post(cancel::one))
        .route("/runs", post(stateless::create))
        .route("/runs/batch", post(stateless::batch))
        .route("/runs/wait", post(stateless::wait))
        .route("/runs/stream", post(stateless::stream))
        .route("/runs/cancel", post(cancel::several))
        .route("/runs/{run}", get(stateless::get))
        .route("/runs/{run}/stream", get(stateless::join_stream))
        .route("/runs/{run}/join", get(stateless::join))
        .route("/runs/{run}/cancel", post(stateless::cancel))
        .merge(assistants::routes())
        .merge(crons::routes())
        .merge(protocol::routes())
        .merge(storage::routes())
        .merge(store::routes())
        .method_not_allowed_fallback(method_not_allowed)
        .with_state(agents)
}

async fn method_not_allowed(method: Method, uri: Uri) -> Response {
    let detail = format!("`{}` does not answer {method}", uri.path());
    let body = axum::Json(serde_json::json!({ "detail": detail }));
    (StatusCode::METHOD_NOT_ALLOWED, body).into_response()
}
