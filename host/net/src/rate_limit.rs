//! Limits the request rate to each target host, summed over all Wattle hosts that share the work.
//!
//! Requests to one target host wait in turns of their callers, so a caller with many requests does
//! not stop another one.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use governor::clock::{Clock as _, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use wattle_run::caller_id::CallerId;
use wattle_run::places::Places;

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
    /// The turn to wait for the rate limit, by target host.
    turns: Mutex<HashMap<String, Places>>,
}

impl HostRateLimiter {
    pub(crate) fn new(config: &NetConfig) -> Self {
        let quota = Quota::per_second(config.requests_per_second).allow_burst(config.burst);
        Self {
            limiter: RateLimiter::keyed(quota),
            clock: DefaultClock::default(),
            burst: config.burst,
            sharing_hosts: AtomicU32::new(1),
            turns: Mutex::default(),
        }
    }

    /// Sets the number of Wattle hosts that share the limits.
    pub(crate) fn set_sharing_hosts(&self, hosts: u32) {
        self.sharing_hosts.store(hosts, Ordering::Relaxed);
    }

    /// Waits until the rate limit allows a request of a caller to the host. The wait counts towards
    /// the timeout of the exchange.
    pub(crate) async fn acquire(&self, owner: CallerId, host: &str) {
        if self.limiter.len() > MAX_TRACKED_HOSTS {
            self.limiter.retain_recent();
        }
        let turns = self.turns_of(host);
        let _turn = turns.take(owner).await;
        while let Some(pause) = self.try_acquire(host) {
            tokio::time::sleep(pause).await;
        }
    }

    /// Returns the only turn of a host, and drops the turns of other hosts that nobody uses if there
    /// are many.
    fn turns_of(&self, host: &str) -> Places {
        // Ignores poisoning: no code that can panic runs under the lock.
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        if turns.len() > MAX_TRACKED_HOSTS {
            turns.retain(|_, turns| !turns.is_unused());
        }
        turns.entry(host.to_owned()).or_insert_with(|| Places::new(1)).clone()
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
    use std::pin::Pin;
    use std::task::{Context, Waker};

    use super::*;

    fn is_pending(future: Pin<&mut impl Future>) -> bool {
        future.poll(&mut Context::from_waker(Waker::noop())).is_pending()
    }

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

    #[tokio::test]
    async fn waiting_request_of_another_caller_is_next() {
        let rates = HostRateLimiter::new(&NetConfig {
            requests_per_second: NonZeroU32::new(1_000).unwrap(),
            burst: NonZeroU32::MIN,
            ..NetConfig::default()
        });
        let [greedy, other] = ["greedy", "other"].map(CallerId::of_key);
        let held = rates.turns_of("a.example").take(greedy).await;
        let mut later = Box::pin(rates.acquire(greedy, "a.example"));
        let mut next = Box::pin(rates.acquire(other, "a.example"));
        assert!(is_pending(later.as_mut()) && is_pending(next.as_mut()));
        drop(held);
        // The other request of the greedy caller makes no progress meanwhile.
        next.await;
        later.await;
        rates.acquire(greedy, "b.example").await;
    }

    #[test]
    fn turns_of_hosts_without_requests_are_dropped() {
        let rates = HostRateLimiter::new(&NetConfig::default());
        let used = rates.turns_of("used.example");
        for number in 0..2 * MAX_TRACKED_HOSTS {
            rates.turns_of(&format!("{number}.example"));
        }
        let turns = rates.turns.lock().unwrap();
        assert!(turns.len() <= MAX_TRACKED_HOSTS + 1, "{}", turns.len());
        assert!(turns.contains_key("used.example"));
        drop(used);
    }
}
