//! How often one host may be asked.

use governor::clock::{Clock as _, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};

use crate::config::NetConfig;

/// Hosts that are remembered before those that were not asked for a while are forgotten.
const REMEMBERED: usize = 1_024;

/// One budget for each host.
pub(crate) struct Rates {
    limiter: DefaultKeyedRateLimiter<String>,
    clock: DefaultClock,
}

impl Rates {
    pub(crate) fn new(config: &NetConfig) -> Self {
        let quota = Quota::per_second(config.requests_per_second).allow_burst(config.burst);
        Self { limiter: RateLimiter::keyed(quota), clock: DefaultClock::default() }
    }

    /// Waits until the host may be asked once more. The timeout of the exchange goes on.
    pub(crate) async fn wait(&self, host: &str) {
        if self.limiter.len() > REMEMBERED {
            self.limiter.retain_recent();
        }
        let host = host.to_owned();
        while let Err(early) = self.limiter.check_key(&host) {
            tokio::time::sleep(early.wait_time_from(self.clock.now())).await;
        }
    }
}
