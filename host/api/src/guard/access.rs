//! The access of each route: the scope that a key needs, and the share of open requests that a
//! request counts against.
//!
//! A route declares its access in the extension `x-wattle-access` of its operation in the OpenAPI
//! document:
//!
//! | field | values | default |
//! |---|---|---|
//! | `scope` | `none` if no key is required, or the required scope of the key | `read` for GET, else `write` |
//! | `share` | `control`, `lasting` or `other`: the share of open requests | `other` |
//!
//! Paths that the document does not describe, such as endpoints of apps, have the defaults, unless
//! the router gives their access to `Access::declare`.

use std::collections::{BTreeMap, HashMap};

use axum::extract::Request;
use axum::http::{HeaderMap, Method, header};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use url::form_urlencoded;
use utoipa::openapi::extensions::Extensions;
use utoipa::openapi::path::Operation;
use utoipa::openapi::{OpenApi, SecurityRequirement};

use crate::guard::scope::KeyScope;
use crate::openapi::operations;

/// The name of the extension.
const ACCESS_EXTENSION: &str = "x-wattle-access";

/// Query parameter that cancels the run when the client disconnects from its stream.
const CANCEL_ON_DISCONNECT: &str = "cancel_on_disconnect";

/// The share of open requests that a request counts against.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Share {
    /// Health, listing, cancelling, deleting. A separate share keeps these requests possible for an
    /// operator when the other shares are exhausted.
    Control,
    /// Streams of events, WebSocket connections and waits.
    Lasting,
    /// All other requests.
    Other,
}

/// The scope that a route requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RouteScope {
    /// No key is required, and the request is not counted.
    None,
    Read,
    Write,
    Admin,
}

impl RouteScope {
    /// Returns the default scope of a method.
    fn default_for(method: &Method) -> Self {
        if is_read(method) { Self::Read } else { Self::Write }
    }

    fn key_scope(self) -> Option<KeyScope> {
        match self {
            Self::None => None,
            Self::Read => Some(KeyScope::Read),
            Self::Write => Some(KeyScope::Write),
            Self::Admin => Some(KeyScope::Admin),
        }
    }
}

/// Marks a request for `/` that needs no key, because the studio serves `/` and no app does. The
/// mark is inserted into the extensions of the request before the guards run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NeedsNoKey;

/// The access of a route after defaults are applied.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct RouteAccess {
    pub(crate) scope: RouteScope,
    pub(crate) share: Share,
}

/// The access that a request needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RequiredAccess {
    /// Required scope of the key; `None` if neither keys nor limits apply.
    pub(super) scope: Option<KeyScope>,
    pub(super) share: Share,
    /// True for a route of the host, whose access is declared. Endpoints of apps may do anything.
    pub(super) is_declared: bool,
}

impl RequiredAccess {
    /// Returns true if the request only reads and responds: it starts nothing, and waits neither
    /// for a run nor for an app.
    pub(super) fn only_reads(self) -> bool {
        self.is_declared && self.scope == Some(KeyScope::Read) && self.share != Share::Lasting
    }
}

/// The access of all routes, by path and method.
#[derive(Clone, Debug, Default)]
pub struct Access(matchit::Router<HashMap<Method, RouteAccess>>);

