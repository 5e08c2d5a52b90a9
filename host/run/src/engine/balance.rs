//! Balances runs across the hosts that share a store.
//!
//! Any host may start any pending run, and the store ensures that only one host starts it. A host
//! that receives a request for a run while it has several runs more than the least busy host
//! assigns the run to that host. The other hosts start the run if the assigned host does not. A
//! host that has many more runs than the mean stops some of them before their next superstep and
//! hands them over.
//!
//! A host knows the load of the other hosts from their reports, and adds the runs that it has
//! assigned to them since the reports. A host that shares its store with no other host starts every
//! run itself, up to its maximum. Callers share the places of each host: see
//! [`run_places`](super::run_places).

use std::collections::{BTreeSet, HashMap};
use std::sync::MutexGuard;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::watch;
use wattle_graph::failure::Failure;

use super::load_balance::{LoadBalance, OtherHost};
use super::run_places::RunPlaces;
use super::{Engine, SHUTDOWN_STEP_TIMEOUT};
use crate::caller_id::CallerId;
use crate::ports::store::{HostReport, LeaseHolder, LiveHost, StoreError};

/// Number of runs that a host may have more than the least busy host and still start a run
/// immediately. An assignment costs three additional commits and a notification.
const START_SLACK: usize = 8;

/// Time for which other hosts leave a pending run to the host that it is assigned to. A
/// notification arrives within milliseconds, but that host may be about to stop.
pub(super) const ASSIGNMENT_DELAY: Duration = Duration::from_secs(1);

/// Interval between two reports of a host. An assigned run counts as load of the other host until
/// the next report of that host. A burst of requests is therefore spread, and a short run does not
/// count for long.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// Minimum number of reports per lease period.
const REPORTS_PER_LEASE: u64 = 3;

/// Number of runs above the mean up to which a host hands over no run. Each handover costs three
/// commits.
const HANDOVER_SLACK: usize = 8;

/// Divisor of the mean. A host hands over runs only if the number of its runs above the mean also
/// exceeds the mean divided by this number. Otherwise, hosts would pass runs back and forth.
const HANDOVER_MEAN_DIVISOR: usize = 2;

/// A reserved place for a run of a caller. The reservation lasts from the decision to start the run
/// on this host until the run is active, so that concurrent requests count each other's runs.
pub(super) struct StartReservation {
    engine: Engine,
    caller: CallerId,
}

impl Drop for StartReservation {
    fn drop(&mut self) {
        self.engine.release_start(self.caller);
    }
}

/// The locked places of this host. No other task reserves a place while this value exists.
pub(super) struct LockedPlaces<'e> {
    engine: &'e Engine,
    reserved: MutexGuard<'e, HashMap<CallerId, usize>>,
    pub(super) places: RunPlaces,
}

impl LockedPlaces<'_> {
    /// Reserves a place for a run that starts here.
    pub(super) fn reserve(&mut self, caller: CallerId) -> StartReservation {
        *self.reserved.entry(caller).or_default() += 1;
        StartReservation { engine: self.engine.clone(), caller }
    }
}

impl Engine {
    /// Returns the live hosts that share the store, this one included, sorted by name.
    ///
    /// # Errors
    ///
    /// Errors of the store.
    pub async fn hosts(&self) -> Result<Vec<LiveHost>, Failure> {
        let mut hosts = self.0.ports.store.hosts().await?;
        self.update_loads(&hosts);
        let own = self.0.leases.holder();
        hosts.retain(|host| host.holder != *own);
        if self.is_serving() {
            hosts.push(LiveHost {
                holder: own.clone(),
                heartbeat_age_ms: 0,
                report: self.report(),
            });
        }
        hosts.sort_by(|one, other| one.holder.cmp(&other.holder));
        Ok(hosts)
    }

    /// Returns a receiver of the hosts that start runs: live hosts that are not shutting down, this
    /// one included. While the engine serves, it notices changes within a second.
    pub fn working_hosts(&self) -> watch::Receiver<BTreeSet<LeaseHolder>> {
        self.0.load_balance.working_hosts.subscribe()
    }

