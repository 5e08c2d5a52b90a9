//! A clock that advances only on request.

use std::sync::{
    Arc,
    atomic::{AtomicI64, AtomicU64, Ordering},
};

use wattle_run::ports::Clock;

/// Nanoseconds per millisecond.
const NANOS_PER_MILLI: u64 = 1_000_000;

/// A wall clock and a monotonic clock that a test controls. Clones share the time.
///
/// A change of the wall clock, even backwards, does not change the monotonic clock, as on a real
/// machine. The default time zone is UTC.
#[derive(Clone, Debug)]
pub struct ManualClock {
    hands: Arc<Hands>,
    time_zone: Arc<str>,
}

#[derive(Debug)]
struct Hands {
    wall_ms: AtomicI64,
    monotonic_ms: AtomicU64,
}

impl ManualClock {
    /// Creates a clock whose wall time is `now_ms` milliseconds after the Unix epoch.
    pub fn at_ms(now_ms: i64) -> Self {
        let hands = Hands { wall_ms: AtomicI64::new(now_ms), monotonic_ms: AtomicU64::new(0) };
        Self { hands: Arc::new(hands), time_zone: Arc::from("UTC") }
    }

    /// Sets the IANA time zone, such as `Asia/Shanghai`.
    pub fn in_zone(mut self, time_zone: &str) -> Self {
        self.time_zone = Arc::from(time_zone);
        self
    }

    /// Sets the wall clock. The monotonic clock is unchanged.
    pub fn set_now_ms(&self, now_ms: i64) {
        self.hands.wall_ms.store(now_ms, Ordering::SeqCst);
    }

    /// Advances both clocks.
    pub fn advance_ms(&self, by_ms: u32) {
        self.hands.wall_ms.fetch_add(i64::from(by_ms), Ordering::SeqCst);
        self.hands.monotonic_ms.fetch_add(u64::from(by_ms), Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now_ms(&self) -> i64 {
        self.hands.wall_ms.load(Ordering::SeqCst)
    }

    fn monotonic_ns(&self) -> u64 {
        self.hands.monotonic_ms.load(Ordering::SeqCst) * NANOS_PER_MILLI
    }

    fn time_zone(&self) -> &str {
        &self.time_zone
    }
}

#[cfg(test)]
mod tests {
    use wattle_run::ports::Clock as _;

    use super::ManualClock;

    #[test]
    fn clones_share_the_time_and_only_advance_changes_the_monotonic_clock() {
        let clock = ManualClock::at_ms(1_736_908_245_123).in_zone("Asia/Shanghai");
        let other = clock.clone();
        clock.advance_ms(1_000);
        assert_eq!(other.now_ms(), 1_736_908_246_123);
        other.set_now_ms(5);
        assert_eq!((clock.now_ms(), clock.monotonic_ns()), (5, 1_000_000_000));
        assert_eq!(other.time_zone(), "Asia/Shanghai");
    }
}
