//! Where an address that a tenant gives may lead.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// Names to addresses, and only to those that may be reached. The client connects to what this
/// gives it and to nothing else, so there is no moment between check and connection in which a
/// name could be made to mean something else.
#[derive(Debug)]
pub(super) struct Guarded {
    pub(super) reachable: fn(IpAddr) -> bool,
}

impl Resolve for Guarded {
    fn resolve(&self, name: Name) -> Resolving {
        let reachable = self.reachable;
        let name = name.as_str().to_owned();
        Box::pin(async move {
            // The port is filled in by the client.
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let allowed: Vec<SocketAddr> = found.filter(|found| reachable(found.ip())).collect();
            if allowed.is_empty() {
                return Err(format!("`{name}` leads to no address that may be reached").into());
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

/// The network address that stands in a URL itself, which no resolver sees.
pub(super) fn literal(url: &str) -> Option<IpAddr> {
    let url = Url::parse(url).ok()?;
    let host = url.host_str()?.trim_end_matches('.');
    if host == "localhost" || host.ends_with(".localhost") {
        return Some(Ipv4Addr::LOCALHOST.into());
    }
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_seen_however_they_are_written() {
        let cases = [
            ("http://127.0.0.1:80/v1", Some("127.0.0.1")),
            ("http://0x7f.1/", Some("127.0.0.1")),
            ("http://2130706433/", Some("127.0.0.1")),
            ("http://[::1]:8080/", Some("::1")),
            ("http://[::ffff:10.0.0.1]/", Some("::ffff:10.0.0.1")),
            ("http://LocalHost./", Some("127.0.0.1")),
            ("http://a.localhost/", Some("127.0.0.1")),
            ("https://api.example.com/v1", None),
        ];
        for (url, expected) in cases {
            assert_eq!(literal(url), expected.map(|text| text.parse().unwrap()), "{url}");
        }
    }
}
