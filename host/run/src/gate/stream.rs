//! Streamed completions of models.
//!
//! Every read of the stream is journaled, so a re-executed guest receives the same deltas from the
//! same reads. The whole completion is the result of the call itself. Until it is recorded the call
//! has no result, and after a crash the call starts again.

use std::sync::Arc;

use serde_json::json;
use tokio_util::task::AbortOnDropHandle;
use wattle_graph::failure::{Failure, code};
use wattle_graph::llm::{Completion, CompletionRequest, Delta};
use wattle_graph::weight::weight;

use crate::gate::entry::CallLookup;
use crate::gate::unread_deltas::{DeltaReceiver, DeltaSender, unread_deltas};
use crate::gate::unwind::{CallError, Unwind};
use crate::gate::{Effect, EffectContext, Gate};
use crate::grant::Grants;
use crate::hostcall::request::CallRequest;
use crate::hostcall::stream::{FUNCTION, STREAM_READ};
use crate::hostcall::{HostCall, Idempotency};
use crate::ports::Caller;

/// A completion that arrives as deltas. Dropping the value ends the outgoing request.
pub struct CompletionStream {
    gate: Arc<Gate>,
    /// Number of the call, which is also the batch of every read.
    number: u32,
    deltas: DeltaReceiver,
    state: CompletionState,
    /// True if the last read returned recorded deltas, which an execution before a crash received.
    replayed: bool,
    /// True if a delta arrived in this execution.
    received: bool,
}

enum CompletionState {
    /// The call has not started: reads of the guest still return recorded deltas.
    NotStarted(Box<StreamingCall>),
    Running(AbortOnDropHandle<Result<Result<Completion, Failure>, Unwind>>),
    Done(Box<Result<Completion, Failure>>),
    Taken,
}

/// A call that performs a [`CompletionRequest`] under the name of the function for streams.
#[derive(serde::Serialize)]
#[serde(transparent)]
struct StreamingCall {
    request: CompletionRequest,
    #[serde(skip)]
    delta_sender: Arc<DeltaSender>,
}

impl HostCall for StreamingCall {
    type Output = Completion;
    const FUNCTION: &'static str = FUNCTION;
    const LOGS_START: bool = true;

    fn idempotency(&self) -> Idempotency {
        Idempotency::Idempotent
    }

    fn summary(&self) -> String {
        self.request.summary()
    }

    fn referenced_bytes(&self) -> u64 {
        self.request.referenced_bytes()
    }

    fn resolved(&self) -> Option<Self> {
        let request = self.request.resolved()?;
        Some(Self { request, delta_sender: self.delta_sender.clone() })
    }

    fn check_allowed(&self, grants: &Grants, caller: &Caller) -> Result<(), Failure> {
        self.request.check_allowed(grants, caller)
    }

    fn is_structured_output(&self) -> bool {
        self.request.is_structured_output()
    }

    fn tokens(answer: &Completion) -> Option<wattle_graph::event::Tokens> {
        CompletionRequest::tokens(answer)
    }

    fn set_message_id(answer: &mut Completion, id: String) {
        CompletionRequest::set_message_id(answer, id);
    }
}

impl Effect for StreamingCall {
    async fn perform(&self, context: &EffectContext<'_>) -> Result<Completion, CallError> {
        let on_deltas = |deltas: &[Delta]| self.delta_sender.send(deltas);
        context.complete_streaming(&self.request, on_deltas).await
    }
}

pub(crate) fn start_stream(
    gate: &Arc<Gate>,
    request: CompletionRequest,
) -> Result<CompletionStream, CallError> {
    let number = gate.reserve_call_numbers(1)?;
    let (delta_sender, deltas) = unread_deltas();
    let call = StreamingCall { request, delta_sender: Arc::new(delta_sender) };
    let state = CompletionState::NotStarted(Box::new(call));
    let gate = gate.clone();
    let mut stream =
        CompletionStream { gate, number, deltas, state, replayed: false, received: false };
    // A re-executed guest may read no more than its recorded reads, so the call is not started yet.
    if !stream.gate.task.as_ref().is_some_and(|task| task.journal.has_stream_reads(number)) {
        stream.start_call();
    }
    Ok(stream)
}

