//! Leases of a store that only one process opens. The leases are kept in memory, since all of them
//! end with the process.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use wattle_graph::id::ThreadId;
use wattle_run::ports::store::{
    HostReport, LEASE_MS, LeaseEpoch, LeaseHolder, LiveHost, StoreError,
};

/// The lease duration.
const LEASE: Duration = Duration::from_millis(LEASE_MS);

/// Number of low bits in a lease epoch. These bits count the leases since the store was opened. The
/// high bits count how often the store was opened, so no epoch is assigned twice.
const EPOCH_COUNTER_BITS: u32 = 32;

/// A monotonic clock: the time since a fixed moment.
pub(crate) type MonotonicClock = Arc<dyn Fn() -> Duration + Send + Sync>;

/// Returns a clock that starts now.
pub(crate) fn monotonic_clock() -> MonotonicClock {
    let start = Instant::now();
    Arc::new(move || start.elapsed())
}

/// All leases of a store.
pub(crate) struct Leases {
    clock: MonotonicClock,
    /// The newest lease epoch that was assigned.
    newest: u64,
    held: HashMap<ThreadId, Lease>,
    /// Time of the newest heartbeat of each holder.
    heartbeats: HashMap<LeaseHolder, Duration>,
    /// Newest report of each holder about its host.
    reports: HashMap<LeaseHolder, HostReport>,
}

struct Lease {
    epoch: LeaseEpoch,
    holder: LeaseHolder,
}

impl fmt::Debug for Leases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leases").field("newest", &self.newest).finish_non_exhaustive()
    }
}

impl Leases {
    /// Creates a table without leases. `opening` is the number of times that the store was opened.
    pub(crate) fn new(opening: u64, clock: MonotonicClock) -> Self {
        Self {
            clock,
            newest: opening << EPOCH_COUNTER_BITS,
            held: HashMap::new(),
            heartbeats: HashMap::new(),
            reports: HashMap::new(),
        }
    }

    /// Records a heartbeat. Removes the holders that have expired and have no lease.
    pub(crate) fn heartbeat(&mut self, holder: &LeaseHolder) {
        let now = (self.clock)();
        self.heartbeats.insert(holder.clone(), now);
        let held = &self.held;
        self.heartbeats.retain(|holder, heartbeat| {
            is_live(*heartbeat, now) || held.values().any(|lease| lease.holder == *holder)
        });
        let heartbeats = &self.heartbeats;
        self.reports.retain(|holder, _| heartbeats.contains_key(holder));
    }

    /// Stores the report of a holder about its host. Ignores a holder without a heartbeat.
    pub(crate) fn report(&mut self, holder: &LeaseHolder, report: &HostReport) {
        if self.heartbeats.contains_key(holder) {
            self.reports.insert(holder.clone(), report.clone());
        }
    }

    /// Returns the live hosts that have reported.
    pub(crate) fn hosts(&self) -> Vec<LiveHost> {
        let now = (self.clock)();
        let live = self.reports.iter().filter_map(|(holder, report)| {
            let heartbeat =
                self.heartbeats.get(holder).filter(|heartbeat| is_live(**heartbeat, now))?;
            let age_ms = now.saturating_sub(*heartbeat).as_millis();
            Some(LiveHost {
                holder: holder.clone(),
                heartbeat_age_ms: u64::try_from(age_ms).unwrap_or(u64::MAX),
                report: report.clone(),
            })
        });
        live.collect()
    }

    /// Grants the lease of a thread to a holder.
    pub(crate) fn acquire(
        &mut self,
        thread: &ThreadId,
        holder: &LeaseHolder,
    ) -> Result<LeaseEpoch, StoreError> {
        if let Some(other) = self.live_holder(thread)
            && other != holder
        {
            return Err(leased_error(thread, other));
        }
        self.heartbeat(holder);
        self.newest += 1;
        let epoch = LeaseEpoch(self.newest);
        self.held.insert(thread.clone(), Lease { epoch, holder: holder.clone() });
        Ok(epoch)
    }

    /// Releases a lease, unless a newer lease has replaced it.
    pub(crate) fn release(&mut self, thread: &ThreadId, epoch: LeaseEpoch) {
        if self.held.get(thread).is_some_and(|lease| lease.epoch == epoch) {
            self.held.remove(thread);
        }
    }

    /// Checks that a batch may be written under a lease, or without one.
    pub(crate) fn check_epoch(
        &self,
        thread: &ThreadId,
        epoch: Option<LeaseEpoch>,
    ) -> Result<(), StoreError> {
        let fits = match epoch {
            // An expired holder keeps its lease until another holder acquires the lease.
            Some(epoch) => self.held.get(thread).is_some_and(|lease| lease.epoch == epoch),
            None => self.live_holder(thread).is_none(),
        };
        if fits { Ok(()) } else { Err(fenced_error(thread, epoch)) }
    }

    /// Records an append. An append without a lease ends the lease of a host that is no longer
    /// live.
    pub(crate) fn note_append(&mut self, thread: &ThreadId, epoch: Option<LeaseEpoch>) {
        if epoch.is_none() {
            self.held.remove(thread);
        }
    }

    /// Checks that no live holder has the lease of a thread, before a prune, a copy or a deletion
    /// of runs.
    pub(crate) fn ensure_unleased(&self, thread: &ThreadId) -> Result<(), StoreError> {
        self.live_holder(thread).map_or(Ok(()), |holder| Err(leased_error(thread, holder)))
    }

