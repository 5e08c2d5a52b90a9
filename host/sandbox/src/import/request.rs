//! Conversion of the requests of guests to those of the gate.
//!
//! A request that cannot be converted counts as a host call, so that a guest cannot repeat such
//! requests without limit. Long JSON is parsed in the turns of the caller.

use futures::future::BoxFuture;
use wattle_graph::failure::Failure;
use wattle_run::blocking::{block_in_place_in_turn, is_long_parse};
use wattle_run::gate::Gate;
use wattle_run::gate::unwind::CallError;

use crate::host_state::HostState;
use crate::import::batch::failures_if_too_large;
use crate::json::{self, CallJson};

impl HostState {
    /// Converts the request of a call of `function`. `json_bytes` is the length of its JSON texts.
    ///
    /// # Errors
    ///
    /// The failure of `convert`, or the unwind of a guest that made too many calls.
    pub(crate) async fn convert<T: Send>(
        &mut self,
        gate: &Gate,
        function: &str,
        json_bytes: usize,
        convert: impl FnOnce(CallJson<'_>) -> Result<T, Failure> + Send,
    ) -> Result<T, CallError> {
        let work = || json::of_call(function, convert);
        let converted =
            if is_long_parse(json_bytes) { self.parse_in_turn(gate, work).await } else { work() };
        converted.map_err(|failure| gate.refuse(failure))
    }

    /// Converts the requests of a batch of calls of `function`, whose JSON texts have `json_bytes`
    /// bytes together. A request that cannot be converted becomes its failure. The gate counts each
    /// request of a batch. A batch that is too large is not parsed.
    pub(crate) async fn convert_all<R: Send, T: Send>(
        &mut self,
        gate: &Gate,
        function: &str,
        json_bytes: usize,
        requests: Vec<R>,
        convert: fn(R, CallJson<'_>) -> Result<T, Failure>,
    ) -> Vec<Result<T, Failure>> {
        if let Some(failures) = failures_if_too_large(&requests) {
            return failures;
        }
        let work = || {
            json::of_call(function, |json| {
                requests.into_iter().map(|request| convert(request, json)).collect()
            })
        };
        if is_long_parse(json_bytes) { self.parse_in_turn(gate, work).await } else { work() }
    }

    /// Runs long work, such as parsing long JSON. Its time does not count as CPU time of the guest,
    /// because the wait for a turn is a part of it. The future is boxed, so that those of callers
    /// stay small: most JSON is short.
    pub(super) fn parse_in_turn<'a, T: Send + 'a>(
        &'a mut self,
        gate: &Gate,
        work: impl FnOnce() -> T + Send + 'a,
    ) -> BoxFuture<'a, T> {
        let parsed = block_in_place_in_turn(gate.caller().owner, true, work);
        Box::pin(self.off_cpu(parsed))
    }
}
