//! Calls of candidates.

use wattle_graph::failure::Failure;
use wattle_graph::llm::CompletionRequest;

use crate::chat::Chat;
use crate::config::RouteConfig;
use crate::extra::Extra;
use crate::provider::{AttemptSpec, Provider, ResponseFormat, TurnRequest, TurnResponse};
use crate::sink::CallSink;

/// A call of one candidate.
pub(crate) struct CandidateCall<'a> {
    pub(crate) provider: &'a Provider,
    pub(crate) spec: AttemptSpec<'a>,
    pub(crate) chat: Chat<'a>,
    pub(crate) sink: &'a CallSink<'a>,
    pub(super) request: &'a CompletionRequest,
    pub(super) route: &'a RouteConfig,
    pub(super) extra: &'a Extra,
}

impl CandidateCall<'_> {
    /// Returns whether the model gets a repair turn for an invalid document.
    pub(crate) fn may_repair(&self) -> bool {
        self.request.tries.repair.unwrap_or(true)
    }

    /// Sends one turn, with its retries.
    pub(crate) async fn turn(
        &self,
        chat: &Chat<'_>,
        format: ResponseFormat<'_>,
    ) -> Result<TurnResponse, Failure> {
        let (request, route, extra) = (self.request, self.route, self.extra);
        let ask = TurnRequest { chat, request, route, format, extra };
        self.provider.turn(self.spec, &ask, self.sink).await
    }
}
