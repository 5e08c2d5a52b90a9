//! Futures that complete even if their client disconnects.
//!
//! The server drops the future of a request when the client disconnects. If that future has just
//! started a run, the disconnect guard of the run does not exist yet, so nothing would cancel the
//! run.

use std::future::Future;

use tokio::sync::{oneshot, watch};

/// Runs a future to completion. If the caller drops the returned future, the work continues until
/// `stopping` becomes true. Returns `None` if the work panicked.
pub async fn finish<T: Send + 'static>(
    mut stopping: watch::Receiver<bool>,
    work: impl Future<Output = T> + Send + 'static,
) -> Option<T> {
    // No value is sent. A drop of the caller's end signals that the caller is gone.
    let (_here, gone) = oneshot::channel::<()>();
    let task = tokio::spawn(async move {
        let cut = async {
            let _ = gone.await;
            let _ = stopping.wait_for(|stopping| *stopping).await;
        };
        tokio::select! {
            biased;
            done = work => Some(done),
            () = cut => None,
        }
    });
    task.await.ok().flatten()
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn awaited_work_completes_during_shutdown() {
        let (_stop, stopping) = watch::channel(true);
        assert_eq!(finish(stopping, async { 7 }).await, Some(7), "shutdown does not abort it");
    }

    #[tokio::test]
    async fn work_outlives_its_caller() {
        let (_stop, stopping) = watch::channel(false);
        let (go, begun) = oneshot::channel::<()>();
        let (tell, done) = oneshot::channel();
        let work = async move {
            begun.await.unwrap();
            tell.send(7).unwrap();
        };
        assert!(finish(stopping, work).now_or_never().is_none());
        go.send(()).unwrap();
        assert_eq!(done.await, Ok(7));
    }

    #[tokio::test]
    async fn shutdown_aborts_abandoned_work() {
        let (stop, stopping) = watch::channel(false);
        let (held, done) = oneshot::channel::<()>();
        let work = async move {
            let _held = held;
            std::future::pending::<()>().await;
        };
        assert!(finish(stopping, work).now_or_never().is_none());
        stop.send(true).unwrap();
        assert!(done.await.is_err(), "the work was dropped");
    }
}
