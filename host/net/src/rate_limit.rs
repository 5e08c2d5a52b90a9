//! Limits the request rate to each target host, summed over all Wattle hosts that share the work.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use governor::clock::{Clock as _, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};

use crate::config::NetConfig;

/// Number of tracked target hosts above which the limiter drops the target hosts without recent
/// requests.
const MAX_TRACKED_HOSTS: usize = 1_024;

/// Rate limits by target host.
pub(crate) struct HostRateLimiter {
    limiter: DefaultKeyedRateLimiter<String>,
    clock: DefaultClock,
    /// Maximum requests in a burst.
    burst: NonZeroU32,
    /// Number of Wattle hosts that share the limits. Each request of this process therefore counts
    /// as that many requests.
    sharing_hosts: AtomicU32,
}

impl HostRateLimiter {
    pub(crate) fn new(config: &NetConfig) -> Self {
        let quota = Quota::per_second(config.requests_per_second).allow_burst(config.burst);
        Self {
            limiter: RateLimiter::keyed(quota),
            clock: DefaultClock::default(),
            burst: config.burst,
            sharing_hosts: AtomicU32::new(1),
        }
    }

    /// Sets the number of Wattle hosts that share the limits.
    pub(crate) fn set_sharing_hosts(&self, hosts: u32) {
        self.sharing_hosts.store(hosts, Ordering::Relaxed);
    }

    /// Waits until the rate limit allows a request to the host. The wait counts towards the timeout
    /// of the exchange.
    pub(crate) async fn acquire(&self, host: &str) {
        if self.limiter.len() > MAX_TRACKED_HOSTS {
            self.limiter.retain_recent();
        }
        while let Some(pause) = self.try_acquire(host) {
            tokio::time::sleep(pause).await;
        }
    }

    /// Takes one request from the limit of a host. Returns the time to wait if the limit is
    /// exhausted.
    fn try_acquire(&self, host: &str) -> Option<Duration> {
        let sharing = NonZeroU32::new(self.sharing_hosts.load(Ordering::Relaxed));
        let requests = sharing.unwrap_or(NonZeroU32::MIN).min(self.burst);
        match self.limiter.check_key_n(&host.to_owned(), requests) {
            Ok(Err(early)) => Some(early.wait_time_from(self.clock.now())),
            // The outer `Err` does not occur, because the number of requests is at most the burst.
            Ok(Ok(())) | Err(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns how many requests to a host are allowed without waiting.
    fn taken(rates: &HostRateLimiter, host: &str) -> usize {
        (0..100).take_while(|_| rates.try_acquire(host).is_none()).count()
    }

    #[test]
    fn sharing_hosts_have_one_rate_limit() {
        // The limit regains one request per second.
        let config = |burst| NetConfig {
            requests_per_second: NonZeroU32::MIN,
            burst: NonZeroU32::new(burst).unwrap(),
            ..NetConfig::default()
        };
        let alone = HostRateLimiter::new(&config(60));
        assert_eq!(taken(&alone, "a.example"), 60);
        assert_eq!(taken(&alone, "b.example"), 60, "each host has a limit of its own");
        let sharing = [
            HostRateLimiter::new(&config(60)),
            HostRateLimiter::new(&config(60)),
            HostRateLimiter::new(&config(60)),
        ];
        let all = sharing.iter().map(|rates| {
            rates.set_sharing_hosts(3);
            taken(rates, "a.example")
        });
        assert_eq!(all.sum::<usize>(), 60);
        let many = HostRateLimiter::new(&config(2));
        many.set_sharing_hosts(1_000);
        assert_eq!(taken(&many, "a.example"), 1, "one request is always allowed");
    }
}
