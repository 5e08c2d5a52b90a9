//! State of a host as a holder of leases, and the runs of other hosts that it drains.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OnceCell, watch};
use wattle_graph::id::{RunId, ThreadId};

use crate::log::Heartbeats;
use crate::ports::Clock;
use crate::ports::store::{LeaseEpoch, LeaseHolder};

/// Maximum number of stray leases that the host remembers. Their ids take about a megabyte. Any
/// further stray lease expires after this host has stopped.
const MAX_STRAY_LEASES: usize = 10_000;

/// What a claim has to release in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LeaseStatus {
    /// Nothing.
    NotHeld,
    /// A lease whose acquisition or release is in progress. The store may have it or not.
    Unknown,
    /// The lease with the epoch of the claim.
    Held,
}

/// State of the engine as a holder of leases.
pub(super) struct HostLeases {
    /// Name of the holder, and the validity of its leases.
    pub(super) heartbeats: Arc<Heartbeats>,
    /// Set once the first heartbeat was sent and the background task sends further ones.
    pub(super) heartbeat_started: OnceCell<()>,
    /// Number of releases in progress for claims that were dropped.
    pub(super) releasing: watch::Sender<usize>,
    /// Stray leases: the store may have them under the name of this host although no claim holds
    /// them. Their release failed, or the response to their acquisition was lost. The epoch is
    /// `None` if it is unknown. While this host is live, stray leases keep other hosts from
    /// claiming the threads.
    strays: Mutex<BTreeMap<ThreadId, Option<LeaseEpoch>>>,
    /// Runs of other hosts for which this host repeats drain notifications.
    pub(super) drain_requests: DrainRequests,
    /// Set once the engine receives the notifications of other hosts.
    pub(super) is_listening: AtomicBool,
}

impl HostLeases {
    pub(super) fn new(holder: Option<LeaseHolder>, clock: Arc<dyn Clock>) -> Self {
        let holder = holder.unwrap_or_else(|| LeaseHolder(uuid::Uuid::now_v7().to_string()));
        let (heartbeat_started, releasing) = (OnceCell::new(), watch::Sender::new(0));
        let heartbeats = Arc::new(Heartbeats::new(holder, clock));
        let (drain_requests, is_listening) = (DrainRequests::default(), AtomicBool::new(false));
        Self {
            heartbeats,
            heartbeat_started,
            releasing,
            strays: Mutex::default(),
            drain_requests,
            is_listening,
        }
    }

    /// Returns the name of the holder.
    pub(super) fn holder(&self) -> &LeaseHolder {
        self.heartbeats.holder()
    }

    /// Locks the stray leases. No code that can panic runs under this lock.
    pub(super) fn strays(&self) -> MutexGuard<'_, BTreeMap<ThreadId, Option<LeaseEpoch>>> {
        self.strays.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a stray lease. This lease replaces an older stray lease of the same thread, which ended
    /// when the new lease was acquired.
    pub(super) fn add_stray(&self, thread: &ThreadId, epoch: Option<LeaseEpoch>) {
        let mut strays = self.strays();
        if strays.len() < MAX_STRAY_LEASES || strays.contains_key(thread) {
            strays.insert(thread.clone(), epoch);
        } else {
            tracing::warn!(
                %thread,
                "too many stray leases; the lease of this thread expires after the host has stopped"
            );
        }
    }

    /// Waits until the leases of dropped claims are released.
    pub(super) async fn wait_released(&self) {
        // The sender lives as long as `self`.
        let _ = self.releasing.subscribe().wait_for(|returning| *returning == 0).await;
    }
}

/// Runs of other hosts for which this host repeats drain notifications.
#[derive(Default)]
pub(super) struct DrainRequests(Mutex<BTreeSet<RunId>>);

impl DrainRequests {
    /// Adds a run. Returns false if the set already contains the run.
    pub(super) fn insert(&self, run: &RunId) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(run.clone())
    }

    pub(super) fn remove(&self, run: &RunId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(run);
    }
}
