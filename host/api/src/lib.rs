//! The HTTP API of Wattle: native endpoints, the endpoints of apps, and who may call them.
//!
//! # Layout
//!
//! * [`state`]: what handlers work with; [`router()`] puts everything together.
//! * [`guard`]: checks of Host, Origin, key and budget that every request passes; the keys.
//! * [`native`]: `/api/v1`, one resource a file; [`openapi`]: its description.
//! * [`app_route`]: the endpoints that apps answer themselves.
//! * [`stream`]: event logs as server-sent events, also in forms of apps' own.
//! * [`projection`]: what a projection of the log sees besides the events.
//! * [`trace`]: an event log as a tree of runs, steps, tasks, attempts and host calls.
//! * [`document`]: the JSON documents that answers consist of.
//! * [`body`]: reading request bodies; [`blob_body`]: answering with a blob; [`blob_link`]: blobs
//!   by links that need no key.
//! * [`detached`]: work that goes to its end even if its client has gone.
//! * [`problem`]: failures as `application/problem+json`, with the table of statuses.
//! * [`error`]: why the API cannot be set up.

pub mod app_route;
pub mod blob_body;
pub mod blob_link;
pub mod body;
pub mod detached;
pub mod document;
pub mod error;
pub mod guard;
pub mod native;
pub mod openapi;
pub mod problem;
pub mod projection;
pub mod state;
pub mod stream;
pub mod trace;

use std::sync::Arc;

use axum::Router;
use axum::middleware;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use wattle_graph::id::AppName;

use crate::guard::{Form, Gate};

pub use self::native::scope::Operator;
pub use self::state::{ApiConfig, ApiState};

/// The whole API behind its guards: native endpoints, `/apps/{app}/...` and mounted apps.
pub fn router(state: ApiState) -> Router {
    router_with(state, OpenApiRouter::new())
}

/// The whole API with further routes, behind the same guards and in the same document. These have no
/// fallback of their own and are none of the paths that the API has itself; they go before those of
/// mounted apps. Guards refuse there as Agent Servers do, with `{"detail": "..."}`.
pub fn router_with(state: ApiState, further: OpenApiRouter) -> Router {
    let (further, described) = further.split_for_parts();
    let gate = |form| {
        let gate = Gate { state: state.clone(), form };
        middleware::from_fn_with_state(gate, guard::check)
    };
    let further = further.layer(gate(Form::Detail));
    described_router(state.clone(), described).layer(gate(Form::Problem)).merge(further)
}

/// The same without checks of Host, Origin and keys, for callers in the same process. With
/// [`Operator`] among its extensions a request is the operator's.
pub fn unguarded_router(state: ApiState) -> Router {
    described_router(state, OpenApiRouter::<()>::new().into_openapi())
}

/// The same, with a document that describes further routes too.
fn described_router(state: ApiState, further: OpenApi) -> Router {
    let (native, document) = native::router().split_for_parts();
    let document = Arc::new(openapi::merged(document, further));
    let openapi = move || async move { openapi::answer(&document) };
    Router::new()
        .merge(native)
        .route("/openapi.json", axum::routing::get(openapi))
        .route("/metrics", axum::routing::get(native::metrics::metrics))
        .route("/healthz", axum::routing::get(native::health::health))
        .route("/apps/{app}", axum::routing::any(app_route::by_name))
        .route("/apps/{app}/", axum::routing::any(app_route::by_name))
        .route("/apps/{app}/{*path}", axum::routing::any(app_route::by_name))
        .fallback(app_route::by_mount)
        .method_not_allowed_fallback(problem::method_not_allowed)
        .with_state(state)
}

/// The endpoints of one app at their documented paths, for an address of its own.
pub fn app_router(state: ApiState, app: AppName) -> Router {
    let gate = Gate { state: state.clone(), form: Form::Problem };
    let guards = middleware::from_fn_with_state(gate, guard::check);
    Router::new()
        .route(blob_link::ROUTE, axum::routing::get(blob_link::get_linked_blob))
        .fallback(move |state, request| app_route::alone(state, app, request))
        .with_state(state)
        .layer(guards)
}
