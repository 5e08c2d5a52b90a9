//! Conversions of JSON, extension fields and failures, which all interfaces use.

use serde_json::Value;

use crate::bindings::imports::wattle::plugin::types as raw;
use crate::failure::Failure;
use crate::json::Extra;

/// Parses JSON text from the host. Text that is nested too deeply becomes a string.
pub(crate) fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

/// Converts extension fields from the host.
pub(crate) fn extra(pairs: Vec<(String, String)>) -> Extra {
    pairs.into_iter().map(|(key, text)| (key, value(&text))).collect()
}

/// Converts extension fields for the host.
pub(crate) fn raw_extra(extra: Extra) -> Vec<(String, String)> {
    extra.into_iter().map(|(key, value)| (key, value.to_string())).collect()
}

/// Serializes an optional JSON value for the host.
pub(crate) fn text(value: Option<Value>) -> Option<String> {
    value.map(|value| value.to_string())
}

impl From<raw::Failure> for Failure {
    fn from(failure: raw::Failure) -> Self {
        Self {
            code: failure.code,
            message: failure.message,
            retryable: failure.retryable,
            details: failure.details.as_deref().map(|text| Box::new(value(text))),
        }
    }
}

impl From<Failure> for raw::Failure {
    fn from(failure: Failure) -> Self {
        Self {
            code: failure.code,
            message: failure.message,
            retryable: failure.retryable,
            details: failure.details.map(|details| details.to_string()),
        }
    }
}

/// Converts the output or the failure of a result.
pub(crate) fn result<A: Into<B>, B>(answer: Result<A, raw::Failure>) -> Result<B, Failure> {
    answer.map(Into::into).map_err(Into::into)
}
