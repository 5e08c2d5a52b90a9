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
//! * `trace`: the trace of a thread, from its log.
//! * [`document`]: the JSON documents that answers consist of.
//! * [`body`]: reading request bodies; [`blob_body`]: answering with a blob; [`blob_link`]: blobs
//!   by links that need no key.
//! * [`detached`]: work that goes to its end even if its client has gone.
//! * [`traffic`]: counts of connections, and of what was refused.
//! * [`problem`]: failures as `application/problem+json`, with the table of statuses.
//! * [`error`]: why the API cannot be set up.
//! * [`waiting`]: what a host answers before it has its store.

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
pub mod traffic;
pub mod waiting;

mod trace;

use std::sync::Arc;

use axum::Router;
use axum::middleware;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use wattle_graph::id::AppName;

use crate::guard::access::Access;
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
    let (native, access) = native_router(described);
    let access = Arc::new(access);
    // Listeners ask for it as well. A state has one router.
    let _ = state.access.set(access.clone());
    let gate = |form| {
        let gate = Gate { state: state.clone(), form, access: access.clone() };
        middleware::from_fn_with_state(gate, guard::check)
    };
    let further = further.layer(gate(Form::Detail));
    native.with_state(state.clone()).layer(gate(Form::Problem)).merge(further)
}

/// The same without checks of Host, Origin and keys, for callers in the same process. With
/// [`Operator`] among its extensions a request is the operator's.
pub fn unguarded_router(state: ApiState) -> Router {
    native_router(OpenApiRouter::<()>::new().into_openapi()).0.with_state(state)
}

/// The native routes and those of apps, with what these and further routes need.
fn native_router(further: OpenApi) -> (Router<ApiState>, Access) {
    let (native, document) = native::router().split_for_parts();
    let mut document = openapi::merged(document, further);
    let access = Access::declare(&mut document);
    let document = Arc::new(document);
    let openapi = move || async move { openapi::answer(&document) };
    let router = Router::new()
        .merge(native)
        .route("/openapi.json", axum::routing::get(openapi))
        .route("/metrics", axum::routing::get(native::metrics::metrics))
        .route("/healthz", axum::routing::get(native::health::health))
        .route("/apps/{app}", axum::routing::any(app_route::by_name))
        .route("/apps/{app}/", axum::routing::any(app_route::by_name))
        .route("/apps/{app}/{*path}", axum::routing::any(app_route::by_name))
        .fallback(app_route::by_mount)
        .method_not_allowed_fallback(problem::method_not_allowed);
    (router, access)
}

/// The endpoints of one app at their documented paths, for an address of its own.
pub fn app_router(state: ApiState, app: AppName) -> Router {
    // No path of an app is one of the host's.
    let gate = Gate { state: state.clone(), form: Form::Problem, access: Arc::default() };
    let guards = middleware::from_fn_with_state(gate, guard::check);
    Router::new()
        .route(blob_link::ROUTE, axum::routing::get(blob_link::get_linked_blob))
        .fallback(move |state, request| app_route::alone(state, app, request))
        .with_state(state)
        .layer(guards)
}
