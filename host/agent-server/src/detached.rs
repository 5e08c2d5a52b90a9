//! Futures that complete even if their client disconnects.

use futures::future::BoxFuture;
use tokio::sync::watch;
use wattle_api::detached;
use wattle_graph::failure::Failure;

use crate::error::ApiError;

/// Runs a future to completion, even if the client disconnects. The future is boxed to keep the
/// futures of handlers small.
///
/// # Errors
///
/// Those of the future; 500 if it panics.
pub(crate) async fn run_detached<T: Send + 'static>(
    stopping: &watch::Receiver<bool>,
    future: BoxFuture<'static, Result<T, ApiError>>,
) -> Result<T, ApiError> {
    let result = detached::run(stopping.clone(), future).await;
    let panicked = || Err(Failure::internal("internal error: the request handler panicked").into());
    result.unwrap_or_else(panicked)
}
