//! Tells a guest call that its guest must be unwound, from a task beside the guest.
//!
//! A host function ends its guest with an error. A request of `wasi:http` is made in a task of its
//! own while the guest computes or waits, so its task raises this signal, and the guest call ends.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use wattle_run::gate::unwind::Unwind;

/// The signal of one guest call. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct UnwindSignal(Arc<Shared>);

#[derive(Default)]
struct Shared {
    reason: Mutex<Option<Unwind>>,
    raised: Notify,
}

impl UnwindSignal {
    /// Raises the signal. Only the first reason counts.
    pub(crate) fn raise(&self, reason: Unwind) {
        self.lock().get_or_insert(reason);
        self.0.raised.notify_one();
    }

    /// Waits until the signal is raised, and returns the reason. The guest call alone waits.
    pub(crate) async fn raised(&self) -> Unwind {
        loop {
            let reason = self.lock().take();
            if let Some(reason) = reason {
                return reason;
            }
            self.0.raised.notified().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Unwind>> {
        self.0.reason.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn first_reason_is_returned_also_if_it_was_raised_before() {
        let signal = UnwindSignal::default();
        signal.raise(Unwind::Cancelled);
        signal.raise(Unwind::Drained);
        assert_eq!(signal.clone().raised().await, Unwind::Cancelled);
    }
}
