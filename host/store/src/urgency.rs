//! Whether somebody waits for a commit, and how long one is put off while nobody does.
//!
//! A commit costs nearly the same for one batch as for many, and while one is on its way no other
//! can begin. So a writer lets batches for which nobody waits gather for a while, the commit delay.
//! As soon as somebody waits for one of them, or watches its thread, the writer goes ahead: nobody
//! ever waits for the delay.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The commit delay, unless another is set: several steps of a run without effects take less, and
/// nobody who looks at a thread from time to time sees a difference.
pub const COMMIT_DELAY: Duration = Duration::from_millis(2);

/// The longest commit delay. A crash loses so much of the work for which nobody waited (it is done
/// again then), and other hosts hear of events so much later.
pub const COMMIT_DELAY_LIMIT: Duration = Duration::from_secs(1);

/// Refuses a commit delay that is too long.
///
/// # Errors
///
/// A sentence with the limit.
pub fn check(commit_delay: Duration) -> Result<(), String> {
    if commit_delay <= COMMIT_DELAY_LIMIT {
        return Ok(());
    }
    let (limit_ms, delay_ms) = (COMMIT_DELAY_LIMIT.as_millis(), commit_delay.as_millis());
    Err(format!("`commit_delay` is at most {limit_ms} ms, not {delay_ms} ms"))
}

/// Numbers the batches of one writer, and knows for which of them somebody waits.
#[derive(Debug, Default)]
pub(crate) struct Urgency {
    /// The number given out last.
    given: AtomicU64,
    /// The highest number for which somebody waits, or waited.
    wanted: AtomicU64,
}

impl Urgency {
    /// The number of the next batch.
    pub(crate) fn number(&self) -> u64 {
        self.given.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Somebody waits for a batch, and so for all before it.
    pub(crate) fn want(&self, number: u64) {
        self.wanted.fetch_max(number, Ordering::Release);
    }

    /// Somebody waits for all batches so far.
    pub(crate) fn want_all(&self) {
        self.want(self.given.load(Ordering::Relaxed));
    }

    /// Whether somebody waits for any of the batches from a number on. Also true for a while after
    /// a later batch was waited for: then the writer is busy enough to gather without a delay.
    pub(crate) fn is_wanted(&self, first: u64) -> bool {
        self.wanted.load(Ordering::Acquire) >= first
    }
}
