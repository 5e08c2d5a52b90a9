//! What a host knows of the load of the hosts that share its store, and the runs that it is about
//! to start.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::caller_id::CallerId;
use crate::ports::store::LeaseHolder;

/// Load of the hosts, as this engine knows it.
pub(super) struct LoadBalance {
    /// Maximum number of concurrent runs.
    pub(super) max_runs: usize,
    pub(super) started_ms: i64,
    /// Other hosts that share the store and start runs.
    others: Mutex<Vec<OtherHost>>,
    /// Names of the other hosts and of this one.
    pub(super) working_hosts: watch::Sender<BTreeSet<LeaseHolder>>,
    /// Number of runs that are about to start, by caller.
    reserved_starts: Mutex<HashMap<CallerId, usize>>,
    /// Set once the engine serves: it starts pending runs and recovers orphaned ones.
    pub(super) is_serving: AtomicBool,
}

/// Another host.
pub(super) struct OtherHost {
    pub(super) holder: LeaseHolder,
    /// Runs that the host reported, and runs that were assigned to the host since the report.
    pub(super) runs: usize,
}

impl LoadBalance {
    pub(super) fn new(max_runs: Option<usize>, started_ms: i64, own: LeaseHolder) -> Self {
        Self {
            max_runs: max_runs.unwrap_or(usize::MAX).max(1),
            started_ms,
            others: Mutex::default(),
            working_hosts: watch::Sender::new(BTreeSet::from([own])),
            reserved_starts: Mutex::default(),
            is_serving: AtomicBool::new(false),
        }
    }

    /// Locks the other hosts. No code that can panic runs under this lock.
    pub(super) fn others(&self) -> MutexGuard<'_, Vec<OtherHost>> {
        self.others.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the reserved starts. Code that holds this lock may take the locks of the active runs
    /// and of the dispatcher. No code that can panic runs under this lock.
    pub(super) fn reserved_starts(&self) -> MutexGuard<'_, HashMap<CallerId, usize>> {
        self.reserved_starts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of runs of the least busy other host; `None` if there is no other host.
    pub(super) fn least_load(&self) -> Option<usize> {
        self.others().iter().map(|other| other.runs).min()
    }
}
