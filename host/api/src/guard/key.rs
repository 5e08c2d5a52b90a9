//! API keys.

use axum::extract::Request;
use axum::http::{HeaderMap, Method, header};

use crate::state::ApiConfig;

/// Paths that answer without a key, so that a supervisor can see that the host lives.
const OPEN_PATHS: &[&str] = &["/healthz", "/api/v1/health"];

/// Whether a request needs a key.
pub(super) fn is_needed(config: &ApiConfig, request: &Request) -> bool {
    let open = OPEN_PATHS.contains(&request.uri().path()) || request.method() == Method::OPTIONS;
    !config.keys.is_empty() && !open
}

/// Whether a request brings a known key.
pub(super) fn is_known(config: &ApiConfig, headers: &HeaderMap) -> bool {
    let bearer = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let bearer = bearer.and_then(|value| {
        let (scheme, key) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(key.trim())
    });
    let own = headers.get("x-api-key").and_then(|value| value.to_str().ok());
    bearer.into_iter().chain(own).any(|key| config.keys.contains(&ApiConfig::key(key)))
}
