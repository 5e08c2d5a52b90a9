//! How much the log of a thread may still grow.
//!
//! A run counts about what it hands over. The count is more than what the store takes, which packs
//! it, so at the cap the store is asked: what it has decides, and the run counts on from there.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::quota::Meter;

/// What the log of a thread takes and may take.
pub(super) struct Room {
    pub(super) allowed: u64,
    /// Bytes in the store when it was asked last, and about those that were handed over since.
    taken: AtomicU64,
    /// What all threads of the tenant take, if that is capped.
    tenant: Option<Arc<Meter>>,
}

impl Room {
    /// For a log of which the store has so many bytes.
    pub(super) fn new(allowed: u64, stored: u64, tenant: Option<Arc<Meter>>) -> Self {
        Self { allowed, taken: AtomicU64::new(stored), tenant }
    }

    /// Counts bytes that are handed over.
    pub(super) fn take(&self, bytes: u64) {
        self.taken.fetch_add(bytes, Ordering::Relaxed);
        if let Some(tenant) = &self.tenant {
            tenant.note(bytes);
        }
    }

    pub(super) fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Puts what the store has in the place of what was counted up to a moment. What was handed
    /// over since stays counted.
    pub(super) fn correct(&self, counted: u64, stored: u64) {
        let since = |taken: u64| Some(taken.saturating_sub(counted).saturating_add(stored));
        let _ = self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, since);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_handed_over_meanwhile_stays_counted() {
        let room = Room::new(1_000, 400, None);
        room.take(700);
        let counted = room.taken();
        room.take(50);
        room.correct(counted, 600);
        assert_eq!((counted, room.taken()), (1_100, 650));
    }
}
