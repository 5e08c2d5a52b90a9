//! The webhooks that this host delivers, and the runs with webhooks that are being started.

use std::collections::{HashMap, HashSet};
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use wattle_graph::id::RunId;

/// The webhooks that this host delivers, and the runs with webhooks that are being started.
#[derive(Default)]
pub(super) struct DeliveryTasks {
    active: Mutex<ActiveTasks>,
    /// Notified when an entry is removed from `active`.
    pub(super) changed: Notify,
}

#[derive(Default)]
pub(super) struct ActiveTasks {
    pub(super) delivering: HashSet<RunId>,
    /// Number of requests that are starting each run.
    pub(super) starting: HashMap<RunId, usize>,
}

impl DeliveryTasks {
    /// Locks the tasks and ignores poisoning: no code that can panic runs under the lock.
    pub(super) fn lock(&self) -> MutexGuard<'_, ActiveTasks> {
        self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the tasks satisfy a condition.
    pub(super) async fn wait_until(&self, mut condition: impl FnMut(&mut ActiveTasks) -> bool) {
        loop {
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable();
            if condition(&mut self.lock()) {
                return;
            }
            changed.await;
        }
    }

    /// Waits until no request of this host is starting the run.
    pub(super) async fn wait_until_started(&self, run: &RunId) {
        self.wait_until(|tasks| !tasks.starting.contains_key(run)).await;
    }
}
