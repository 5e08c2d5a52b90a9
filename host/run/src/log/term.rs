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
use crate::ports::store::{Epoch, Holder, Store, StoreError};

/// Divisor of the lease period: a lease counts as valid without a query for this part of the period
/// after a heartbeat. The rest allows for clock differences and for the time from the check to the
/// effect.
const SURE_PART: u64 = 2;

/// Number of queries to the store about one lease before the caller receives an error. A response
/// that takes longer than the locally valid part of a lease period proves nothing.
const QUESTIONS: u32 = 4;

/// The name under which a host holds leases, and its heartbeats.
pub(crate) struct Term {
    holder: Holder,
    clock: Arc<dyn Clock>,
    signs: Mutex<Signs>,
    /// Held while a heartbeat is sent, so that concurrent callers send only one.
    renewing: tokio::sync::Mutex<()>,
}

/// An instant by two clocks: a monotonic clock, and a clock that advances while the machine sleeps.
#[derive(Clone, Copy)]
struct Moment {
    at: Instant,
    wall_ms: i64,
}

impl Moment {
    /// Returns true if this instant is less than `ms` before `later` by both clocks.
    fn is_within(self, ms: u64, later: Self) -> bool {
        let wall_ms = u64::try_from(later.wall_ms.saturating_sub(self.wall_ms));
        later.at.saturating_duration_since(self.at) < Duration::from_millis(ms)
            && wall_ms.is_ok_and(|wall_ms| wall_ms < ms)
    }
}

/// Times of the acknowledged heartbeats.
#[derive(Default)]
struct Signs {
    /// When the newest one was sent.
    newest: Option<Moment>,
    /// Number of gaps in which leases may have been lost.
    silences: u64,
}

impl Signs {
    /// Records a heartbeat that was sent at `sent` and acknowledged at `taken`. The store received
    /// it between these times, and the previous one not before it was sent.
    fn took(&mut self, sent: Moment, taken: Moment, lease_ms: u64) {
        if let Some(newest) = self.newest {
            if !newest.is_within(lease_ms, taken) {
                self.silences += 1;
            }
            if sent.at < newest.at {
                return;
            }
        }
        self.newest = Some(sent);
    }
}

impl Term {
    /// Creates a host that has sent no heartbeat.
    pub(crate) fn new(holder: Holder, clock: Arc<dyn Clock>) -> Self {
        let (signs, renewing) = (Mutex::default(), tokio::sync::Mutex::default());
        Self { holder, clock, signs, renewing }
    }

    /// Returns the name under which the host holds leases.
    pub(crate) fn holder(&self) -> &Holder {
        &self.holder
    }

    /// Sends a heartbeat.
    ///
    /// # Errors
    ///
    /// Errors of the store. The heartbeat then does not count, although the store may have received
    /// it.
    pub(crate) async fn beat(&self, store: &dyn Store) -> Result<(), StoreError> {
        let sent = self.now();
        store.beat(&self.holder).await?;
        let taken = self.now();
        self.signs().took(sent, taken, store.lease_ms());
        Ok(())
    }

    /// Sends a heartbeat unless a recent one is acknowledged.
    async fn renew(&self, store: &dyn Store) -> Result<(), StoreError> {
        let _turn = self.renewing.lock().await;
        if self.is_recent(store.lease_ms()) { Ok(()) } else { self.beat(store).await }
    }

    /// Returns true if the newest heartbeat is younger than the locally valid part of a lease
    /// period.
    fn is_recent(&self, lease_ms: u64) -> bool {
        let silences = self.signs().silences;
        self.is_sure(lease_ms, silences)
    }

    /// Returns true if a lease that was last confirmed after `silences` gaps is valid without a
    /// query: no gap has followed, and the newest heartbeat is recent.
    fn is_sure(&self, lease_ms: u64, silences: u64) -> bool {
        let now = self.now();
        let signs = self.signs();
        let newest = signs.newest.filter(|_| signs.silences == silences);
        newest.is_some_and(|sent| sent.is_within(lease_ms / SURE_PART, now))
    }

