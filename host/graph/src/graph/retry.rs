//! The retry policy of a node.

use std::collections::BTreeSet;

use crate::definition::RetryDef;
use crate::failure::Failure;

/// Default delay after the first failed attempt. Most short outages are over by then.
const DEFAULT_INITIAL_MS: u64 = 500;

/// Default factor by which each further delay grows.
const DEFAULT_FACTOR: f64 = 2.0;

/// Default upper bound of a delay. A longer delay would look like a hanging run.
const DEFAULT_MAX_MS: u64 = 128_000;

/// A retry policy: how many attempts a task gets, and the delays between them.
#[derive(Clone, Debug, PartialEq)]
pub struct RetryPolicy {
    /// Maximum number of attempts, including the first; at least 1.
    pub attempts: u32,
    /// Delay after the first attempt, in milliseconds.
    pub initial_ms: u64,
    /// Factor by which each further delay grows.
    pub factor: f64,
    /// Upper bound of a delay, in milliseconds.
    pub max_ms: u64,
    /// Whether each delay is shortened by a random part of up to one half.
    pub jitter: bool,
    /// Failure codes to retry on; `None` retries every retryable failure.
    pub on: Option<BTreeSet<String>>,
}

impl Default for RetryPolicy {
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

impl From<&RetryDef> for RetryPolicy {
    fn from(def: &RetryDef) -> Self {
        let default = Self::default();
        Self {
            attempts: def.attempts.unwrap_or(default.attempts),
            initial_ms: def
                .initial
                .map_or(default.initial_ms, crate::definition::HumanDuration::as_ms),
            factor: def.factor.unwrap_or(default.factor),
            max_ms: def.max.map_or(default.max_ms, crate::definition::HumanDuration::as_ms),
            jitter: def.jitter.unwrap_or(default.jitter),
            on: def.on.clone(),
        }
    }
}

impl RetryPolicy {
    /// Returns the delay after failed attempt number `attempt` (from 1), in milliseconds.
    ///
    /// `jitter` is a random number from 0 to 1. The caller supplies it, since this crate has no
    /// source of randomness. The value 1 gives the full delay, and 0 gives half of it.
    pub fn backoff_ms(&self, attempt: u32, jitter: f64) -> u64 {
        let exponent = i32::try_from(attempt.saturating_sub(1)).unwrap_or(i32::MAX);
        let grown = self.initial_ms as f64 * self.factor.powi(exponent);
        let full = grown.min(self.max_ms as f64);
        let share = if self.jitter { 0.5 + jitter.clamp(0.0, 1.0) / 2.0 } else { 1.0 };
        to_ms(full * share)
    }

    /// Returns true if the policy retries this failure.
    pub fn matches(&self, failure: &Failure) -> bool {
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
    use super::RetryPolicy;
    use crate::failure::{Failure, code};

    #[test]
    fn delays_grow_up_to_the_maximum() {
        let retry = RetryPolicy { jitter: false, max_ms: 1800, ..RetryPolicy::default() };
        let pauses: Vec<u64> = (1..=4).map(|attempt| retry.backoff_ms(attempt, 0.3)).collect();
        assert_eq!(pauses, [500, 1000, 1800, 1800]);
        assert_eq!(retry.backoff_ms(u32::MAX, 0.0), 1800);
    }

    #[test]
    fn jitter_shortens_a_delay_by_up_to_half() {
        let retry = RetryPolicy::default();
        assert_eq!((retry.backoff_ms(1, 0.0), retry.backoff_ms(1, 1.0)), (250, 500));
    }

    #[test]
    fn listed_codes_replace_the_retryable_flag() {
        let named =
            RetryPolicy { on: Some(["timeout".to_owned()].into()), ..RetryPolicy::default() };
        assert!(named.matches(&Failure::new(code::TIMEOUT, "")));
        assert!(!named.matches(&Failure::new(code::UNAVAILABLE, "").retryable()));
        assert!(RetryPolicy::default().matches(&Failure::new("x", "").retryable()));
        assert!(!RetryPolicy::default().matches(&Failure::new("x", "")));
    }
}
