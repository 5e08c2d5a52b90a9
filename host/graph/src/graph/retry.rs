//! When and how often a failed task is tried again.

use std::collections::BTreeSet;

use crate::definition::RetryDef;
use crate::failure::Failure;

/// Pause after a first failed attempt: most short outages are over by then.
const DEFAULT_INITIAL_MS: u64 = 500;

/// Growth of the pauses.
const DEFAULT_FACTOR: f64 = 2.0;

/// Longest pause: more would look like a hanging run.
const DEFAULT_MAX_MS: u64 = 128_000;

/// When and how often a failed task is tried again.
#[derive(Clone, Debug, PartialEq)]
pub struct Retry {
    /// How often it is tried in all, at least once.
    pub attempts: u32,
    /// Pause after the first attempt, in milliseconds.
    pub initial_ms: u64,
    /// How much longer each further pause is.
    pub factor: f64,
    /// Longest pause, in milliseconds.
    pub max_ms: u64,
    /// Whether pauses are shortened at random by up to a half.
    pub jitter: bool,
    /// Failure codes to retry on; `None` for every retryable failure.
    pub on: Option<BTreeSet<String>>,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            attempts: 1,
            initial_ms: DEFAULT_INITIAL_MS,
            factor: DEFAULT_FACTOR,
            max_ms: DEFAULT_MAX_MS,
            jitter: true,
            on: None,
        }
    }
}

impl From<&RetryDef> for Retry {
    fn from(def: &RetryDef) -> Self {
        let default = Self::default();
        Self {
            attempts: def.attempts.unwrap_or(default.attempts),
            initial_ms: def.initial.map_or(default.initial_ms, crate::definition::Span::as_ms),
            factor: def.factor.unwrap_or(default.factor),
            max_ms: def.max.map_or(default.max_ms, crate::definition::Span::as_ms),
            jitter: def.jitter.unwrap_or(default.jitter),
            on: def.on.clone(),
        }
    }
}

impl Retry {
    /// Milliseconds to wait after the failed attempt number `attempt` (from 1).
    ///
    /// `jitter` is a number from 0 to 1 by chance; this crate has none of its own. At 1 the pause
    /// is full, at 0 it is half.
    pub fn delay_ms(&self, attempt: u32, jitter: f64) -> u64 {
        let exponent = i32::try_from(attempt.saturating_sub(1)).unwrap_or(i32::MAX);
        let grown = self.initial_ms as f64 * self.factor.powi(exponent);
        let full = grown.min(self.max_ms as f64);
        let share = if self.jitter { 0.5 + jitter.clamp(0.0, 1.0) / 2.0 } else { 1.0 };
        to_ms(full * share)
    }

    /// Whether a failure of this kind is worth another attempt.
    pub fn covers(&self, failure: &Failure) -> bool {
        match &self.on {
            Some(codes) => codes.contains(&failure.code),
            None => failure.retryable,
        }
    }
}

#[expect(clippy::cast_sign_loss, reason = "the product of non-negative numbers")]
fn to_ms(ms: f64) -> u64 {
    ms.round() as u64
}

#[cfg(test)]
mod tests {
    use super::Retry;
    use crate::failure::{Failure, code};

    #[test]
    fn pauses_grow_up_to_the_longest() {
        let retry = Retry { jitter: false, max_ms: 1800, ..Retry::default() };
        let pauses: Vec<u64> = (1..=4).map(|attempt| retry.delay_ms(attempt, 0.3)).collect();
        assert_eq!(pauses, [500, 1000, 1800, 1800]);
        assert_eq!(retry.delay_ms(u32::MAX, 0.0), 1800);
    }

    #[test]
    fn jitter_shortens_a_pause_by_up_to_a_half() {
        let retry = Retry::default();
        assert_eq!((retry.delay_ms(1, 0.0), retry.delay_ms(1, 1.0)), (250, 500));
    }

    #[test]
    fn codes_take_the_place_of_the_retryable_flag() {
        let named = Retry { on: Some(["timeout".to_owned()].into()), ..Retry::default() };
        assert!(named.covers(&Failure::new(code::TIMEOUT, "")));
        assert!(!named.covers(&Failure::new(code::UNAVAILABLE, "").retryable()));
        assert!(Retry::default().covers(&Failure::new("x", "").retryable()));
        assert!(!Retry::default().covers(&Failure::new("x", "")));
    }
}
