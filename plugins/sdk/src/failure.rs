//! Failures: the error type of guests and of all imports.

use std::array::TryFromSliceError;
use std::char::{CharTryFromError, ParseCharError};
use std::fmt;
use std::net::AddrParseError;
use std::num::{ParseFloatError, ParseIntError, TryFromIntError};
use std::str::{ParseBoolError, Utf8Error};
use std::string::FromUtf8Error;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Codes that the host uses. A guest can also use its own codes.
pub mod code {
    /// The operator did not grant the call; the message names the line to add to the configuration.
    pub const DENIED: &str = "denied";
    /// This host does not support the call.
    pub const UNSUPPORTED: &str = "unsupported";
    /// The request or an argument is invalid.
    pub const INVALID: &str = "invalid";
    /// A limit was reached.
    pub const LIMIT: &str = "limit";
    /// The timeout expired.
    pub const TIMEOUT: &str = "timeout";
    /// A service cannot be reached, or reports an internal error.
    pub const UNAVAILABLE: &str = "unavailable";
    /// A service rejects the request because of its rate limit.
    pub const RATE_LIMITED: &str = "rate-limited";
    /// The requested item does not exist.
    pub const NOT_FOUND: &str = "not-found";
    /// The request conflicts with the current state.
    pub const CONFLICT: &str = "conflict";
    /// The requested item has expired.
    pub const EXPIRED: &str = "expired";
    /// Another operation is active; the request can be retried later.
    pub const BUSY: &str = "busy";
    /// The operation was cancelled.
    pub const CANCELLED: &str = "cancelled";
    /// A defect of the plugin or of the host.
    pub const INTERNAL: &str = "internal";
}

/// Key in [`Failure::details`] that contains the HTTP status of a web handler's response. `status`
/// is the one of a model's provider.
const STATUS: &str = "http_status";

/// The error of a guest or of a host call.
///
/// ```
/// use wattle_plugin::{Failure, code};
///
/// let failure = Failure::new("no-rate", "there is no rate for `XYZ`; use a known currency");
/// assert!(!failure.retryable);
///
/// let failure = Failure::new(code::BUSY, "the book is closed until 08:00").retryable();
/// assert!(failure.retryable);
/// ```
///
/// In a function that returns `Result<_, Failure>`, `?` converts the errors of JSON and of the
/// conversions of the standard library.
///
/// ```
/// use wattle_plugin::{Failure, code};
///
/// fn total(prices: &str, count: &str) -> Result<i64, Failure> {
///     let prices: Vec<i64> = serde_json::from_str(prices)?;
///     let count: u32 = count.trim().parse()?;
///     Ok(prices.iter().sum::<i64>() * i64::from(count))
/// }
///
/// assert_eq!(total("[2, 3]", "4"), Ok(20));
/// let failure = total("[2, 3]", "four").unwrap_err();
/// assert_eq!(failure.code, code::INVALID);
/// assert_eq!(failure.message, "read an integer: invalid digit found in string");
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// A short stable machine-readable identifier, see [`code`].
    pub code: String,
    /// A human-readable message: the failed operation, the reason, and a hint.
    pub message: String,
    /// True if the same call can succeed later. The host retries a node only after such a failure.
    #[serde(default)]
    pub retryable: bool,
    /// Structured details. They are boxed, because every call returns a `Result` with a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Box<Value>>,
}

impl Failure {
    /// Creates a failure that is not retried.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into(), retryable: false, details: None }
    }

    /// Creates a failure with the code `invalid`.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(code::INVALID, message)
    }

    /// Creates a failure with the code `not-found`.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(code::NOT_FOUND, message)
    }

    /// Creates a failure with the code `conflict`.
    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(code::CONFLICT, message)
    }

    /// Creates a failure with the code `unsupported`.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(code::UNSUPPORTED, message)
    }

    /// Creates a retryable failure with the code `unavailable`.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(code::UNAVAILABLE, message).retryable()
    }

    /// Creates a retryable failure with the code `timeout`.
    pub fn timeout(message: impl Into<String>) -> Self {
        Self::new(code::TIMEOUT, message).retryable()
    }

    /// Creates a failure with the code `internal`, for a defect of the plugin.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(code::INTERNAL, message)
    }

    /// Marks the failure as retryable: the same call can succeed later.
    pub fn retryable(mut self) -> Self {
        self.retryable = true;
        self
    }

    /// Sets the structured details. If the value cannot be serialized, the details are unchanged.
    pub fn with_details(mut self, details: impl Serialize) -> Self {
        if let Ok(details) = serde_json::to_value(details) {
            self.details = Some(Box::new(details));
        }
        self
    }

    /// Prefixes the message with the failed operation.
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

    /// Sets the HTTP status of the response if a web handler returns this failure; the default is
    /// 500.
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

    /// Returns the HTTP status that was set with [`Failure::with_status`].
    pub fn status(&self) -> Option<u16> {
        let status = self.details.as_ref()?.get(STATUS)?.as_u64()?;
        u16::try_from(status).ok()
    }

    /// Returns the completion that the host refused because it violates the schema of its request:
    /// the document in it if the host found one, otherwise the beginning of its text.
    ///
    /// ```
    /// use serde_json::json;
    /// use wattle_plugin::Failure;
    ///
    /// let failure = Failure::invalid("`/kind` is missing");
    /// assert_eq!(failure.refused_completion(), None);
    /// let details = json!({"answer": "Sure: {}", "document": "{}"});
    /// assert_eq!(failure.with_details(details).refused_completion(), Some("{}"));
    /// ```
    pub fn refused_completion(&self) -> Option<&str> {
        let details = self.details.as_ref().filter(|_| self.code == code::INVALID)?;
        details.get("document").or_else(|| details.get("answer"))?.as_str()
    }
}

