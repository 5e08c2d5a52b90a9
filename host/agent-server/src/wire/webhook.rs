//! The rules for URLs of webhooks, and the signatures of webhooks.

mod allow;
mod sign;

use std::net::IpAddr;

use url::{Host, Url};

pub use self::allow::{AllowRule, AllowRuleError};
pub use self::sign::{SigningKey, SigningKeyError};

/// Maximum length of a webhook URL in bytes. The URL is stored and sent in headers.
pub const MAX_URL_BYTES: usize = 2_048;

/// Decides whether the host may connect to an IP address. The second argument permits private
/// addresses.
pub type AddressPolicy = fn(IpAddr, bool) -> bool;

/// A permitted webhook URL, before its host name is resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookUrl {
    /// The URL.
    pub url: Url,
    /// Whether the host name may resolve to a private or loopback address.
    pub private: bool,
}

impl WebhookUrl {
    /// Parses the URL of a webhook, and checks it against the rules.
    ///
    /// # Errors
    ///
    /// Returns a message with the reason why the URL is not permitted.
    pub fn parse(
        text: &str,
        allow: &[AllowRule],
        is_allowed: AddressPolicy,
    ) -> Result<Self, String> {
        let reject = |why: &str| Err(format!("the webhook URL {why}"));
        if text.len() > MAX_URL_BYTES {
            return reject(&format!("has more than {MAX_URL_BYTES} bytes"));
        }
        let Ok(url) = Url::parse(text) else {
            return reject("is invalid; write for example `https://example.com/hook`");
        };
        if !matches!(url.scheme(), "http" | "https") {
            return reject("must have the scheme `https` or `http`");
        }
        if !url.username().is_empty() || url.password().is_some() {
            return reject("must not contain a user or a password");
        }
        let private = allow.iter().any(|rule| rule.covers(&url));
        let is_permitted = match url.host() {
            Some(Host::Ipv4(address)) => is_allowed(address.into(), private),
            Some(Host::Ipv6(address)) => is_allowed(address.into(), private),
            Some(Host::Domain(name)) => private || !is_local(name),
            None => false,
        };
        if !is_permitted {
            let host = url.host_str().unwrap_or_default();
            return reject(&format!(
                "has the host `{host}`, which webhooks may not call; the operator can allow \
                 private addresses under `[server.webhooks]`"
            ));
        }
        Ok(Self { url, private })
    }
}

/// Returns whether a host name always means the local machine.
fn is_local(name: &str) -> bool {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_allowed(address: IpAddr, private: bool) -> bool {
        private || !address.is_loopback()
    }

    fn read(text: &str, allow: &[&str]) -> Result<WebhookUrl, String> {
        let allow: Vec<AllowRule> = allow.iter().map(|rule| rule.parse().unwrap()).collect();
        WebhookUrl::parse(text, &allow, is_allowed)
    }

    #[test]
    fn local_addresses_need_a_rule() {
        for (text, allow, is_ok) in [
            ("https://example.com/hook?a=b", &[][..], true),
            ("http://example.com:8080/", &[], true),
            ("http://127.0.0.1:9/x", &[], false),
            ("http://127.1:9/x", &[], false),
            ("http://[::1]/x", &[], false),
            ("http://localhost/x", &[], false),
            ("http://a.LOCALHOST./x", &[], false),
            ("http://127.0.0.1:9/x", &["http://127.0.0.1:*"], true),
            ("http://localhost:3000/x", &["http://localhost:3000"], true),
            ("http://localhost:3001/x", &["http://localhost:3000"], false),
            ("ftp://example.com/", &[], false),
            ("https://user:word@example.com/", &[], false),
            ("hook", &[], false),
            ("data:text/plain,x", &[], false),
        ] {
            assert_eq!(read(text, allow).is_ok(), is_ok, "{text} {allow:?}");
        }
        assert!(read(&format!("https://a.example/{}", "x".repeat(MAX_URL_BYTES)), &[]).is_err());
        assert!(!read("https://example.com", &["http://localhost:*"]).unwrap().private);
        assert!(read("http://localhost", &["http://localhost:*"]).unwrap().private);
    }
}
