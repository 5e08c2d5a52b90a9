//! The rate limit of a caller, for commands on a WebSocket connection.

use std::time::Duration;

use crate::guard::open::Subject;
use crate::guard::rate::Rate;
use crate::state::ApiState;

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
