//! The journal entry of one host call, from its number to its answer.
//!
//! All host calls of a task take one path, whatever performs them: a port, a stream, a transaction,
//! a tool or a nested graph. A call takes a number, [`TaskSide::look_up`] compares it with what the
//! journal holds under that number, and [`Entry::record`] writes its answer into log and journal.
//! There is no other comparison and no other way to write an answer.

use std::sync::Arc;
use std::time::Instant;

use serde_json::Value;
use wattle_graph::event::{CallStarted, Called, Decision, EventKind, Tokens};
use wattle_graph::failure::Failure;
use wattle_graph::id::InterruptId;

use crate::gate::journal::Known;
use crate::gate::task::TaskSide;
use crate::gate::unwind::Unwind;
use crate::hostcall::request::Request;

/// A host call that has a number and no answer yet. Dropped without [`Entry::record`], it leaves
/// nothing behind.
pub(crate) struct Entry {
    /// The task that makes the call.
    pub task: Arc<TaskSide>,
    /// Its number in the task.
    pub number: u32,
    /// The place in the log where the call was begun before, if it is not known how it ended.
    pub begun: Option<u64>,
    /// What was decided of the call while it was in doubt.
    pub settled: Option<Decision>,
    /// The call.
    pub request: Request,
    batch: u32,
    started_ms: i64,
    started: Instant,
}

/// What the journal says of a call.
pub(crate) enum LookedUp {
    /// An execution before this one was answered so.
    Answered(Result<Value, Failure>),
    /// There is no answer.
    Unanswered(Box<Entry>),
}

impl TaskSide {
    /// Compares a call with what the journal holds under its number. `batch` is the number of the
    /// first call of its batch.
    ///
    /// # Errors
    ///
    /// [`Unwind::Divergence`] if the task made another call under this number before.
    pub(crate) fn look_up(
        self: &Arc<Self>,
        number: u32,
        batch: u32,
        request: Request,
    ) -> Result<LookedUp, Unwind> {
        let (begun, settled) = match self.journal.look_up(number, &request)? {
            Known::Answered(result) => return Ok(LookedUp::Answered(result)),
            Known::Open(begun) => (Some(begun), None),
            Known::Settled(decision) => (None, Some(decision)),
            Known::New => (None, None),
        };
        let (started_ms, started) = (self.clock.now_ms(), Instant::now());
        let task = self.clone();
        let entry = Entry { task, number, begun, settled, request, batch, started_ms, started };
        Ok(LookedUp::Unanswered(Box::new(entry)))
    }
}

impl Entry {
    /// Writes into the log that the call begins.
    pub(crate) fn begin(&self, document: bool, tells_request: bool) -> CallStarted {
        let Self { task, number, request, .. } = self;
        let started = CallStarted {
            task: task.task.clone(),
            scope: task.scope.clone(),
            call: *number,
            function: request.function.to_owned(),
            summary: request.summary.clone(),
            document,
            again: task.journal.again(*number),
            request: tells_request.then(|| request.shown()),
        };
        let event = task.log.push(EventKind::CallStarted(started.clone()));
        task.journal.begin(*number, started.again, event.seq);
        started
    }

    /// Measures the duration of the call from now on.
    pub(crate) fn start(&mut self) {
        (self.started_ms, self.started) = (self.task.clock.now_ms(), Instant::now());
    }

    /// Writes the answer into log and journal. It reaches the store with the next flush.
    pub(crate) fn record(self, result: Result<Value, Failure>) {
        self.write(result, None, None);
    }

    /// Records an answer that cost tokens.
    pub(crate) fn record_paid(self, result: Result<Value, Failure>, tokens: Option<Tokens>) {
        self.write(result, tokens, None);
    }

    /// Records an answer that a cancelled run paid for, by the sequence number of its event.
    pub(crate) fn record_reused(self, answer: Value, seq: u64) {
        self.write(Ok(answer), None, Some(seq));
    }

    fn write(self, result: Result<Value, Failure>, tokens: Option<Tokens>, reused: Option<u64>) {
        let Self { task, number, request, batch, started_ms, started, .. } = self;
        task.alive.called();
        let called = Called {
            task: task.task.clone(),
            node: task.node.clone(),
            scope: task.scope.clone(),
            call: number,
            function: request.function.to_owned(),
            digest: request.digest,
            request: request.shown(),
            result,
            started_ms,
            duration_us: started.elapsed().as_micros() as u64,
            summary: request.summary,
            tokens,
            reused,
            batch,
        };
        let event = task.log.push(EventKind::Called(Box::new(called.clone())));
        task.journal.keep(event.seq, called);
    }

    /// Names the call among all of the task, and the question that it may lead to.
    pub(crate) fn interrupt(&self) -> InterruptId {
        InterruptId::derive(&self.task.task, &self.task.scope, self.number)
    }

    /// The place of the call in the task.
    pub(crate) fn place(&self) -> String {
        self.task.place_of(self.number)
    }
}
