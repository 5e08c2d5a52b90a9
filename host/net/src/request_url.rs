//! Parses and normalizes the URLs of guests.

use std::net::IpAddr;

use reqwest::Url;
use url::Host;
use wattle_graph::failure::{Failure, code};

use crate::secret;

/// Maximum bytes of a URL. Many servers reject longer URLs.
const MAX_URL_BYTES: usize = 16 << 10;

/// Parses and normalizes a URL: numeric hosts become dotted addresses, internationalized names
/// become ASCII (Punycode), and the fragment and a dot at the end of the name are removed.
pub(crate) fn parse(text: &str) -> Result<Url, Failure> {
    if text.len() > MAX_URL_BYTES {
        return Err(invalid(format!("the URL is longer than {MAX_URL_BYTES} bytes")));
    }
    let url = Url::parse(text)
        .map_err(|error| invalid(format!("cannot parse the URL of the request: {error}")))?;
    normalize(url)
}

/// Resolves the target of a redirect against the URL of the redirected request.
pub(crate) fn join(from: &Url, location: &str) -> Result<Url, Failure> {
    let url = from
        .join(location)
        .ok()
        .filter(|url| url.as_str().len() <= MAX_URL_BYTES)
        .ok_or_else(|| invalid("the server redirects to an invalid or too long URL".into()))?;
    normalize(url)
}

fn normalize(mut url: Url) -> Result<Url, Failure> {
    if !matches!(url.scheme(), "https" | "http") {
        let scheme = url.scheme();
        return Err(invalid(format!(
            "the URL scheme `{scheme}` is not supported; use `https` or `http`"
        )));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(invalid(
            "a URL must not contain a user name or password; send an `authorization` header with \
             a secret"
                .into(),
        ));
    }
    if secret::has_placeholder(url.path()) {
        return Err(invalid(
            "a secret can be in the query, in headers or in a text body, but not in the path of \
             a URL"
                .into(),
        ));
    }
    if let Some(host) = url.host_str().and_then(|host| host.strip_suffix('.')).map(str::to_owned) {
        url.set_host(Some(&host))
            .map_err(|error| invalid(format!("the host name `{host}` is invalid: {error}")))?;
    }
    url.set_fragment(None);
    Ok(url)
}

/// Returns the host in the form that rules use: IPv6 without brackets.
pub(crate) fn host(url: &Url) -> String {
    match url.host() {
        Some(Host::Domain(name)) => name.to_owned(),
        Some(Host::Ipv4(address)) => address.to_string(),
        Some(Host::Ipv6(address)) => address.to_string(),
        None => String::new(),
    }
}

/// Returns the IP address of a URL whose host is an IP literal. The client connects to such an
/// address without calling the resolver.
pub(crate) fn literal_address(url: &Url) -> Option<IpAddr> {
    match url.host()? {
        Host::Domain(_) => None,
        Host::Ipv4(address) => Some(address.into()),
        Host::Ipv6(address) => Some(address.into()),
    }
}

/// Returns scheme, host and port, for messages.
pub(crate) fn origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}

fn invalid(message: String) -> Failure {
    Failure::new(code::INVALID, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_normalized() {
        let cases = [
            ("http://2130706433/", "127.0.0.1"),
            ("http://0x7f.1/", "127.0.0.1"),
            ("http://0177.0.0.1/", "127.0.0.1"),
            ("http://127.1/", "127.0.0.1"),
            ("http://\u{ff11}\u{ff12}\u{ff17}.0.0.1/", "127.0.0.1"),
            ("http://EXAMPLE.com./", "example.com"),
            ("http://[::FFFF:7f00:1]/", "::ffff:127.0.0.1"),
            ("https://b\u{fc}cher.example/", "xn--bcher-kva.example"),
            ("http://127.0.0.1./", "127.0.0.1"),
            ("http:\\\\example.com\\a", "example.com"),
        ];
        for (text, expected) in cases {
            assert_eq!(host(&parse(text).unwrap()), expected, "{text}");
        }
        assert!(literal_address(&parse("http://2130706433/").unwrap()).is_some());
        assert!(literal_address(&parse("http://127.0.0.1./").unwrap()).is_some());
    }

    #[test]
    fn unsupported_urls_are_invalid() {
        let cases = [
            "ftp://example.com/",
            "file:///etc/passwd",
            "https://user@example.com/",
            "https://:word@example.com/",
            "/relative",
            "https://",
            "data:text/plain,x",
            "https://example.com/{{secret:KEY}}",
            "https://example.com/%7B%7Bsecret%3AKEY%7D%7D",
        ];
        for text in cases {
            assert_eq!(parse(text).unwrap_err().code, code::INVALID, "{text}");
        }
        assert!(parse(&format!("https://example.com/{}", "a".repeat(MAX_URL_BYTES))).is_err());
    }
}
