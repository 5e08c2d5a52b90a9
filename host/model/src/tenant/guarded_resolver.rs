//! The addresses that a base URL of a tenant may reach.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// A DNS resolver that returns only allowed addresses. The client connects to these addresses and
/// to no others, so that a name cannot change its address between the check and the connection.
#[derive(Debug)]
pub(super) struct GuardedResolver {
    pub(super) reachable: fn(IpAddr) -> bool,
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let reachable = self.reachable;
        let name = name.as_str().to_owned();
        Box::pin(async move {
            // The client sets the port.
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let allowed: Vec<SocketAddr> = found.filter(|found| reachable(found.ip())).collect();
            if allowed.is_empty() {
                return Err(format!("`{name}` resolves to no allowed address").into());
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

/// Returns the IP address that is the host of a URL. The client connects to such an address without
/// a resolver.
pub(super) fn literal_address(url: &str) -> Option<IpAddr> {
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
    fn every_spelling_of_an_address_is_recognized() {
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
            assert_eq!(literal_address(url), expected.map(|text| text.parse().unwrap()), "{url}");
        }
    }
}
