//! `/` of the main address: the studio, unless a mounted app serves it.
//!
//! The decision is made once, before the guards, and is stored in the request. If the decision were
//! made again after the guards, an app that is loaded in between would serve a request that the
//! guards have admitted without a key.

use axum::extract::{Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;
use wattle_run::engine::Engine;

use crate::app_route::parts::AppParts;
use crate::app_route::{self, mount};
use crate::guard::access::NeedsNoKey;
use crate::studio::Studio;

/// Marks requests for `/` that the studio serves.
pub(crate) async fn mark(
    State(engine): State<Engine>,
    mut request: Request,
    next: Next,
) -> Response {
    if is_free_root(&engine, request.method(), request.uri().path()) {
        request.extensions_mut().insert(NeedsNoKey);
    }
    next.run(request).await
}

/// Returns true for a request for `/` that no app serves. An app that is being loaded and mounted
/// at `/` may serve it soon.
fn is_free_root(engine: &Engine, method: &Method, path: &str) -> bool {
    if path != "/" || !matches!(*method, Method::GET | Method::HEAD) {
        return false;
    }
    let catalog = engine.catalog();
    let (apps, mounts) = (catalog.apps(), catalog.loading_mounts());
    mount::resolve(&apps, method, path).is_none() && mount::loading(&mounts, path).is_none()
}

/// Serves a marked request from the studio, and any other request from the app whose mount contains
/// the path of the request.
pub(crate) async fn serve(
    State(studio): State<Option<Studio>>,
    State(parts): State<AppParts>,
    request: Request,
) -> Response {
    let is_marked = request.extensions().get::<NeedsNoKey>().is_some();
    match studio.filter(|_| is_marked) {
        Some(studio) => studio.respond_at_root().await,
        None => app_route::by_mount(State(parts), request).await,
    }
}
