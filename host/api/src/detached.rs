//! Work that is done to its end even if the client who asked for it has gone.
//!
//! The server drops the future of a request when its client hangs up. Were a handler cut there, a
//! run that it has just begun would have nobody whose leaving ends it.

use std::future::Future;

use tokio::sync::{oneshot, watch};

/// Does some work. When the caller drops this, the work goes on until `stopping` becomes true.
/// `None` if it broke down.
pub async fn finish<T: Send + 'static>(
    mut stopping: watch::Receiver<bool>,
    work: impl Future<Output = T> + Send + 'static,
) -> Option<T> {
    // Nothing is ever sent: the sender is dropped with the caller.
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
    async fn what_is_awaited_is_answered() {
        let (_stop, stopping) = watch::channel(true);
        assert_eq!(finish(stopping, async { 7 }).await, Some(7), "a stop lets it end");
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
    async fn a_stop_ends_what_nobody_waits_for() {
        let (stop, stopping) = watch::channel(false);
        let (held, done) = oneshot::channel::<()>();
        let work = async move {
            let _held = held;
            std::future::pending::<()>().await;
        };
        assert!(finish(stopping, work).now_or_never().is_none());
        stop.send(true).unwrap();
        assert!(done.await.is_err(), "it was dropped");
    }
}
