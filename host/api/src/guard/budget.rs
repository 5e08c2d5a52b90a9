//! How often a caller may ask over a connection that stays open.

use std::time::Duration;

use crate::guard::open::Subject;
use crate::guard::rate::Rate;
use crate::state::ApiState;

/// The budget that a request was taken from. It is among the extensions of the request: who takes
/// the connection over, as for a WebSocket, takes what is asked for over it from the same.
#[derive(Clone)]
pub struct Budget {
    state: ApiState,
    subject: Subject,
    rate: Option<Rate>,
}

impl Budget {
    /// That of a caller. `rate` is the key's own, if it has one.
    pub(crate) fn new(state: &ApiState, subject: Subject, rate: Option<Rate>) -> Self {
        Self { state: state.clone(), subject, rate }
    }

    /// Takes one request, as if it had come by itself.
    ///
    /// # Errors
    ///
    /// How long the caller has to wait for the next.
    pub fn take(&self) -> Result<(), Duration> {
        let quotas = &self.state.ledger.quotas;
        match &self.subject {
            Subject::Key(id) => quotas.take_key(id, self.rate),
            Subject::Address(address) => quotas.take_address(*address),
        }
    }
}