impl Access {
    /// Reads the access of all operations of an OpenAPI document. Writes the default access into
    /// operations that declare none. `undocumented` has the access of GET routes that the document
    /// does not describe.
    pub(crate) fn declare(
        document: &mut OpenApi,
        undocumented: impl IntoIterator<Item = (&'static str, RouteAccess)>,
    ) -> Self {
        let mut paths: BTreeMap<&str, HashMap<Method, RouteAccess>> = BTreeMap::new();
        for (path, item) in &mut document.paths.paths {
            let methods = operations(item).map(|(method, operation)| {
                let access = declared(&method, operation.extensions.as_ref());
                write_extension(access, operation);
                (method, access)
            });
            paths.entry(path).or_default().extend(methods);
        }
        for (path, access) in undocumented {
            paths.entry(path).or_default().insert(Method::GET, access);
        }
        let mut router = matchit::Router::new();
        for (path, methods) in paths {
            // A collision is ignored here. The router of the server has the same paths and rejects
            // the collision.
            let _ = router.insert(path, methods);
        }
        Self(router)
    }

    fn find(&self, method: &Method, path: &str) -> Option<RouteAccess> {
        let method = if *method == Method::HEAD { &Method::GET } else { method };
        self.0.at(path).ok()?.value.get(method).copied()
    }

    /// Returns the access that a request needs.
    pub(super) fn required(&self, request: &Request) -> RequiredAccess {
        let (method, uri, headers) = (request.method(), request.uri(), request.headers());
        let default = RouteAccess { scope: RouteScope::default_for(method), share: Share::Other };
        let declared = self.find(method, uri.path());
        let RouteAccess { scope, share } = declared.unwrap_or(default);
        let is_upgrade = headers.contains_key(header::UPGRADE);
        // After an upgrade, the client can send any command.
        let can_change = is_read(method)
            && (is_upgrade || cancels_on_disconnect(uri.query().unwrap_or_default()));
        let min_scope = if can_change { KeyScope::Write } else { KeyScope::Read };
        let needs_no_key = request.extensions().get::<NeedsNoKey>().is_some();
        let scope = scope.key_scope().filter(|_| *method != Method::OPTIONS && !needs_no_key);
        let is_lasting = is_upgrade || share == Share::Other && wants_events(headers);
        RequiredAccess {
            scope: scope.map(|scope| scope.max(min_scope)),
            share: if is_lasting { Share::Lasting } else { share },
            is_declared: declared.is_some(),
        }
    }

    /// Returns true if a request counts against the control share: a request for health, or of the
    /// control plane.
    pub fn is_control(&self, method: &Method, path: &str) -> bool {
        self.find(method, path).is_some_and(|access| access.share == Share::Control)
    }
}

/// Declares the access of an operation in its extension `x-wattle-access`.
fn write_extension(access: RouteAccess, operation: &mut Operation) {
    let extension = Extensions::builder().add(ACCESS_EXTENSION, json!(access)).build();
    operation.extensions.get_or_insert_default().merge(extension);
    if access.scope == RouteScope::None {
        operation.security = Some(vec![SecurityRequirement::default()]);
    }
}

/// Declares the default access of an operation of an app. An app cannot declare another access.
pub(crate) fn write_default(method: &Method, operation: &mut Value) {
    operation[ACCESS_EXTENSION] =
        json!(RouteAccess { scope: RouteScope::default_for(method), share: Share::Other });
}

/// Returns the access of an operation. If the declaration is invalid, the operation requires
/// `admin`.
fn declared(method: &Method, extensions: Option<&Extensions>) -> RouteAccess {
    /// The value of the extension.
    #[derive(Default, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Declared {
        scope: Option<RouteScope>,
        share: Option<Share>,
    }
    let declared = extensions.and_then(|extensions| extensions.get(ACCESS_EXTENSION));
    let declared: Result<Declared, _> =
        declared.map_or_else(|| Ok(Declared::default()), |it: &Value| Declared::deserialize(it));
    match declared {
        Ok(Declared { scope, share }) => RouteAccess {
            scope: scope.unwrap_or_else(|| RouteScope::default_for(method)),
            share: share.unwrap_or(Share::Other),
        },
        Err(_) => RouteAccess { scope: RouteScope::Admin, share: Share::Other },
    }
}

