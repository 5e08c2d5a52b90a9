//! The rate limit of a caller, for commands on a WebSocket connection.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use wattle_run::caller_id::CallerId;

use crate::guard::rate::Rate;
use crate::guard::rate_limiters::RateLimiters;

/// The identity under which the requests of a caller are counted.
#[derive(Clone, Debug)]
pub(crate) enum CallerIdentity {
    /// A key, by its id.
    Key(String),
    /// A client that sends requests without a key, by its IPv4 address or the /64 prefix of its
    /// IPv6 address, see [`network_of`](crate::guard::network_of).
    Network(IpAddr),
}

impl CallerIdentity {
    /// Returns the id by which the host divides shared limits among callers.
    pub(crate) fn caller_id(&self) -> CallerId {
        match self {
            Self::Key(id) => CallerId::of_key(id),
            Self::Network(network) => CallerId::of_network(*network),
        }
    }
}

/// The rate limit that a request counted against, in the extensions of the request. WebSocket
/// handlers count each command against this limit.
#[derive(Clone)]
pub struct CallerRateLimit {
    limiters: Arc<RateLimiters>,
    caller: CallerIdentity,
    rate: Option<Rate>,
}

impl CallerRateLimit {
    /// Creates the rate limit of a caller. `rate` is the key's own rate limit.
    pub(crate) fn new(
        limiters: Arc<RateLimiters>,
        caller: CallerIdentity,
        rate: Option<Rate>,
    ) -> Self {
        Self { limiters, caller, rate }
    }

    /// Counts one command as one request.
    ///
    /// # Errors
    ///
    /// The delay until the next command is allowed, if the rate limit is exceeded.
    pub fn check(&self) -> Result<(), Duration> {
        match &self.caller {
            CallerIdentity::Key(id) => self.limiters.check_key(id, self.rate),
            CallerIdentity::Network(network) => self.limiters.check_address(*network),
        }
    }
}
