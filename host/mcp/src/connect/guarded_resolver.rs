//! Restricts the addresses that a server is allowed to have.
//!
//! The check happens during name resolution, so no second resolution can bypass it (DNS rebinding).
//! A literal IP address is never resolved and is checked beforehand.

use std::net::{IpAddr, SocketAddr};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::{Host, Url};
use wattle_run::lookups::{Lookup, SystemResolver};

use crate::config::AddressPolicy;

/// A resolver that returns only allowed addresses.
#[derive(Clone)]
pub(super) struct GuardedResolver<L = SystemResolver> {
    pub(super) policy: AddressPolicy,
    pub(super) allow_private: bool,
    /// The underlying resolver.
    pub(super) lookup: L,
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

impl<L> GuardedResolver<L> {
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

impl<L: Lookup> Resolve for GuardedResolver<L> {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = self.clone();
        let host = name.as_str().to_owned();
        Box::pin(async move {
            let found = guard.lookup.lookup(&host).await?;
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

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use wattle_kit::rebound::{self, ReboundName};
    use wattle_kit::standin::{Config, Server};

    use super::*;
    use crate::connect::http::http_client;

    fn client(lookup: ReboundName, policy: AddressPolicy) -> reqwest::Client {
        http_client(GuardedResolver { policy, allow_private: false, lookup }).unwrap()
    }

    /// Returns the error of a connection to the name at a private address.
    fn blocked(address: &str) -> String {
        BlockedAddress::Private(format!("`rebound.example` ({address})")).to_string()
    }

    #[tokio::test]
    async fn rebound_name_is_checked_for_every_connection() {
        // The address of the server stands for a public one.
        let policy: AddressPolicy = |address, _| address == Ipv4Addr::LOCALHOST;
        let client = |lookup| client(lookup, policy);
        let refusals = ["10.0.0.1", "::1"].map(blocked);
        rebound::assert_checked_for_every_connection(client, refusals).await;
    }

    #[tokio::test]
    async fn name_that_gets_the_loopback_address_is_blocked() {
        let server = Server::start(Config::default()).await.unwrap();
        let url = format!("http://rebound.example:{}/mcp", server.addr.port());
        let policy: AddressPolicy = |address, private| private || !address.is_loopback();
        for address in ["127.0.0.1", "::1"] {
            let client = client(ReboundName::new(&[&[address]]), policy);
            assert_eq!(rebound::get(&client, &url).await, Err(blocked(address)));
        }
        assert!(server.requests().is_empty());
    }
}
