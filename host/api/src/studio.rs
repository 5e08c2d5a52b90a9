//! The studio: the user interface of the host, as static files for browsers.
//!
//! The studio is below `/studio/`. Each path below `/studio/` that names no file returns the index
//! document, because the studio resolves its own links in the browser. The files contain nothing of
//! the host. A browser sends no key when it loads the files, so requests for files need no key. The
//! studio reads all data through the API, with the key of the person who uses it.

pub(crate) mod root;

use std::sync::Arc;

use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use tokio::sync::OnceCell;
use wattle_run::page::{IMMUTABLE_PREFIX, PageFiles};

use crate::page_response::{base, file_response, html_response, index_response};
use crate::problem::Problem;

/// Path of the studio, without the `/` at its end.
const PATH: &str = "/studio";

/// Base of relative URLs in the index document at `/`. It is relative, so that it works behind a
/// proxy that adds a path prefix.
const BASE_AT_ROOT: &str = "./studio/";

/// The Content Security Policy of the studio. It is stricter than the policy of pages of apps: the
/// studio has no frames. Images and media can come from `blob:`, because a request with a key loads
/// them.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
                      img-src 'self' blob: data:; media-src blob:; font-src 'self'; \
                      connect-src 'self'; worker-src 'self'; base-uri 'self'; form-action 'none'; \
                      frame-ancestors 'none'; object-src 'none'";

/// The document of a host whose studio is not built.
const NOT_BUILT: &str = "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
    <title>Wattle studio</title></head><body><h1>The studio is not built</h1>\
    <p>Run <code>cargo xtask pages</code> in the repository of Wattle. It needs Node.js 20.19 or \
    newer, with npm. A debug build finds the new files at the next request; a release build embeds \
    them when it is compiled again.</p>\
    <p>Everything else works without the studio. <code>GET /openapi.json</code> describes the \
    API.</p></body></html>\n";

/// The studio of a host. Cheap to clone.
#[derive(Clone)]
pub struct Studio(Arc<Inner>);

struct Inner {
    /// The files; empty until a request has loaded them.
    files: OnceCell<PageFiles>,
    load: Box<dyn Fn() -> Option<PageFiles> + Send + Sync>,
}

impl Studio {
    /// Creates a studio whose files the first request loads, so that a start does not wait for
    /// them. `load` can block. While it returns `None`, because the studio is not built, each
    /// request calls it again and receives a page that says how to build the studio.
    pub fn new(load: impl Fn() -> Option<PageFiles> + Send + Sync + 'static) -> Self {
        Self(Arc::new(Inner { files: OnceCell::new(), load: Box::new(load) }))
    }

    async fn files(&self) -> Option<&PageFiles> {
        let load = || async {
            let studio = self.clone();
            let loaded = tokio::task::spawn_blocking(move || (studio.0.load)()).await;
            loaded.ok().flatten().ok_or(())
        };
        self.0.files.get_or_try_init(load).await.ok()
    }

    /// Responds to a request for the path of the studio, or for a path below it.
    pub(crate) async fn respond(&self, requested: &str, request: &HeaderMap) -> Response {
        let path = requested.strip_prefix(PATH).filter(|path| !path.is_empty()).unwrap_or("/");
        let name = path.strip_prefix('/').unwrap_or(path);
        let Some(files) = self.files().await else { return not_built() };
        match files.file(name) {
            Some((name, file)) => file_response(name, file, request, CONTENT_SECURITY_POLICY),
            // A page of an older studio version requests the files of that version. If the response
            // were the index document in place of a script, the page would fail without a clear
            // reason.
            None if name.starts_with(IMMUTABLE_PREFIX) => missing_file(requested, name),
            None => index_response(&files.index, &base(requested, path), CONTENT_SECURITY_POLICY),
        }
    }

    /// Responds to a request for `/` with the index document.
    pub(crate) async fn respond_at_root(&self) -> Response {
        match self.files().await {
            Some(files) => index_response(&files.index, BASE_AT_ROOT, CONTENT_SECURITY_POLICY),
            None => not_built(),
        }
    }
}

fn not_built() -> Response {
    let mut response = html_response(NOT_BUILT, CONTENT_SECURITY_POLICY);
    *response.status_mut() = StatusCode::NOT_FOUND;
    response
}

fn missing_file(requested: &str, name: &str) -> Response {
    let hint = "it belongs to another version of the studio; reload the page";
    Problem::not_found("file", name, hint).with_instance(requested).into_response()
}
