//! How many questions of a thread have no answer.
//!
//! Every graph of the thread asks, and a run that goes on with answers begins with the rest. Once
//! the root graph moves on, all of them were answered.

use std::sync::atomic::{AtomicU64, Ordering};

use wattle_graph::failure::Failure;
use wattle_graph::id::ThreadId;

use crate::caps;

/// Questions of a thread.
pub(super) struct Questions {
    allowed: u64,
    open: AtomicU64,
}

impl Questions {
    /// None is open yet.
    pub(super) fn new(allowed: u64) -> Self {
        Self { allowed, open: AtomicU64::new(0) }
    }

    /// So many questions are open.
    pub(super) fn set(&self, open: usize) {
        self.open.store(open as u64, Ordering::Relaxed);
    }

    /// Counts a question of a thread that is to be asked.
    ///
    /// # Errors
    ///
    /// `limit` if as many are open as may be.
    pub(super) fn take(&self, thread: &ThreadId) -> Result<(), Failure> {
        let more = |open: u64| (open < self.allowed).then(|| open + 1);
        let taken = self.open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        taken.map(drop).map_err(|open| caps::questions_full(thread, open, self.allowed))
    }
}