    fn now(&self) -> Moment {
        Moment { at: Instant::now(), wall_ms: self.clock.now_ms() }
    }

    /// No code that can panic runs under this lock.
    fn signs(&self) -> MutexGuard<'_, Signs> {
        self.signs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The lease of one thread.
pub(crate) struct Tenure {
    term: Arc<Term>,
    /// Number of gaps of the host when the lease was last confirmed.
    silences: AtomicU64,
}

impl Tenure {
    /// Creates the lease before it is acquired. A gap before the store grants the lease therefore
    /// counts, so a process that was suspended in between does not trust it.
    pub(crate) fn new(term: Arc<Term>) -> Self {
        let silences = AtomicU64::new(term.signs().silences);
        Self { term, silences }
    }

    /// Returns the holder of the lease.
    pub(crate) fn holder(&self) -> &Holder {
        self.term.holder()
    }

    /// Returns true if the lease is valid without a query to the store.
    pub(crate) fn is_sure(&self, lease_ms: u64) -> bool {
        self.term.is_sure(lease_ms, self.silences.load(Ordering::Acquire))
    }

    /// Checks that the lease is valid, and queries the store only if the local check is
    /// inconclusive. A response of the store proves nothing by itself, since it may be old. It
    /// counts if the lease is then valid by the time at which the heartbeat before the query was
    /// sent.
    ///
    /// # Errors
    ///
    /// Errors of the store; [`StoreError::Backend`] if its responses are repeatedly too late.
    pub(crate) async fn holds(
        &self,
        store: &dyn Store,
        thread: &ThreadId,
        epoch: Epoch,
    ) -> Result<bool, StoreError> {
        let lease_ms = store.lease_ms();
        let patience = Duration::from_millis(lease_ms / SURE_PART);
        for _ in 0..QUESTIONS {
            if self.is_sure(lease_ms) {
                return Ok(true);
            }
            match tokio::time::timeout(patience, self.ask(store, thread, epoch)).await {
                Ok(Ok(true)) | Err(_) => {}
                Ok(answer) => return answer,
            }
        }
        if self.is_sure(lease_ms) { Ok(true) } else { Err(too_late(patience)) }
    }

    /// Sends a heartbeat and, after a gap, queries the lease. The heartbeat is sent first, so a
    /// lease that the store confirms cannot be taken over right after the response.
    async fn ask(
        &self,
        store: &dyn Store,
        thread: &ThreadId,
        epoch: Epoch,
    ) -> Result<bool, StoreError> {
        self.term.renew(store).await?;
        let silences = self.term.signs().silences;
        if silences == self.silences.load(Ordering::Acquire) {
            return Ok(true);
        }
        let holds = store.holds(thread, epoch).await?;
        if holds {
            self.silences.fetch_max(silences, Ordering::AcqRel);
        }
        Ok(holds)
    }
}

fn too_late(patience: Duration) -> StoreError {
    let message = format!("no response within {} ms", patience.as_millis());
    StoreError::Backend { operation: "verify a lease", message }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE_MS: u64 = 10_000;

    #[test]
    fn heartbeat_after_a_gap_does_not_confirm_older_leases() {
        let start = Instant::now();
        let after = |ms: u64| Moment {
            at: start + Duration::from_millis(ms),
            wall_ms: i64::try_from(ms).unwrap(),
        };
        let mut signs = Signs::default();
        signs.took(after(0), after(1), LEASE_MS);
        signs.took(after(9_000), after(9_001), LEASE_MS);
        // Sent in time, but not known to have arrived in time.
        signs.took(after(18_000), after(19_000), LEASE_MS);
        assert_eq!(signs.silences, 1);
        signs.took(after(27_999), after(27_999), LEASE_MS);
        assert_eq!(signs.silences, 1);
        // The machine slept: the monotonic clock did not advance.
        let asleep = Moment { at: after(28_000).at, wall_ms: 99_000 };
        signs.took(asleep, asleep, LEASE_MS);
        assert_eq!(signs.silences, 2);
    }
}
