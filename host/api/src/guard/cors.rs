//! Cross-origin resource sharing (CORS) with the configured origins.

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};

use crate::config::ApiConfig;

/// Request headers that pages of allowed origins may send.
const REQUEST_HEADERS: &str =
    "content-type, authorization, x-api-key, last-event-id, if-none-match, range, prefer";

/// Response headers that pages of allowed origins may read.
const RESPONSE_HEADERS: &str = "location, content-location, etag, content-range, \
                                x-pagination-total, x-pagination-next, \
                                x-wattle-ignored-keys, retry-after";

/// Seconds for which a browser may cache a preflight response.
const MAX_AGE_SECONDS: &str = "600";

/// Returns the origin of the request if it is configured as allowed.
pub(super) fn allowed_origin(config: &ApiConfig, headers: &HeaderMap) -> Option<HeaderValue> {
    let origin = headers.get(header::ORIGIN)?;
    config.origins.contains(origin.to_str().ok()?).then(|| origin.clone())
}

/// Returns true for a CORS preflight request.
pub(super) fn is_preflight(request: &Request) -> bool {
    request.method() == Method::OPTIONS
        && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

/// Returns the response to a preflight request.
pub(super) fn preflight() -> Response {
    let headers = [
        (header::ACCESS_CONTROL_ALLOW_METHODS, "GET, POST, PUT, PATCH, DELETE"),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, REQUEST_HEADERS),
        (header::ACCESS_CONTROL_MAX_AGE, MAX_AGE_SECONDS),
    ];
    (StatusCode::NO_CONTENT, headers).into_response()
}

/// Adds headers that allow pages of the origin to read the response.
pub(super) fn allow(mut response: Response, origin: HeaderValue) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers
        .insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(RESPONSE_HEADERS));
    headers.append(header::VARY, HeaderValue::from_static("origin"));
    response
}
