//! Heartbeats of a host and validity of its leases.
//!
//! Another host can take a lease only after its holder sent no heartbeat for a full lease period.
//! Until then a host that remembers when its last acknowledged heartbeat was sent knows, without
//! asking the store, that its leases are valid.
//!
//! This holds as long as each heartbeat follows the previous one within a lease period. After a
//! longer gap other hosts may have taken leases. For each thread the store is then asked whether
//! the lease is still valid before the newest heartbeat counts.
//!
//! All times count from before a request was sent, so a delayed response proves only what is still
//! true when it arrives.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use wattle_graph::id::ThreadId;

use crate::ports::Clock;
use crate::ports::store::{LeaseEpoch, LeaseHolder, Store, StoreError};

/// Divisor of the lease period: a lease counts as valid without a query for this part of the period
/// after a heartbeat. The rest allows for clock differences and for the time from the check to the
/// effect.
const LOCAL_VALIDITY_DIVISOR: u64 = 2;

/// Number of queries to the store about one lease before the caller receives an error. A response
/// that takes longer than the locally valid part of a lease period proves nothing.
const MAX_LEASE_QUERIES: u32 = 4;

/// The name under which a host holds leases, and its heartbeats.
pub(crate) struct Heartbeats {
    holder: LeaseHolder,
    clock: Arc<dyn Clock>,
    times: Mutex<HeartbeatTimes>,
    /// Held while a heartbeat is sent, so that concurrent callers send only one.
    sending: tokio::sync::Mutex<()>,
}

/// An instant by two clocks: a monotonic clock, and a clock that advances while the machine sleeps.
#[derive(Clone, Copy)]
struct DualInstant {
    monotonic: Instant,
    wall_ms: i64,
}

impl DualInstant {
    /// Returns true if this instant is less than `ms` before `later` by both clocks.
    fn is_within(self, ms: u64, later: Self) -> bool {
        let wall_ms = u64::try_from(later.wall_ms.saturating_sub(self.wall_ms));
        later.monotonic.saturating_duration_since(self.monotonic) < Duration::from_millis(ms)
            && wall_ms.is_ok_and(|wall_ms| wall_ms < ms)
    }
}

/// Times of the acknowledged heartbeats.
#[derive(Default)]
struct HeartbeatTimes {
    /// Time at which the newest acknowledged heartbeat was sent.
    newest: Option<DualInstant>,
    /// Number of gaps in which leases may have been lost.
    gaps: u64,
}

impl HeartbeatTimes {
    /// Records a heartbeat that was sent at `sent` and acknowledged at `taken`. The store received
    /// this heartbeat between these times. The store received the previous heartbeat at the time at
    /// which it was sent, or later.
    fn record(&mut self, sent: DualInstant, taken: DualInstant, lease_ms: u64) {
        if let Some(newest) = self.newest {
            if !newest.is_within(lease_ms, taken) {
                self.gaps += 1;
            }
            if sent.monotonic < newest.monotonic {
                return;
            }
        }
        self.newest = Some(sent);
    }
}

impl Heartbeats {
    /// Creates the heartbeats of a host that has sent none.
    pub(crate) fn new(holder: LeaseHolder, clock: Arc<dyn Clock>) -> Self {
        let (times, sending) = (Mutex::default(), tokio::sync::Mutex::default());
        Self { holder, clock, times, sending }
    }

    /// Returns the name under which the host holds leases.
    pub(crate) fn holder(&self) -> &LeaseHolder {
        &self.holder
    }

    /// Sends a heartbeat.
    ///
    /// # Errors
    ///
    /// Errors of the store. The heartbeat then does not count, although the store may have received
    /// it.
    pub(crate) async fn send(&self, store: &dyn Store) -> Result<(), StoreError> {
        let sent = self.now();
        store.heartbeat(&self.holder).await?;
        let taken = self.now();
        self.lock_times().record(sent, taken, store.lease_ms());
        Ok(())
    }

    /// Sends a heartbeat unless a recent one is acknowledged.
    async fn send_unless_recent(&self, store: &dyn Store) -> Result<(), StoreError> {
        let _turn = self.sending.lock().await;
        if self.is_recent(store.lease_ms()) { Ok(()) } else { self.send(store).await }
    }

    /// Returns true if the newest heartbeat is younger than the locally valid part of a lease
    /// period.
    fn is_recent(&self, lease_ms: u64) -> bool {
        let gaps = self.lock_times().gaps;
        self.is_locally_valid(lease_ms, gaps)
    }

