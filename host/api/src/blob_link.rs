//! Blobs under paths that the host signed, for `<img>` and other requests that cannot send a key.
//!
//! A signed path cannot be guessed, so a client that has the path may read the blob without a key.
//! A request that names a tenant must name the tenant of the link.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::{Extensions, HeaderMap, Method};
use axum::response::Response;
use wattle_graph::failure::code;
use wattle_run::engine::Engine;
use wattle_run::ports::link::LINK_PREFIX;

use crate::blob_response;
use crate::config::ApiConfig;
use crate::native::tenant_scope;
use crate::problem::{Problem, ProblemDocument};

/// Path of signed blob links. Every listen address of the host serves it.
pub const ROUTE: &str = "/blobs/{tenant}/{name}";

/// Reads a whole blob or one byte range through a signed link. No key is needed.
#[utoipa::path(get, path = "/blobs/{tenant}/{name}", tag = "host",
    params(
        ("tenant" = String, Path, description = "tenant of the link, or `~` for none"),
        ("name" = String, Path, description = "digest and signature"),
        ("range" = Option<String>, Header, description = "one byte range, such as `bytes=0-99`")),
    responses(
        (status = 200, content_type = "application/octet-stream"),
        (status = 206, content_type = "application/octet-stream"),
        (status = 304),
        (status = 404, body = ProblemDocument, content_type = "application/problem+json"),
        (status = 416, body = ProblemDocument, content_type = "application/problem+json")))]
pub async fn get_linked_blob(
    State(engine): State<Engine>,
    State(config): State<Arc<ApiConfig>>,
    Path((tenant, name)): Path<(String, String)>,
    headers: HeaderMap,
    extensions: Extensions,
) -> Result<Response, Problem> {
    let ports = engine.ports();
    let linked = ports.links.verify(&tenant, &name).ok_or_else(missing)?;
    // A request with an unknown or forbidden tenant gets the response of a missing blob, which does
    // not reveal the tenant of the link.
    let named =
        tenant_scope::named_tenant(&config, &headers, &extensions).map_err(|_| missing())?;
    if named.is_some() && named != linked.tenant {
        return Err(missing());
    }
    blob_response::respond(ports.blobs.clone(), linked.blob, &headers).await
}

/// Returns true if a request reads a blob through a signed link. The handler checks the signature.
pub(crate) fn is_link(method: &Method, path: &str) -> bool {
    let is_read = matches!(*method, Method::GET | Method::HEAD);
    let is_pair = |rest: &str| {
        rest.split_once('/').is_some_and(|(tenant, name)| {
            !tenant.is_empty() && !name.is_empty() && !name.contains('/')
        })
    };
    is_read && path.strip_prefix(LINK_PREFIX).is_some_and(is_pair)
}

fn missing() -> Problem {
    Problem::new(code::NOT_FOUND, "there is no such blob, or this host did not sign the link")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blob_link_request_requires_get_or_head_and_a_complete_path() {
        assert!(is_link(&Method::GET, "/blobs/~/digest.signature"));
        assert!(is_link(&Method::HEAD, "/blobs/acme/digest.signature"));
        for path in [
            "/blobs/~",
            "/blobs/~/",
            "/blobs//digest.signature",
            "/blobs//",
            "/blobs/~/a/b",
            "/blobs",
            "/api/v1/blobs/0",
            "/x/blobs/~/a",
        ] {
            assert!(!is_link(&Method::GET, path), "{path}");
        }
        assert!(!is_link(&Method::POST, "/blobs/~/digest.signature"));
    }
}
