//! The addresses that a base URL of a tenant may reach.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use wattle_run::lookups::{self, Lookup, Lookups, SystemResolver};

/// A DNS resolver that returns only allowed addresses. The client connects to these addresses and
/// to no others, so that a name cannot change its address between the check and the connection.
#[derive(Debug)]
pub(super) struct GuardedResolver<L = SystemResolver> {
    pub(super) reachable: fn(IpAddr) -> bool,
    /// The places for lookups. Tenants choose the names, and their name servers with them.
    pub(super) lookups: Lookups,
    /// The underlying resolver.
    pub(super) lookup: L,
}

impl<L: Lookup> Resolve for GuardedResolver<L> {
    fn resolve(&self, name: Name) -> Resolving {
        let (reachable, lookup) = (self.reachable, self.lookup.clone());
        let lookups = self.lookups.clone();
        let owner = lookups::current_owner();
        let name = name.as_str().to_owned();
        Box::pin(async move {
            let wanted = name.clone();
            let lookup = async move { lookup.lookup(&wanted).await };
            let found = lookups.run(owner, &name, lookup).await?;
            let allowed: Vec<SocketAddr> =
                found.into_iter().filter(|found| reachable(found.ip())).collect();
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
    use std::future::pending;
    use std::io;
    use std::sync::Arc;

    use futures::future::join_all;
    use wattle_kit::rebound::{self, ReboundName};
    use wattle_run::caller_id::CallerId;
    use wattle_run::lookups::on_behalf_of;
    use wiremock::MockServer;

    use super::*;
    use crate::provider::http_client;

    /// The error of a connection to the name without an allowed address.
    const REFUSAL: &str = "`rebound.example` resolves to no allowed address";

    /// Returns the client of tenants' routes for a name.
    fn client(lookup: ReboundName, reachable: fn(IpAddr) -> bool) -> reqwest::Client {
        let lookups = Lookups::default();
        http_client(Some(Arc::new(GuardedResolver { reachable, lookups, lookup }))).unwrap()
    }

    #[tokio::test]
    async fn rebound_name_is_checked_for_every_connection() {
        // The address of the service stands for a public one.
        let client = |lookup| client(lookup, |address| address == Ipv4Addr::LOCALHOST);
        let refusals = [REFUSAL; 2].map(str::to_owned);
        rebound::assert_checked_for_every_connection(client, refusals).await;
    }

    #[tokio::test]
    async fn name_that_gets_the_loopback_address_is_blocked() {
        let service = MockServer::start().await;
        let url = format!("http://rebound.example:{}/v1", service.address().port());
        let lookup = ReboundName::new(&[&["127.0.0.1"], &["::1", "127.0.0.1"]]);
        let client = client(lookup, |address| !address.is_loopback());
        for _ in 0..2 {
            assert_eq!(rebound::get(&client, &url).await, Err(REFUSAL.to_owned()));
        }
        assert!(service.received_requests().await.unwrap().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn lookups_count_for_the_caller_of_the_request() {
        let lookups = Lookups::default();
        let resolver = GuardedResolver {
            reachable: |_| true,
            lookups: lookups.clone(),
            lookup: SystemResolver,
        };
        let [one, other] = ["one", "other"].map(CallerId::of_key);
        // The lookups keep the places of the caller after their timeouts.
        let silent = || lookups.run(one, "silent.example", pending::<io::Result<()>>());
        join_all((0..100).map(|_| silent())).await;
        let resolve = async |owner| {
            on_behalf_of(owner, async { resolver.resolve("127.0.0.1".parse().unwrap()).await })
                .await
        };
        let late = resolve(one).await.err().unwrap();
        let late = late.downcast_ref::<io::Error>().unwrap();
        assert_eq!(late.kind(), io::ErrorKind::TimedOut);
        let found = resolve(other).await.unwrap().next().unwrap();
        assert_eq!(found.ip(), IpAddr::V4(Ipv4Addr::LOCALHOST));
    }

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