/// Converts a JSON error to a failure with the code `invalid`.
impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::invalid(format!("read or write JSON: {error}"))
    }
}

/// Converts errors of the standard library. A conversion of all errors is impossible, because
/// `Failure` is an error itself.
macro_rules! from_conversions {
    ($($error:ty: $operation:literal;)*) => {$(
        /// Converts the error to a failure with the code `invalid`.
        impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Self::invalid(error.to_string()).context($operation)
            }
        }
    )*};
}

from_conversions! {
    ParseIntError: "read an integer";
    ParseFloatError: "read a number";
    ParseBoolError: "read a boolean";
    ParseCharError: "read a character";
    AddrParseError: "read an address";
    TryFromIntError: "convert an integer";
    CharTryFromError: "convert an integer to a character";
    TryFromSliceError: "convert a slice to an array";
    Utf8Error: "read bytes as UTF-8";
    FromUtf8Error: "read bytes as UTF-8";
}

/// Converts the error of `write!` to a failure with the code `internal`: a text takes everything, so
/// an implementation of `Display` failed.
impl From<fmt::Error> for Failure {
    fn from(error: fmt::Error) -> Self {
        Self::internal(error.to_string()).context("write a text")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Failure, code};

    #[test]
    fn status_keeps_other_details() {
        let failure = Failure::invalid("no").with_details(json!({"field": "a"})).with_status(400);
        assert_eq!(failure.details.as_deref(), Some(&json!({"field": "a", "http_status": 400})));
        let failure = Failure::invalid("no").with_details(json!([1])).with_status(400);
        assert_eq!(failure.details.as_deref(), Some(&json!({"facts": [1], "http_status": 400})));
    }

    #[test]
    fn status_of_a_provider_is_not_that_of_the_response() {
        let failure = Failure::unavailable("no key").with_details(json!({"status": 401}));
        assert_eq!(failure.status(), None);
        let failure = failure.with_status(502);
        assert_eq!(failure.status(), Some(502));
        let both = json!({"status": 401, "http_status": 502});
        assert_eq!(failure.details.as_deref(), Some(&both));
    }

    #[test]
    fn errors_of_the_standard_library_become_failures() {
        fn read<T: std::str::FromStr>(text: &str) -> Failure
        where
            Failure: From<T::Err>,
        {
            text.parse::<T>().map_err(Failure::from).err().unwrap()
        }
        let not_utf8 = String::from_utf8(vec![0xff]).unwrap_err();
        let failures = [
            (read::<u8>("x"), "read an integer: "),
            (read::<f64>("x"), "read a number: "),
            (read::<bool>("x"), "read a boolean: "),
            (read::<char>("xy"), "read a character: "),
            (read::<std::net::IpAddr>("x"), "read an address: "),
            (u8::try_from(256_i64).unwrap_err().into(), "convert an integer: "),
            (char::try_from(0xd800_u32).unwrap_err().into(), "convert an integer to a character: "),
            (<[u8; 2]>::try_from(&[1_u8][..]).unwrap_err().into(), "convert a slice to an array: "),
            (not_utf8.utf8_error().into(), "read bytes as UTF-8: "),
            (not_utf8.into(), "read bytes as UTF-8: "),
        ];
        for (failure, operation) in failures {
            assert_eq!(failure.code, code::INVALID);
            assert!(failure.message.starts_with(operation), "{}", failure.message);
        }
        assert_eq!(Failure::from(std::fmt::Error).code, code::INTERNAL);
    }

    // Every `Result` contains a failure. A larger one would trigger lints in every plugin.
    #[test]
    fn failure_is_small_enough_for_clippy_lints() {
        assert!(size_of::<Failure>() < 128);
    }

    #[test]
    fn failure_displays_its_message() {
        let error: Box<dyn std::error::Error> = Box::new(Failure::unavailable("down"));
        assert_eq!(error.to_string(), "down");
    }
}
