//! API keys.

use axum::extract::Request;
use axum::http::{HeaderMap, Method, header};
use wattle_graph::id::Digest;

use crate::blob_link::is_link;
use crate::state::ApiConfig;

/// Paths that answer without a key, so that a supervisor can see that the host lives.
const OPEN_PATHS: &[&str] = &["/healthz", "/api/v1/health", "/ok"];

/// Whether a request needs a key.
pub(super) fn is_needed(config: &ApiConfig, request: &Request) -> bool {
    let (method, path) = (request.method(), request.uri().path());
    let open = OPEN_PATHS.contains(&path) || method == Method::OPTIONS || is_link(method, path);
    let has_keys = !config.keys.is_empty() || !config.tenant_keys.is_empty();
    has_keys && !open
}

/// Whether a request brings a known key.
pub(super) fn is_known(config: &ApiConfig, headers: &HeaderMap) -> bool {
    digests(headers).any(|key| config.keys.contains(&key) || config.tenant_keys.contains_key(&key))
}

/// Whether a request brings a key that stands for no tenant: that of the operator.
pub(crate) fn is_operators(config: &ApiConfig, headers: &HeaderMap) -> bool {
    digests(headers).any(|key| config.keys.contains(&key))
}

/// The tenant that a request's key stands for.
pub(crate) fn tenant<'c>(config: &'c ApiConfig, headers: &HeaderMap) -> Option<&'c str> {
    if config.tenant_keys.is_empty() {
        return None;
    }
    digests(headers).find_map(|key| config.tenant_keys.get(&key)).map(String::as_str)
}

/// The keys of a request, in the form in which they are kept.
fn digests(headers: &HeaderMap) -> impl Iterator<Item = Digest> {
    let bearer = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let bearer = bearer.and_then(|value| {
        let (scheme, key) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(key.trim())
    });
    let own = headers.get("x-api-key").and_then(|value| value.to_str().ok());
    bearer.into_iter().chain(own).map(ApiConfig::key)
}
