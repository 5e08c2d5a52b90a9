//! The state of a server, which its services use.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use tokio::sync::watch;

use super::{feishu::Feishu, gate::Gates, journal::Journal, mcp::Sessions, orders::Orders};

/// The state that all requests of a server share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) pictures: BTreeMap<String, String>,
    pub(super) orders: Orders,
    pub(super) journal: Journal,
    pub(super) gates: Gates,
    counters: Mutex<BTreeMap<String, u64>>,
    pub(super) mcp_sessions: Sessions,
    pub(super) feishu: Feishu,
    /// Number of releases. A hanging request waits for the next one.
    releases: watch::Sender<u64>,
}

impl Shared {
    /// Creates the state with the texts of images.
    pub(super) fn new(pictures: BTreeMap<String, String>) -> Self {
        Self { pictures, ..Self::default() }
    }

    /// Releases all hanging requests.
    pub(super) fn release(&self) {
        self.releases.send_modify(|count| *count += 1);
    }

    /// Returns a receiver that changes with the next release.
    pub(super) fn releases(&self) -> watch::Receiver<u64> {
        self.releases.subscribe()
    }

    /// Increments the counter of a name and returns it.
    pub(super) fn count(&self, name: &str) -> u64 {
        let mut counters = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        let counter = counters.entry(name.to_owned()).or_default();
        *counter += 1;
        *counter
    }
}
