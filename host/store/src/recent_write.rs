//! The newest successful write. For [`MAX_AGE`], this write proves that the store can be written.

use std::time::{Duration, Instant};

/// Age up to which a write proves that the store can be written. So frequent checks cause at most
/// one write per second.
const MAX_AGE: Duration = Duration::from_secs(1);

/// The newest write that succeeded.
#[derive(Debug, Default)]
pub(crate) struct RecentWrite(Option<Instant>);

impl RecentWrite {
    /// Records that a write succeeded now.
    pub(crate) fn record(&mut self) {
        self.0 = Some(Instant::now());
    }

    /// Returns true if the newest write is younger than [`MAX_AGE`].
    pub(crate) fn is_recent(&self) -> bool {
        self.0.is_some_and(|written| written.elapsed() < MAX_AGE)
    }
}
