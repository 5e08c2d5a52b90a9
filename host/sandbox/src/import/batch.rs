//! Batches of concurrent host calls. The results have the order of the requests.

use wattle_graph::failure::Failure;
use wattle_run::gate::{Effect, check_batch_size};

use crate::bindings::wattle::plugin::types;
use crate::host_state::HostState;
use crate::import_error::TrapReason;

/// Results of a batch, one for each request.
pub(crate) type BatchResults<T> = Vec<Result<T, types::Failure>>;

/// Returns the failures of a batch that is too large, which the gate rejects. Its requests need not
/// be converted.
pub(crate) fn failures_if_too_large<R, T>(requests: &[R]) -> Option<Vec<Result<T, Failure>>> {
    let failure = check_batch_size(requests.len()).err()?;
    Some(requests.iter().map(|_| Err(failure.clone())).collect())
}

impl HostState {
    /// Makes several host calls concurrently. The result of an invalid request is its failure.
    pub(crate) async fn call_all<C: Effect, T>(
        &mut self,
        requests: Vec<Result<C, Failure>>,
        convert: fn(C::Output) -> T,
    ) -> wasmtime::Result<BatchResults<T>> {
        let gate = self.gate(C::FUNCTION)?;
        let results = self.off_cpu(gate.call_all(requests)).await.map_err(TrapReason::Unwind)?;
        Ok(results.into_iter().map(|answer| answer.map(convert).map_err(Into::into)).collect())
    }
}
