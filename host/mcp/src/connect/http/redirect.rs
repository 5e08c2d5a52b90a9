//! Redirects of a server.
//!
//! A redirect is followed with the same message if its target has the origin of the request, since
//! another origin would receive headers with secrets.

use reqwest::header::{HeaderMap, LOCATION};
use reqwest::{StatusCode, Url};

/// Segments of a path from this length are masked in messages, since they may be secrets.
const MIN_SECRET_SEGMENT_BYTES: usize = 16;

/// Replaces a masked segment.
const MASK: &str = "***";

/// Returns the target to which the same message is sent again; `None` if the response is not a
/// redirect.
///
/// # Errors
///
/// Returns why the redirect is not followed, with its target. After a 303, a client requests the
/// result of a message that the server has processed, so the message is not sent again.
pub(super) fn next_hop(
    url: &Url,
    status: StatusCode,
    headers: &HeaderMap,
) -> Result<Option<Url>, String> {
    let is_for_message = matches!(
        status,
        StatusCode::MOVED_PERMANENTLY
            | StatusCode::FOUND
            | StatusCode::TEMPORARY_REDIRECT
            | StatusCode::PERMANENT_REDIRECT
    );
    if !status.is_redirection() || (!is_for_message && !headers.contains_key(LOCATION)) {
        return Ok(None);
    }
    let target = headers.get(LOCATION).and_then(|target| target.to_str().ok());
    let target = target.and_then(|target| url.join(target).ok());
    let target = target.ok_or("it redirects without a valid `location`")?;
    let target = with_tls_of(url, target);
    if target.origin() == url.origin() && is_for_message {
        return Ok(Some(target));
    }
    let origin = target.origin().ascii_serialization();
    let (status, path) = (status.as_u16(), masked_path(&target));
    Err(format!("it redirects with status {status} to `{origin}{path}`; check `url`"))
}

/// Returns a target with `http` on the host and port of a `url` with `https` as `https`. A server
/// behind a proxy that terminates TLS often names itself with `http`.
fn with_tls_of(url: &Url, mut target: Url) -> Url {
    let is_downgrade = (url.scheme(), target.scheme()) == ("https", "http");
    let is_same_port = [url.port(), url.port_or_known_default()].contains(&target.port());
    if is_downgrade && is_same_port && url.host() == target.host() {
        let port = url.port();
        // Both calls succeed for a target with a host and a scheme such as `http`.
        target.set_scheme("https").and_then(|()| target.set_port(port)).ok();
    }
    target
}

/// Returns the path of a target for messages. Long segments are masked, and the query is left out.
pub(super) fn masked_path(target: &Url) -> String {
    let segments = target.path().split('/');
    let shown = segments.map(|it| if it.len() < MIN_SECRET_SEGMENT_BYTES { it } else { MASK });
    shown.collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hop(url: &str, status: u16, location: &str) -> Result<Option<String>, String> {
        let url = Url::parse(url).unwrap();
        let status = StatusCode::from_u16(status).unwrap();
        let headers = HeaderMap::from_iter([(LOCATION, location.parse().unwrap())]);
        next_hop(&url, status, &headers).map(|target| target.map(String::from))
    }

    #[test]
    fn redirects_within_the_origin_are_followed() {
        for (url, location, target) in [
            ("https://a.example/mcp", "/mcp/", "https://a.example/mcp/"),
            ("https://a.example/mcp?k=1", "mcp/?k=1", "https://a.example/mcp/?k=1"),
            ("http://a.example:8000/mcp", "//a.example:8000/mcp/", "http://a.example:8000/mcp/"),
            ("https://a.example/mcp", "http://a.example/mcp/", "https://a.example/mcp/"),
            ("https://a.example/mcp", "http://a.example:443/mcp/", "https://a.example/mcp/"),
            ("https://a.example:8443/mcp", "http://a.example:8443/", "https://a.example:8443/"),
        ] {
            for status in [301, 302, 307, 308] {
                assert_eq!(hop(url, status, location), Ok(Some(target.to_owned())), "{location}");
            }
        }
    }

    #[test]
    fn redirects_that_are_not_followed_name_their_target() {
        for (url, status, location, shown) in [
            ("https://a.example/mcp", 301, "https://b.example/mcp?k=1", "`https://b.example/mcp`"),
            ("https://a.example/mcp", 307, "http://b.example/mcp", "`http://b.example/mcp`"),
            ("https://a.example/mcp", 307, "http://a.example:8000/", "`http://a.example:8000/`"),
            ("http://a.example/mcp", 308, "https://a.example/mcp", "`https://a.example/mcp`"),
            ("https://a.example/mcp", 303, "/done", "`https://a.example/done`"),
            ("https://a.example/mcp", 302, "//u:p@b.example/", "`https://b.example/`"),
            ("https://a.example/0123456789abcdef/mcp", 303, "x/", "`https://a.example/***/x/`"),
        ] {
            let refused = hop(url, status, location).unwrap_err();
            let expected = format!("it redirects with status {status} to {shown}; check `url`");
            assert_eq!(refused, expected);
        }
        let invalid = hop("https://a.example/mcp", 302, "https://").unwrap_err();
        assert_eq!(invalid, "it redirects without a valid `location`");
    }

    #[test]
    fn other_responses_are_not_redirects() {
        let url = Url::parse("https://a.example/mcp").unwrap();
        for status in [StatusCode::OK, StatusCode::NOT_MODIFIED, StatusCode::NOT_FOUND] {
            assert_eq!(next_hop(&url, status, &HeaderMap::new()), Ok(None));
        }
        assert_eq!(hop("https://a.example/mcp", 201, "/mcp/1"), Ok(None));
    }
}
