//! The models that a call has asked so far, and what becomes of the call when they fail.

use std::time::Duration;

use serde_json::{Value, json};
use wattle_graph::failure::{Failure, code};
use wattle_graph::llm::Attempt;

use crate::provider::{Asks, WITHHELD};
use crate::route::lead::Lead;

/// The models that failed, in order.
pub(super) struct Asked<'a> {
    route: &'a str,
    failed: Vec<Attempt>,
}

impl<'a> Asked<'a> {
    pub(super) fn new(route: &'a str) -> Self {
        Self { route, failed: Vec::new() }
    }

    /// All models that were asked; the last one answered.
    pub(super) fn answered(&mut self, lead: &Lead, asks: &Asks) -> Vec<Attempt> {
        let mut attempts = std::mem::take(&mut self.failed);
        attempts.push(lead.attempt(asks, None));
        attempts
    }

    /// Takes a failure down.
    ///
    /// # Errors
    ///
    /// The failure of the call, if it ends here: a part of the answer was handed on already
    /// (`begun`), or no other model could answer either.
    pub(super) fn failed(
        &mut self,
        lead: &Lead,
        asks: &Asks,
        failure: Failure,
        begun: bool,
    ) -> Result<(), Failure> {
        let ends = begun || !falls_back(&failure);
        self.failed.push(lead.attempt(asks, Some(failure.clone())));
        if ends {
            return Err(self.told(failure));
        }
        tracing::debug!(
            route = %self.route, provider = %lead.target.provider, model = %lead.model,
            code = %failure.code, "model is not available"
        );
        Ok(())
    }

    /// The first model's failure; the others' stand in its details.
    pub(super) fn all_failed(&self) -> Failure {
        let errors = || self.failed.iter().filter_map(|attempt| attempt.error.as_ref());
        let Some(mut first) = errors().next().cloned() else {
            return Failure::internal(format!("the model route `{}` leads nowhere", self.route));
        };
        first.retryable = errors().any(|failure| failure.retryable);
        let others = self.failed.len() - 1;
        if others > 0 {
            first.message = format!("{}; {others} fallback(s) failed as well", first.message);
        }
        self.told(first)
    }

    /// The time of the whole call is over.
    pub(super) fn out_of_time(&self, limit: Duration) -> Failure {
        let message = format!(
            "the model route `{}` gave no answer within {limit:?}, retries and fallbacks included",
            self.route
        );
        self.told(Failure::new(code::TIMEOUT, message).retryable())
    }

    /// A failure with the list of the models that were asked.
    fn told(&self, mut failure: Failure) -> Failure {
        let told: Vec<Value> = self.failed.iter().filter_map(tell).collect();
        if let Value::Object(details) = failure.details.get_or_insert_with(|| json!({})) {
            details.insert("attempts".to_owned(), told.into());
        }
        failure
    }
}

fn tell(attempt: &Attempt) -> Option<Value> {
    let failure = attempt.error.as_ref()?;
    Some(json!({
        "provider": attempt.provider,
        "model": attempt.model,
        "tries": attempt.tries,
        "code": failure.code,
        "message": failure.message,
    }))
}

/// Another model may help when this one is away or its provider refuses the request, not when the
/// request makes no sense to us: providers differ in what they take.
fn falls_back(failure: &Failure) -> bool {
    match failure.code.as_str() {
        code::UNAVAILABLE | code::RATE_LIMITED | code::TIMEOUT | code::UNSUPPORTED | WITHHELD => {
            true
        }
        code::INVALID => refused(failure),
        _ => false,
    }
}

/// Whether a provider refused the request: it answered with a status.
fn refused(failure: &Failure) -> bool {
    failure.details.as_ref().is_some_and(|details| details.get("status").is_some())
}
