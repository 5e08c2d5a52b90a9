//! The usage of one cap.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{Mutex, MutexGuard};
use wattle_graph::failure::Failure;

use crate::limit;
use crate::ports::{Clock, Ports};

const NS_PER_MS: u64 = 1_000_000;

/// The time of a request, and how measurements depend on it.
#[derive(Clone, Copy)]
pub struct RequestTime {
    now_ms: u64,
    /// True if other hosts share the store.
    is_shared: bool,
    /// Minimum age of a measurement that is repeated because a request would exceed the cap.
    interval_ms: u64,
}

impl RequestTime {
    pub(super) fn of(ports: &Ports) -> Self {
        Self { is_shared: ports.store.is_shared(), ..Self::of_unshared(ports.clock.as_ref()) }
    }

    /// Returns the time of a request for usage that is not in the store. A measurement is repeated
    /// only because a request would exceed the cap, and not because of its age.
    pub fn of_unshared(clock: &dyn Clock) -> Self {
        let now_ms = clock.monotonic_ns() / NS_PER_MS;
        Self { now_ms, is_shared: false, interval_ms: limit::MEASURE_INTERVAL_MS }
    }

    /// Returns the time of a request for the long-term memory. A memory that no other host shares
    /// knows its usage, so a request that would exceed the cap always measures it.
    pub(super) fn of_memory(ports: &Ports) -> Self {
        let times = Self::of(ports);
        if times.is_shared { times } else { Self { interval_ms: 0, ..times } }
    }
}

/// The usage of one cap.
#[derive(Default)]
pub struct UsageMeter {
    state: Mutex<UsageState>,
    /// Usage that was added without a check of the cap and that `state` does not include yet.
    unchecked: AtomicU64,
}

#[derive(Default)]
struct UsageState {
    /// Usage according to the store, and the time of the measurement.
    measured: Option<(u64, u64)>,
    /// Usage that was added since the measurement and that the store has or will have soon.
    added: u64,
    /// Usage that the store does not report yet, by time. Within [`limit::UNMENTIONED_MS`], the
    /// store reports the usage, or the data is swept.
    unmentioned: VecDeque<(u64, u64)>,
}

impl UsageState {
    fn used(&self) -> u64 {
        let unmentioned: u64 = self.unmentioned.iter().map(|(_, amount)| amount).sum();
        let measured = self.measured.map_or(0, |(amount, _)| amount);
        measured.saturating_add(self.added).saturating_add(unmentioned)
    }

    fn drop_expired(&mut self, now_ms: u64) {
        let is_old = |at: u64| now_ms.saturating_sub(at) >= limit::UNMENTIONED_MS;
        while self.unmentioned.front().is_some_and(|(at, _)| is_old(*at)) {
            self.unmentioned.pop_front();
        }
    }

    fn add(&mut self, amount: u64, mentioned: bool, now_ms: u64) {
        if mentioned {
            self.added = self.added.saturating_add(amount);
            return;
        }
        // Merges the usage of one minute, so that many small additions take little memory.
        let slot = now_ms / limit::METER_SLOT_MS * limit::METER_SLOT_MS;
        match self.unmentioned.back_mut().filter(|(at, _)| *at >= slot) {
            Some((_, taken)) => *taken = taken.saturating_add(amount),
            None => self.unmentioned.push_back((slot, amount)),
        }
    }

    /// Returns true if the usage must be measured before more is added.
    fn is_due(&self, more: u64, allowed: u64, times: RequestTime) -> bool {
        let Some((_, at)) = self.measured else { return true };
        let age = times.now_ms.saturating_sub(at);
        let would_exceed = self.used().saturating_add(more) > allowed;
        (would_exceed && age >= times.interval_ms)
            || (times.is_shared && age >= limit::MEASURE_AGE_MS)
    }
}

impl UsageMeter {
    /// Adds usage without a check of the cap.
    pub fn add_unchecked(&self, amount: u64) {
        self.unchecked.fetch_add(amount, Ordering::Relaxed);
    }

    /// Reverts the last addition.
    pub(super) async fn refund(&self, amount: u64, mentioned: bool) {
        let mut state = self.state.lock().await;
        if mentioned {
            state.added = state.added.saturating_sub(amount);
        } else if let Some((_, taken)) = state.unmentioned.back_mut() {
            *taken = taken.saturating_sub(amount);
        }
    }

