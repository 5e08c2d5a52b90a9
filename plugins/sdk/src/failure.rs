//! Why something did not work: the one error of guests and of every import.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Codes that the host uses. A guest may use codes of its own.
pub mod code {
    /// Not granted; the message names the line to add to the configuration.
    pub const DENIED: &str = "denied";
    /// Designed, but not in this host yet.
    pub const UNSUPPORTED: &str = "unsupported";
    /// The caller gave something wrong.
    pub const INVALID: &str = "invalid";
    /// A limit of the operator was reached.
    pub const LIMIT: &str = "limit";
    /// No answer in time.
    pub const TIMEOUT: &str = "timeout";
    /// The other side could not be reached, or is out of order.
    pub const UNAVAILABLE: &str = "unavailable";
    /// The other side wants fewer requests.
    pub const RATE_LIMITED: &str = "rate-limited";
    /// There is no such thing.
    pub const NOT_FOUND: &str = "not-found";
    /// The request contradicts the present state.
    pub const CONFLICT: &str = "conflict";
    /// The thing was there but its time is over.
    pub const EXPIRED: &str = "expired";
    /// Something else is active; try again later.
    pub const BUSY: &str = "busy";
    /// Somebody stopped it.
    pub const CANCELLED: &str = "cancelled";
    /// A defect.
    pub const INTERNAL: &str = "internal";
}

/// Key in [`Failure::details`] of the HTTP status that a handler's failure is answered with.
const STATUS: &str = "status";

/// Why something did not work.
///
/// ```
/// use wattle_plugin::{Failure, code};
///
/// let failure = Failure::new("no-rate", "there is no rate for `XYZ`; use a known currency");
/// assert!(!failure.retryable);
///
/// let failure = Failure::new(code::BUSY, "the book is closed until 08:00").retryable();
/// assert!(failure.retryable);
///
/// fn parse(text: &str) -> Result<u32, Failure> {
///     Ok(serde_json::from_str(text)?)
/// }
/// assert_eq!(parse("x").unwrap_err().code, code::INVALID);
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// A short stable word for programs, see [`code`].
    pub code: String,
    /// A sentence for people: what happened, where, what to do.
    pub message: String,
    /// Whether the same call may succeed later. The engine retries a node only then.
    #[serde(default)]
    pub retryable: bool,
    /// Structured facts. Boxed, since every call returns room for a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Box<Value>>,
}

impl Failure {
    /// A failure that is not worth a retry.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into(), retryable: false, details: None }
    }

    /// The caller gave something wrong.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(code::INVALID, message)
    }

    /// There is no such thing.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(code::NOT_FOUND, message)
    }

    /// The request contradicts the present state.
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(code::CONFLICT, message)
    }

    /// This is not supported here.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(code::UNSUPPORTED, message)
    }

    /// The other side is out of order; worth a retry.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(code::UNAVAILABLE, message).retryable()
    }

    /// No answer in time; worth a retry.
    pub fn timeout(message: impl Into<String>) -> Self {
        Self::new(code::TIMEOUT, message).retryable()
    }

    /// A defect of the plugin.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(code::INTERNAL, message)
    }

    /// Says that the same call may succeed later.
    pub fn retryable(mut self) -> Self {
        self.retryable = true;
        self
    }

    /// Adds structured facts. A value that is no JSON leaves them as they were.
    pub fn with_details(mut self, details: impl Serialize) -> Self {
        if let Ok(details) = serde_json::to_value(details) {
            self.details = Some(Box::new(details));
        }
        self
    }

    /// Puts what was going on in front of the message.
    ///
    /// ```
    /// use wattle_plugin::Failure;
    ///
    /// let failure = Failure::not_found("no row 7").context("load the portfolio");
    /// assert_eq!(failure.message, "load the portfolio: no row 7");
    /// ```
    pub fn context(mut self, operation: &str) -> Self {
        self.message = format!("{operation}: {}", self.message);
        self
    }

    /// Lets a web handler that fails with this answer with a status other than 500.
    ///
    /// ```
    /// use wattle_plugin::Failure;
    ///
    /// let failure = Failure::invalid("`name` is empty").with_status(422);
    /// assert_eq!(failure.status(), Some(422));
    /// ```
    pub fn with_status(mut self, status: u16) -> Self {
        let mut details = match self.details.take().map(|details| *details) {
            Some(Value::Object(details)) => details,
            Some(other) => Map::from_iter([("facts".to_owned(), other)]),
            None => Map::new(),
        };
        details.insert(STATUS.to_owned(), status.into());
        self.details = Some(Box::new(Value::Object(details)));
        self
    }

    /// The HTTP status set by [`Failure::with_status`].
    pub fn status(&self) -> Option<u16> {
        let status = self.details.as_ref()?.get(STATUS)?.as_u64()?;
        u16::try_from(status).ok()
    }
}

/// A document that does not fit its type is the giver's mistake: code `invalid`.
impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::invalid(format!("read or write JSON: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Failure;

    #[test]
    fn a_status_keeps_other_details() {
        let failure = Failure::invalid("no").with_details(json!({"field": "a"})).with_status(400);
        assert_eq!(failure.details.as_deref(), Some(&json!({"field": "a", "status": 400})));
        let failure = Failure::invalid("no").with_details(json!([1])).with_status(400);
        assert_eq!(failure.details.as_deref(), Some(&json!({"facts": [1], "status": 400})));
    }

    // Larger errors make every `Result` large, and linters complain in every plugin.
    #[test]
    fn a_failure_is_small() {
        assert!(size_of::<Failure>() < 128);
    }

    #[test]
    fn a_failure_is_an_error_with_its_message() {
        let error: Box<dyn std::error::Error> = Box::new(Failure::unavailable("down"));
        assert_eq!(error.to_string(), "down");
    }
}
