//! Resolves paths to mounted apps, and finds apps that claim the same path.

use std::sync::Arc;

use axum::http::Method;
use wattle_graph::id::AppName;
use wattle_run::app::App;

use crate::app_route::{page, pattern, routes};
use crate::error::Error;

/// Paths of the host on the main address. No mounted app can serve them.
const RESERVED: &[&str] = &[
    "/api/v1/{*rest}",
    "/apps/{*rest}",
    "/apps",
    "/blobs/{*rest}",
    "/healthz",
    "/metrics",
    "/openapi.json",
    "/readyz",
];

/// Paths of the studio. No mounted app can serve them while the main address serves the studio.
const RESERVED_FOR_STUDIO: &[&str] = &["/studio", "/studio/{*rest}"];

/// Path of the host on the listen address of an app.
const RESERVED_ON_APP_ADDRESS: &str = "/blobs/{*rest}";

/// Returns the mounted app for a request, and the path relative to its mount. If no route matches
/// both the path and the method, returns an app whose route matches the path; this app responds
/// with 405.
pub(crate) fn resolve<'a, 'p>(
    apps: &'a [Arc<App>],
    method: &Method,
    path: &'p str,
) -> Option<(&'a Arc<App>, &'p str)> {
    let mut fallback = None;
    for app in apps {
        let Some(inner) = app.mount.as_deref().and_then(|mount| inner_path(mount, path)) else {
            continue;
        };
        match pattern::find(routes(app), method.as_str(), inner) {
            pattern::RouteMatch::Route(..) => return Some((app, inner)),
            _ if page::find(app, method, inner).is_some() => return Some((app, inner)),
            pattern::RouteMatch::MethodNotAllowed(_) => fallback = fallback.or(Some((app, inner))),
            pattern::RouteMatch::NotFound => {}
        }
    }
    fallback
}

/// Returns the app whose mount contains a path and which is still being loaded.
pub(crate) fn loading<'m>(mounts: &'m [(AppName, String)], path: &str) -> Option<&'m AppName> {
    let mut above = mounts.iter().filter(|(_, mount)| inner_path(mount, path).is_some());
    above.next().map(|(app, _)| app)
}

fn inner_path<'p>(mount: &str, path: &'p str) -> Option<&'p str> {
    let inner = path.strip_prefix(mount.trim_end_matches('/'))?;
    inner.starts_with('/').then_some(inner)
}

/// Returns an error for each route of a mounted app that conflicts with a route of another app or
/// with a path that the host reserves. `has_studio` is true if the main address serves
/// the studio.
pub fn conflicts(apps: &[&App], has_studio: bool) -> Vec<Error> {
    let is_claimed = |reserved: &[&str], path: &str| {
        reserved.iter().any(|reserved| pattern::overlap(reserved, path))
    };
    let mut claims: Vec<(&App, String, String)> = Vec::new();
    let mut errors = Vec::new();
    for app in apps {
        let Some(mount) = &app.mount else { continue };
        for (method, path) in claimed_routes(app) {
            let path = format!("{}{path}", mount.trim_end_matches('/'));
            if is_claimed(RESERVED, &path) {
                errors.push(Error::Reserved { app: app.name.clone(), path: path.clone() });
            } else if has_studio && is_claimed(RESERVED_FOR_STUDIO, &path) {
                errors.push(Error::ReservedForStudio { app: app.name.clone(), path: path.clone() });
            }
            let conflict = claims.iter().find(|(other, claimed_method, claimed_path)| {
                other.name != app.name
                    && *claimed_method == method
                    && pattern::overlap(claimed_path, &path)
            });
            if let Some((first, ..)) = conflict {
                errors.push(Error::MountConflict {
                    first: first.name.clone(),
                    second: app.name.clone(),
                    method: method.clone(),
                    path: path.clone(),
                });
            }
            claims.push((app, method, path));
        }
    }
    errors
}

/// Returns the methods and patterns of an app's endpoints and page.
fn claimed_routes(app: &App) -> impl Iterator<Item = (String, String)> {
    let routes = routes(app).iter().map(|route| (route.method.clone(), route.path.clone()));
    let pages = app.page.iter().flat_map(page::paths);
    routes.chain(pages.map(|path| (Method::GET.to_string(), path)))
}

/// Returns an error if the host serves a route of an app itself on the app's own listen address.
pub fn app_address_conflict(app: &App) -> Option<Error> {
    let mut claimed = claimed_routes(app);
    let conflict = claimed.find(|(_, path)| pattern::overlap(RESERVED_ON_APP_ADDRESS, path));
    conflict.map(|(_, path)| Error::ReservedOnAppAddress { app: app.name.clone(), path })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_match_whole_path_segments() {
        assert_eq!(inner_path("/", "/api/x"), Some("/api/x"));
        assert_eq!(inner_path("/asset", "/asset/api"), Some("/api"));
        assert_eq!(inner_path("/asset", "/assets/api"), None);
        assert_eq!(inner_path("/asset/", "/asset/api"), Some("/api"));
    }
}
