//! How much is taken of one cap.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Mutex;
use wattle_graph::failure::Failure;

use crate::limit;
use crate::ports::Ports;

const NS_PER_MS: u64 = 1_000_000;

/// When something is counted, and whether others count, too.
#[derive(Clone, Copy)]
pub(super) struct Times {
    now_ms: u64,
    is_shared: bool,
}

impl Times {
    pub(super) fn of(ports: &Ports) -> Self {
        let now_ms = ports.clock.monotonic_ns() / NS_PER_MS;
        Self { now_ms, is_shared: ports.store.is_shared() }
    }
}

/// What is taken of one cap.
#[derive(Default)]
pub(crate) struct Meter {
    state: Mutex<State>,
    /// What was added while nobody asked whether it may be.
    noted: AtomicU64,
}

#[derive(Default)]
struct State {
    /// What the store had, and when that was asked for.
    measured: Option<(u64, u64)>,
    /// What was added since that the store has or is about to have.
    added: u64,
    /// What was added that the store does not count yet, by time: it counts, or is gone, within
    /// [`limit::UNMENTIONED_MS`].
    unmentioned: VecDeque<(u64, u64)>,
}

impl State {
    fn taken(&self) -> u64 {
        let unmentioned: u64 = self.unmentioned.iter().map(|(_, amount)| amount).sum();
        let measured = self.measured.map_or(0, |(amount, _)| amount);
        measured.saturating_add(self.added).saturating_add(unmentioned)
    }

    fn forget_old(&mut self, now_ms: u64) {
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
        // A slot a minute, so that many small ones take no room.
        let slot = now_ms / limit::METER_SLOT_MS * limit::METER_SLOT_MS;
        match self.unmentioned.back_mut().filter(|(at, _)| *at >= slot) {
            Some((_, taken)) => *taken = taken.saturating_add(amount),
            None => self.unmentioned.push_back((slot, amount)),
        }
    }

    /// Whether the store is to be asked before more is taken.
    fn is_due(&self, more: u64, allowed: u64, times: Times) -> bool {
        let Some((_, at)) = self.measured else { return true };
        let age = times.now_ms.saturating_sub(at);
        let would_exceed = self.taken().saturating_add(more) > allowed;
        (would_exceed && age >= limit::MEASURE_PAUSE_MS)
            || (times.is_shared && age >= limit::MEASURE_AGE_MS)
    }
}

impl Meter {
    /// Notes what is added in any case.
    pub(crate) fn note(&self, amount: u64) {
        self.noted.fetch_add(amount, Ordering::Relaxed);
    }

    /// Takes back what was added last and is not there after all.
    pub(super) async fn give_back(&self, amount: u64, mentioned: bool) {
        let mut state = self.state.lock().await;
        if mentioned {
            state.added = state.added.saturating_sub(amount);
        } else if let Some((_, taken)) = state.unmentioned.back_mut() {
            *taken = taken.saturating_sub(amount);
        }
    }

    /// Takes more; the inner error says how much is taken already, if that is too much. `mentioned`
    /// says whether the store counts it from now on. Other takers of the same cap wait while the
    /// store is asked.
    ///
    /// # Errors
    ///
    /// Those of `measure`.
    pub(super) async fn take<F: Future<Output = Result<u64, Failure>>>(
        &self,
        more: u64,
        allowed: u64,
        times: Times,
        mentioned: bool,
        measure: impl FnOnce() -> F,
    ) -> Result<Result<(), u64>, Failure> {
        let mut state = self.state.lock().await;
        state.added = state.added.saturating_add(self.noted.swap(0, Ordering::Relaxed));
        state.forget_old(times.now_ms);
        if state.is_due(more, allowed, times) {
            let amount = measure().await?;
            state.measured = Some((amount, times.now_ms));
            state.added = 0;
        }
        let taken = state.taken();
        if taken.saturating_add(more) > allowed {
            return Ok(Err(taken));
        }
        state.add(more, mentioned, times.now_ms);
        Ok(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    struct Asked {
        meter: Meter,
        asked: AtomicUsize,
        is_shared: bool,
    }

    impl Asked {
        fn new(is_shared: bool) -> Self {
            Self { meter: Meter::default(), asked: AtomicUsize::new(0), is_shared }
        }

        /// Takes one of 10 at a time, while the store has so many.
        async fn take(&self, now_ms: u64, stored: u64, mentioned: bool) -> bool {
            let measure = || {
                self.asked.fetch_add(1, Ordering::Relaxed);
                std::future::ready(Ok(stored))
            };
            let times = Times { now_ms, is_shared: self.is_shared };
            self.meter.take(1, 10, times, mentioned, measure).await.unwrap().is_ok()
        }

        fn asked(&self) -> usize {
            self.asked.load(Ordering::Relaxed)
        }
    }

    #[tokio::test]
    async fn the_store_is_asked_once_and_then_only_at_the_cap_after_a_pause() {
        let meter = Asked::new(false);
        for _ in 0..6 {
            assert!(meter.take(0, 4, true).await);
        }
        assert!(!meter.take(1, 4, true).await);
        assert_eq!(meter.asked(), 1);
        assert!(meter.take(limit::MEASURE_PAUSE_MS, 4, true).await, "some was deleted meanwhile");
        assert!(meter.take(10 * limit::MEASURE_AGE_MS, 4, true).await);
        assert_eq!(meter.asked(), 2);
    }

    #[tokio::test]
    async fn what_is_noted_counts_until_the_store_is_asked() {
        let meter = Asked::new(false);
        assert!(meter.take(0, 0, true).await);
        meter.meter.note(9);
        assert!(!meter.take(0, 0, true).await);
        assert!(meter.take(limit::MEASURE_PAUSE_MS, 0, true).await);
    }

    #[tokio::test]
    async fn what_others_add_is_seen_when_the_measure_is_old() {
        let meter = Asked::new(true);
        assert!(meter.take(0, 0, true).await);
        assert!(meter.take(limit::MEASURE_AGE_MS - 1, 10, true).await);
        assert!(!meter.take(limit::MEASURE_AGE_MS, 10, true).await);
        assert_eq!(meter.asked(), 2);
    }

    #[tokio::test]
    async fn what_no_thread_mentions_counts_until_it_is_swept() {
        let meter = Asked::new(false);
        for minute in 0..10 {
            assert!(meter.take(minute * limit::METER_SLOT_MS, 0, false).await);
        }
        let last = limit::UNMENTIONED_MS - 1;
        assert!(!meter.take(last, 0, false).await, "also after the store was asked again");
        assert!(meter.take(last + 1, 0, false).await, "the first is gone");
        assert!(!meter.take(last + 1, 0, false).await);
    }
}
