//! Resolves names to allowed addresses only.
//!
//! The client connects only to addresses that this resolver returns, so no second resolution can
//! bypass the check (DNS rebinding).

use std::net::SocketAddr;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use wattle_run::lookups::{self, Lookup, Lookups, SystemResolver};

use crate::address_class::is_address_allowed;

/// A resolver that returns only allowed addresses.
#[derive(Debug)]
pub(crate) struct GuardedResolver<L = SystemResolver> {
    /// Whether private addresses are allowed.
    pub(crate) allow_private: bool,
    /// The places for lookups.
    pub(crate) lookups: Lookups,
    /// The underlying resolver.
    pub(crate) lookup: L,
}

/// A name that resolves to blocked addresses only.
#[derive(Debug, thiserror::Error)]
#[error("`{name}` resolves to the blocked address {address}")]
pub(crate) struct BlockedAddress {
    name: String,
    pub(crate) address: std::net::IpAddr,
}

impl<L: Lookup> Resolve for GuardedResolver<L> {
    fn resolve(&self, name: Name) -> Resolving {
        let (private, lookup) = (self.allow_private, self.lookup.clone());
        let (lookups, owner) = (self.lookups.clone(), lookups::current_owner());
        let name = name.as_str().to_owned();
        Box::pin(async move {
            let wanted = name.clone();
            let lookup = async move { lookup.lookup(&wanted).await };
            let found = lookups.run(owner, &name, lookup).await?;
            let allowed: Vec<SocketAddr> = found
                .iter()
                .copied()
                .filter(|found| is_address_allowed(found.ip(), private))
                .collect();
            match (allowed.is_empty(), found.first()) {
                (true, Some(found)) => Err(BlockedAddress { name, address: found.ip() }.into()),
                (true, None) => Err(format!("`{name}` has no address").into()),
                (false, _) => Ok(Box::new(allowed.into_iter()) as Addrs),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use reqwest::Client;
    use wattle_kit::rebound::ReboundName;
    use wiremock::matchers::any;
    use wiremock::{Mock, MockServer, ResponseTemplate};

    use super::*;

    /// The address of the metadata service of most clouds.
    const METADATA: &str = "169.254.169.254";

    /// Returns a client that opens a connection for each request.
    fn client(lookup: &ReboundName, allow_private: bool) -> Client {
        let (lookups, lookup) = (Lookups::default(), lookup.clone());
        let guarded = GuardedResolver { allow_private, lookups, lookup };
        let client = Client::builder().no_proxy().dns_resolver(guarded);
        client.pool_max_idle_per_host(0).build().unwrap()
    }

    fn refused(error: &reqwest::Error) -> Option<String> {
        let mut causes = std::iter::successors(error.source(), |cause| (**cause).source());
        let refused = causes.find_map(|cause| cause.downcast_ref::<BlockedAddress>());
        refused.map(|refused| refused.address.to_string())
    }

    #[tokio::test]
    async fn rebound_name_is_checked_for_every_connection() {
        let server = MockServer::start().await;
        Mock::given(any()).respond_with(ResponseTemplate::new(200)).mount(&server).await;
        let url = format!("http://rebound.example:{}/", server.address().port());
        let lookup = ReboundName::new(&[
            &["127.0.0.1"],
            &[METADATA],
            &[METADATA, "127.0.0.1"],
            &["::ffff:127.0.0.1", "0.0.0.0"],
        ]);
        let client = client(&lookup, true);
        let get = async || client.get(&url).send().await;
        assert_eq!(get().await.unwrap().status(), 200);
        assert_eq!(lookup.left(), 3, "the check and the connection use one lookup");
        assert_eq!(refused(&get().await.unwrap_err()).as_deref(), Some(METADATA));
        // The client skips the blocked addresses of a name that also has an allowed address.
        assert_eq!(get().await.unwrap().status(), 200);
        assert_eq!(refused(&get().await.unwrap_err()).as_deref(), Some("::ffff:127.0.0.1"));
        assert_eq!(server.received_requests().await.unwrap().len(), 2);
    }

    #[tokio::test]
    async fn private_addresses_of_a_public_name_are_blocked() {
        let server = MockServer::start().await;
        let url = format!("http://rebound.example:{}/", server.address().port());
        let lookup = ReboundName::new(&[&["127.0.0.1"], &["10.0.0.1", "::1"]]);
        let client = client(&lookup, false);
        for address in ["127.0.0.1", "10.0.0.1"] {
            let error = client.get(&url).send().await.unwrap_err();
            assert_eq!(refused(&error).as_deref(), Some(address));
        }
        assert!(server.received_requests().await.unwrap().is_empty());
    }
}
