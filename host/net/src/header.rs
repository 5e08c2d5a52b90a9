//! Headers of requests and responses.

use reqwest::header::{CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue};
use serde_json::json;
use wattle_graph::failure::{Failure, code};
use wattle_run::credentials::MASK;
use wattle_run::hostcall::http::HttpRequest;

use crate::secret::{self, Position, SecretInjector, SizeLimit};

/// Maximum headers of one request.
const MAX_REQUEST_HEADERS: usize = 64;

/// Maximum headers of one response; the default of the HTTP library.
pub(crate) const MAX_RESPONSE_HEADERS: usize = 100;

/// Maximum bytes of all headers of a request or a response. Servers commonly allow less.
const MAX_HEADERS_BYTES: usize = 64 << 10;

/// Maximum size of the value of a header, or of a query, with its secrets inserted.
pub(crate) const VALUE_LIMIT: SizeLimit =
    SizeLimit { name: "request_headers", bytes: MAX_HEADERS_BYTES as u64 };

/// The hop-by-hop headers of HTTP, and `expect` and `host`. The host ignores them in requests of
/// guests and removes them from responses.
const HOP_BY_HOP: [&str; 10] = [
    "connection",
    "expect",
    "host",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Headers with credentials. A redirect to another origin drops these headers.
const CREDENTIALS: [&str; 2] = ["authorization", "cookie"];

/// Headers that describe a body. A redirect that drops the body drops these headers.
const BODY_HEADERS: [&str; 4] =
    ["content-encoding", "content-language", "content-location", "content-type"];

/// Header by which a service recognizes a repeated request.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Headers of a request, with placeholders.
#[derive(Clone, Debug)]
pub(crate) struct Headers(Vec<(HeaderName, String)>);

impl Headers {
    /// Parses the headers of a guest's request. Returns a failure with code `limit` if the headers
    /// exceed a limit, or with code `invalid` if a name is invalid.
    pub(crate) fn parse(request: &HttpRequest) -> Result<Self, Failure> {
        let bytes: usize =
            request.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
        let count = request.headers.len();
        if count > MAX_REQUEST_HEADERS || bytes > MAX_HEADERS_BYTES {
            return Err(too_large(
                "request_headers",
                format!(
                    "the request has {count} headers with {bytes} bytes; at most \
                     {MAX_REQUEST_HEADERS} headers with {MAX_HEADERS_BYTES} bytes in total are \
                     allowed"
                ),
            ));
        }
        let mut headers = Vec::with_capacity(request.headers.len() + 1);
        for (name, value) in &request.headers {
            let name = HeaderName::try_from(name)
                .map_err(|_| invalid(format!("`{name}` cannot be the name of a header")))?;
            let replaced = request.idempotency_key.is_some() && name == IDEMPOTENCY_KEY;
            let ours = HOP_BY_HOP.contains(&name.as_str()) || name == CONTENT_LENGTH;
            if !replaced && !ours {
                headers.push((name, value.clone()));
            }
        }
        if let Some(key) = &request.idempotency_key {
            headers.push((IDEMPOTENCY_KEY, key.clone()));
        }
        Ok(Self(headers))
    }

    /// Returns all values, before placeholders are replaced.
    pub(crate) fn raw_values(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(_, text)| text.as_str())
    }

    /// Returns the headers with secrets inserted.
    pub(crate) fn inject(
        &self,
        injector: &mut SecretInjector<'_>,
        allowed: &dyn Fn(&str) -> Result<(), Failure>,
    ) -> Result<HeaderMap, Failure> {
        let mut map = HeaderMap::with_capacity(self.0.len());
        for (name, text) in &self.0 {
            let filled = injector.inject(text, Position::Raw, VALUE_LIMIT, allowed)?;
            // The value can contain a secret, so the message omits it.
            let mut value = HeaderValue::try_from(&filled)
                .map_err(|_| invalid(format!("the value of the header `{name}` cannot be sent")))?;
            value.set_sensitive(secret::has_placeholder(text));
            map.append(name.clone(), value);
        }
        Ok(map)
    }

    /// Drops what another origin must not receive: credentials, and headers with a secret.
    pub(crate) fn drop_credentials(&mut self) {
        self.0.retain(|(name, text)| {
            !CREDENTIALS.contains(&name.as_str()) && !secret::has_placeholder(text)
        });
    }

    /// Drops the headers that describe the body.
    pub(crate) fn drop_body_headers(&mut self) {
        self.0.retain(|(name, _)| !BODY_HEADERS.contains(&name.as_str()));
    }
}

/// Returns the headers of a response with secrets redacted.
pub(crate) fn response_headers(
    headers: &HeaderMap,
    injector: &SecretInjector<'_>,
) -> Result<Vec<(String, String)>, Failure> {
    let bytes: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    if bytes > MAX_HEADERS_BYTES {
        return Err(too_large(
            "response_headers",
            format!("the response headers have more than {MAX_HEADERS_BYTES} bytes"),
        ));
    }
    let passed = headers.iter().filter(|(name, _)| !HOP_BY_HOP.contains(&name.as_str()));
    Ok(passed
        .map(|(name, value)| {
            let text = String::from_utf8_lossy(value.as_bytes());
            let clean = injector.redact_encoded(&text).unwrap_or_else(|| MASK.to_owned());
            (name.as_str().to_owned(), clean)
        })
        .collect())
}

fn invalid(message: String) -> Failure {
    Failure::new(code::INVALID, message)
}

fn too_large(limit: &str, message: String) -> Failure {
    Failure::new(code::LIMIT, message).with_details(json!({ "limit": limit }))
}
