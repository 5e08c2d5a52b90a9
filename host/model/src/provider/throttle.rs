//! The rate at which a stream is read, and the limits of its output.
//!
//! Each delta becomes part of an event that the host stores and sends to clients. A service that
//! sends as fast as the network permits would delay all other work of the host, so the host reads
//! each stream at a bounded rate.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// Maximum bytes of the output of one response: text, reasoning, refusal and arguments. The longest
/// outputs of models, some hundred thousand tokens, have about one MiB.
pub(super) const MAX_OUTPUT_BYTES: usize = 8 << 20;

/// Maximum number of tool calls of one response. A host runs far fewer calls concurrently.
pub(super) const MAX_CALLS: usize = 128;

/// Maximum sustained rate at which a stream is read. The fastest services send a thousand tokens a
/// second. Each token arrives in an event of some hundred bytes.
const BYTES_PER_SECOND: u64 = 2 << 20;

/// The burst: how far a stream may be ahead of the sustained rate. The burst is enough for a cached
/// or buffered response.
const BURST: Duration = Duration::from_secs(2);

/// The rate limiter of one stream.
#[derive(Debug)]
pub(super) struct Throttle {
    /// The time at which all bytes so far would have arrived at the sustained rate.
    due: Instant,
}

impl Throttle {
    /// Creates the limiter of a stream without bytes so far.
    pub(super) fn new() -> Self {
        Self { due: Instant::now() }
    }

    /// Counts received bytes. Waits until more may be read.
    pub(super) async fn consume(&mut self, bytes: usize) {
        let now = Instant::now();
        let micros = (bytes as u64).saturating_mul(1_000_000) / BYTES_PER_SECOND;
        self.due = self.due.max(now) + Duration::from_micros(micros);
        if let Some(ready) = self.due.checked_sub(BURST)
            && ready > now
        {
            sleep_until(ready).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: usize = BYTES_PER_SECOND as usize;

    #[tokio::test(start_paused = true)]
    async fn burst_passes_and_further_bytes_wait() {
        let (mut throttle, began) = (Throttle::new(), Instant::now());
        throttle.consume(2 * SECOND).await;
        assert_eq!(began.elapsed(), Duration::ZERO);
        for _ in 0..10 {
            throttle.consume(SECOND).await;
        }
        assert_eq!(began.elapsed().as_secs(), 10);
    }

    #[tokio::test(start_paused = true)]
    async fn idle_time_permits_one_burst_only() {
        let mut throttle = Throttle::new();
        tokio::time::advance(Duration::from_mins(10)).await;
        let began = Instant::now();
        throttle.consume(2 * SECOND).await;
        assert_eq!(began.elapsed(), Duration::ZERO);
        throttle.consume(SECOND).await;
        assert_eq!(began.elapsed().as_secs(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn output_at_the_speed_of_a_model_never_waits() {
        let (mut throttle, began) = (Throttle::new(), Instant::now());
        for _ in 0..10_000 {
            tokio::time::advance(Duration::from_millis(1)).await;
            throttle.consume(500).await;
        }
        assert_eq!(began.elapsed().as_secs(), 10);
    }
}
