//! The HTTP API of Wattle: the native endpoints, the endpoints of apps, and the guards in front of
//! both.
//!
//! # Layout
//!
//! * [`config`]: access to the API, and limits of requests.
//! * [`state`]: state of the handlers; [`router()`] assembles the routes.
//! * [`guard`]: checks of Host, Origin, API key and rate limit before every request; the API keys.
//! * [`native`]: `/api/v1`, one resource per file; [`openapi`]: the OpenAPI document.
//! * [`app_route`]: the endpoints and pages of apps.
//! * [`stream`]: event logs as server-sent events, also in formats that an app defines.
//! * [`projection`]: the state and times of events, for projections of the log.
//! * `trace`: the trace of a thread, read from its log.
//! * [`document`]: JSON bodies of requests and responses.
//! * [`body`]: reading of request bodies; [`blob_response`]: responses with a blob; [`blob_link`]:
//!   signed links to blobs, which need no key.
//! * [`detached`]: futures that complete even if their client disconnects.
//! * [`traffic`]: counts of connections and of rejected requests.
//! * [`response`]: JSON responses of any size; `page_response`: responses with the files of pages.
//! * [`problem`]: failures as `application/problem+json`, with the table of statuses.
//! * [`error`]: errors of the setup of the API.
//! * [`starting`]: responses of a host that is starting.

pub mod app_route;
pub mod blob_link;
pub mod blob_response;
pub mod body;
pub mod config;
pub mod detached;
pub mod document;
pub mod error;
pub mod guard;
pub mod native;
pub mod openapi;
pub mod problem;
pub mod projection;
pub mod response;
pub mod starting;
pub mod state;
pub mod stream;
pub mod traffic;

mod page_response;
mod trace;

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::middleware;
use axum::routing::{MethodRouter, any, get};
use serde_json::json;
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use wattle_graph::id::AppName;
use wattle_run::engine::Engine;

use crate::guard::access::{Access, RouteAccess, RouteScope, Share};
use crate::guard::{ErrorFormat, GuardState};

pub use self::config::ApiConfig;
pub use self::native::tenant_scope::Operator;
pub use self::state::ApiState;

/// Returns the router of the whole API behind its guards: native endpoints, `/apps/{app}/...` and
/// mounted apps.
pub fn router(state: ApiState) -> Router {
    router_with(state, OpenApiRouter::new())
}

/// Returns the router of the whole API with further routes, behind the same guards and in the same
/// OpenAPI document. The further routes must have no fallback and no path of the native API. They
/// take precedence over the routes of mounted apps. If a guard rejects a request for one of them,
/// the response has the format of Agent Servers: `{"detail": "..."}`.
pub fn router_with(state: ApiState, further: OpenApiRouter) -> Router {
    let (further, described) = further.split_for_parts();
    let (native, access) = native_router(described);
    let access = Arc::new(access);
    // The listeners read the access, too. The router of a state is built once, so `set` cannot
    // fail.
    let _ = state.access.set(access.clone());
    let guards = |format| {
        let guard = GuardState::new(state.admission.clone(), format, access.clone());
        middleware::from_fn_with_state(guard, guard::check)
    };
    let further = further.layer(guards(ErrorFormat::Detail));
    native.with_state(state.clone()).layer(guards(ErrorFormat::Problem)).merge(further)
}

/// Returns the router of the native API without checks of Host, Origin and keys, for callers in the
/// same process. A request with [`Operator`] in its extensions has the permissions of the operator.
pub fn unguarded_router(state: ApiState) -> Router {
    native_router(OpenApiRouter::<()>::new().into_openapi()).0.with_state(state)
}

/// Returns the native routes and the routes of apps, with the access of both and of the further
/// routes.
fn native_router(further: OpenApi) -> (Router<ApiState>, Access) {
    let (native, document) = native::router().split_for_parts();
    let mut document = openapi::merge(document, further);
    let undocumented = undocumented_routes();
    let declared = undocumented.iter().map(|(path, access, _)| (*path, *access));
    let access = Access::declare(&mut document, declared);
    let document = Arc::new(openapi::ServedDocument::new(json!(document)));
    let openapi = move |State(engine): State<Engine>| async move {
        let apps = engine.catalog().apps();
        document.respond(&apps).await
    };
    let router = undocumented
        .into_iter()
        .fold(native, |router, (path, _, route)| router.route(path, route))
        .route("/openapi.json", get(openapi))
        .route("/apps/{app}", any(app_route::by_name))
        .route("/apps/{app}/", any(app_route::by_name))
        .route("/apps/{app}/{*path}", any(app_route::by_name))
        .fallback(app_route::by_mount)
        .method_not_allowed_fallback(problem::method_not_allowed);
    (router, access)
}

/// Returns the routes that the OpenAPI document does not describe, with their access: the metrics,
/// and aliases of described routes for other clients.
fn undocumented_routes() -> [(&'static str, RouteAccess, MethodRouter<ApiState>); 3] {
    let access = |scope| RouteAccess { scope, share: Share::Control };
    [
        ("/healthz", access(RouteScope::None), get(native::health::health)),
        ("/readyz", access(RouteScope::None), get(native::ready::ready)),
        ("/metrics", access(RouteScope::Admin), get(native::metrics::metrics)),
    ]
}

/// Returns the router of one app, for the app's own listen address.
pub fn app_router(state: ApiState, app: AppName) -> Router {
    // The routes of an app have the default access, even where the native API has an equal path.
    let guard = GuardState::new(state.admission.clone(), ErrorFormat::Problem, Arc::default());
    let guards = middleware::from_fn_with_state(guard, guard::check);
    Router::new()
        .route(blob_link::ROUTE, get(blob_link::get_linked_blob))
        .fallback(move |parts, request| app_route::by_address(parts, app, request))
        .with_state(state)
        .layer(guards)
}
