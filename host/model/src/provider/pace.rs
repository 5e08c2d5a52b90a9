//! How fast a streamed answer is read, and how much it may say.
//!
//! Each piece of an answer becomes part of an event that the host stores and sends to clients. A
//! service that sends as fast as the network carries would take the time of everybody else, so the
//! host reads a stream at a bounded rate, and the service waits.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// Bytes of everything that one answer says: text, thoughts, refusal, arguments. The longest answers
/// of models, some hundred thousand tokens, have about one MiB.
pub(super) const SAID_BYTES: usize = 8 << 20;

/// Bytes that are read in a second over a longer time. The fastest services send a thousand tokens a
/// second, in some hundred bytes each.
const BYTES_PER_SECOND: u64 = 2 << 20;

/// What may come at once before the rate holds: a cached answer, or one that waited in a buffer.
const BURST: Duration = Duration::from_secs(2);

/// The pace of one stream.
#[derive(Debug)]
pub(super) struct Pace {
    /// When everything that has come would have come at the rate.
    due: Instant,
}

impl Pace {
    /// Nothing has come yet.
    pub(super) fn new() -> Self {
        Self { due: Instant::now() }
    }

    /// Bytes have come. Waits until more may be read.
    pub(super) async fn keep(&mut self, bytes: usize) {
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
    async fn a_burst_passes_and_a_flood_waits() {
        let (mut pace, began) = (Pace::new(), Instant::now());
        pace.keep(2 * SECOND).await;
        assert_eq!(began.elapsed(), Duration::ZERO);
        for _ in 0..10 {
            pace.keep(SECOND).await;
        }
        assert_eq!(began.elapsed().as_secs(), 10);
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_is_worth_one_burst_and_no_more() {
        let mut pace = Pace::new();
        tokio::time::advance(Duration::from_mins(10)).await;
        let began = Instant::now();
        pace.keep(2 * SECOND).await;
        assert_eq!(began.elapsed(), Duration::ZERO);
        pace.keep(SECOND).await;
        assert_eq!(began.elapsed().as_secs(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_at_the_speed_of_a_model_never_waits() {
        let (mut pace, began) = (Pace::new(), Instant::now());
        for _ in 0..10_000 {
            tokio::time::advance(Duration::from_millis(1)).await;
            pace.keep(500).await;
        }
        assert_eq!(began.elapsed().as_secs(), 10);
    }
}
