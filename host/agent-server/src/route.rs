//! The paths of the API, one resource per file.

mod assistants;
mod cancel;
mod crons;
mod drawable_graph;
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
use axum::routing::get;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::openapi;
use crate::state::AgentServer;

/// Returns the router of all paths, with their OpenAPI descriptions.
pub(crate) fn router(server: AgentServer) -> OpenApiRouter {
    let described = OpenApiRouter::<AgentServer>::with_openapi(openapi::base())
        .routes(routes!(info::ok))
        .routes(routes!(info::info))
        .routes(routes!(threads::create))
        .routes(routes!(search::search))
        .routes(routes!(search::count))
        .routes(routes!(threads::prune))
        .routes(routes!(threads::get, threads::update, threads::delete))
        .routes(routes!(threads::copy))
        .routes(routes!(state::get, state::update))
        .routes(routes!(state::get_at_checkpoint))
        .routes(routes!(state::get_by_id))
        .routes(routes!(history::get, history::post))
        .routes(routes!(runs::list, runs::create))
        .routes(routes!(runs::wait))
        .routes(routes!(runs::stream))
        .routes(routes!(runs::get, runs::delete))
        .routes(routes!(runs::join))
        .routes(routes!(runs::join_stream))
        .routes(routes!(cancel::cancel_run))
        .routes(routes!(stateless::create))
        .routes(routes!(stateless::batch))
        .routes(routes!(stateless::wait))
        .routes(routes!(stateless::stream))
        .routes(routes!(cancel::cancel_runs))
        .routes(routes!(stateless::get))
        .routes(routes!(stateless::join_stream))
        .routes(routes!(stateless::join))
        .routes(routes!(stateless::cancel))
        .merge(assistants::routes())
        .merge(crons::routes())
        .merge(protocol::routes())
        .merge(storage::routes())
        .merge(store::routes());
    let (router, document) = described.split_for_parts();
    let router = router.method_not_allowed_fallback(method_not_allowed).with_state(server);
    OpenApiRouter::with_openapi(openapi::with_common_parts(document)).merge(router.into())
}

/// Returns the router of the paths that respond while the host starts.
pub(crate) fn starting() -> Router {
    Router::new().route("/ok", get(info::ok))
}

async fn method_not_allowed(method: Method, uri: Uri) -> Response {
    let detail = format!("`{}` does not support {method}", uri.path());
    let body = axum::Json(serde_json::json!({ "detail": detail }));
    (StatusCode::METHOD_NOT_ALLOWED, body).into_response()
}
