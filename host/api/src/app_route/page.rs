//! The files of an app's page.
//!
//! The endpoints of an app take precedence. A page serves `GET` and `HEAD` of the other paths.

use axum::http::{HeaderMap, Method};
use axum::response::Response;
use wattle_graph::failure::code;
use wattle_run::app::App;
use wattle_run::page::{Page, PageFile};

use crate::app_route::pattern;
use crate::page_response::{base, file_response, index_response};
use crate::problem::Problem;

/// The Content Security Policy of a page. A page can load only its own files, and can send requests
/// only to its own origin. Inline scripts and styles, plug-ins and embedding in a frame are
/// disabled.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
                      img-src 'self' data: blob:; font-src 'self'; connect-src 'self'; \
                      frame-src 'self'; manifest-src 'self'; base-uri 'self'; form-action 'none'; \
                      frame-ancestors 'none'; object-src 'none'";

/// The part of a page that a path selects.
pub(super) enum PageMatch<'a> {
    /// The HTML entry document.
    Entry,
    /// A file with its name.
    File(&'a str, &'a PageFile),
}

/// Returns the part of the app's page that a path selects. The path is relative to the root of the
/// app.
pub(super) fn find<'a>(app: &'a App, method: &Method, path: &str) -> Option<PageMatch<'a>> {
    let page = app.page.as_ref().filter(|_| matches!(*method, Method::GET | Method::HEAD))?;
    if let Some((name, file)) = page.file(path) {
        return Some(PageMatch::File(name, file));
    }
    page.paths
        .iter()
        .any(|pattern| pattern::matches_path(pattern, path))
        .then_some(PageMatch::Entry)
}

/// Returns the patterns of all paths that a page serves.
pub(super) fn paths(page: &Page) -> impl Iterator<Item = String> {
    let files = page.files.iter().flat_map(|it| it.files.keys());
    page.paths.iter().cloned().chain(files.map(|name| format!("/{name}")))
}

/// Responds with the selected file or the entry document.
///
/// # Errors
///
/// `not-found` if the page was not built.
pub(super) fn respond(
    app: &App,
    page_match: &PageMatch<'_>,
    requested: &str,
    path: &str,
    request: &HeaderMap,
) -> Result<Response, Problem> {
    match page_match {
        PageMatch::File(name, file) => {
            Ok(file_response(name, file, request, CONTENT_SECURITY_POLICY))
        }
        PageMatch::Entry => {
            let files = app.page.as_ref().and_then(|page| page.files.as_ref());
            let files = files.ok_or_else(|| build_missing(app))?;
            let base = base(requested, path);
            Ok(index_response(&files.index, &base, CONTENT_SECURITY_POLICY))
        }
    }
}

fn build_missing(app: &App) -> Problem {
    let detail = format!(
        "the page of app `{}` was not built; `cargo xtask pages` builds the pages of the \
         repository (needs Node.js and npm), and the endpoints of the app work without it",
        app.name
    );
    Problem::new(code::NOT_FOUND, detail)
}
