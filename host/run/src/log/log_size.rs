//! Size limit of a thread's log.
//!
//! A run counts the approximate size of its batches. The store writes them in a more compact form,
//! so the count exceeds the stored size. At the limit the store is queried: the stored size
//! decides, and the run continues to count from there.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::quota::UsageMeter;

/// Size of a thread's log and its limit, in bytes.
pub(super) struct LogSize {
    pub(super) allowed: u64,
    /// Stored size at the last query, plus the approximate size of the batches since then.
    bytes: AtomicU64,
    /// Total size of the tenant's threads, if it is limited.
    tenant: Option<Arc<UsageMeter>>,
}

impl LogSize {
    /// Creates the counter of a log with `stored` bytes in the store.
    pub(super) fn new(allowed: u64, stored: u64, tenant: Option<Arc<UsageMeter>>) -> Self {
        Self { allowed, bytes: AtomicU64::new(stored), tenant }
    }

    /// Counts a batch.
    pub(super) fn add(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        if let Some(tenant) = &self.tenant {
            tenant.add_unchecked(bytes);
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Replaces the size `counted` at the time of a query by the stored size. Batches since the
    /// query stay counted.
    pub(super) fn correct(&self, counted: u64, stored: u64) {
        let since = |taken: u64| Some(taken.saturating_sub(counted).saturating_add(stored));
        let _ = self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, since);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_during_a_query_of_the_log_size_stay_counted() {
        let room = LogSize::new(1_000, 400, None);
        room.add(700);
        let counted = room.bytes();
        room.add(50);
        room.correct(counted, 600);
        assert_eq!((counted, room.bytes()), (1_100, 650));
    }
}
