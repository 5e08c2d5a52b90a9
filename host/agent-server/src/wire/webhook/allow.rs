//! Rules that permit webhooks to call private addresses.

use std::str::FromStr;

use url::{Host, Url};

/// URLs that webhooks may call although their addresses are private: `http://127.0.0.1:*`,
/// `https://hooks.internal.example`, `http://*.cluster.example:8080`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowRule {
    scheme: String,
    host: HostPattern,
    port: PortPattern,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum HostPattern {
    /// Exactly this host.
    Exact(Host<String>),
    /// Every host name below a domain.
    Subdomains(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PortPattern {
    Any,
    Exact(u16),
}

/// The error for a string that is not an address rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not an address rule; use scheme and host, such as `http://127.0.0.1:*` or \
     `https://*.internal.example`"
)]
pub struct AllowRuleError(String);

impl AllowRule {
    /// Returns whether the rule permits a URL.
    pub fn covers(&self, url: &Url) -> bool {
        let host = match (&self.host, url.host()) {
            (HostPattern::Exact(own), Some(host)) => *own == host.to_owned(),
            (HostPattern::Subdomains(parent), Some(Host::Domain(name))) => name
                .strip_suffix(parent.as_str())
                .and_then(|rest| rest.strip_suffix('.'))
                .is_some_and(|label| !label.is_empty()),
            _ => false,
        };
        let port = match self.port {
            PortPattern::Any => true,
            PortPattern::Exact(port) => url.port_or_known_default() == Some(port),
        };
        self.scheme == url.scheme() && host && port
    }

    fn parse(text: &str) -> Option<Self> {
        let (scheme, authority) = text.split_once("://")?;
        let default_port = match scheme {
            "https" => 443,
            "http" => 80,
            _ => return None,
        };
        // A colon within brackets is part of an IPv6 address.
        let port = authority.rsplit_once(':').filter(|(_, port)| !port.ends_with(']'));
        let (host, port) = match port {
            Some((host, "*")) => (host, PortPattern::Any),
            Some((host, port)) => (host, PortPattern::Exact(port.parse().ok()?)),
            None => (authority, PortPattern::Exact(default_port)),
        };
        let parse = |host| Host::parse(host).ok();
        let host = match host.strip_prefix("*.") {
            Some(parent) => match parse(parent)? {
                Host::Domain(parent) => HostPattern::Subdomains(parent),
                _ => return None,
            },
            None => HostPattern::Exact(parse(host)?),
        };
        Some(Self { scheme: scheme.to_owned(), host, port })
    }
}

impl FromStr for AllowRule {
    type Err = AllowRuleError;

    fn from_str(text: &str) -> Result<Self, AllowRuleError> {
        Self::parse(text).ok_or_else(|| AllowRuleError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covers(rule: &str, url: &str) -> bool {
        rule.parse::<AllowRule>().unwrap().covers(&Url::parse(url).unwrap())
    }

    #[test]
    fn scheme_host_and_port_must_match() {
        for (rule, url, covered) in [
            ("http://127.0.0.1:*", "http://127.0.0.1:81/x", true),
            ("http://127.0.0.1:*", "https://127.0.0.1:81/x", false),
            ("http://127.0.0.1", "http://127.0.0.1/x", true),
            ("http://127.0.0.1", "http://127.0.0.1:81/x", false),
            ("http://[::1]:*", "http://[::1]:81/x", true),
            ("http://[::1]", "http://[::1]/x", true),
            ("https://Hooks.example:8443", "https://hooks.example:8443/", true),
            ("https://*.hooks.example", "https://a.b.hooks.example/", true),
            ("https://*.hooks.example", "https://hooks.example/", false),
            ("https://*.hooks.example", "https://evilhooks.example/", false),
        ] {
            assert_eq!(covers(rule, url), covered, "{rule} {url}");
        }
    }

    #[test]
    fn invalid_webhook_allow_rules_are_rejected() {
        for text in
            ["", "127.0.0.1", "ftp://a", "http://", "http://a:b", "http://a/b", "http://*.::1"]
        {
            assert!(text.parse::<AllowRule>().is_err(), "{text}");
        }
    }
}
