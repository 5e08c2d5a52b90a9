//! The rate at which the host reads what a server sends.
//!
//! A message costs the host more than it costs the server: the host parses it, and may log it. The
//! host therefore reads each stream of a server at a bounded rate, and a server that sends more
//! waits.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::{Instant, sleep_until};

/// Maximum sustained rate at which a stream is read.
const BYTES_PER_SECOND: u64 = 8 << 20;

/// The burst: how far a stream may be ahead of the sustained rate. The burst is enough for two
/// messages of the maximum size.
const BURST: Duration = Duration::from_secs(4);

/// The bytes that a message counts for at least, because the work for a small message does not
/// depend on its size.
const MIN_BYTES: usize = 1 << 10;

/// The rate limiter of one stream.
#[derive(Debug)]
pub(crate) struct Pace {
    /// The time at which all messages so far would have arrived at the sustained rate.
    due: Instant,
}

impl Pace {
    /// Creates the limiter of a stream without messages so far.
    pub(crate) fn new() -> Self {
        Self { due: Instant::now() }
    }

    /// Counts a message of `bytes` bytes. Waits until the next one may be read.
    pub(crate) async fn consume(&mut self, bytes: usize) {
        let now = Instant::now();
        let counted = bytes.max(MIN_BYTES) as u64;
        let micros = counted.saturating_mul(1_000_000) / BYTES_PER_SECOND;
        self.due = self.due.max(now) + Duration::from_micros(micros);
        if let Some(ready) = self.due.checked_sub(BURST)
            && ready > now
        {
            sleep_until(ready).await;
        }
    }
}

/// The rate limiter of several streams. Clones share the rate.
#[derive(Clone, Debug)]
pub(crate) struct SharedPace(Arc<Mutex<Pace>>);

impl SharedPace {
    /// Creates the limiter of streams without messages so far.
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(Pace::new())))
    }

    /// Counts a message, see [`Pace::consume`].
    pub(crate) async fn consume(&self, bytes: usize) {
        self.0.lock().await.consume(bytes).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn burst_passes_and_further_messages_wait() {
        let (mut pace, began) = (Pace::new(), Instant::now());
        for _ in 0..2 {
            pace.consume(16 << 20).await;
        }
        assert_eq!(began.elapsed(), Duration::ZERO);
        pace.consume(16 << 20).await;
        assert_eq!(began.elapsed().as_secs(), 2);
        for _ in 0..10_000 {
            pace.consume(1).await;
        }
        assert_eq!(began.elapsed().as_secs(), 3);
    }
}
