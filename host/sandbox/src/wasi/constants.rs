//! Clocks and random numbers of guests without a gate: plugins that describe themselves, and
//! reducers.
//!
//! Standard libraries of many languages read a clock or a seed when they start. Every guest reads
//! the same values in the same order, so a plugin describes itself in the same way each time, and
//! a reducer that uses them is still a pure function.

use blake3::{Hasher, OutputReader};

/// Time of the wall clock, in seconds since 1970: 2025-01-01T00:00:00Z. This time is later than the
/// dates that standard libraries reject, and before every date that a guest handles.
pub(crate) const WALL_CLOCK_SECONDS: u64 = 1_735_689_600;

/// Nanoseconds by which each read advances the monotonic clock. A guest that reads the clock until
/// some time has passed therefore ends its loop.
const MONOTONIC_STEP_NS: u64 = 1_000_000;

/// Maximum number of random bytes of one guest. A seed has at most some hundred bytes.
pub(crate) const MAX_RANDOM_BYTES: u64 = 1 << 20;

/// Context from which the random numbers are derived. These numbers are not secret: a guest that
/// needs secret numbers has a gate. The numbers must not all be zero, because a guest that draws
/// numbers until two differ would not end.
const RANDOM_CONTEXT: &str = "wattle 2026-11-28 random numbers of guests without a gate";

/// Clocks and random numbers of one guest.
pub(crate) struct Constants {
    monotonic_ns: u64,
    random: OutputReader,
    random_left: u64,
}

impl Default for Constants {
    fn default() -> Self {
        Self {
            monotonic_ns: 0,
            random: Hasher::new_derive_key(RANDOM_CONTEXT).finalize_xof(),
            random_left: MAX_RANDOM_BYTES,
        }
    }
}

impl Constants {
    /// Reads the monotonic clock, in nanoseconds.
    pub(crate) fn monotonic_ns(&mut self) -> u64 {
        self.advance(MONOTONIC_STEP_NS);
        self.monotonic_ns
    }

    /// Advances the monotonic clock by the time that the guest asked to wait.
    pub(crate) fn advance(&mut self, nanoseconds: u64) {
        self.monotonic_ns = self.monotonic_ns.saturating_add(nanoseconds);
    }

    /// Returns the next `length` random bytes, or `None` if the guest would exceed
    /// [`MAX_RANDOM_BYTES`].
    pub(crate) fn random(&mut self, length: u64) -> Option<Vec<u8>> {
        self.random_left = self.random_left.checked_sub(length)?;
        let mut bytes = vec![0; usize::try_from(length).ok()?];
        self.random.fill(&mut bytes);
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_guest_reads_the_same_values() {
        let read = || {
            let mut constants = Constants::default();
            let clocks = [constants.monotonic_ns(), constants.monotonic_ns()];
            (clocks, constants.random(8).unwrap(), constants.random(40).unwrap())
        };
        let (clocks, first, next) = read();
        assert_eq!(clocks, [1_000_000, 2_000_000]);
        assert!(first.iter().any(|byte| *byte != 0) && !next.starts_with(&first));
        assert_eq!(read(), (clocks, first, next));
    }

    #[test]
    fn waiting_advances_the_clock() {
        let mut constants = Constants::default();
        constants.advance(5_000_000_000);
        assert_eq!(constants.monotonic_ns(), 5_001_000_000);
        constants.advance(u64::MAX);
        assert_eq!(constants.monotonic_ns(), u64::MAX);
    }

    #[test]
    fn random_bytes_are_limited() {
        let mut constants = Constants::default();
        assert!(constants.random(MAX_RANDOM_BYTES - 1).is_some());
        assert_eq!(constants.random(2), None);
        assert!(constants.random(1).is_some());
        assert_eq!(constants.random(1), None);
    }
}
