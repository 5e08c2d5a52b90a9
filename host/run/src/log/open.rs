//! The number of pending interrupts of a thread.
//!
//! Interrupts of all graphs of the thread count. A run that resumes starts with the number of
//! remaining interrupts. When the root graph takes its next step, all of them are answered.

use std::sync::atomic::{AtomicU64, Ordering};

use wattle_graph::failure::Failure;
use wattle_graph::id::ThreadId;

use crate::caps;

/// Counter of the pending interrupts of a thread.
pub(super) struct Questions {
    allowed: u64,
    open: AtomicU64,
}

impl Questions {
    /// Creates a counter at 0.
    pub(super) fn new(allowed: u64) -> Self {
        Self { allowed, open: AtomicU64::new(0) }
    }

    /// Sets the number of pending interrupts.
    pub(super) fn set(&self, open: usize) {
        self.open.store(open as u64, Ordering::Relaxed);
    }

    /// Counts an interrupt that is about to be raised.
    ///
    /// # Errors
    ///
    /// `limit` if the maximum number of interrupts is pending.
    pub(super) fn take(&self, thread: &ThreadId) -> Result<(), Failure> {
        let more = |open: u64| (open < self.allowed).then(|| open + 1);
        let taken = self.open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        taken.map(drop).map_err(|open| caps::questions_full(thread, open, self.allowed))
    }
}
