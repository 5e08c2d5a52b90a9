//! The journal entry of one host call, from its number to its result.
//!
//! All host calls of a task take one path: calls of a port, a stream, a transaction, a tool or a
//! subgraph. A call takes a number, [`TaskGate::look_up`] compares it with the journal entry under
//! that number, and [`CallEntry::record`] writes its result into log and journal. No other code
//! compares calls or records results.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use wattle_graph::event::{CallStarted, Called, Decision, EventKind, Tokens};
use wattle_graph::failure::Failure;
use wattle_graph::id::InterruptId;

use crate::gate::journal::JournalLookup;
use crate::gate::task_gate::TaskGate;
use crate::gate::unwind::Unwind;
use crate::hostcall::request::CallRequest;
use crate::limit::Limits;
use crate::ports::store::StoreError;

/// A host call that has a number and no result. Dropping the entry without [`CallEntry::record`]
/// records nothing.
pub(crate) struct CallEntry {
    /// The task that makes the call.
    pub task: Arc<TaskGate>,
    /// Call number in the task.
    pub number: u32,
    /// Sequence number of the last start of the call; `None` if it has not started, or if a
    /// decision about it was made. A call that has started and is not idempotent is in doubt.
    pub last_start_seq: Option<u64>,
    /// Decision about the call, if it was in doubt.
    pub decision: Option<Decision>,
    /// The request.
    pub request: CallRequest,
    batch: u32,
    /// Time for which the call waited for the store before its start.
    store_wait: Duration,
    started_ms: i64,
    started: Instant,
}

/// Result of looking up a call in the journal.
pub(crate) enum CallLookup {
    /// An earlier execution recorded this result.
    Recorded(Result<Value, Failure>),
    /// The journal holds no result.
    Unrecorded(Box<CallEntry>),
}

impl TaskGate {
    /// Compares a call with the journal entry under its number. `batch` is the number of the first
    /// call of its batch. What the journal stores of the request counts towards its limit.
    ///
    /// # Errors
    ///
    /// [`Unwind::Divergence`] if the journal holds another call under this number;
    /// [`Unwind::Limit`] if the journal takes too much memory.
    pub(crate) fn look_up(
        self: &Arc<Self>,
        number: u32,
        batch: u32,
        mut request: CallRequest,
        limits: &Limits,
    ) -> Result<CallLookup, Unwind> {
        let (last_start_seq, decision) = match self.journal.look_up(number, &request, limits)? {
            JournalLookup::Recorded(result) => return Ok(CallLookup::Recorded(result)),
            JournalLookup::Started(seq) => (Some(seq), None),
            JournalLookup::Settled(decision) => (None, Some(decision)),
            JournalLookup::Absent => (None, None),
        };
        self.journal.count_request(request.truncate(), limits)?;
        let (started_ms, started) = (self.clock.now_ms(), Instant::now());
        let task = self.clone();
        let entry = CallEntry {
            task,
            number,
            last_start_seq,
            decision,
            request,
            batch,
            store_wait: Duration::ZERO,
            started_ms,
            started,
        };
        Ok(CallLookup::Unrecorded(Box::new(entry)))
    }
}

impl CallEntry {
    /// Logs the start of the call. The event includes the request if `tells_request` is true.
    pub(crate) fn log_start(&self, is_structured: bool, tells_request: bool) -> CallStarted {
        let Self { task, number, request, .. } = self;
        let started = CallStarted {
            task: task.task.clone(),
            scope: task.scope.clone(),
            call: *number,
            function: request.function.to_owned(),
            summary: request.summary.clone(),
            is_structured,
            start_number: task.journal.next_start_number(*number),
            request: tells_request.then(|| request.journaled()),
        };
        let seq = task.log.push(EventKind::CallStarted(started.clone()));
        task.journal.record_start(*number, started.start_number, seq);
        started
    }

    /// Waits until all events that led to the call are durable, and then restarts the measurement of
    /// its duration.
    ///
    /// # Errors
    ///
    /// Those of [`ThreadLog::output_commit`](crate::log::ThreadLog::output_commit).
    pub(crate) async fn output_commit(&mut self) -> Result<(), StoreError> {
        let waiting = Instant::now();
        self.task.log.output_commit().await?;
        self.store_wait += waiting.elapsed();
        self.restart_timer();
        Ok(())
    }

    /// Restarts the measurement of the duration of the call.
    pub(crate) fn restart_timer(&mut self) {
        (self.started_ms, self.started) = (self.task.clock.now_ms(), Instant::now());
    }

    /// Writes the result into log and journal. The next flush sends the result to the store.
    pub(crate) fn record(self, result: Result<Value, Failure>) {
        self.write(result, None, None);
    }

    /// Records a result with the tokens that it cost.
    pub(crate) fn record_with_tokens(self, result: Result<Value, Failure>, tokens: Option<Tokens>) {
        self.write(result, tokens, None);
    }

    /// Records a result that is reused from a cancelled run. `seq` is the sequence number of its
    /// original event.
    pub(crate) fn record_reused(self, answer: Value, seq: u64) {
        self.write(Ok(answer), None, Some(seq));
    }

    fn write(self, result: Result<Value, Failure>, tokens: Option<Tokens>, reused: Option<u64>) {
        let Self { task, number, request, batch, store_wait, started_ms, started, .. } = self;
        task.heartbeat.on_call();
        let (function, digest) = (request.function.to_owned(), request.digest);
        let (request, summary) = request.into_journaled();
        let called = Called {
            task: task.task.clone(),
            node: task.node.clone(),
            scope: task.scope.clone(),
            call: number,
            function,
            digest,
            request,
            result,
            started_ms,
            duration_us: started.elapsed().as_micros() as u64,
            store_us: store_wait.as_micros() as u64,
            summary,
            tokens,
            reused,
            batch,
        };
        task.log.count_usage(&called);
        let seq = task.log.push(EventKind::Called(Box::new(called.clone())));
        task.journal.record_result(seq, called);
    }

    /// Returns the id that identifies the call within its task. An interrupt that the call raises
    /// has this id.
    pub(crate) fn interrupt_id(&self) -> InterruptId {
        InterruptId::derive(&self.task.task, &self.task.scope, self.number)
    }

    /// Returns the path of the call: scope and number.
    pub(crate) fn call_path(&self) -> String {
        self.task.call_path(self.number)
    }
}
