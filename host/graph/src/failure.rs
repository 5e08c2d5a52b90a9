//! The error that guests, events and HTTP responses share.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A typed failure. Mirrors `failure` of `wattle:plugin/types`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{code}: {message}")]
pub struct Failure {
    /// Stable code for programs, see [`code`].
    pub code: String,
    /// Message for people: what happened, where, and what to do.
    pub message: String,
    /// True if the same call can succeed later.
    #[serde(default)]
    pub retryable: bool,
    /// Structured details for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
}

/// Codes of failures of the host. Guests may also use other codes.
pub mod code {
    macro_rules! codes {
        ($($(#[$doc:meta])* $name:ident = $code:literal;)*) => {
            $($(#[$doc])* pub const $name: &str = $code;)*

            /// All codes of the host.
            pub const ALL: &[&str] = &[$($name),*];
        };
    }

    codes! {
        /// The call needs a grant; the message names the line to add to `wattle.toml`.
        DENIED = "denied";
        /// This host does not implement the feature yet; `details.feature` names it.
        UNSUPPORTED = "unsupported";
        /// The request is not valid.
        INVALID = "invalid";
        /// A limit was exceeded; `details.limit` names it.
        LIMIT = "limit";
        /// The operation exceeded its timeout.
        TIMEOUT = "timeout";
        /// An external service cannot be reached or does not work.
        UNAVAILABLE = "unavailable";
        /// An external service refuses further requests for a while.
        RATE_LIMITED = "rate-limited";
        /// The resource does not exist.
        NOT_FOUND = "not-found";
        /// The resource is not in the state that the request needs.
        CONFLICT = "conflict";
        /// The resource has expired.
        EXPIRED = "expired";
        /// Another run or request uses the resource.
        BUSY = "busy";
        /// The operation was cancelled on request.
        CANCELLED = "cancelled";
        /// The guest trapped.
        TRAP = "trap";
        /// A host call of a re-executed node differs from the journal.
        DIVERGENCE = "divergence";
        /// The call may have taken effect, and its result is lost.
        IN_DOUBT = "in-doubt";
        /// Stored data is damaged, or was changed outside of the host.
        BROKEN = "broken";
        /// The host failed, or a part that it depends on.
        INTERNAL = "internal";
    }
}

impl Failure {
    /// Creates a failure that is not retryable.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into(), retryable: false, details: None }
    }

    /// Marks the failure as retryable.
    pub fn retryable(mut self) -> Self {
        self.retryable = true;
        self
    }

    /// Sets the structured details.
    pub fn with_details(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }

    /// Creates a failure for a feature of the contract that this host does not implement yet.
    pub fn unsupported(feature: &str) -> Self {
        Self::new(code::UNSUPPORTED, format!("`{feature}` is not supported by this host yet"))
            .with_details(serde_json::json!({ "feature": feature }))
    }

    /// Creates a failure for an error of the host.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(code::INTERNAL, message)
    }
}
