//! The number of pending interrupts of a thread.
//!
//! Interrupts of all graphs of the thread count. A run that resumes starts with the number of
//! remaining interrupts. When the root graph completes a superstep, all of them are answered.

use std::sync::atomic::{AtomicU64, Ordering};

use wattle_graph::failure::Failure;
use wattle_graph::id::ThreadId;

use crate::caps;

/// Counter of the pending interrupts of a thread.
pub(super) struct InterruptCount {
    allowed: u64,
    pending: AtomicU64,
}

impl InterruptCount {
    /// Creates a counter at 0.
    pub(super) fn new(allowed: u64) -> Self {
        Self { allowed, pending: AtomicU64::new(0) }
    }

    /// Sets the number of pending interrupts.
    pub(super) fn set(&self, open: usize) {
        self.pending.store(open as u64, Ordering::Relaxed);
    }

    /// Counts an interrupt that is about to be raised.
    ///
    /// # Errors
    ///
    /// `limit` if the maximum number of interrupts is pending.
    pub(super) fn increment(&self, thread: &ThreadId) -> Result<(), Failure> {
        let more = |open: u64| (open < self.allowed).then(|| open + 1);
        let taken = self.pending.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        taken.map(drop).map_err(|open| caps::interrupts_full(thread, open, self.allowed))
    }
}
