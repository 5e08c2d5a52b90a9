//! Batches of concurrent host calls. The results have the order of the requests.

use wattle_graph::failure::Failure;
use wattle_run::gate::Effect;

use crate::bindings::wattle::plugin::types;
use crate::guest::Guest;
use crate::halt::Trapped;

/// Results of a batch, one for each request.
pub(crate) type Answers<T> = Vec<Result<T, types::Failure>>;

impl Guest {
    /// Makes several host calls at once. An invalid request has a failure as its result.
    pub(crate) async fn call_all<C: Effect, T>(
        &mut self,
        requests: Vec<Result<C, Failure>>,
        convert: fn(C::Answer) -> T,
    ) -> wasmtime::Result<Answers<T>> {
        let gate = self.gate(C::FUNCTION)?;
        let answers = self.outside(gate.call_all(requests)).await.map_err(Trapped::Unwind)?;
        Ok(answers.into_iter().map(|answer| answer.map(convert).map_err(Into::into)).collect())
    }
}