    /// Returns true if a lease is valid without a query: no gap has followed since the lease was
    /// last confirmed, and the newest heartbeat is recent. `gaps` is the number of gaps of the host
    /// when the lease was last confirmed.
    fn is_locally_valid(&self, lease_ms: u64, gaps: u64) -> bool {
        let now = self.now();
        let times = self.lock_times();
        let newest = times.newest.filter(|_| times.gaps == gaps);
        newest.is_some_and(|sent| sent.is_within(lease_ms / LOCAL_VALIDITY_DIVISOR, now))
    }

    fn now(&self) -> DualInstant {
        DualInstant { monotonic: Instant::now(), wall_ms: self.clock.now_ms() }
    }

    /// Locks the times. No code that can panic runs under this lock.
    fn lock_times(&self) -> MutexGuard<'_, HeartbeatTimes> {
        self.times.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The lease of one thread.
pub(crate) struct ThreadLease {
    heartbeats: Arc<Heartbeats>,
    /// Number of gaps of the host when the lease was last confirmed.
    gaps: AtomicU64,
}

impl ThreadLease {
    /// Creates the lease before it is acquired. A gap before the store grants the lease therefore
    /// counts, so a process that was suspended in between does not trust the lease.
    pub(crate) fn new(heartbeats: Arc<Heartbeats>) -> Self {
        let gaps = AtomicU64::new(heartbeats.lock_times().gaps);
        Self { heartbeats, gaps }
    }

    /// Returns the holder of the lease.
    pub(crate) fn holder(&self) -> &LeaseHolder {
        self.heartbeats.holder()
    }

    /// Returns true if the lease is valid without a query to the store.
    pub(crate) fn is_locally_valid(&self, lease_ms: u64) -> bool {
        self.heartbeats.is_locally_valid(lease_ms, self.gaps.load(Ordering::Acquire))
    }

    /// Checks that the lease is valid, and queries the store only if the local check is
    /// inconclusive. A response of the store may be old, so the response alone proves nothing. It
    /// counts if the heartbeat that was sent before the query is still recent when the response
    /// arrives.
    ///
    /// # Errors
    ///
    /// Errors of the store; [`StoreError::Backend`] if its responses are repeatedly too late.
    pub(crate) async fn is_valid(
        &self,
        store: &dyn Store,
        thread: &ThreadId,
        epoch: LeaseEpoch,
    ) -> Result<bool, StoreError> {
        let lease_ms = store.lease_ms();
        let timeout = Duration::from_millis(lease_ms / LOCAL_VALIDITY_DIVISOR);
        for _ in 0..MAX_LEASE_QUERIES {
            if self.is_locally_valid(lease_ms) {
                return Ok(true);
            }
            match tokio::time::timeout(timeout, self.confirm(store, thread, epoch)).await {
                Ok(Ok(true)) | Err(_) => {}
                Ok(result) => return result,
            }
        }
        if self.is_locally_valid(lease_ms) { Ok(true) } else { Err(late_response(timeout)) }
    }

    /// Sends a heartbeat and, after a gap, queries the lease. The heartbeat is sent first, so a
    /// lease that the store confirms cannot be taken over right after the response.
    async fn confirm(
        &self,
        store: &dyn Store,
        thread: &ThreadId,
        epoch: LeaseEpoch,
    ) -> Result<bool, StoreError> {
        self.heartbeats.send_unless_recent(store).await?;
        let gaps = self.heartbeats.lock_times().gaps;
        if gaps == self.gaps.load(Ordering::Acquire) {
            return Ok(true);
        }
        let is_held = store.is_lease_held(thread, epoch).await?;
        if is_held {
            self.gaps.fetch_max(gaps, Ordering::AcqRel);
        }
        Ok(is_held)
    }
}

fn late_response(timeout: Duration) -> StoreError {
    let message = format!("no response within {} ms", timeout.as_millis());
    StoreError::Backend { operation: "verify a lease", message }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE_MS: u64 = 10_000;

    #[test]
    fn heartbeat_after_a_gap_does_not_confirm_older_leases() {
        let start = Instant::now();
        let after = |ms: u64| DualInstant {
            monotonic: start + Duration::from_millis(ms),
            wall_ms: i64::try_from(ms).unwrap(),
        };
        let mut times = HeartbeatTimes::default();
        times.record(after(0), after(1), LEASE_MS);
        times.record(after(9_000), after(9_001), LEASE_MS);
        // The heartbeat was sent in time, but it is not known to have arrived in time.
        times.record(after(18_000), after(19_000), LEASE_MS);
        assert_eq!(times.gaps, 1);
        times.record(after(27_999), after(27_999), LEASE_MS);
        assert_eq!(times.gaps, 1);
        // The machine slept: the monotonic clock did not advance.
        let asleep = DualInstant { monotonic: after(28_000).monotonic, wall_ms: 99_000 };
        times.record(asleep, asleep, LEASE_MS);
        assert_eq!(times.gaps, 2);
    }
}
