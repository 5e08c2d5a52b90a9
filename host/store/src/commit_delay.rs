//! Decides when a writer commits: immediately if a caller awaits a batch, otherwise after the
//! commit delay.
//!
//! A commit costs nearly the same for one batch as for many, and only one commit is in progress at
//! a time. So a writer holds batches that no caller awaits for the commit delay, and several of
//! them share a commit. As soon as a caller awaits one of them or watches its thread, the writer
//! commits: no caller ever waits for the delay.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Default commit delay. Several supersteps without effects take less time than this delay, and a
/// client that polls a thread does not notice the delay.
pub const DEFAULT_COMMIT_DELAY: Duration = Duration::from_millis(2);

/// Maximum commit delay. The maximum bounds the work that no caller awaits and that recovery
/// repeats after a crash. The maximum also bounds the delay of notifications of events to other
/// hosts.
pub const MAX_COMMIT_DELAY: Duration = Duration::from_secs(1);

/// Checks that a commit delay is at most [`MAX_COMMIT_DELAY`].
///
/// # Errors
///
/// A sentence that names the limit.
pub fn validate(commit_delay: Duration) -> Result<(), String> {
    if commit_delay <= MAX_COMMIT_DELAY {
        return Ok(());
    }
    let (limit_ms, delay_ms) = (MAX_COMMIT_DELAY.as_millis(), commit_delay.as_millis());
    Err(format!("`commit_delay` is at most {limit_ms} ms, not {delay_ms} ms"))
}

/// Numbers the batches of one writer, and tracks which of them a caller awaits.
#[derive(Debug, Default)]
pub(crate) struct FlushRequests {
    /// The last assigned number.
    last_assigned: AtomicU64,
    /// The highest number that a caller awaits or has awaited.
    requested_up_to: AtomicU64,
}

impl FlushRequests {
    /// Returns the number of the next batch.
    pub(crate) fn next_batch_no(&self) -> u64 {
        self.last_assigned.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Records that a caller awaits a batch, and so all batches before it.
    pub(crate) fn request(&self, number: u64) {
        self.requested_up_to.fetch_max(number, Ordering::Release);
    }

    /// Records that a caller awaits all batches so far.
    pub(crate) fn request_all(&self) {
        self.request(self.last_assigned.load(Ordering::Relaxed));
    }

    /// Returns whether a caller awaits, or has awaited, a batch with the number `first` or a higher
    /// number. If the caller no longer waits, the writer only commits earlier than necessary.
    pub(crate) fn is_requested(&self, first: u64) -> bool {
        self.requested_up_to.load(Ordering::Acquire) >= first
    }
}
