//! How hosts that share a store divide the runs.
//!
//! Any host may begin any pending run; the store lets one of them. A host that is asked for a run
//! while it has several runs more than the least busy host assigns the run to that one. The others
//! begin it if the assigned host does not. A host that has many more runs than the mean stops some of
//! them before their next superstep and hands them over.
//!
//! A host knows the others by what they report, and counts what it has assigned to them since. A host
//! that shares its store with nobody begins every run itself, up to its maximum.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use wattle_graph::failure::Failure;

use super::{CUT_GRACE, Engine};
use crate::ports::store::{Holder, HostReport, LiveHost, StoreError};
use crate::view::store_failure;

/// Runs that a host may have more than the least busy one and still begin a run immediately: a run
/// that is assigned costs three commits more, and a notification.
const SLACK: usize = 8;

/// How long a host leaves runs to others that are to begin them: a notification arrives in some
/// milliseconds, and a host that is about to stop may have been assigned one.
pub(super) const LEFT_TO_OTHERS: Duration = Duration::from_secs(1);

/// Pause between two reports of a host. A run that it assigns counts as one of the other host's until
/// the next report, so that a burst is spread and a short run does not count for long.
const REPORT_PAUSE: Duration = Duration::from_secs(1);

/// Reports within the time of a lease, if that is short.
const REPORTS: u64 = 3;

/// Runs above the mean below which none is handed over: each hand-over costs two commits.
const HAND_OVER_SLACK: usize = 8;

/// Which part of the mean a surplus must exceed for that, so that hosts do not pass runs around.
const HAND_OVER_PART: usize = 2;

/// What an engine knows of the load of hosts.
pub(super) struct Balance {
    /// Runs at once at most.
    max_runs: usize,
    started_ms: i64,
    /// Hosts that share the store and begin runs.
    others: Mutex<Vec<Other>>,
    /// Their names and that of this host.
    working: watch::Sender<BTreeSet<Holder>>,
    /// Places of runs that are about to begin.
    beginning: AtomicUsize,
    /// Set once the engine serves: it begins pending runs and recovers those that were cut.
    is_serving: AtomicBool,
}

/// Another host.
struct Other {
    holder: Holder,
    /// Runs that it has reported, and those that were assigned to it since.
    runs: usize,
}

impl Balance {
    pub(super) fn new(max_runs: Option<usize>, started_ms: i64, own: Holder) -> Self {
        Self {
            max_runs: max_runs.unwrap_or(usize::MAX).max(1),
            started_ms,
            others: Mutex::default(),
            working: watch::Sender::new(BTreeSet::from([own])),
            beginning: AtomicUsize::new(0),
            is_serving: AtomicBool::new(false),
        }
    }

    /// No code that can panic runs under this lock.
    fn others(&self) -> MutexGuard<'_, Vec<Other>> {
        self.others.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs of the least busy other host; `None` if there is none.
    fn least(&self) -> Option<usize> {
        self.others().iter().map(|other| other.runs).min()
    }
}

/// The place of a run from the decision that it begins here until it is at work: of many requests at
/// once, each sees the others.
pub(super) struct Place<'b>(&'b AtomicUsize);