    /// Returns the name under which the engine holds leases.
    pub fn holder(&self) -> &LeaseHolder {
        self.0.leases.holder()
    }

    /// Marks the engine as serving.
    pub(super) fn mark_serving(&self) {
        self.0.load_balance.is_serving.store(true, Ordering::Relaxed);
    }

    fn is_serving(&self) -> bool {
        self.0.load_balance.is_serving.load(Ordering::Relaxed)
    }

    /// Reserves a place for a requested run of a caller. Returns `None` if this host must not start
    /// the run immediately: the host is busier than another host, the caller has used its share of
    /// the places or of the memory of runs, or the due pending runs need all free places.
    pub(super) fn try_reserve_start(&self, caller: CallerId) -> Option<StartReservation> {
        let least = self.0.load_balance.least_load();
        let most = least.map_or(usize::MAX, |least| least.saturating_add(START_SLACK));
        let mut locked = self.lock_places();
        let places = &locked.places;
        let may_start = places.used() <= most
            && places.may_start(caller)
            && self.0.run_memory.may_start(caller)
            && !self.0.dispatch.has_due(self.now_ms(), places.free());
        may_start.then(|| locked.reserve(caller))
    }

    /// Locks the places of this host and returns them.
    pub(super) fn lock_places(&self) -> LockedPlaces<'_> {
        let reserved = self.0.load_balance.reserved_starts();
        let mut places = RunPlaces::new(self.0.load_balance.max_runs);
        for (caller, count) in &*reserved {
            places.add(*caller, *count);
        }
        for active in self.active().values().filter(|active| active.has_active_run()) {
            places.add(active.caller, 1);
        }
        LockedPlaces { engine: self, reserved, places }
    }

    /// Releases a reserved place after its run has become active or has failed to start.
    fn release_start(&self, caller: CallerId) {
        let mut reserved = self.0.load_balance.reserved_starts();
        if let Some(count) = reserved.get_mut(&caller) {
            *count -= 1;
            if *count == 0 {
                reserved.remove(&caller);
            }
        }
        drop(reserved);
        self.0.dispatch.wake();
    }

    /// Assigns a run to the least busy other host; `None` if there is none.
    pub(super) fn assign(&self) -> Option<LeaseHolder> {
        let mut others = self.0.load_balance.others();
        let least = others.iter_mut().min_by_key(|other| other.runs)?;
        least.runs = least.runs.saturating_add(1);
        Some(least.holder.clone())
    }

    /// Returns the number of active runs and of runs that are about to start.
    fn load(&self) -> usize {
        self.lock_places().places.used()
    }

    /// Returns the number of active runs. Entries in `active` that belong to other operations do
    /// not count.
    fn active_run_count(&self) -> usize {
        self.active().values().filter(|active| active.has_active_run()).count()
    }

    fn report(&self) -> HostReport {
        let LoadBalance { max_runs, started_ms, .. } = self.0.load_balance;
        let number = |runs: usize| u32::try_from(runs).unwrap_or(u32::MAX);
        HostReport {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started_ms,
            runs: number(self.active_run_count()),
            max_runs: number(max_runs),
            is_stopping: self.is_shutting_down(),
        }
    }

    /// Records which other hosts start runs, and their loads.
    fn update_loads(&self, hosts: &[LiveHost]) {
        let own = self.0.leases.holder();
        let others = hosts.iter().filter(|host| host.holder != *own && !host.report.is_stopping);
        let other = |LiveHost { holder, report, .. }: &LiveHost| OtherHost {
            holder: holder.clone(),
            runs: report.runs as usize,
        };
        let others: Vec<OtherHost> = others.map(other).collect();
        let sharing = u32::try_from(others.len()).unwrap_or(u32::MAX).saturating_add(1);
        self.0.ports.net.share_rates(sharing);
        let mut working: BTreeSet<LeaseHolder> =
            others.iter().map(|it| it.holder.clone()).collect();
        working.insert(own.clone());
        *self.0.load_balance.others() = others;
        self.0.load_balance.working_hosts.send_if_modified(|known| {
            let is_new = *known != working;
            *known = working;
            is_new
        });
    }

    /// Balances the load with other hosts while the future is polled.
    pub(super) async fn balance_loop(&self) {
        let lease = Duration::from_millis(self.0.ports.store.lease_ms() / REPORTS_PER_LEASE);
        loop {
            if let Err(error) = self.balance().await {
                tracing::warn!(%error, "cannot balance the load with other hosts");
            }
            tokio::time::sleep(lease.min(REPORT_INTERVAL)).await;
        }
    }

    /// Reports that this host is shutting down.
    pub(super) async fn report_shutdown(&self) {
        if self.is_serving() {
            let (own, report) = (self.0.leases.holder(), self.report());
            let report = self.0.ports.store.report(own, &report);
            // Otherwise the other hosts notice when the heartbeats stop.
            let _ = tokio::time::timeout(SHUTDOWN_STEP_TIMEOUT, report).await;
        }
    }

    /// Sends a heartbeat and the load of this host immediately, and reads the loads of the other
    /// hosts. A serving engine also does this periodically.
    ///
    /// # Errors
    ///
    /// Errors of the store.
    pub async fn heartbeat(&self) -> Result<(), Failure> {
        let (store, term) = (&self.0.ports.store, &self.0.leases.heartbeats);
        self.start_heartbeats().await?;
        term.send(store.as_ref()).await?;
        Ok(self.sync_loads().await?)
    }

    /// Reports the load of this host, and reads the loads of the other hosts.
    async fn sync_loads(&self) -> Result<(), StoreError> {
        let store = &self.0.ports.store;
        store.report(self.0.leases.holder(), &self.report()).await?;
        self.update_loads(&store.hosts().await?);
        Ok(())
    }

    /// Exchanges loads, and hands over surplus runs.
    async fn balance(&self) -> Result<(), StoreError> {
        self.start_heartbeats().await?;
        self.sync_loads().await?;
        let others: Vec<usize> =
            self.0.load_balance.others().iter().map(|other| other.runs).collect();
        let surplus = surplus(self.active_run_count(), &others);
        for active in self.active().values().filter(|active| active.has_active_run()).take(surplus)
        {
            active.handover.set();
        }
        if surplus > 0 {
            tracing::info!(runs = surplus, "runs are handed over to less busy hosts");
        }
        Ok(())
    }

    /// Schedules a scan for runs that hosts have handed over. A host with more runs than others
    /// scans later.
    pub(super) fn schedule_handover_scan(&self) {
        let is_busy = self.0.load_balance.least_load().is_some_and(|least| self.load() > least);
        let pause = if is_busy { ASSIGNMENT_DELAY } else { Duration::ZERO };
        let engine = self.clone();
        self.0.runtime.spawn(async move {
            tokio::time::sleep(pause).await;
            engine.0.recovery.handed_over.notify_one();
        });
    }
}

/// Returns the number of runs that a host hands over: half of its runs above the mean, or 0 if the
/// host has few runs above the mean.
fn surplus(own: usize, others: &[usize]) -> usize {
    if others.is_empty() {
        return 0;
    }
    let all: usize = own + others.iter().sum::<usize>();
    let mean = all.div_ceil(others.len() + 1);
    let above = own.saturating_sub(mean);
    let is_much = above > HANDOVER_SLACK && above > mean / HANDOVER_MEAN_DIVISOR;
    if is_much { above / 2 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_hands_over_runs_only_if_it_has_many_more_than_the_mean() {
        assert_eq!(surplus(1_000, &[]), 0, "without another host, no run is handed over");
        assert_eq!(surplus(40, &[0, 0]), 13);
        assert_eq!(surplus(12, &[0, 0]), 0, "few runs above the mean are not handed over");
        assert_eq!(surplus(140, &[100, 100]), 0, "a small part of the mean is not handed over");
        assert_eq!(surplus(0, &[100, 100]), 0);
    }

    #[test]
    fn repeated_handovers_reach_a_stable_distribution() {
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
                // The next host balances.
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
