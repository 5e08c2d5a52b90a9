//! Why something did not work, in the shape that guests, events and HTTP answers share.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A typed failure. Mirrors `failure` of `wattle:plugin/types`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{code}: {message}")]
pub struct Failure {
    /// A short stable word for programs, see [`code`].
    pub code: String,
    /// A sentence for people: what happened, where, what to do.
    pub message: String,
    /// Whether the same call may succeed later.
    #[serde(default)]
    pub retryable: bool,
    /// Structured facts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
}

/// Codes that the host uses. Guests may use codes of their own.
pub mod code {
    /// Not granted; the message names the line to add.
    pub const DENIED: &str = "denied";
    /// Designed, but not in this host yet; `details.feature` names it.
    pub const UNSUPPORTED: &str = "unsupported";
    /// The request makes no sense.
    pub const INVALID: &str = "invalid";
    /// A limit was reached; `details.limit` names it.
    pub const LIMIT: &str = "limit";
    /// Took longer than allowed.
    pub const TIMEOUT: &str = "timeout";
    /// An outside service cannot be reached or is broken.
    pub const UNAVAILABLE: &str = "unavailable";
    /// An outside service asks to slow down.
    pub const RATE_LIMITED: &str = "rate-limited";
    /// There is no such thing.
    pub const NOT_FOUND: &str = "not-found";
    /// The thing is not in the state that the request needs.
    pub const CONFLICT: &str = "conflict";
    /// The thing existed and has expired.
    pub const EXPIRED: &str = "expired";
    /// Somebody else is at work on it.
    pub const BUSY: &str = "busy";
    /// Cancelled on request.
    pub const CANCELLED: &str = "cancelled";
    /// The guest trapped.
    pub const TRAP: &str = "trap";
    /// A re-executed node asked for something else than its journal says.
    pub const DIVERGENCE: &str = "divergence";
    /// The host stopped while the call was under way; nobody can know if it had its effect.
    pub const IN_DOUBT: &str = "in-doubt";
    /// What is stored was changed behind the host's back.
    pub const BROKEN: &str = "broken";
    /// A fault of the host.
    pub const INTERNAL: &str = "internal";
}

impl Failure {
    /// A failure that a retry does not help.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into(), retryable: false, details: None }
    }

    /// The same, but a later retry may help.
    pub fn retryable(mut self) -> Self {
        self.retryable = true;
        self
    }

    /// Adds structured facts.
    pub fn with_details(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }

    /// A part of the contract that this host does not implement yet.
    pub fn unsupported(feature: &str) -> Self {
        Self::new(code::UNSUPPORTED, format!("`{feature}` is not supported by this host yet"))
            .with_details(serde_json::json!({ "feature": feature }))
    }

    /// A fault of the host.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(code::INTERNAL, message)
    }
}
