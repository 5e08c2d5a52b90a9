//! Webhooks: addresses that may be called, and how what is sent there is signed.

mod allow;
mod sign;

use std::net::IpAddr;

use url::{Host, Url};

pub use self::allow::{AllowRule, AllowRuleError};
pub use self::sign::{SigningKey, SigningKeyError};

/// Bytes of an address: it stands in documents and headers, and longer ones are data.
pub const ADDRESS_BYTES: usize = 2_048;

/// Whether an address may be reached; the second argument says whether a private one may be.
pub type Reachable = fn(IpAddr, bool) -> bool;

/// An address that may be called, as far as can be seen without resolving its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The address.
    pub url: Url,
    /// Whether its name may lead to a private or loopback address.
    pub private: bool,
}

impl Target {
    /// Reads the address of a webhook.
    ///
    /// # Errors
    ///
    /// Why it may not be called.
    pub fn read(text: &str, allow: &[AllowRule], reachable: Reachable) -> Result<Self, String> {
        let refuse = |why: &str| Err(format!("the webhook {why}"));
        if text.len() > ADDRESS_BYTES {
            return refuse(&format!("has an address of more than {ADDRESS_BYTES} bytes"));
        }
        let Ok(url) = Url::parse(text) else {
            return refuse("is no address; write for example `https://example.com/hook`");
        };
        if !matches!(url.scheme(), "http" | "https") {
            return refuse("must have an address with `https` or `http`");
        }
        if !url.username().is_empty() || url.password().is_some() {
            return refuse("must have an address without user and password");
        }
        let private = allow.iter().any(|rule| rule.covers(&url));
        let may_be_reached = match url.host() {
            Some(Host::Ipv4(address)) => reachable(address.into(), private),
            Some(Host::Ipv6(address)) => reachable(address.into(), private),
            Some(Host::Domain(name)) => private || !is_local(name),
            None => false,
        };
        if !may_be_reached {
            let host = url.host_str().unwrap_or_default();
            return refuse(&format!(
                "leads to `{host}`, which this host may not call; its operator can allow private \
                 addresses under `[server.webhooks]`"
            ));
        }
        Ok(Self { url, private })
    }
}

/// Names that lead to the machine itself, whatever a resolver says.
fn is_local(name: &str) -> bool {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reachable(address: IpAddr, private: bool) -> bool {
        private || !address.is_loopback()
    }

    fn read(text: &str, allow: &[&str]) -> Result<Target, String> {
        let allow: Vec<AllowRule> = allow.iter().map(|rule| rule.parse().unwrap()).collect();
        Target::read(text, &allow, reachable)
    }

    #[test]
    fn public_addresses_may_be_called_and_local_ones_need_a_rule() {
        for (text, allow, fine) in [
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
            assert_eq!(read(text, allow).is_ok(), fine, "{text} {allow:?}");
        }
        assert!(read(&format!("https://a.example/{}", "x".repeat(ADDRESS_BYTES)), &[]).is_err());
        assert!(!read("https://example.com", &["http://localhost:*"]).unwrap().private);
        assert!(read("http://localhost", &["http://localhost:*"]).unwrap().private);
    }
}
