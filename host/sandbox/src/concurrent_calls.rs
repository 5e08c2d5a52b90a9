//! Host calls that run concurrently with their guest, while the guest computes or waits for
//! something else.
//!
//! A host function unwinds its guest by returning an error to wasmtime. A request of `wasi:http`
//! runs while the guest continues, so its host call unwinds the guest by the result of its future.
//! The concurrent calls are polled only in the task of the guest. A guest call that is dropped
//! therefore drops its host calls at once, and none of these writes to the log of the thread
//! afterwards.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt as _};
use wattle_run::gate::unwind::Unwind;

/// The concurrent host calls of one guest. Clones share these calls.
#[derive(Clone, Default)]
pub(crate) struct ConcurrentCalls(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// `None` until the first call. Few guests make concurrent calls, and an empty set of futures
    /// allocates, and clones the waker of the guest at each poll.
    calls: Option<FuturesUnordered<BoxFuture<'static, Result<(), Unwind>>>>,
    /// The reason that was passed to [`ConcurrentCalls::unwind`].
    unwind: Option<Unwind>,
}

impl ConcurrentCalls {
    /// Adds a host call. If `call` returns an error, this error unwinds the guest.
    pub(crate) fn push(&self, call: impl Future<Output = Result<(), Unwind>> + Send + 'static) {
        self.lock().calls.get_or_insert_default().push(Box::pin(call));
    }

    /// Returns the number of calls that have no result yet.
    pub(crate) fn len(&self) -> usize {
        self.lock().calls.as_ref().map_or(0, FuturesUnordered::len)
    }

    /// Unwinds the guest. Only the first reason is kept.
    pub(crate) fn unwind(&self, reason: Unwind) {
        self.lock().unwind.get_or_insert(reason);
    }

    /// Awaits `work` of the guest together with the calls.
    ///
    /// # Errors
    ///
    /// The reason why a call unwinds the guest. After this error, `work` must not be polled again.
    pub(crate) async fn run_beside<T>(
        &self,
        mut work: Pin<&mut impl Future<Output = T>>,
    ) -> Result<T, Unwind> {
        poll_fn(|context| {
            if let Poll::Ready(Some(reason)) = self.poll_unwind(context) {
                return Poll::Ready(Err(reason));
            }
            if let Poll::Ready(output) = work.as_mut().poll(context) {
                return Poll::Ready(Ok(output));
            }
            // The guest may have added calls.
            match self.poll_unwind(context) {
                Poll::Ready(Some(reason)) => Poll::Ready(Err(reason)),
                Poll::Ready(None) | Poll::Pending => Poll::Pending,
            }
        })
        .await
    }

    /// Awaits the calls of a guest that has ended.
    ///
    /// # Errors
    ///
    /// The first reason to unwind the guest, after all calls have ended. A cancel or the loss of
    /// the log is returned at once, without waiting for the other calls.
    pub(crate) async fn finish(&self) -> Result<(), Unwind> {
        let mut ended = Ok(());
        while let Some(reason) = poll_fn(|context| self.poll_unwind(context)).await {
            if ends_calls(&reason) {
                return Err(reason);
            }
            ended = ended.and(Err(reason));
        }
        ended
    }

    /// Polls the calls. Returns the reason why one of them unwinds the guest, or `None` when all
    /// have ended.
    fn poll_unwind(&self, context: &mut Context<'_>) -> Poll<Option<Unwind>> {
        let mut state = self.lock();
        if let Some(reason) = state.unwind.take() {
            return Poll::Ready(Some(reason));
        }
        let Some(calls) = &mut state.calls else { return Poll::Ready(None) };
        loop {
            match calls.poll_next_unpin(context) {
                Poll::Ready(Some(Ok(()))) => {}
                Poll::Ready(Some(Err(reason))) => return Poll::Ready(Some(reason)),
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Locks the state and ignores poisoning: a call that panics ends the guest call.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns true if no host call of the guest may continue after the guest is unwound for `reason`.
pub(crate) fn ends_calls(reason: &Unwind) -> bool {
    matches!(reason, Unwind::Cancelled | Unwind::LogLost(_))
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::pin::pin;

    use futures::FutureExt as _;
    use tokio::sync::oneshot;
    use tokio::task::yield_now;
    use wattle_graph::failure::Failure;

    use super::*;

    fn limit() -> Unwind {
        Unwind::Limit(Failure::new("limit", "too much"))
    }

    #[test]
    fn guest_that_is_unwound_does_not_continue() {
        let calls = ConcurrentCalls::default();
        calls.unwind(limit());
        calls.unwind(Unwind::Drained);
        let mut has_gone_on = false;
        let ended = calls.run_beside(pin!(async { has_gone_on = true })).now_or_never();
        assert_eq!((ended, has_gone_on), (Some(Err(limit())), false));
    }

    #[tokio::test]
    async fn call_that_the_guest_adds_can_unwind_the_guest() {
        let calls = ConcurrentCalls::default();
        let work = async {
            calls.push(async {
                yield_now().await;
                Err(limit())
            });
            pending::<()>().await;
        };
        assert_eq!(calls.run_beside(pin!(work)).await, Err(limit()));
    }

    #[tokio::test]
    async fn guest_is_unwound_for_the_first_reason_after_all_calls_have_ended() {
        let calls = ConcurrentCalls::default();
        let (ends, mut has_ended) = oneshot::channel();
        calls.push(ready(Err(limit())));
        calls.push(async move {
            yield_now().await;
            ends.send(()).unwrap();
            Err(Unwind::Drained)
        });
        assert_eq!(calls.finish().await, Err(limit()));
        assert_eq!(has_ended.try_recv(), Ok(()));
    }

    #[tokio::test]
    async fn after_a_cancel_the_other_calls_are_not_awaited() {
        let calls = ConcurrentCalls::default();
        calls.push(pending());
        calls.push(ready(Err(Unwind::Cancelled)));
        assert_eq!(calls.finish().await, Err(Unwind::Cancelled));
    }
}
