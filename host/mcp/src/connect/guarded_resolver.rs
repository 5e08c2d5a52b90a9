//! Restricts the addresses that a server is allowed to have.
//!
//! The check happens during name resolution, so no second resolution can bypass it (DNS rebinding).
//! A literal IP address is never resolved and is checked beforehand.

use std::net::{IpAddr, SocketAddr};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::{Host, Url};

use crate::config::AddressPolicy;

/// The system's resolver with the address check.
#[derive(Clone, Copy)]
pub(super) struct GuardedResolver {
    pub(super) policy: AddressPolicy,
    pub(super) allow_private: bool,
}

/// A blocked address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BlockedAddress {
    /// An address that needs `private = true`.
    #[error("{0} is a private address; set `private = true` to allow it")]
    Private(String),
    /// An address that is never allowed, such as the metadata services of clouds.
    #[error("{0} is an address that no server is allowed to have")]
    Forbidden(String),
}

impl GuardedResolver {
    /// Checks a literal IP address.
    pub(super) fn check(&self, url: &Url) -> Result<(), BlockedAddress> {
        let address = match url.host() {
            Some(Host::Ipv4(address)) => IpAddr::V4(address),
            Some(Host::Ipv6(address)) => IpAddr::V6(address),
            Some(Host::Domain(_)) | None => return Ok(()),
        };
        if self.allows(address) {
            return Ok(());
        }
        Err(self.blocked(format!("`{address}`")))
    }

    fn allows(&self, address: IpAddr) -> bool {
        (self.policy)(address, self.allow_private)
    }

    fn blocked(&self, place: String) -> BlockedAddress {
        if self.allow_private {
            BlockedAddress::Forbidden(place)
        } else {
            BlockedAddress::Private(place)
        }
    }
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = *self;
        let host = name.as_str().to_owned();
        Box::pin(async move {
            // The port does not matter here, because the HTTP client sets it.
            let found: Vec<SocketAddr> =
                tokio::net::lookup_host((host.as_str(), 0)).await?.collect();
            let allowed: Vec<SocketAddr> =
                found.iter().copied().filter(|found| guard.allows(found.ip())).collect();
            match (allowed.is_empty(), found.first()) {
                (true, Some(found)) => {
                    Err(guard.blocked(format!("`{host}` ({})", found.ip())).into())
                }
                (true, None) => Err(format!("`{host}` has no address").into()),
                (false, _) => Ok(Box::new(allowed.into_iter()) as Addrs),
            }
        })
    }
}
