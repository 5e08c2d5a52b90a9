//! Streamed completions of models.
//!
//! Every read of the stream is journaled, so a re-executed guest receives the same deltas from the
//! same reads. The whole completion is the result of the call itself. Until it is recorded the call
//! has no result, and after a crash the call starts again.

use std::sync::Arc;

use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;
use wattle_graph::failure::{Failure, code};
use wattle_graph::llm::{Completion, CompletionRequest, Delta};

use crate::gate::entry::LookedUp;
use crate::gate::unwind::{Stop, Unwind};
use crate::gate::{Effect, Gate, Site};
use crate::grant::Grants;
use crate::hostcall::request::Request;
use crate::hostcall::stream::{FUNCTION, LOOK};
use crate::hostcall::{HostCall, Repeat};
use crate::ports::Caller;

/// A completion that arrives as deltas. Dropping it ends the outgoing request.
pub struct GateStream {
    gate: Arc<Gate>,
    /// Number of the call, which is also the batch of every read.
    number: u32,
    pieces: mpsc::UnboundedReceiver<Vec<Delta>>,
    answer: Answer,
    /// True if the last read returned recorded deltas, which an execution before a crash received.
    replayed: bool,
    /// True if a delta arrived in this execution.
    received: bool,
}

enum Answer {
    /// The call has not started: the guest still replays recorded reads.
    Later(Box<Streaming>),
    Coming(AbortOnDropHandle<Result<Result<Completion, Failure>, Unwind>>),
    Here(Box<Result<Completion, Failure>>),
    Taken,
}

/// The call of [`CompletionRequest`] under the function of streams.
#[derive(serde::Serialize)]
#[serde(transparent)]
struct Streaming {
    request: CompletionRequest,
    #[serde(skip)]
    looks: mpsc::UnboundedSender<Vec<Delta>>,
}

impl HostCall for Streaming {
    type Answer = Completion;
    const FUNCTION: &'static str = FUNCTION;
    const SLOW: bool = true;

    fn repeat(&self) -> Repeat {
        Repeat::Safe
    }

    fn summary(&self) -> String {
        self.request.summary()
    }

    fn allowed(&self, grants: &Grants, caller: &Caller) -> Result<(), Failure> {
        self.request.allowed(grants, caller)
    }

    fn is_document(&self) -> bool {
        self.request.is_document()
    }

    fn tokens(answer: &Completion) -> Option<wattle_graph::event::Tokens> {
        CompletionRequest::tokens(answer)
    }

    fn name(answer: &mut Completion, id: String) {
        CompletionRequest::name(answer, id);
    }
}

impl Effect for Streaming {
    async fn perform(&self, site: &Site<'_>) -> Result<Completion, Stop> {
        let also = |deltas: &[Delta]| {
            // A guest that stopped reading may still request the whole completion.
            let _ = self.looks.send(deltas.to_vec());
        };
        site.streaming(&self.request, also).await
    }
}

pub(crate) fn open(gate: &Arc<Gate>, request: CompletionRequest) -> Result<GateStream, Stop> {
    let number = gate.take_numbers(1)?;
    let (looks, pieces) = mpsc::unbounded_channel();
    let call = Streaming { request, looks };
    let answer = Answer::Later(Box::new(call));
    let gate = gate.clone();
    let mut stream = GateStream { gate, number, pieces, answer, replayed: false, received: false };
    // A guest that is re-executed may not read beyond its recorded reads.
    if !stream.gate.task.as_ref().is_some_and(|task| task.journal.has_looks(number)) {
        stream.begin();
    }
    Ok(stream)
}

impl GateStream {
    /// Returns the next deltas; an empty list at the end.
    ///
    /// # Errors
    ///
    /// [`Unwind`] if the guest must be unwound. [`Self::finish`] reports a failure of the call.
    pub async fn next(&mut self) -> Result<Vec<Delta>, Stop> {
        let Some(task) = self.gate.task.clone() else {
            return Ok(self.pieces.recv().await.unwrap_or_default());
        };
        let look = self.gate.take_numbers(1)?;
        let request = Request::small(LOOK, json!(self.number));
        let mut entry = match task.look_up(look, self.number, request)? {
            LookedUp::Unanswered(entry) => entry,
            LookedUp::Answered(known) => {
                let deltas: Vec<Delta> = serde_json::from_value(known?).unwrap_or_default();
                self.replayed = !deltas.is_empty();
                return Ok(deltas);
            }
        };
        self.begin();
        let deltas = if std::mem::take(&mut self.replayed) {
            // The completion starts again from its beginning.
            vec![Delta::Restart]
        } else {
            self.fresh().await?
        };
        entry.start();
        entry.record(Ok(json!(deltas)));
        task.log.flush().await;
        Ok(deltas)
    }

    /// Starts the call, or looks up its result. Does nothing if it has started.
    fn begin(&mut self) {
        match std::mem::replace(&mut self.answer, Answer::Taken) {
            Answer::Later(call) => {
                let (gate, number) = (self.gate.clone(), self.number);
                let work = async move { gate.numbered(number, number, &*call).await };
                self.answer = Answer::Coming(AbortOnDropHandle::new(tokio::spawn(work)));
            }
            begun => self.answer = begun,
        }
    }

    /// Waits for the next deltas of this execution. A recorded completion has none, so it is
    /// returned at once.
    async fn fresh(&mut self) -> Result<Vec<Delta>, Stop> {
        let cancel = self.gate.setting.cancel.clone();
        let deltas = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(Unwind::Cancelled.into()),
            deltas = self.pieces.recv() => deltas,
        };
        match deltas {
            None if !self.received => {
                self.received = true;
                self.settle().await?;
                Ok(match &self.answer {
                    Answer::Here(answer) => {
                        answer.as_ref().as_ref().map_or_else(|_| Vec::new(), Completion::deltas)
                    }
                    Answer::Later(_) | Answer::Coming(_) | Answer::Taken => Vec::new(),
                })
            }
            deltas => {
                self.received = true;
                Ok(deltas.unwrap_or_default())
            }
        }
    }

    async fn settle(&mut self) -> Result<(), Unwind> {
        if let Answer::Coming(work) = &mut self.answer {
            let ended = work.await.unwrap_or_else(|error| {
                Ok(Err(Failure::internal(format!("model call task failed: {error}"))))
            })?;
            self.answer = Answer::Here(Box::new(ended));
        }
        Ok(())
    }

    /// Returns the whole completion. Waits until it is complete.
    ///
    /// # Errors
    ///
    /// Errors of the call; `invalid` if the completion was returned before.
    pub async fn finish(&mut self) -> Result<Completion, Stop> {
        self.begin();
        self.settle().await?;
        match std::mem::replace(&mut self.answer, Answer::Taken) {
            Answer::Here(answer) => Ok((*answer)?),
            Answer::Later(_) | Answer::Coming(_) | Answer::Taken => {
                Err(Failure::new(code::INVALID, "the completion was already returned").into())
            }
        }
    }
}