    /// Returns the lease holder of a thread if it is live.
    fn live_holder(&self, thread: &ThreadId) -> Option<&LeaseHolder> {
        let holder = &self.held.get(thread)?.holder;
        let heartbeat = self.heartbeats.get(holder)?;
        is_live(*heartbeat, (self.clock)()).then_some(holder)
    }
}

fn is_live(heartbeat: Duration, now: Duration) -> bool {
    now.saturating_sub(heartbeat) < LEASE
}

/// Builds the error for a lease that another holder has.
pub(crate) fn leased_error(thread: &ThreadId, holder: &LeaseHolder) -> StoreError {
    StoreError::Leased { thread: thread.clone(), holder: holder.0.clone() }
}

/// Builds the error for a batch that is fenced.
pub(crate) fn fenced_error(thread: &ThreadId, epoch: Option<LeaseEpoch>) -> StoreError {
    StoreError::Fenced { thread: thread.clone(), epoch: epoch.map_or(0, |epoch| epoch.0) }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::lock::lock;

    /// Leases with a clock that the test sets.
    fn leases() -> (Leases, Arc<Mutex<Duration>>) {
        let now = Arc::new(Mutex::new(Duration::ZERO));
        let clock = now.clone();
        (Leases::new(1, Arc::new(move || *lock(&clock))), now)
    }

    fn holder(name: &str) -> LeaseHolder {
        LeaseHolder(name.into())
    }

    fn thread() -> ThreadId {
        ThreadId::new("t").unwrap()
    }

    #[test]
    fn live_host_keeps_its_lease() {
        let (mut leases, now) = leases();
        let epoch = leases.acquire(&thread(), &holder("a")).unwrap();
        for _ in 0..10 {
            *lock(&now) += LEASE / 2;
            leases.heartbeat(&holder("a"));
        }
        let error = leases.acquire(&thread(), &holder("b")).unwrap_err();
        assert!(matches!(error, StoreError::Leased { holder, .. } if holder == "a"));
        leases.check_epoch(&thread(), Some(epoch)).unwrap();
        assert!(matches!(
            leases.check_epoch(&thread(), None),
            Err(StoreError::Fenced { epoch: 0, .. })
        ));
        assert!(matches!(leases.ensure_unleased(&thread()), Err(StoreError::Leased { .. })));
    }

    #[test]
    fn expired_host_keeps_its_lease_until_a_takeover() {
        let (mut leases, now) = leases();
        let old = leases.acquire(&thread(), &holder("a")).unwrap();
        *lock(&now) += LEASE;
        leases.check_epoch(&thread(), Some(old)).unwrap();
        leases.ensure_unleased(&thread()).unwrap();
        let new = leases.acquire(&thread(), &holder("b")).unwrap();
        assert!(new > old);
        leases.check_epoch(&thread(), Some(new)).unwrap();
        let error = leases.check_epoch(&thread(), Some(old)).unwrap_err();
        assert!(matches!(error, StoreError::Fenced { epoch, .. } if epoch == old.0));
        leases.release(&thread(), old);
        leases.check_epoch(&thread(), Some(new)).unwrap();
        leases.release(&thread(), new);
        leases.check_epoch(&thread(), None).unwrap();
        assert!(leases.check_epoch(&thread(), Some(new)).is_err());
    }

    #[test]
    fn unleased_append_ends_an_expired_lease() {
        let (mut leases, now) = leases();
        let epoch = leases.acquire(&thread(), &holder("a")).unwrap();
        *lock(&now) += LEASE;
        leases.check_epoch(&thread(), None).unwrap();
        leases.check_epoch(&thread(), Some(epoch)).unwrap();
        leases.note_append(&thread(), Some(epoch));
        leases.check_epoch(&thread(), Some(epoch)).unwrap();
        leases.note_append(&thread(), None);
        assert!(leases.check_epoch(&thread(), Some(epoch)).is_err());
    }

    #[test]
    fn new_lease_of_a_holder_ends_its_old_one() {
        let (mut leases, _) = leases();
        let old = leases.acquire(&thread(), &holder("a")).unwrap();
        let new = leases.acquire(&thread(), &holder("a")).unwrap();
        assert!(leases.check_epoch(&thread(), Some(old)).is_err());
        leases.check_epoch(&thread(), Some(new)).unwrap();
    }

    #[test]
    fn only_live_hosts_are_listed() {
        let (mut leases, now) = leases();
        let report = HostReport {
            version: "1.2.3".into(),
            started_ms: 5,
            runs: 1,
            max_runs: 2,
            is_stopping: false,
        };
        leases.report(&holder("a"), &report);
        leases.heartbeat(&holder("a"));
        assert_eq!(leases.hosts(), [], "a report before the first heartbeat is ignored");
        leases.report(&holder("a"), &report);
        *lock(&now) += LEASE / 2;
        let listed = LiveHost { holder: holder("a"), heartbeat_age_ms: LEASE_MS / 2, report };
        assert_eq!(leases.hosts(), [listed]);
        *lock(&now) += LEASE;
        assert_eq!(leases.hosts(), [], "expired");
    }

    #[test]
    fn epochs_are_unique_across_openings() {
        let last = Leases::new(1, monotonic_clock()).newest + u64::from(u32::MAX);
        let next = Leases::new(2, monotonic_clock()).acquire(&thread(), &holder("a")).unwrap();
        assert!(next.0 > last);
    }
}
