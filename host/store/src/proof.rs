//! What a write proves: that the store can be written, for a moment.

use std::time::{Duration, Instant};

/// A write that is younger proves that the store can be written, so that a caller who asks all the
/// time does not make it write all the time.
const PROOF_AGE: Duration = Duration::from_secs(1);

/// The newest write that succeeded.
#[derive(Debug, Default)]
pub(crate) struct Proof(Option<Instant>);

impl Proof {
    /// Notes that a write succeeded just now.
    pub(crate) fn renew(&mut self) {
        self.0 = Some(Instant::now());
    }

    /// Whether the newest write is young enough.
    pub(crate) fn holds(&self) -> bool {
        self.0.is_some_and(|written| written.elapsed() < PROOF_AGE)
    }
}
