//! Futures that complete even if their client disconnects.
//!
//! The server drops the future of a request when the client disconnects. If that future has just
//! started a run, the disconnect guard of the run does not exist yet, so nothing would cancel the
//! run.

use std::future::Future;

use tokio::sync::{oneshot, watch};
use wattle_run::reads::CurrentReader;

/// Runs a future to completion. If the caller drops the returned future, the work continues until
/// `stopping` becomes true. Returns `None` if the work panicked. The work reads large states in the
/// turns of the request.
pub async fn run<T: Send + 'static>(
    mut stopping: watch::Receiver<bool>,
    work: impl Future<Output = T> + Send + 'static,
) -> Option<T> {
    // No value is sent. The drop of `_caller` signals that the caller has dropped its future.
    let (_caller, dropped) = oneshot::channel::<()>();
    let work = CurrentReader::get().scope(work);
    let task = tokio::spawn(async move {
        let aborted = async {
            let _ = dropped.await;
            let _ = stopping.wait_for(|stopping| *stopping).await;
        };
        tokio::select! {
            biased;
            output = work => Some(output),
            () = aborted => None,
        }
    });
    task.await.ok().flatten()
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt as _, poll};
    use wattle_run::caller_id::CallerId;
    use wattle_run::reads::{ReadTurns, TurnSpan, begin_large_read};

    use super::*;

    #[tokio::test]
    async fn awaited_work_completes_during_shutdown() {
        let (_stop, stopping) = watch::channel(true);
        assert_eq!(run(stopping, async { 7 }).await, Some(7), "shutdown does not abort it");
    }

    #[tokio::test]
    async fn work_continues_after_the_caller_drops_the_future() {
        let (_stop, stopping) = watch::channel(false);
        let (start, started) = oneshot::channel::<()>();
        let (sender, output) = oneshot::channel();
        let work = async move {
            started.await.unwrap();
            sender.send(7).unwrap();
        };
        assert!(run(stopping, work).now_or_never().is_none());
        start.send(()).unwrap();
        assert_eq!(output.await, Ok(7));
    }

    #[tokio::test]
    async fn work_reads_large_states_in_turns_of_the_request() {
        let (_stop, stopping) = watch::channel(false);
        let (turns, [one, other]) = (ReadTurns::new(1), ["a", "b"].map(CallerId::of_key));
        let held = turns.scope(other, TurnSpan::EachRead, begin_large_read()).await;
        let (begin, has_begun) = oneshot::channel();
        let work = async move {
            begin.send(()).unwrap();
            drop(begin_large_read().await);
        };
        let mut request = Box::pin(turns.scope(one, TurnSpan::EachRead, run(stopping, work)));
        assert!(poll!(request.as_mut()).is_pending());
        has_begun.await.unwrap();
        assert!(poll!(request.as_mut()).is_pending(), "the work waits for its turn");
        drop(held);
        assert_eq!(request.await, Some(()));
    }

    #[tokio::test]
    async fn shutdown_aborts_abandoned_work() {
        let (stop, stopping) = watch::channel(false);
        let (sender, dropped) = oneshot::channel::<()>();
        let work = async move {
            let _sender = sender;
            std::future::pending::<()>().await;
        };
        assert!(run(stopping, work).now_or_never().is_none());
        stop.send(true).unwrap();
        assert!(dropped.await.is_err(), "the work was dropped");
    }
}
