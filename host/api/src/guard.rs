//! Middleware that checks every request: `Host` header, origin, API key and scope, rate limit.
//!
//! Even on a loopback address, a web page in the user's browser can send requests to the host. Two
//! checks prevent this. The `Host` header must name this host, because an attacker can rebind the
//! name of the page to 127.0.0.1. A request that changes something must not come from a page of
//! another origin. A WebSocket upgrade counts as a request that changes something: commands can
//! follow it, and the browser lets any page read the messages.

pub mod access;
mod admission;
pub mod authenticated_key;
pub mod caller_rate;
mod cors;
mod host_header;
pub mod key_record;
pub(crate) mod keyring;
pub mod limits;
pub mod open_requests;
pub mod rate;
mod rate_limiters;
mod rejection;
pub(crate) mod request_key;
pub(crate) mod reservation;
mod revocable_key;
pub mod scope;
pub mod tenant_name;
pub mod user;

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, header};
use axum::middleware::Next;
use axum::response::Response;

use crate::config::ApiConfig;
use crate::guard::access::Access;
use crate::guard::rejection::Rejection;
use crate::problem::{Problem, api_code};

pub(crate) use self::admission::Admission;
pub use self::admission::BodyLimit;
pub use self::keyring::keys_namespace;
pub use self::rate_limiters::network_of;
pub use self::rejection::ErrorFormat;
pub use self::reservation::{BodyBytes, BodyReservation, ResponseReservation, UnreadBytes};

/// Headers with credentials, which no guest sees. Cookies are included because browsers share the
/// cookies of `localhost` between all its ports.
pub const CREDENTIAL_HEADERS: &[&str] =
    &["authorization", "proxy-authorization", "x-api-key", "cookie"];

/// Beginnings of the origins of pages that this host can have served.
const PAGE_SCHEMES: [&str; 2] = ["http://", "https://"];

/// State of the guard middleware for a group of routes.
#[derive(Clone)]
pub struct GuardState {
    admission: Arc<Admission>,
    /// Format of the responses that reject a request.
    format: ErrorFormat,
    /// The access of each route: the scope that a key needs, and the share of open requests that a
    /// request counts against.
    access: Arc<Access>,
}

impl GuardState {
    pub(crate) fn new(admission: Arc<Admission>, format: ErrorFormat, access: Arc<Access>) -> Self {
        Self { admission, format, access }
    }
}

/// Checks a request, and responds to rejected requests itself.
pub async fn check(State(guard): State<GuardState>, mut request: Request, next: Next) -> Response {
    let GuardState { admission, format, access } = guard;
    let config = admission.config();
    let origin = cors::allowed_origin(config, request.headers());
    let path = request.uri().path().to_owned();
    let response = match check_host_and_origin(config, &request) {
        Some(problem) => Rejection::from(problem).into_response(format, &path),
        None if origin.is_some() && cors::is_preflight(&request) => cors::preflight(),
        None => {
            let result = match admission.admit(&access, &mut request).await {
                Ok(admitted) => admitted.run(request, next).await,
                Err(rejection) => Err(rejection),
            };
            result.unwrap_or_else(|rejection| rejection.into_response(format, &path))
        }
    };
    match origin {
        Some(origin) => cors::allow(response, origin),
        None => response,
    }
}

/// Checks the requested host, and the origin of a request that can change something. Returns the
/// problem of a request that is rejected.
pub fn check_host_and_origin(config: &ApiConfig, request: &Request) -> Option<Problem> {
    let headers = request.headers();
    let host = host_of(request);
    if !host_header::is_allowed(config, host) {
        return Some(Problem::new(
            api_code::HOST,
            format!(
                "the host name `{}` is not allowed; add it to `server.hosts` in wattle.toml",
                host.unwrap_or_default()
            ),
        ));
    }
    if let Some(origin) = disallowed_origin(config, request.method(), headers, host) {
        return Some(Problem::new(
            api_code::ORIGIN,
            format!(
                "pages of `{origin}` must not change anything; add the origin to \
                 `server.origins` in wattle.toml"
            ),
        ));
    }
    None
}

/// Returns the requested host: the authority of an absolute request target, or else the `Host`
/// header.
fn host_of(request: &Request) -> Option<&str> {
    request
        .uri()
        .authority()
        .map(axum::http::uri::Authority::as_str)
        .or_else(|| host_header(request.headers()))
}