fn is_read(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

fn cancels_on_disconnect(query: &str) -> bool {
    form_urlencoded::parse(query.as_bytes())
        .any(|(name, value)| name == CANCEL_ON_DISCONNECT && !matches!(&*value, "" | "0" | "false"))
}

fn wants_events(headers: &HeaderMap) -> bool {
    let accepted = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    accepted.is_some_and(|accepted| accepted.contains("text/event-stream"))
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use utoipa_axum::router::OpenApiRouter;

    use super::*;

    #[utoipa::path(post, path = "/things/search",
        extensions(("x-wattle-access" = json!({ "scope": "read", "share": "control" }))),
        responses((status = 200)))]
    async fn search() {}

    #[utoipa::path(get, path = "/things/{id}/stream",
        extensions(("x-wattle-access" = json!({ "share": "lasting" }))),
        responses((status = 200)))]
    async fn stream() {}

    #[utoipa::path(put, path = "/things/{id}",
        extensions(("x-wattle-access" = json!({ "scope": "admin" }))),
        responses((status = 200)))]
    async fn change() {}

    #[utoipa::path(get, path = "/alive",
        extensions(("x-wattle-access" = json!({ "scope": "none" }))),
        responses((status = 200)))]
    async fn alive() {}

    #[utoipa::path(get, path = "/wrong",
        extensions(("x-wattle-access" = json!({ "scope": "nobody" }))),
        responses((status = 200)))]
    async fn wrong() {}

    /// Routes that the document does not describe.
    const UNDOCUMENTED: [(&str, RouteAccess); 2] = [
        ("/healthz", RouteAccess { scope: RouteScope::None, share: Share::Control }),
        ("/metrics", RouteAccess { scope: RouteScope::Admin, share: Share::Control }),
    ];

    fn access() -> Access {
        Access::declare(&mut document(), UNDOCUMENTED)
    }

    fn document() -> OpenApi {
        let routes = OpenApiRouter::<()>::new()
            .routes(utoipa_axum::routes!(search))
            .routes(utoipa_axum::routes!(stream))
            .routes(utoipa_axum::routes!(change))
            .routes(utoipa_axum::routes!(alive))
            .routes(utoipa_axum::routes!(wrong));
        routes.into_openapi()
    }

    fn request(method: &str, uri: &str, headers: &[(&str, &str)]) -> Request {
        let mut request = Request::builder().method(method).uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(Body::empty()).unwrap()
    }

    #[track_caller]
    fn assert_scope(method: &str, uri: &str, headers: &[(&str, &str)], expected: KeyScope) {
        let required = access().required(&request(method, uri, headers));
        assert_eq!(required.scope, Some(expected), "{method} {uri}");
    }

    #[test]
    fn required_scope_follows_the_route() {
        assert_scope("POST", "/things/search", &[], KeyScope::Read);
        assert_scope("POST", "/things/search/more", &[], KeyScope::Write);
        assert_scope("DELETE", "/things/search", &[], KeyScope::Write);
        assert_scope("PUT", "/things/1", &[], KeyScope::Admin);
        assert_scope("PUT", "/things/", &[], KeyScope::Write);
        assert_scope("GET", "/things/1", &[], KeyScope::Read);
        assert_scope("HEAD", "/apps/asset/", &[], KeyScope::Read);
        assert_scope("POST", "/apps/asset/things/search", &[], KeyScope::Write);
        assert_scope("GET", "/metrics", &[], KeyScope::Admin);
        assert_scope("GET", "/wrong", &[], KeyScope::Admin);
    }

    #[test]
    fn health_and_options_need_no_key() {
        let access = access();
        for (method, uri) in
            [("GET", "/alive"), ("HEAD", "/alive"), ("GET", "/healthz"), ("OPTIONS", "/x")]
        {
            assert_eq!(access.required(&request(method, uri, &[])).scope, None, "{method} {uri}");
        }
        assert_scope("POST", "/alive", &[], KeyScope::Write);
        let mut marked = request("GET", "/", &[]);
        marked.extensions_mut().insert(NeedsNoKey);
        assert_eq!(access.required(&marked).scope, None);
        assert_scope("GET", "/", &[], KeyScope::Read);
        let app_route = Access::default().required(&request("GET", "/alive", &[]));
        assert_eq!(app_route.scope, Some(KeyScope::Read));
    }

    #[test]
    fn cancel_on_disconnect_requires_write() {
        for query in ["", "cancel_on_disconnect=false", "cancel_on_disconnect=0&x=1"] {
            assert_scope("GET", &format!("/things/1/stream?{query}"), &[], KeyScope::Read);
        }
        for query in ["cancel_on_disconnect=true", "x=1&cancel_on%5Fdisconnect=1"] {
            assert_scope("GET", &format!("/things/1/stream?{query}"), &[], KeyScope::Write);
        }
    }

    #[test]
    fn upgrade_requires_write() {
        assert_scope("GET", "/things/1/stream", &[("upgrade", "websocket")], KeyScope::Write);
    }

    #[test]
    fn share_follows_the_route_and_the_request() {
        let access = access();
        let share =
            |method, uri, headers: &[_]| access.required(&request(method, uri, headers)).share;
        assert_eq!(share("POST", "/things/search?limit=1", &[]), Share::Control);
        assert!(access.is_control(&Method::POST, "/things/search"));
        assert_eq!(share("GET", "/things/search", &[]), Share::Other);
        assert_eq!(share("GET", "/things/1/stream", &[]), Share::Lasting);
        let events = [("accept", "application/json, text/event-stream")];
        assert_eq!(share("POST", "/apps/a/chat", &events), Share::Lasting);
        assert_eq!(share("GET", "/things/1", &[("upgrade", "websocket")]), Share::Lasting);
        assert_eq!(share("GET", "/healthz", &[]), Share::Control);
    }

    #[test]
    fn requests_that_may_wait_do_more_than_read() {
        let only_reads = |method, uri| access().required(&request(method, uri, &[])).only_reads();
        assert!(only_reads("POST", "/things/search") && !only_reads("PUT", "/things/1"));
        assert!(!only_reads("GET", "/things/1/stream") && !only_reads("GET", "/apps/a/things"));
    }

    #[test]
    fn document_declares_the_access_of_every_route() {
        let mut document = document();
        Access::declare(&mut document, UNDOCUMENTED);
        let document = serde_json::to_value(document).unwrap();
        let access =
            |path: &str, method: &str| document["paths"][path][method][ACCESS_EXTENSION].clone();
        assert_eq!(
            access("/things/search", "post"),
            json!({ "scope": "read", "share": "control" })
        );
        assert_eq!(
            access("/things/{id}/stream", "get"),
            json!({ "scope": "read", "share": "lasting" })
        );
        assert_eq!(document["paths"]["/alive"]["get"]["security"], json!([{}]));
    }
}
