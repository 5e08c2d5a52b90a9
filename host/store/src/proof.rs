//! Remembers recent writes: for a moment, a successful write proves that the store can be written.

use std::time::{Duration, Instant};

/// Age up to which a write proves that the store can be written. It bounds the writes of frequent
/// checks.
const PROOF_AGE: Duration = Duration::from_secs(1);

/// The newest write that succeeded.
#[derive(Debug, Default)]
pub(crate) struct Proof(Option<Instant>);

impl Proof {
    /// Records that a write succeeded now.
    pub(crate) fn renew(&mut self) {
        self.0 = Some(Instant::now());
    }

    /// Returns true if the newest write is younger than [`PROOF_AGE`].
    pub(crate) fn holds(&self) -> bool {
        self.0.is_some_and(|written| written.elapsed() < PROOF_AGE)
    }
}
