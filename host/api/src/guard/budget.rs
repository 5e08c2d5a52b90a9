//! The rate limit of a caller, for commands on a WebSocket connection.

use std::net::IpAddr;
use std::time::Duration;

use wattle_run::caller_id::CallerId;

use crate::guard::rate::Rate;
use crate::state::ApiState;

/// The caller whose requests are counted.
#[derive(Clone, Debug)]
pub(crate) enum Subject {
    /// A key, by its id.
    Key(String),
    /// The network of a client that sends requests without a key.
    Address(IpAddr),
}

impl Subject {
    /// Returns the identity between which the host divides what it has.
    pub(crate) fn caller(&self) -> CallerId {
        match self {
            Self::Key(id) => CallerId::of_key(id),
            Self::Address(network) => CallerId::of_network(*network),
        }
    }
}

/// The rate limit that a request counted against, in the extensions of the request. WebSocket
/// handlers count each command against it.
#[derive(Clone)]
pub struct Budget {
    state: ApiState,
    subject: Subject,
    rate: Option<Rate>,
}

impl Budget {
    /// Creates the rate limit of a caller. `rate` is the rate of the key, if it has one of its own.
    pub(crate) fn new(state: &ApiState, subject: Subject, rate: Option<Rate>) -> Self {
        Self { state: state.clone(), subject, rate }
    }

    /// Counts one command as one request.
    ///
    /// # Errors
    ///
    /// The delay until the next command is allowed, if the rate limit is exceeded.
    pub fn take(&self) -> Result<(), Duration> {
        let quotas = &self.state.ledger.quotas;
        match &self.subject {
            Subject::Key(id) => quotas.take_key(id, self.rate),
            Subject::Address(address) => quotas.take_address(*address),
        }
    }
}
