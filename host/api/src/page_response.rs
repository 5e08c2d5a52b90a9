//! Responses with the files of a page: encodings, caching and security headers.
//!
//! The pages of apps and the studio share these responses. Only the Content Security Policies
//! differ.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use wattle_run::page::{IMMUTABLE_PREFIX, IndexDocument, PageFile};

use crate::response::SharedBytes;

/// One year, the maximum that RFC 9111 suggests. Changed content has another file name.
const CACHE_IMMUTABLE: &str = "public, max-age=31536000, immutable";

/// Browsers cache the file and revalidate it with its `etag` before each use.
const CACHE_REVALIDATE: &str = "no-cache";

/// Returns the base of relative URLs: the root of the page, relative to the requested path. A
/// relative base also works behind a proxy that adds a path prefix.
pub(crate) fn base(requested: &str, path: &str) -> String {
    if !requested.ends_with(path) {
        // Without the trailing `/` of the page's root, a browser resolves relative URLs against the
        // parent of the last segment. The base therefore repeats this segment.
        let last = requested.rsplit('/').next().unwrap_or_default();
        return format!("{last}/");
    }
    let levels = path.matches('/').count().saturating_sub(1);
    if levels == 0 { "./".to_owned() } else { "../".repeat(levels) }
}

/// Responds with an index document and the base of its relative URLs. `policy` is the Content
/// Security Policy.
pub(crate) fn index_response(index: &IndexDocument, base: &str, policy: &str) -> Response {
    let tag = format!("<base href=\"{}\">", escape_attribute(base));
    let html = [&index.before[..], tag.as_bytes(), &index.after[..]].concat();
    html_response(html, policy)
}

/// Responds with an HTML document. `policy` is the Content Security Policy.
pub(crate) fn html_response(html: impl Into<Body>, policy: &str) -> Response {
    let body: Body = html.into();
    let mut response = body.into_response();
    let headers = response.headers_mut();
    set_header(headers, header::CONTENT_TYPE, "text/html; charset=utf-8");
    set_header(headers, header::CACHE_CONTROL, CACHE_REVALIDATE);
    set_security_headers(headers, policy);
    response
}

/// Escapes a string for an attribute value in double quotes.
fn escape_attribute(text: &str) -> String {
    text.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;")
}

/// Responds with a file in the smallest form that the client accepts, or with 304 if the client has
/// the file. `policy` is the Content Security Policy.
pub(crate) fn file_response(
    name: &str,
    file: &PageFile,
    request: &HeaderMap,
    policy: &str,
) -> Response {
    let (encoding, bytes) = negotiate_encoding(file, request);
    let etag = format!("\"{}-{}\"", file.digest, encoding.unwrap_or("plain"));
    let if_none_match = request.get(header::IF_NONE_MATCH).and_then(|it| it.to_str().ok());
    let is_unmodified = if_none_match.is_some_and(|tags| {
        tags.split(',').any(|it| matches!(it.trim(), "*")) || tags.contains(&etag)
    });
    let mut response = if is_unmodified {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        let mut response = Body::from(bytes).into_response();
        response.extensions_mut().insert(SharedBytes);
        response
    };
    let headers = response.headers_mut();
    if !is_unmodified {
        set_header(headers, header::CONTENT_TYPE, file.media_type);
        if let Some(encoding) = encoding {
            set_header(headers, header::CONTENT_ENCODING, encoding);
        }
    }
    set_header(headers, header::ETAG, &etag);
    set_header(headers, header::VARY, "accept-encoding");
    set_header(
        headers,
        header::CACHE_CONTROL,
        if name.starts_with(IMMUTABLE_PREFIX) { CACHE_IMMUTABLE } else { CACHE_REVALIDATE },
    );
    set_security_headers(headers, policy);
    response
}

/// Returns the smallest encoding of a file that the client accepts, with the name of the encoding.
fn negotiate_encoding(file: &PageFile, request: &HeaderMap) -> (Option<&'static str>, Bytes) {
    let accepted = request.get_all(header::ACCEPT_ENCODING);
    let accepts = |encoding: &str| {
        let values = accepted.iter().filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(',')).any(|item| accepts(item, encoding))
    };
    match (&file.brotli, &file.gzip) {
        (Some(bytes), _) if accepts("br") => (Some("br"), bytes.clone()),
        (_, Some(bytes)) if accepts("gzip") => (Some("gzip"), bytes.clone()),
        _ => (None, file.plain.clone()),
    }
}

/// Returns true if an item of `accept-encoding` accepts an encoding (RFC 9110, 12.5.3): the item
/// has the name of the encoding and a weight above 0.
fn accepts(item: &str, encoding: &str) -> bool {
    let mut parts = item.split(';').map(str::trim);
    let names_it = parts.next().is_some_and(|name| name.eq_ignore_ascii_case(encoding));
    let weight = parts.find_map(|part| part.strip_prefix("q=")).map(str::parse::<f32>);
    names_it && !matches!(weight, Some(Ok(weight)) if weight <= 0.0)
}

fn set_security_headers(headers: &mut HeaderMap, policy: &str) {
    set_header(headers, header::CONTENT_SECURITY_POLICY, policy);
    set_header(headers, header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    set_header(headers, header::REFERRER_POLICY, "same-origin");
    set_header(headers, HeaderName::from_static("cross-origin-opener-policy"), "same-origin");
    set_header(headers, HeaderName::from_static("cross-origin-resource-policy"), "same-origin");
}

fn set_header(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: &str = "default-src 'none'";

    #[test]
    fn base_resolves_to_the_root_of_the_page() {
        for (requested, path, expected) in [
            ("/", "/", "./"),
            ("/apps/asset/", "/", "./"),
            ("/apps/asset", "/", "asset/"),
            ("/apps/travel/session/7", "/session/7", "../"),
            ("/a/b/c", "/a/b/c", "../../"),
            ("/apps/reasoning/ui", "/ui", "./"),
        ] {
            assert_eq!(base(requested, path), expected, "{requested}");
        }
    }

    #[test]
    fn smallest_accepted_encoding_is_sent() {
        let mut file = PageFile::new("assets/a.js", Bytes::from_static(b"plain"));
        file.brotli = Some(Bytes::from_static(b"br"));
        file.gzip = Some(Bytes::from_static(b"gz"));
        for (accepted, expected) in [
            ("gzip, deflate, br", Some("br")),
            ("gzip;q=1.0, br;q=0", Some("gzip")),
            ("GZIP", Some("gzip")),
            ("identity", None),
            ("brotli", None),
        ] {
            let mut headers = HeaderMap::new();
            set_header(&mut headers, header::ACCEPT_ENCODING, accepted);
            assert_eq!(negotiate_encoding(&file, &headers).0, expected, "{accepted}");
        }
        assert_eq!(negotiate_encoding(&file, &HeaderMap::new()).0, None);
    }

    #[test]
    fn matching_etag_returns_304() {
        let file = PageFile::new("assets/a.js", Bytes::from_static(b"x"));
        let first = file_response("assets/a.js", &file, &HeaderMap::new(), POLICY);
        assert_eq!(first.headers()[header::CACHE_CONTROL], CACHE_IMMUTABLE);
        let mut headers = HeaderMap::new();
        headers.insert(header::IF_NONE_MATCH, first.headers()[header::ETAG].clone());
        let second = file_response("favicon.svg", &file, &headers, POLICY);
        assert_eq!(second.status(), StatusCode::NOT_MODIFIED);
        assert_eq!(second.headers()[header::CACHE_CONTROL], CACHE_REVALIDATE);
    }
}
