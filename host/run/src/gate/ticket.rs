//! Host calls whose numbers are reserved before the calls are made.
//!
//! A guest of `wasi:http` starts a request, writes the body of the request afterwards, and may
//! start other requests meanwhile. The host makes these calls concurrently with the guest, so the
//! calls can start in another order than the guest requested them. The numbers have the order of
//! the guest, so a re-executed guest gets the same numbers.

use std::sync::Arc;

use crate::gate::Gate;
use crate::gate::effect::Effect;
use crate::gate::unwind::{CallError, Unwind};

/// The number of a host call that is not made yet. Dropping the ticket leaves a number without a
/// call.
#[must_use]
pub struct CallTicket {
    gate: Arc<Gate>,
    number: u32,
    batch: u32,
}

impl Gate {
    /// Counts a host call and reserves its number. `batch` is the batch of a call in progress whose
    /// result the guest does not know yet. Failed calls of the last batch are repeated together
    /// when the node is executed again. Without `batch`, the call begins a batch.
    ///
    /// # Errors
    ///
    /// [`Unwind::Limit`] if the guest makes too many calls.
    pub fn begin_call(self: &Arc<Self>, batch: Option<u32>) -> Result<CallTicket, Unwind> {
        let number = self.reserve_call_numbers(1)?;
        Ok(CallTicket { gate: self.clone(), number, batch: batch.unwrap_or(number) })
    }
}

impl CallTicket {
    /// Returns the number of the first call of the batch.
    pub fn batch(&self) -> u32 {
        self.batch
    }

    /// Makes the call, or returns its recorded result, like [`Gate::call`].
    ///
    /// # Errors
    ///
    /// [`CallError::Failure`] for the guest, [`CallError::Unwind`] if the guest must be unwound.
    pub async fn call<C: Effect>(self, call: C) -> Result<C::Output, CallError> {
        let Self { gate, number, batch } = self;
        gate.call_numbered(number, batch, call).await?.map_err(CallError::Failure)
    }
}