/// Returns the `Host` header, or `None` unless the request has exactly one (RFC 9112, 3.2). Of
/// several `Host` headers, a proxy may select another one than this host.
fn host_header(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(header::HOST).iter();
    let host = values.next()?;
    values.next().is_none().then(|| host.to_str().ok()).flatten()
}

/// Returns the origin of the request if requests from this origin are not allowed.
fn disallowed_origin<'r>(
    config: &ApiConfig,
    method: &Method,
    headers: &'r HeaderMap,
    host: Option<&str>,
) -> Option<&'r str> {
    let only_reads = matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS);
    if only_reads && !headers.contains_key(header::UPGRADE) {
        return None;
    }
    let origin = headers.get(header::ORIGIN)?.to_str().unwrap_or("(not text)");
    // The pages of a local program can have its own scheme and the name `localhost`, such as
    // `tauri://localhost`.
    let authority = PAGE_SCHEMES.iter().find_map(|scheme| origin.strip_prefix(*scheme));
    let is_same_origin = authority.is_some() && authority == host;
    (!is_same_origin && !config.origins.contains(origin)).then_some(origin)
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn rejection(config: &ApiConfig, method: &str, headers: &[(&str, &str)]) -> Option<String> {
        let mut request = Request::builder().method(method).uri("/api/v1/apps");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        check_host_and_origin(config, &request.body(Body::empty()).unwrap())
            .map(|problem| problem.code.clone())
    }

    #[test]
    fn only_allowed_host_names_pass() {
        let config = ApiConfig { hosts: ["wattle.example".into()].into(), ..Default::default() };
        let rejected = Some(api_code::HOST.to_owned());
        for host in ["localhost", "localhost:8700", "127.0.0.1:1", "[::1]:8700", "wattle.example"] {
            assert_eq!(rejection(&config, "GET", &[("host", host)]), None, "{host}");
        }
        for host in ["evil.example", "localhost.evil.example", "", "127.0.0.1.evil.example"] {
            assert_eq!(rejection(&config, "GET", &[("host", host)]), rejected, "{host}");
        }
        for host in [
            "127.0.0.1:8931@evil",
            "localhost:8700@evil.example",
            "localhost:evil",
            "localhost:99999",
            "localhost:+80",
            "localhost:",
            "localhost:80:80",
            "[::1]evil.example",
            "[::1]:80@evil.example",
            "[::1]:",
            "[::1",
            "::1",
            "wattle.example:x",
            "user@127.0.0.1",
        ] {
            assert_eq!(rejection(&config, "GET", &[("host", host)]), rejected, "{host}");
        }
        let two = [("host", "localhost"), ("host", "evil.example")];
        assert_eq!(rejection(&config, "GET", &two), rejected, "two headers");
        assert_eq!(rejection(&config, "GET", &[]), rejected);
    }

    #[test]
    fn write_requests_from_disallowed_origins_are_rejected() {
        let config =
            ApiConfig { origins: ["https://ui.example".into()].into(), ..Default::default() };
        let with = |method: &str, origin: &str| {
            rejection(&config, method, &[("host", "localhost:8700"), ("origin", origin)])
        };
        // A proxy can serve this host with TLS.
        for origin in ["http://localhost:8700", "https://localhost:8700", "https://ui.example"] {
            assert_eq!(with("POST", origin), None, "{origin}");
        }
        assert_eq!(with("GET", "https://evil.example"), None);
        for origin in [
            "https://evil.example",
            "null",
            "http://localhost:9999",
            "tauri://localhost:8700",
            "http:evil.example?://localhost:8700",
        ] {
            assert_eq!(with("POST", origin), Some(api_code::ORIGIN.into()), "{origin}");
        }
    }

    #[test]
    fn websocket_upgrades_from_disallowed_origins_are_rejected() {
        let config =
            ApiConfig { origins: ["https://ui.example".into()].into(), ..Default::default() };
        let with = |origin: Option<&str>| {
            let mut headers = vec![("host", "localhost:8700"), ("upgrade", "websocket")];
            headers.extend(origin.map(|origin| ("origin", origin)));
            rejection(&config, "GET", &headers)
        };
        assert_eq!(with(None), None, "no page at all");
        assert_eq!(with(Some("http://localhost:8700")), None);
        assert_eq!(with(Some("https://ui.example")), None);
        for origin in ["https://evil.example", "null", "http://localhost:9999"] {
            assert_eq!(with(Some(origin)), Some(api_code::ORIGIN.into()), "{origin}");
        }
    }
}