    /// Adds usage if the cap allows it. Otherwise returns the current usage as the inner error.
    /// `mentioned` is true if the store reports the added usage from now on. Other callers of the
    /// meter wait during a measurement.
    ///
    /// # Errors
    ///
    /// Errors of `measure`.
    pub(super) async fn charge<F: Future<Output = Result<u64, Failure>>>(
        &self,
        more: u64,
        allowed: u64,
        times: RequestTime,
        mentioned: bool,
        measure: impl FnOnce() -> F,
    ) -> Result<Result<(), u64>, Failure> {
        let mut state = self.current(more, allowed, times, measure).await?;
        let taken = state.used();
        if taken.saturating_add(more) > allowed {
            return Ok(Err(taken));
        }
        state.add(more, mentioned, times.now_ms);
        Ok(Ok(()))
    }

    /// Returns how much of `allowed` is left. Measures under the same condition as a charge of
    /// `wanted`, and adds nothing.
    ///
    /// # Errors
    ///
    /// Errors of `measure`.
    pub async fn left<E, F: Future<Output = Result<u64, E>>>(
        &self,
        wanted: u64,
        allowed: u64,
        times: RequestTime,
        measure: impl FnOnce() -> F,
    ) -> Result<u64, E> {
        let state = self.current(wanted, allowed, times, measure).await?;
        Ok(allowed.saturating_sub(state.used()))
    }

    /// Returns the state at the time of a request for `more`, measured again if that is due.
    async fn current<E, F: Future<Output = Result<u64, E>>>(
        &self,
        more: u64,
        allowed: u64,
        times: RequestTime,
        measure: impl FnOnce() -> F,
    ) -> Result<MutexGuard<'_, UsageState>, E> {
        let mut state = self.state.lock().await;
        state.added = state.added.saturating_add(self.unchecked.swap(0, Ordering::Relaxed));
        state.drop_expired(times.now_ms);
        if state.is_due(more, allowed, times) {
            let amount = measure().await?;
            state.measured = Some((amount, times.now_ms));
            state.added = 0;
        }
        Ok(state)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    /// A meter with the number of its measurements.
    struct CountingMeter {
        meter: UsageMeter,
        measurements: AtomicUsize,
        is_shared: bool,
    }

    impl CountingMeter {
        fn new(is_shared: bool) -> Self {
            Self { meter: UsageMeter::default(), measurements: AtomicUsize::new(0), is_shared }
        }

        /// Adds 1 to the usage under a cap of 10, while the store reports `stored`. Returns false
        /// if the cap rejects the addition.
        async fn take(&self, now_ms: u64, stored: u64, mentioned: bool) -> bool {
            let measure = || {
                self.measurements.fetch_add(1, Ordering::Relaxed);
                std::future::ready(Ok(stored))
            };
            let interval_ms = limit::MEASURE_INTERVAL_MS;
            let times = RequestTime { now_ms, is_shared: self.is_shared, interval_ms };
            self.meter.charge(1, 10, times, mentioned, measure).await.unwrap().is_ok()
        }

        fn measurements(&self) -> usize {
            self.measurements.load(Ordering::Relaxed)
        }
    }

    #[tokio::test]
    async fn usage_is_measured_again_only_at_the_cap_and_after_a_pause() {
        let meter = CountingMeter::new(false);
        for _ in 0..6 {
            assert!(meter.take(0, 4, true).await);
        }
        assert!(!meter.take(1, 4, true).await);
        assert_eq!(meter.measurements(), 1);
        assert!(meter.take(limit::MEASURE_INTERVAL_MS, 4, true).await, "the store has shrunk");
        assert!(meter.take(10 * limit::MEASURE_AGE_MS, 4, true).await);
        assert_eq!(meter.measurements(), 2);
    }

    #[tokio::test]
    async fn usage_added_without_a_check_counts_until_the_next_measurement() {
        let meter = CountingMeter::new(false);
        assert!(meter.take(0, 0, true).await);
        meter.meter.add_unchecked(9);
        assert!(!meter.take(0, 0, true).await);
        assert!(meter.take(limit::MEASURE_INTERVAL_MS, 0, true).await);
    }

    #[tokio::test]
    async fn usage_of_other_hosts_counts_after_the_measurement_expires() {
        let meter = CountingMeter::new(true);
        assert!(meter.take(0, 0, true).await);
        assert!(meter.take(limit::MEASURE_AGE_MS - 1, 10, true).await);
        assert!(!meter.take(limit::MEASURE_AGE_MS, 10, true).await);
        assert_eq!(meter.measurements(), 2);
    }

    #[tokio::test]
    async fn usage_of_unmentioned_blobs_counts_until_it_expires() {
        let meter = CountingMeter::new(false);
        for minute in 0..10 {
            assert!(meter.take(minute * limit::METER_SLOT_MS, 0, false).await);
        }
        let last = limit::UNMENTIONED_MS - 1;
        assert!(!meter.take(last, 0, false).await, "also after another measurement");
        assert!(meter.take(last + 1, 0, false).await, "the first addition has expired");
        assert!(!meter.take(last + 1, 0, false).await);
    }
}
