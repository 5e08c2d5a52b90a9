//! Which mounted app answers a path, and whether two of them claim the same.

use std::sync::Arc;

use axum::http::Method;
use wattle_run::app::App;

use crate::app_route::{page, pattern, routes};
use crate::error::Error;

/// What the host answers itself, whatever is mounted.
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

/// What the host answers itself on the address of an app.
const RESERVED_ALONE: &str = "/blobs/{*rest}";

/// Finds the mounted app for a request, and the path as the app sees it. An app that has the path
/// for other methods only is taken if no other has it, so that it can say so.
pub(super) fn resolve<'a, 'p>(
    apps: &'a [Arc<App>],
    method: &Method,
    path: &'p str,
) -> Option<(&'a Arc<App>, &'p str)> {
    let mut second = None;
    for app in apps {
        let Some(inner) = app.mount.as_deref().and_then(|mount| inner_path(mount, path)) else {
            continue;
        };
        match pattern::find(routes(app), method.as_str(), inner) {
            pattern::Found::Route(..) => return Some((app, inner)),
            _ if page::find(app, method, inner).is_some() => return Some((app, inner)),
            pattern::Found::OtherMethods(_) => second = second.or(Some((app, inner))),
            pattern::Found::Nothing => {}
        }
    }
    second
}

fn inner_path<'p>(mount: &str, path: &'p str) -> Option<&'p str> {
    let inner = path.strip_prefix(mount.trim_end_matches('/'))?;
    inner.starts_with('/').then_some(inner)
}

/// Finds everything that mounted apps claim twice or take from the host.
pub fn conflicts(apps: &[&App]) -> Vec<Error> {
    let mut claims: Vec<(&App, String, String)> = Vec::new();
    let mut errors = Vec::new();
    for app in apps {
        let Some(mount) = &app.mount else { continue };
        for (method, path) in claimed(app) {
            let path = format!("{}{path}", mount.trim_end_matches('/'));
            if RESERVED.iter().any(|reserved| pattern::overlap(reserved, &path)) {
                errors.push(Error::Reserved { app: app.name.clone(), path: path.clone() });
            }
            let taken = claims.iter().find(|(other, taken, claimed)| {
                other.name != app.name && *taken == method && pattern::overlap(claimed, &path)
            });
            if let Some((first, ..)) = taken {
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

/// Methods and patterns of everything that an app answers: its endpoints and its page.
fn claimed(app: &App) -> impl Iterator<Item = (String, String)> {
    let routes = routes(app).iter().map(|route| (route.method.clone(), route.path.clone()));
    let pages = app.page.iter().flat_map(page::paths);
    routes.chain(pages.map(|path| (Method::GET.to_string(), path)))
}

/// Finds what an app takes from the host on an address of its own.
pub fn conflict_alone(app: &App) -> Option<Error> {
    let mut claimed = claimed(app);
    let taken = claimed.find(|(_, path)| pattern::overlap(RESERVED_ALONE, path));
    taken.map(|(_, path)| Error::ReservedAlone { app: app.name.clone(), path })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_are_prefixes_of_whole_segments() {
        assert_eq!(inner_path("/", "/api/x"), Some("/api/x"));
        assert_eq!(inner_path("/asset", "/asset/api"), Some("/api"));
        assert_eq!(inner_path("/asset", "/assets/api"), None);
        assert_eq!(inner_path("/asset/", "/asset/api"), Some("/api"));
    }
}
