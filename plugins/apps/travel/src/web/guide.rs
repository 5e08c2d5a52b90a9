//! `GET /api/guide/{id}`: the page of a guide.
//!
//! A model that has read untrusted text made the page, so the page may have any appearance and no
//! abilities: no scripts, no forms, no frames, and an origin of its own.

use wattle_plugin::prelude::{Failure, Request, Response, handler};
use wattle_plugin::web::{refuse, respond, status};

use crate::html::Sources;
use crate::session::{Snapshot, snapshot};
use crate::web::{ErrorDocument, find};

/// Returns the policy of a page with images of some services. Links may be followed in a new
/// window, to which the restrictions do not apply.
fn policy(sources: &Sources) -> String {
    let plain: String = sources.plain().map(|base| format!(" {base}")).collect();
    format!(
        "sandbox allow-popups allow-popups-to-escape-sandbox; default-src 'none'; \
         img-src 'self' https: data:{plain}; style-src 'unsafe-inline'; font-src https: data:; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
    )
}

/// Shows the page; 404 if there is none.
#[handler(GET, "/api/guide/{id}", bytes = "text/html", returns(304), error = ErrorDocument)]
pub(crate) fn guide(request: &Request) -> Result<Response, Failure> {
    respond::<ErrorDocument>(request, || {
        let session = find(request)?;
        let state = snapshot::read(None, &session.id)?;
        let tag = tag(&state);
        let none = || refuse(status::NOT_FOUND, "the session has no page yet");
        let page = state.html.ok_or_else(none)?;
        let sources = Sources::read()?;
        let response = if request.has_tag("if-none-match", &tag) {
            Response::empty(status::NOT_MODIFIED)
        } else {
            Response::bytes("text/html; charset=utf-8", page)
        };
        Ok(response
            .with_header("content-security-policy", policy(&sources))
            .with_header("x-content-type-options", "nosniff")
            .with_header("referrer-policy", "no-referrer")
            .with_header("cache-control", "private, no-cache")
            .with_header("etag", tag))
    })
}

/// Returns the entity tag. An edited page keeps its version but has another time.
fn tag(state: &Snapshot) -> String {
    format!("\"{}-{}\"", state.version, state.updated_ms)
}

/// Redirects from the path of earlier versions. The target is relative, so it is valid below a
/// prefix.
#[handler(GET, "/api/handbook/{id}", returns(308), error = ErrorDocument)]
pub(crate) fn handbook(request: &Request) -> Result<Response, Failure> {
    respond::<ErrorDocument>(request, || {
        let session = find(request)?;
        let place = format!("../guide/{}", session.id);
        Ok(Response::empty(status::PERMANENT_REDIRECT).with_header("location", place))
    })
}

#[cfg(test)]
mod tests {
    use wattle_plugin::prelude::{Request, Response};
    use wattle_plugin::web::Body;

    use super::{guide, handbook};
    use crate::web::testing::{IDLE, RUNNING, sessions};

    fn header<'a>(response: &'a Response, name: &str) -> &'a str {
        let mut headers = response.headers.iter();
        headers.find(|(known, _)| known == name).map_or("", |(_, value)| value.as_str())
    }

    #[test]
    fn s3_55_a_page_is_shown_with_type_and_entity_tag() {
        let host = sessions();
        let request = Request::new("GET", "/x").with_param("id", RUNNING);
        let shown = host.run(|| guide(&request)).unwrap();
        assert_eq!(shown.body, Body::Bytes(b"<!doctype html>".to_vec()));
        assert_eq!(header(&shown, "content-type"), "text/html; charset=utf-8");
        assert_eq!(header(&shown, "x-content-type-options"), "nosniff");
        let again = request.with_header("if-none-match", header(&shown, "etag"));
        let again = host.run(|| guide(&again)).unwrap();
        assert_eq!((again.status, &again.body), (304, &Body::Empty));
    }

    #[test]
    fn s3_62_the_page_has_a_policy_of_its_own() {
        let host = sessions();
        let request = Request::new("GET", "/x").with_param("id", RUNNING);
        let shown = host.run(|| guide(&request)).unwrap();
        let policy = header(&shown, "content-security-policy");
        let rules: Vec<&str> = policy.split(';').map(str::trim).collect();
        let sandbox = "sandbox allow-popups allow-popups-to-escape-sandbox";
        assert_eq!(rules[0], sandbox, "an origin of its own, and no scripts");
        for rule in ["default-src 'none'", "base-uri 'none'", "form-action 'none'"] {
            assert!(rules.contains(&rule), "{rule} in {policy}");
        }
        assert!(rules.contains(&"frame-ancestors 'self'"), "only the app's page frames it");
        assert!(rules.contains(&"img-src 'self' https: data:"), "{policy}");
        for word in ["script", "unsafe-eval", "connect-src", "frame-src", "allow-same-origin"] {
            assert!(!policy.contains(word), "{word} in {policy}");
        }
    }

    #[test]
    fn policy_names_configured_services_without_https() {
        let host = sessions().setting("unsplash_image_base_url", "http://127.0.0.1:9");
        let request = Request::new("GET", "/x").with_param("id", RUNNING);
        let shown = host.run(|| guide(&request)).unwrap();
        let policy = header(&shown, "content-security-policy");
        assert!(policy.contains("; img-src 'self' https: data: http://127.0.0.1:9/; "), "{policy}");
    }

    #[test]
    fn s3_55_a_missing_page_is_not_found() {
        let host = sessions();
        for id in [IDLE, "nobody"] {
            let request = Request::new("GET", "/x").with_param("id", id);
            assert_eq!(host.run(|| guide(&request)).unwrap().status, 404, "{id}");
        }
        let request = Request::new("GET", "/x").with_param("id", IDLE);
        let moved = host.run(|| handbook(&request)).unwrap();
        assert_eq!((moved.status, header(&moved, "location")), (308, "../guide/idle"));
    }
}
