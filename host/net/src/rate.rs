//! How often one host may be asked, by all hosts of Wattle that share the work.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use governor::clock::{Clock as _, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};

use crate::config::NetConfig;

/// Hosts that are remembered before those that were not asked for a while are forgotten.
const REMEMBERED: usize = 1_024;

/// One budget for each host.
pub(crate) struct Rates {
    limiter: DefaultKeyedRateLimiter<String>,
    clock: DefaultClock,
    /// Requests that can come at once.
    burst: NonZeroU32,
    /// Hosts of Wattle that share the budgets. Each request here counts as one of each of them.
    sharing: AtomicU32,
}

impl Rates {
    pub(crate) fn new(config: &NetConfig) -> Self {
        let quota = Quota::per_second(config.requests_per_second).allow_burst(config.burst);
        Self {
            limiter: RateLimiter::keyed(quota),
            clock: DefaultClock::default(),
            burst: config.burst,
            sharing: AtomicU32::new(1),
        }
    }

    /// So many hosts of Wattle share the budgets.
    pub(crate) fn share(&self, hosts: u32) {
        self.sharing.store(hosts, Ordering::Relaxed);
    }

    /// Waits until the host may be asked once more. The timeout of the exchange goes on.
    pub(crate) async fn wait(&self, host: &str) {
        if self.limiter.len() > REMEMBERED {
            self.limiter.retain_recent();
        }
        while let Some(pause) = self.take(host) {
            tokio::time::sleep(pause).await;
        }
    }

    /// Takes a request from the budget of a host; how long that is too early, if it is.
    fn take(&self, host: &str) -> Option<Duration> {
        let sharing = NonZeroU32::new(self.sharing.load(Ordering::Relaxed));
        let requests = sharing.unwrap_or(NonZeroU32::MIN).min(self.burst);
        match self.limiter.check_key_n(&host.to_owned(), requests) {
            Ok(Err(early)) => Some(early.wait_time_from(self.clock.now())),
            // It is never more than the burst, so there is no error.
            Ok(Ok(())) | Err(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests to a host that are not too early.
    fn taken(rates: &Rates, host: &str) -> usize {
        (0..100).take_while(|_| rates.take(host).is_none()).count()
    }

    #[test]
    fn hosts_that_share_a_budget_have_as_much_as_one_alone() {
        // A request comes back after a second.
        let config = |burst| NetConfig {
            requests_per_second: NonZeroU32::MIN,
            burst: NonZeroU32::new(burst).unwrap(),
            ..NetConfig::default()
        };
        let alone = Rates::new(&config(60));
        assert_eq!(taken(&alone, "a.example"), 60);
        assert_eq!(taken(&alone, "b.example"), 60, "each service has its own");
        let sharing = [Rates::new(&config(60)), Rates::new(&config(60)), Rates::new(&config(60))];
        let all = sharing.iter().map(|rates| {
            rates.share(3);
            taken(rates, "a.example")
        });
        assert_eq!(all.sum::<usize>(), 60);
        let many = Rates::new(&config(2));
        many.share(1_000);
        assert_eq!(taken(&many, "a.example"), 1, "a large number of hosts stops none");
    }
}
