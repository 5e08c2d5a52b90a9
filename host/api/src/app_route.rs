//! The endpoints and pages of apps.
//!
//! Each request looks up its app in the catalog, so a reloaded app serves its new routes
//! immediately.

pub mod mount;
mod page;
pub mod parts;
pub mod pattern;
mod response;

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::http::Uri;
use axum::response::{IntoResponse as _, Response};
use url::form_urlencoded;
use wattle_graph::failure::code;
use wattle_graph::id::AppName;
use wattle_run::app::App;
use wattle_run::engine::Engine;
use wattle_run::ports::sandbox::{WebRequest, WebRoute};

use crate::app_route::parts::AppParts;
use crate::app_route::pattern::RouteMatch;
use crate::app_route::response::RequestParts;
use crate::body;
use crate::detached;
use crate::guard::CREDENTIAL_HEADERS;
use crate::guard::open_requests::RequestPermit;
use crate::guard::reservation::BodyReservation;
use crate::native::request_principal::request_principal;
use crate::native::{apps, tenant_scope};
use crate::problem::Problem;

/// Serves `/apps/{app}/...`.
pub async fn by_name(
    State(parts): State<AppParts>,
    Path(params): Path<Vec<(String, String)>>,
    request: Request,
) -> Response {
    let name = params.first().map_or("", |(_, app)| app.as_str());
    let prefix_segments = 2;
    let path = after_segments(request.uri().path(), prefix_segments).to_owned();
    let found = apps::find(&parts.streams.engine, name);
    respond(found, parts, &path, request).await
}

/// Serves a path that the native API does not define, from the app whose mount contains the path.
pub async fn by_mount(State(parts): State<AppParts>, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    let apps = parts.streams.engine.catalog().apps();
    match mount::resolve(&apps, request.method(), &path) {
        Some((app, inner)) => {
            let (app, inner) = (app.clone(), inner.to_owned());
            respond(Ok(app), parts, &inner, request).await
        }
        None => missing_at(&parts.streams.engine, &path).into_response(),
    }
}

/// Creates the problem for a path that no mounted app serves.
fn missing_at(engine: &Engine, path: &str) -> Problem {
    let catalog = engine.catalog();
    let mounts = catalog.loading_mounts();
    let loading = mount::loading(&mounts, path).map(|app| catalog.check_loading(app));
    match loading {
        Some(Err(failure)) => Problem::from(failure).with_instance(path),
        _ => no_route(path),
    }
}

/// Serves every path of the app's own listen address from this app.
pub async fn by_address(State(parts): State<AppParts>, app: AppName, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    let found = apps::find(&parts.streams.engine, app.as_str());
    respond(found, parts, &path, request).await
}

async fn respond(
    found: Result<Arc<App>, Problem>,
    parts: AppParts,
    path: &str,
    request: Request,
) -> Response {
    let instance = request.uri().path().to_owned();
    let result = match found {
        Ok(app) => handle(&parts, &app, path, request).await,
        Err(problem) => Err(problem),
    };
    result.unwrap_or_else(|problem| problem.with_instance(&instance).into_response())
}

async fn handle(
    parts: &AppParts,
    app: &Arc<App>,
    path: &str,
    request: Request,
) -> Result<Response, Problem> {
    let method = request.method().clone();
    let (route, params) = match pattern::find(routes(app), method.as_str(), path) {
        RouteMatch::Route(route, params) => (route.path.clone(), params),
        other => {
            if let Some(found) = page::find(app, &method, path) {
                return page::respond(app, &found, request.uri().path(), path, request.headers());
            }
            return Err(match other {
                RouteMatch::MethodNotAllowed(allow) => {
                    Problem::method_not_allowed(&method, path, &allow.join(", "))
                }
                _ => no_route(path),
            });
        }
    };
    let tenant =
        tenant_scope::resolve_tenant(&parts.config, request.headers(), request.extensions())?;
    let headers = visible_headers(&request);
    let principal = request_principal(&parts.config, request.headers(), request.extensions())?;
    // A handler continues after its client has disconnected. Until the handler ends, the request
    // counts as open, and its body counts against the memory limit of request bodies.
    let (permit, body) =
        (extension::<RequestPermit>(&request), extension::<BodyReservation>(&request));
    let caller = RequestPermit::caller_of(permit.as_ref());
    let request_parts =
        RequestParts { method: method.clone(), headers: request.headers().clone(), tenant, caller };
    let query = form_urlencoded::parse(request.uri().query().unwrap_or_default().as_bytes());
    let query = query.into_owned().collect();
    let request = WebRequest {
        method: method.to_string(),
        path: path.to_owned(),
        route,
        params,
        query,
        headers,
        body: body::read(request, parts.config.body_limit_bytes).await?.into_bytes(),
        tenant: request_parts.tenant.clone(),
    };
    let (app, streams) = (app.clone(), parts.streams.clone());
    let stopping = streams.stopping.clone();
    // If the client disconnects first, `detached::run` drops the response and the run stream in it.
    let work = async move {
        let _held = (permit, body);
        let response = streams.engine.handle_web(&app, request, principal, caller).await;
        let response = response.map_err(|error| response::problem_from_guest_error(&app, error))?;
        response::respond(&streams, &app, request_parts, response).await
    };
    let panicked =
        || Err(Problem::new(code::INTERNAL, "internal error: the request handler panicked"));
    detached::run(stopping, work).await.unwrap_or_else(panicked)
}

/// Returns the endpoints that an app declares.
pub(crate) fn routes(app: &App) -> &[WebRoute] {
    let web = app.web.as_ref().and_then(|name| app.plugins.get(name));
    web.map_or(&[], |plugin| plugin.info().routes.as_slice())
}

fn extension<T: Clone + Send + Sync + 'static>(request: &Request) -> Option<T> {
    request.extensions().get().cloned()
}

/// Returns the headers that a guest receives: all headers with text values, except the credentials
/// for the host.
fn visible_headers(request: &Request) -> Vec<(String, String)> {
    let text = |(name, value): (&axum::http::HeaderName, &axum::http::HeaderValue)| {
        Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))
    };
    request
        .headers()
        .iter()
        .filter(|(name, _)| !CREDENTIAL_HEADERS.contains(&name.as_str()))
        .filter_map(text)
        .collect()
}

/// Returns the rest of a path after a number of segments, with its leading `/`.
fn after_segments(path: &str, segments: usize) -> &str {
    let start = path.match_indices('/').nth(segments).map(|(index, _)| index);
    start.map_or("/", |start| &path[start..])
}

/// Responds to an unknown path on an address that serves no apps.
pub(crate) async fn missing(uri: Uri) -> Problem {
    no_route(uri.path()).with_instance(uri.path())
}

fn no_route(path: &str) -> Problem {
    let detail = format!(
        "there is no route for `{path}`; `GET /openapi.json` describes the endpoints of the host \
         and of its apps"
    );
    Problem::new(code::NOT_FOUND, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problem_of_an_unknown_path_names_the_openapi_document() {
        let detail = no_route("/x").0.detail;
        assert!(detail.contains("the host and of its apps"), "{detail}");
        assert!(!detail.contains("/api/v1/apps"), "{detail}");
    }

    #[test]
    fn path_prefix_of_an_app_is_removed() {
        assert_eq!(after_segments("/apps/asset/api/x", 2), "/api/x");
        assert_eq!(after_segments("/apps/asset/", 2), "/");
        assert_eq!(after_segments("/apps/asset", 2), "/");
    }
}
