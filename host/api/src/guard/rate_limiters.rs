//! Rate limiters for keys and addresses.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::extract::{ConnectInfo, Request};
use governor::clock::{Clock as _, DefaultClock};
use governor::{DefaultDirectRateLimiter, DefaultKeyedRateLimiter, RateLimiter};

use crate::guard::limits::{Limits, MAX_TRACKED_CALLERS};
use crate::guard::rate::Rate;

/// One rate limiter for each key, and one for each address that sends requests without a key.
pub(crate) struct RateLimiters {
    keys: Mutex<HashMap<String, KeyLimiter>>,
    key_rate: Option<Rate>,
    addresses: Option<DefaultKeyedRateLimiter<IpAddr>>,
    clock: DefaultClock,
}

type KeyLimiter = Arc<DefaultDirectRateLimiter>;

impl RateLimiters {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            keys: Mutex::default(),
            key_rate: limits.key_rate,
            addresses: limits.address_rate.map(|rate| RateLimiter::keyed(rate.quota())),
            clock: DefaultClock::default(),
        }
    }

    /// Counts one request of a key. Fails with the delay until the next request is allowed.
    pub(crate) fn check_key(&self, id: &str, key_rate: Option<Rate>) -> Result<(), Duration> {
        let Some(rate) = key_rate.or(self.key_rate) else { return Ok(()) };
        let limiter = {
            // Poisoning is ignored: no other code runs under the lock, so its data is consistent.
            let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
            // The map also contains revoked keys. Clearing it gives every other key one additional
            // burst.
            if keys.len() >= MAX_TRACKED_CALLERS {
                keys.clear();
            }
            let new = || Arc::new(RateLimiter::direct(rate.quota()));
            keys.entry(id.to_owned()).or_insert_with(new).clone()
        };
        limiter.check().map_err(|early| early.wait_time_from(self.clock.now()))
    }

    /// Counts one request of an address. Fails with the delay until the next request is allowed.
    pub(crate) fn check_address(&self, address: IpAddr) -> Result<(), Duration> {
        let Some(addresses) = &self.addresses else { return Ok(()) };
        if addresses.len() > MAX_TRACKED_CALLERS {
            addresses.retain_recent();
        }
        addresses.check_key(&address).map_err(|early| early.wait_time_from(self.clock.now()))
    }
}

/// Returns the network of the client of a request, see [`network_of`]. A request from this process
/// has the unspecified address.
pub(crate) fn client_network(request: &Request) -> IpAddr {
    let info = request.extensions().get::<ConnectInfo<std::net::SocketAddr>>();
    let address = info.map_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED), |info| info.0.ip());
    network_of(address)
}

/// Returns the network that counts as one address: an IPv4 address, or the /64 prefix of an IPv6
/// address. Providers usually assign a /64 prefix to one customer.
pub fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => {
            let network = u128::from(address) >> 64 << 64;
            IpAddr::V6(network.into())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use axum::body::Body;

    use super::*;

    fn rate(text: &str) -> Option<Rate> {
        text.parse().ok()
    }

    fn network(address: &str) -> IpAddr {
        let mut request = Request::new(Body::empty());
        let address: SocketAddr = address.parse().unwrap();
        request.extensions_mut().insert(ConnectInfo(address));
        client_network(&request)
    }

    #[test]
    fn each_key_has_its_own_rate_limit() {
        let limiters = RateLimiters::new(&Limits { key_rate: rate("2/h"), ..Limits::default() });
        assert!(limiters.check_key("a", None).is_ok() && limiters.check_key("a", None).is_ok());
        let delay = limiters.check_key("a", None).unwrap_err();
        assert!(
            delay > Duration::from_secs(1_700) && delay <= Duration::from_mins(30),
            "{delay:?}"
        );
        assert!(limiters.check_key("b", rate("1/h")).is_ok());
        assert!(limiters.check_key("b", rate("1/h")).is_err());
    }

    #[test]
    fn without_a_rate_requests_are_unlimited() {
        let limiters = RateLimiters::new(&Limits::default());
        for _ in 0..1_000 {
            assert!(limiters.check_key("a", None).is_ok());
            assert!(limiters.check_address(network("10.0.0.1:1")).is_ok());
        }
    }

    #[test]
    fn ipv6_clients_are_limited_per_64_prefix() {
        let limiters =
            RateLimiters::new(&Limits { address_rate: rate("1/h"), ..Limits::default() });
        assert!(limiters.check_address(network("10.0.0.1:1")).is_ok());
        assert!(limiters.check_address(network("10.0.0.2:1")).is_ok());
        assert!(limiters.check_address(network("[::ffff:10.0.0.1]:2")).is_err());
        assert!(limiters.check_address(network("[2001:db8::1]:1")).is_ok());
        assert!(limiters.check_address(network("[2001:db8::ffff:2]:1")).is_err());
        assert!(limiters.check_address(network("[2001:db8:0:1::1]:1")).is_ok());
    }
}
