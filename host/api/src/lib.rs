//! The HTTP API of Wattle: the native endpoints, the endpoints of apps, and the guards in front of
//! both.
//!
//! # Layout
//!
//! * [`config`]: access to the API, and limits of requests.
//! * [`state`]: state of the handlers; [`router()`] assembles the routes.
//! * [`guard`]: checks of Host, Origin, API key and rate limit before every request; the API keys.
//! * [`native`]: `/api/v1`, one resource per file; [`openapi`]: the OpenAPI document.
//! * [`app_route`]: the endpoints and pages of apps; [`studio`]: the user interface of the host.
//! * [`stream`]: event logs as server-sent events, also in formats that an app defines.
//! * [`projection`]: the state and times of events, for projections of the log.
//! * `store_sizes`: sizes of the store by app and tenant, and of the files of the data folder.
//! * `trace`: the trace of a thread, read from its log.
//! * [`document`]: JSON bodies of requests and responses.
//! * [`body`]: reading of request bodies; [`blob_response`]: responses with a blob; [`blob_link`]:
//!   signed links to blobs, which need no key.
//! * [`detached`]: futures that complete even if their client disconnects.
//! * [`traffic`]: counts of connections and of rejected requests.
//! * [`response`]: JSON responses of any size, and responses of server-sent events;
//!   `page_response`: responses with the files of pages.
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
pub mod standalone;
pub mod starting;
pub mod state;
pub mod stream;
pub mod studio;
pub mod traffic;

mod page_response;
mod store_sizes;
mod trace;

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use axum::middleware;
use axum::routing::{MethodRouter, any, get};
use serde_json::json;
use utoipa::openapi::OpenApi;
use wattle_graph::id::AppName;
use wattle_run::engine::Engine;

use crate::guard::access::{Access, RouteAccess, RouteScope, Share};
use crate::guard::{ErrorFormat, GuardState};
use crate::state::ServedParts;
use crate::studio::Studio;

pub use self::config::ApiConfig;
pub use self::native::tenant_scope::Operator;
pub use self::state::ApiState;
pub use utoipa_axum::router::OpenApiRouter;

/// A route that the OpenAPI document does not describe, with its access.
type UndocumentedRoute = (&'static str, RouteAccess, MethodRouter<ApiState>);

/// Returns the router of the whole API behind its guards: native endpoints, `/apps/{app}/...`,
/// mounted apps, and the studio of the state.
pub fn router(state: ApiState) -> Router {
    router_with(state, OpenApiRouter::new())
}

/// Returns the router of the whole API with further routes, behind the same guards and in the same
/// OpenAPI document. The further routes must have no fallback and no path of the native API. They
/// take precedence over the routes of mounted apps. If a guard rejects a request for one of them,
/// the response has the format of Agent Servers: `{"detail": "..."}`.
pub fn router_with(state: ApiState, further: OpenApiRouter) -> Router {
    let (further, described) = further.split_for_parts();
    let (native, access) = native_router(&state, described);
    let access = Arc::new(access);
    // The listeners also read the access. All routers of a state have the same control plane, so
    // the access of the first router is valid for all listeners.
    let _ = state.access.set(access.clone());
    let guards = |format| {
        let guard = GuardState::new(state.admission.clone(), format, access.clone());
        middleware::from_fn_with_state(guard, guard::check)
    };
    let further = further.layer(guards(ErrorFormat::Detail));
    let mut native = native.with_state(state.clone()).layer(guards(ErrorFormat::Problem));
    if state.studio.is_some() && state.served.apps {
        let mark = middleware::from_fn_with_state(state.engine.clone(), studio::root::mark);
        native = native.layer(mark);
    }
    native.merge(further)
}

/// Returns the router of the studio's own address: the API with further routes, and the studio, but
/// neither endpoints nor pages of apps. Pages of apps then have another origin and cannot read
/// anything of the studio.
pub fn studio_router(state: ApiState, further: OpenApiRouter) -> Router {
    let served = ServedParts { apps: false, ..state.served };
    router_with(ApiState { served, ..state }, further)
}

/// Returns the router of the native API without checks of Host, Origin and keys, for callers in the
/// same process. A request with [`Operator`] in its extensions has the permissions of the operator.
pub fn unguarded_router(state: ApiState) -> Router {
    native_router(&state, OpenApiRouter::<()>::new().into_openapi()).0.with_state(state)
}

/// Returns the native routes and the routes of apps, with the access of both and of the further
/// routes.
fn native_router(state: &ApiState, further: OpenApi) -> (Router<ApiState>, Access) {
    let (native, document) = native::router().split_for_parts();
    let mut document = openapi::merge(document, further);
    let undocumented = undocumented_routes(state);
    let declared = undocumented.iter().map(|(path, access, _)| (*path, *access));
    let access = Access::declare(&mut document, declared);
    let document = Arc::new(openapi::ServedDocument::new(json!(document)));
    let serves_apps = state.served.apps;
    let openapi = move |State(engine): State<Engine>| async move {
        let apps = if serves_apps { engine.catalog().apps() } else { Vec::new() };
        document.respond(&apps).await
    };
    let router = undocumented
        .into_iter()
        .fold(native, |router, (path, _, route)| router.route(path, route))
        .route("/openapi.json", get(openapi));
    let router = if serves_apps { with_apps(router) } else { router.fallback(app_route::missing) };
    (router.method_not_allowed_fallback(problem::method_not_allowed), access)
}

/// Adds the endpoints and pages of apps. The fallback serves `/` and the paths of mounted apps.
fn with_apps(router: Router<ApiState>) -> Router<ApiState> {
    router
        .route("/apps/{app}", any(app_route::by_name))
        .route("/apps/{app}/", any(app_route::by_name))
        .route("/apps/{app}/{*path}", any(app_route::by_name))
        .fallback(studio::root::serve)
}

/// Returns the routes that the OpenAPI document does not describe, with their access: the metrics,
/// aliases of described routes for other clients, and the studio.
fn undocumented_routes(state: &ApiState) -> Vec<UndocumentedRoute> {
    let access = |scope| RouteAccess { scope, share: Share::Control };
    let mut routes: Vec<UndocumentedRoute> = vec![
        ("/healthz", access(RouteScope::None), get(native::health::health)),
        ("/readyz", access(RouteScope::None), get(native::ready::ready)),
        ("/metrics", access(RouteScope::Admin), get(native::metrics::metrics)),
    ];
    if let Some(studio) = &state.studio {
        routes.extend(studio_routes(studio));
        if !state.served.apps {
            let studio = studio.clone();
            let root = get(move || async move { studio.respond_at_root().await });
            routes.push(("/", STUDIO_ACCESS, root));
        }
    }
    routes
}

/// The access of the studio's files. A browser sends no key when it loads them.
const STUDIO_ACCESS: RouteAccess = RouteAccess { scope: RouteScope::None, share: Share::Other };

fn studio_routes(studio: &Studio) -> [UndocumentedRoute; 3] {
    ["/studio", "/studio/", "/studio/{*path}"].map(|path| {
        let studio = studio.clone();
        let serve = move |uri: Uri, headers: HeaderMap| async move {
            studio.respond(uri.path(), &headers).await
        };
        (path, STUDIO_ACCESS, get(serve))
    })
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