impl CompletionStream {
    /// Returns the next deltas; an empty list at the end.
    ///
    /// # Errors
    ///
    /// [`Unwind`] if the guest must be unwound. [`Self::finish`] reports a failure of the call.
    pub async fn next(&mut self) -> Result<Vec<Delta>, CallError> {
        let look = self.gate.reserve_call_numbers(1)?;
        let Some(task) = self.gate.task.clone() else {
            return Ok(self.deltas.recv().await.unwrap_or_default());
        };
        let request = CallRequest::small(STREAM_READ, json!(self.number));
        let limits = self.gate.limits();
        let mut entry = match task.look_up(look, self.number, request, limits)? {
            CallLookup::Unrecorded(entry) => entry,
            CallLookup::Recorded(known) => {
                let known = known?;
                self.gate.count_journaled(weight(&known))?;
                let deltas: Vec<Delta> = serde_json::from_value(known).unwrap_or_default();
                self.replayed = !deltas.is_empty();
                return Ok(deltas);
            }
        };
        self.start_call();
        let deltas = if std::mem::take(&mut self.replayed) {
            // The completion starts again from its beginning.
            vec![Delta::Restart]
        } else {
            self.next_live().await?
        };
        entry.restart_timer();
        let read = json!(deltas);
        let counted = self.gate.count_journaled(weight(&read));
        entry.record(Ok(read));
        task.log.flush().await;
        counted?;
        Ok(deltas)
    }

    /// Starts the call, or looks up its result. Does nothing if the call has started.
    fn start_call(&mut self) {
        match std::mem::replace(&mut self.state, CompletionState::Taken) {
            CompletionState::NotStarted(call) => {
                let (gate, number) = (self.gate.clone(), self.number);
                let work = async move { gate.call_numbered(number, number, *call).await };
                self.state = CompletionState::Running(AbortOnDropHandle::new(tokio::spawn(work)));
            }
            begun => self.state = begun,
        }
    }

    /// Waits for the next deltas of this execution. A recorded completion has no new deltas, so all
    /// of its deltas are returned at once.
    async fn next_live(&mut self) -> Result<Vec<Delta>, CallError> {
        let cancel = self.gate.env.cancel.clone();
        let deltas = tokio::select! {
            biased;
            () = cancel.wait() => return Err(Unwind::Cancelled.into()),
            deltas = self.deltas.recv() => deltas,
        };
        match deltas {
            None if !self.received => {
                self.received = true;
                self.await_completion().await?;
                Ok(match &self.state {
                    CompletionState::Done(answer) => {
                        answer.as_ref().as_ref().map_or_else(|_| Vec::new(), Completion::deltas)
                    }
                    CompletionState::NotStarted(_)
                    | CompletionState::Running(_)
                    | CompletionState::Taken => Vec::new(),
                })
            }
            deltas => {
                self.received = true;
                Ok(deltas.unwrap_or_default())
            }
        }
    }

    async fn await_completion(&mut self) -> Result<(), Unwind> {
        if let CompletionState::Running(work) = &mut self.state {
            let ended = work.await.unwrap_or_else(|error| {
                Ok(Err(Failure::internal(format!("model call task failed: {error}"))))
            })?;
            self.state = CompletionState::Done(Box::new(ended));
        }
        Ok(())
    }

    /// Returns the whole completion. Waits until it is complete.
    ///
    /// # Errors
    ///
    /// Errors of the call; `invalid` if the completion was returned before.
    pub async fn finish(&mut self) -> Result<Completion, CallError> {
        self.start_call();
        self.await_completion().await?;
        match std::mem::replace(&mut self.state, CompletionState::Taken) {
            CompletionState::Done(answer) => Ok((*answer)?),
            CompletionState::NotStarted(_)
            | CompletionState::Running(_)
            | CompletionState::Taken => {
                Err(Failure::new(code::INVALID, "the completion was already returned").into())
            }
        }
    }
}
