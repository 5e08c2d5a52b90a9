//! JSON texts of the result of a guest call.

use std::fmt;

use serde_json::Value;
use wattle_graph::failure::{Failure, code};
use wattle_run::json::bounded::{JsonBudget, JsonError, JsonLimit};
use wattle_run::limit::{JSON_VALUES_BYTES, Limits, OUTPUT_VALUES_FACTOR};
use wattle_run::ports::sandbox::GuestError;

use crate::export::invalid_result;
use crate::guest_error::Callee;
use crate::json::CallJson;

/// The JSON texts of one result of a guest. Their values share a budget.
pub(crate) struct OutputJson<'a> {
    budget: JsonBudget,
    callee: Callee<'a>,
}

impl<'a> OutputJson<'a> {
    /// Creates the reader of a result. The values of all texts may take [`OUTPUT_VALUES_FACTOR`]
    /// times as many bytes of memory as the result may have, or [`JSON_VALUES_BYTES`] if that is
    /// more.
    pub(crate) fn new(limits: &Limits, callee: Callee<'a>) -> Self {
        let allowed = limits.output_bytes.saturating_mul(OUTPUT_VALUES_FACTOR);
        Self { budget: JsonBudget::new(allowed.max(JSON_VALUES_BYTES)), callee }
    }

    /// Returns the function that returned the result.
    pub(crate) fn callee(&self) -> Callee<'a> {
        self.callee
    }

    /// Returns the reader of texts that a host call may have as well, with the same budget. `name`
    /// is the name of the function in failures.
    pub(crate) fn as_call<'b>(&'b self, name: &'b str) -> CallJson<'b> {
        CallJson::within(name, &self.budget)
    }

    /// Parses a text, whose size the caller has checked. `what` says what the text is, with an
    /// article.
    ///
    /// # Errors
    ///
    /// An error with the code `limit` or `invalid`, which names the function and the text.
    pub(crate) fn parse(&self, text: &str, what: impl fmt::Display) -> Result<Value, GuestError> {
        let callee = self.callee;
        self.budget.parse(text).map_err(|error| match error {
            JsonError::Syntax(error) => {
                invalid_result(callee, &format!("{what} that is not a valid JSON document"), &error)
            }
            JsonError::Limit(JsonLimit::Depth) => {
                invalid_result(callee, &format!("{what} that cannot be read"), &JsonLimit::Depth)
            }
            JsonError::Limit(exceeded) => {
                let what = format!("{what} that {callee} returned");
                GuestError::Limit(exceeded.to_failure(&what, &self.fewer_values()))
            }
        })
    }

    /// Returns the error of a part of the result that a reader of [`as_call`](Self::as_call)
    /// refused. `what` says what the part is.
    pub(crate) fn refused(&self, what: &str, failure: Failure) -> GuestError {
        let callee = self.callee;
        if failure.code != code::LIMIT {
            return invalid_result(callee, what, &failure);
        }
        let message = format!("{callee} returned {what}: {}", failure.message);
        GuestError::Limit(Failure { message, ..failure })
    }

    /// Returns what to do if values exceed the budget.
    fn fewer_values(&self) -> String {
        let mut advice = "all JSON texts of a result share this limit; return fewer values, or \
                          put large data into a text or a blob"
            .to_owned();
        if let Some(raise) = self.callee.raise_limit("output") {
            advice.push_str(&format!(
                ", or {raise} if it needs more: the limit is {OUTPUT_VALUES_FACTOR} times as high"
            ));
        }
        advice
    }
}
