//! Decodes rows off the calling task, so that long rows do not delay other tasks.

use tokio::task::spawn_blocking;
use wattle_run::ports::store::StoreError;
use wattle_run::reads::LargeRead;

use crate::error::backend;

/// Decodes rows on the blocking pool, in the turn of their read if it has one.
pub(super) async fn decode_on_blocking_pool<T: Send + 'static>(
    operation: &'static str,
    large: Option<LargeRead>,
    decode: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let in_turn = move || {
        let decoded = decode();
        // The turn is held until the rows are decoded, even if the request is given up.
        drop(large);
        decoded
    };
    let decoded = spawn_blocking(in_turn).await;
    decoded.map_err(|error| backend(operation, error))?
}