impl<'b> Place<'b> {
    fn take(beginning: &'b AtomicUsize) -> Self {
        beginning.fetch_add(1, Ordering::Relaxed);
        Self(beginning)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Engine {
    /// Live hosts that share the store, this one included, in the order of their names.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub async fn hosts(&self) -> Result<Vec<LiveHost>, Failure> {
        let mut hosts = self.0.ports.store.hosts().await.map_err(store_failure)?;
        self.learn(&hosts);
        let own = self.0.leases.holder();
        hosts.retain(|host| host.holder != *own);
        if self.is_serving() {
            hosts.push(LiveHost { holder: own.clone(), silent_ms: 0, report: self.report() });
        }
        hosts.sort_by(|one, other| one.holder.cmp(&other.holder));
        Ok(hosts)
    }

    /// Hosts that begin runs: those that are live and not shutting down, this one included. While the
    /// engine serves, it notices a change within a second.
    pub fn working_hosts(&self) -> watch::Receiver<BTreeSet<Holder>> {
        self.0.balance.working.subscribe()
    }

    /// The name under which the engine holds threads.
    pub fn holder(&self) -> &Holder {
        self.0.leases.holder()
    }

    /// The engine serves from now on.
    pub(super) fn serve(&self) {
        self.0.balance.is_serving.store(true, Ordering::Relaxed);
    }

    fn is_serving(&self) -> bool {
        self.0.balance.is_serving.load(Ordering::Relaxed)
    }

    /// How many more runs this host may begin.
    pub(super) fn room(&self) -> usize {
        self.0.balance.max_runs.saturating_sub(self.load())
    }

    /// A place for a run that is asked for, if it begins here immediately. Otherwise it is pending.
    pub(super) fn place_for_start(&self) -> Option<Place<'_>> {
        let most = self.0.balance.least().map_or(usize::MAX, |least| least.saturating_add(SLACK));
        (self.room() > 0 && self.load() <= most).then(|| self.place())
    }

    /// A place for a run that begins here.
    pub(super) fn place(&self) -> Place<'_> {
        Place::take(&self.0.balance.beginning)
    }

    /// The least busy other host, which is to begin a run; `None` if there is none.
    pub(super) fn assign(&self) -> Option<Holder> {
        let mut others = self.0.balance.others();
        let least = others.iter_mut().min_by_key(|other| other.runs)?;
        least.runs = least.runs.saturating_add(1);
        Some(least.holder.clone())
    }

    /// Runs at work, and those that are about to begin.
    fn load(&self) -> usize {
        self.runs_at_work() + self.0.balance.beginning.load(Ordering::Relaxed)
    }

    /// Runs at work. Threads that something else is done to are active as well.
    fn runs_at_work(&self) -> usize {
        self.active().values().filter(|active| active.is_at_work()).count()
    }

    fn report(&self) -> HostReport {
        let Balance { max_runs, started_ms, .. } = self.0.balance;
        let number = |runs: usize| u32::try_from(runs).unwrap_or(u32::MAX);
        HostReport {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started_ms,
            runs: number(self.runs_at_work()),
            max_runs: number(max_runs),
            is_stopping: self.is_halting(),
        }
    }

    /// Notes which other hosts begin runs, and their loads.
    fn learn(&self, hosts: &[LiveHost]) {
        let own = self.0.leases.holder();
        let others = hosts.iter().filter(|host| host.holder != *own && !host.report.is_stopping);
        let other = |LiveHost { holder, report, .. }: &LiveHost| Other {
            holder: holder.clone(),
            runs: report.runs as usize,
        };
        let others: Vec<Other> = others.map(other).collect();
        let sharing = u32::try_from(others.len()).unwrap_or(u32::MAX).saturating_add(1);
        self.0.ports.net.share_rates(sharing);
        let mut working: BTreeSet<Holder> = others.iter().map(|it| it.holder.clone()).collect();
        working.insert(own.clone());
        *self.0.balance.others() = others;
        self.0.balance.working.send_if_modified(|known| {
            let is_new = *known != working;
            *known = working;
            is_new
        });
    }

    /// Reports the load of this host, for as long as it is polled.
    pub(super) async fn keep_balancing(&self) {
        let lease = Duration::from_millis(self.0.ports.store.lease_ms() / REPORTS);
        loop {
            if let Err(error) = self.balance().await {
                tracing::warn!(%error, "the load of this host is not reported");
            }
            tokio::time::sleep(lease.min(REPORT_PAUSE)).await;
        }
    }

    /// Tells the other hosts that this one is shutting down.
    pub(super) async fn report_stop(&self) {
        if self.is_serving() {
            let (own, report) = (self.0.leases.holder(), self.report());
            let report = self.0.ports.store.report(own, &report);
            // They notice when its heartbeat stops.
            let _ = tokio::time::timeout(CUT_GRACE, report).await;
        }
    }

    /// Sends a heartbeat and the load of this host immediately, and learns of the other hosts. While
    /// the engine serves, it does so by itself.
    ///
    /// # Errors
    ///
    /// Those of the store.
    pub async fn heartbeat(&self) -> Result<(), Failure> {
        let (store, term) = (&self.0.ports.store, &self.0.leases.term);
        let beat = async {
            self.keep_beating().await?;
            term.beat(store.as_ref()).await?;
            self.exchange_loads().await
        };
        beat.await.map_err(store_failure)
    }

    /// Reports the load of this host, and reads those of the others.
    async fn exchange_loads(&self) -> Result<(), StoreError> {
        let store = &self.0.ports.store;
        store.report(self.0.leases.holder(), &self.report()).await?;
        self.learn(&store.hosts().await?);
        Ok(())
    }

    /// Reports the load of this host, and hands runs over that are too many.
    async fn balance(&self) -> Result<(), StoreError> {
        self.keep_beating().await?;
        self.exchange_loads().await?;
        let others: Vec<usize> = self.0.balance.others().iter().map(|other| other.runs).collect();
        let surplus = surplus(self.runs_at_work(), &others);
        for active in self.active().values().filter(|active| active.is_at_work()).take(surplus) {
            active.halt.cancel();
        }
        if surplus > 0 {
            tracing::info!(runs = surplus, "runs are handed over to hosts that have fewer");
        }
        Ok(())
    }

    /// Hosts have stopped runs: this one looks for them, a while later if it has more runs than others.
    pub(super) fn recover_handed_over(&self) {
        let is_busy = self.0.balance.least().is_some_and(|least| self.load() > least);
        let pause = if is_busy { LEFT_TO_OTHERS } else { Duration::ZERO };
        let engine = self.clone();
        self.0.runtime.spawn(async move {
            tokio::time::sleep(pause).await;
            engine.0.cuts.handed_over.notify_one();
        });
    }
}

