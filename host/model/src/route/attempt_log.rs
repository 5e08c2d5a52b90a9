//! The attempts of a call, and the failure of the call when the candidates fail.

use std::time::Duration;

use serde_json::{Value, json};
use wattle_graph::failure::{Failure, code};
use wattle_graph::llm::Attempt;

use crate::provider::{RequestCount, WITHHELD};
use crate::route::candidate::Candidate;

/// The failed attempts of a call, in order.
pub(super) struct AttemptLog<'a> {
    route: &'a str,
    failed: Vec<Attempt>,
}

impl<'a> AttemptLog<'a> {
    pub(super) fn new(route: &'a str) -> Self {
        Self { route, failed: Vec::new() }
    }

    /// Returns all attempts of the call, of which the last one succeeded.
    pub(super) fn finish(
        &mut self,
        candidate: &Candidate,
        requests: &RequestCount,
    ) -> Vec<Attempt> {
        let mut attempts = std::mem::take(&mut self.failed);
        attempts.push(candidate.to_attempt(requests, None));
        attempts
    }

    /// Records a failed attempt.
    ///
    /// # Errors
    ///
    /// The failure of the call, if the host tries no other candidate because a delta was emitted
    /// (`begun`) or because no other candidate could succeed.
    pub(super) fn record_failure(
        &mut self,
        candidate: &Candidate,
        requests: &RequestCount,
        failure: Failure,
        begun: bool,
    ) -> Result<(), Failure> {
        let ends = begun || !should_fall_back(&failure);
        self.failed.push(candidate.to_attempt(requests, Some(failure.clone())));
        if ends {
            return Err(self.with_attempts(failure));
        }
        tracing::debug!(
            route = %self.route, provider = %candidate.target.provider, model = %candidate.model,
            code = %failure.code, "model is not available"
        );
        Ok(())
    }

    /// Returns the failure of the first candidate, with all attempts in its details.
    pub(super) fn all_failed(&self) -> Failure {
        let errors = || self.failed.iter().filter_map(|attempt| attempt.error.as_ref());
        let Some(mut first) = errors().next().cloned() else {
            return Failure::internal(format!(
                "the model route `{}` has no candidates",
                self.route
            ));
        };
        first.retryable = errors().any(|failure| failure.retryable);
        let others = self.failed.len() - 1;
        if others > 0 {
            first.message = format!("{}; {others} fallback(s) also failed", first.message);
        }
        self.with_attempts(first)
    }

    /// Returns the failure of a call whose timeout has passed.
    pub(super) fn timed_out(&self, limit: Duration) -> Failure {
        let message = format!(
            "the model route `{}` did not complete within {limit:?}, with retries and fallbacks",
            self.route
        );
        self.with_attempts(Failure::new(code::TIMEOUT, message).retryable())
    }

    /// Adds the failed attempts to the details of a failure.
    fn with_attempts(&self, mut failure: Failure) -> Failure {
        let told: Vec<Value> = self.failed.iter().filter_map(attempt_json).collect();
        if let Value::Object(details) = failure.details.get_or_insert_with(|| json!({})) {
            details.insert("attempts".to_owned(), told.into());
        }
        failure
    }
}

fn attempt_json(attempt: &Attempt) -> Option<Value> {
    let failure = attempt.error.as_ref()?;
    Some(json!({
        "provider": attempt.provider,
        "model": attempt.model,
        "tries": attempt.tries,
        "code": failure.code,
        "message": failure.message,
    }))
}

/// Returns whether the host tries the next candidate. It does so after an unavailable provider, a
/// rate limit, a timeout, a missing feature, a content filter, or a request that the provider
/// rejected. A request that the host itself rejects fails immediately.
fn should_fall_back(failure: &Failure) -> bool {
    match failure.code.as_str() {
        code::UNAVAILABLE | code::RATE_LIMITED | code::TIMEOUT | code::UNSUPPORTED | WITHHELD => {
            true
        }
        code::INVALID => is_provider_rejection(failure),
        _ => false,
    }
}

/// Returns whether the provider rejected the request: such a failure has an HTTP status.
fn is_provider_rejection(failure: &Failure) -> bool {
    failure.details.as_ref().is_some_and(|details| details.get("status").is_some())
}