/// How many of its runs a host hands over: half of what it has above the mean, if that is much.
fn surplus(own: usize, others: &[usize]) -> usize {
    if others.is_empty() {
        return 0;
    }
    let all: usize = own + others.iter().sum::<usize>();
    let mean = all.div_ceil(others.len() + 1);
    let above = own.saturating_sub(mean);
    let is_much = above > HAND_OVER_SLACK && above > mean / HAND_OVER_PART;
    if is_much { above / 2 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_host_with_many_more_runs_than_the_mean_hands_some_over() {
        assert_eq!(surplus(1_000, &[]), 0, "nobody takes them");
        assert_eq!(surplus(40, &[0, 0]), 13);
        assert_eq!(surplus(12, &[0, 0]), 0, "few runs stay");
        assert_eq!(surplus(140, &[100, 100]), 0, "a small difference stays");
        assert_eq!(surplus(0, &[100, 100]), 0);
    }

    #[test]
    fn hosts_that_hand_over_come_to_rest() {
        let mut hosts = [300, 20, 7, 0];
        for round in 0.. {
            assert!(round < 50, "{hosts:?}");
            let before = hosts;
            for _ in 0..hosts.len() {
                let [own, others @ ..] = hosts;
                let moved = surplus(own, &others);
                hosts[0] -= moved;
                for _ in 0..moved {
                    *hosts.iter_mut().min().unwrap() += 1;
                }
                // The next one looks.
                hosts.rotate_left(1);
            }
            if hosts == before {
                break;
            }
        }
        assert_eq!(hosts.iter().sum::<usize>(), 327);
        assert!(hosts.iter().max().unwrap() - hosts.iter().min().unwrap() <= 50, "{hosts:?}");
    }
}
