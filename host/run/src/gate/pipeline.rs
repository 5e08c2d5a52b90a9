//! The one path of a host call: number, look up, check, log, perform, record.
//!
//! 1. The call takes the next number of its task. A batch takes its numbers at once.
//! 2. [`TaskGate::look_up`] compares the call with the journal. If an earlier execution recorded a
//!    result, the call returns it.
//! 3. The gate checks budgets, pending rounds of an MCP server, the decision about an in-doubt call
//!    and the size of the log.
//! 4. The log records the start of a call of a kind that a person waits for
//!    ([`LOGS_START`](crate::hostcall::HostCall::LOGS_START)). The host then waits until the log is
//!    durable.
//! 5. The gate checks the grant and performs the call while the host holds the lease of the thread.
//! 6. [`CallEntry::record`] records the result.
//!
//! A call of a guest without a task has no journal: the gate checks budgets and the grant and
//! performs the call.

use std::pin::pin;
use std::sync::Arc;

use futures::StreamExt;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use wattle_graph::event::{CallStarted, Decision};
use wattle_graph::failure::{Failure, code};
use wattle_graph::json_text;
use wattle_graph::weight::failure_weight;

use crate::gate::effect::{Effect, EffectContext};
use crate::gate::entry::{CallEntry, CallLookup};
use crate::gate::task_gate::{TaskGate, log_lost};
use crate::gate::unwind::{CallError, Unwind};
use crate::gate::{Gate, GuestEnv};
use crate::hostcall::Idempotency;
use crate::hostcall::request::CallRequest;
use crate::json::{JsonSize, check_depth};
use crate::limit;
use crate::result_reuse::ReusableResult;

/// The output of a call, or the failure that the guest receives.
type CallResult<T> = Result<T, Failure>;

impl Gate {
    /// Makes one host call, or returns its recorded result.
    ///
    /// # Errors
    ///
    /// [`CallError::Failure`] for the guest, [`CallError::Unwind`] if the guest must be unwound.
    pub async fn call<C: Effect>(&self, call: C) -> Result<C::Output, CallError> {
        let number = self.reserve_call_numbers(1)?;
        self.call_numbered(number, number, call).await?.map_err(CallError::Failure)
    }

    /// Makes several host calls concurrently. Results are in the order of the calls. A call whose
    /// request is invalid fails at its position. A batch that is too large counts as one call.
    ///
    /// # Errors
    ///
    /// [`Unwind`] if the guest must be unwound. Failures of single calls are in the results.
    pub async fn call_all<C: Effect>(
        &self,
        calls: Vec<Result<C, Failure>>,
    ) -> Result<Vec<Result<C::Output, Failure>>, Unwind> {
        if let Err(failure) = check_batch_size(calls.len()) {
            self.count_call()?;
            return Ok(calls.iter().map(|_| Err(failure.clone())).collect());
        }
        let first = self.reserve_call_numbers(calls.len() as u32)?;
        let answers = calls
            .into_iter()
            .zip(first..)
            .map(move |(call, number)| self.call_in_batch(number, first, call));
        let answers: Vec<_> =
            futures::stream::iter(answers).buffered(limit::BATCH_CONCURRENCY).collect().await;
        answers.into_iter().collect()
    }

    async fn call_in_batch<C: Effect>(
        &self,
        number: u32,
        batch: u32,
        call: Result<C, Failure>,
    ) -> Result<CallResult<C::Output>, Unwind> {
        match call {
            Ok(call) => self.call_numbered(number, batch, call).await,
            Err(failure) => Ok(Err(failure)),
        }
    }

    /// Returns the result of a call that does not wait, from the journal if it was recorded before.
    /// The bytes of its request and of its result count, because the journal stores both whole.
    pub(super) fn call_immediate(
        &self,
        request: CallRequest,
        answer: impl FnOnce() -> Result<Value, Failure>,
    ) -> Result<CallResult<Value>, Unwind> {
        let function = request.function;
        let answer = || answer().inspect_err(|failure| self.count_denial(function, failure));
        self.count_bytes(request.bytes)?;
        let Some(task) = &self.task else {
            self.count_call()?;
            let entry = self.list_call(request.function, || request.summary.clone());
            let answer = answer();
            entry.end(answer.as_ref().err());
            self.count_result(&answer)?;
            return Ok(answer);
        };
        let result = match self.enter(task, request)? {
            (_, CallLookup::Recorded(result)) => result,
            (_, CallLookup::Unrecorded(entry)) => {
                let result = answer();
                entry.record(result.clone());
                result
            }
        };
        self.count_result(&result)?;
        Ok(result)
    }

    /// Counts the bytes of the output of a call, if it did not fail, and the weight of its result
    /// in the journal.
    fn count_result(&self, result: &CallResult<Value>) -> Result<(), Unwind> {
        match result {
            Ok(output) => self.count_output(output),
            Err(failure) => self.count_journaled(failure_weight(failure)),
        }
    }

    /// Counts the bytes of an output and its weight in the journal.
    fn count_output(&self, output: &Value) -> Result<(), Unwind> {
        let size = JsonSize::of(output);
        self.count_bytes(size.bytes)?;
        self.count_journaled(size.weight)
    }

    /// Takes the next call number of the task and looks up the call in the journal. The caller may
    /// keep the entry open over time, as a transaction does.
    pub(super) fn enter(
        &self,
        task: &Arc<TaskGate>,
        request: CallRequest,
    ) -> Result<(u32, CallLookup), Unwind> {
        let number = task.reserve_call_numbers(1, self.grants(), self.caller())?;
        Ok((number, task.look_up(number, number, request, self.limits())?))
    }

    /// Counts `count` calls, reserves as many consecutive call numbers, and returns the first.
    /// Returns 0 without a task, because calls without a task have no numbers.
    pub(super) fn reserve_call_numbers(&self, count: u32) -> Result<u32, Unwind> {
        let (grants, caller) = (self.grants(), self.caller());
        match &self.task {
            Some(task) => task.reserve_call_numbers(count, grants, caller),
            None => self.budget.charge_calls(count, grants, caller).map(|()| 0),
        }
    }

    /// Makes the host call with a number, or returns its recorded result. Takes the call, so that a
    /// [resolved](crate::hostcall::HostCall::resolved) one replaces it in memory.
    pub(super) async fn call_numbered<C: Effect>(
        &self,
        number: u32,
        batch: u32,
        call: C,
    ) -> Result<CallResult<C::Output>, Unwind> {
        let Some(task) = &self.task else { return self.call_without_journal(&call).await };
        let resolved = call.resolved();
        let request = CallRequest::of(&call, resolved.as_ref()).map_err(Unwind::LogLost)?;
        let call = resolved.unwrap_or(call);
        self.count_bytes(request.bytes)?;
        self.budget.charge_blob(call.blob_bytes())?;
        let entry = match task.look_up(number, batch, request, self.limits())? {
            CallLookup::Recorded(result) => return self.recorded_result::<C>(result),
            CallLookup::Unrecorded(entry) => entry,
        };
        entry.check_rounds_answered()?;
        let mut entry = match self.settle(&call, entry).await? {
            PipelineStep::Done(answer) => return Ok(answer),
            PipelineStep::Continue(entry) => entry,
        };
        task.check_log_size().await?;
        let begun = C::LOGS_START
            .then(|| entry.log_start(call.is_structured_output(), C::START_INCLUDES_REQUEST));
        entry = match self.reuse_result(&call, entry, begun.as_ref()).await? {
            PipelineStep::Done(answer) => return Ok(answer),
            PipelineStep::Continue(entry) => entry,
        };
        entry.output_commit().await.map_err(log_lost)?;
        let mut answer = self.perform(&call, Some(&entry)).await?;
        if let (Ok(answer), Some(begun)) = (&mut answer, &begun) {
            C::set_message_id(answer, begun.message_id(task.journal.restart_count(number)));
        }
        self.record::<C>(entry, answer).await
    }

    /// Makes a host call of a guest without a task.
    async fn call_without_journal<C: Effect>(
        &self,
        call: &C,
    ) -> Result<CallResult<C::Output>, Unwind> {
        self.count_text(C::FUNCTION, call)?;
        self.count_bytes(call.referenced_bytes())?;
        self.budget.charge_blob(call.blob_bytes())?;
        let entry = self.list_call(C::FUNCTION, || call.summary());
        let answer = self.perform(call, None).await?;
        entry.end(answer.as_ref().err());
        if let Ok(output) = &answer {
            self.count_text(C::FUNCTION, output)?;
        }
        Ok(answer)
    }

    /// Counts the bytes of a request or of a result as JSON.
    pub(super) fn count_text(&self, function: &str, value: &impl Serialize) -> Result<(), Unwind> {
        let bytes = json_text::length(value).map_err(|error| {
            let text = format!("cannot measure a value of `{function}`: {error}");
            Unwind::LogLost(Failure::internal(text))
        })?;
        self.count_bytes(bytes)
    }

    /// Returns a recorded result.
    fn recorded_result<C: Effect>(
        &self,
        result: CallResult<Value>,
    ) -> Result<CallResult<C::Output>, Unwind> {
        self.count_result(&result)?;
        match result {
            Err(failure) => Ok(Err(failure)),
            Ok(answer) => decode_output(C::FUNCTION, answer).map(Ok).map_err(Unwind::LogLost),
        }
    }

    /// Ends an in-doubt call as the operator's policy or a person decided, unless the decision is
    /// to retry.
    async fn settle<C: Effect>(
        &self,
        call: &C,
        mut entry: Box<CallEntry>,
    ) -> Result<PipelineStep<C::Output>, Unwind> {
        let decision = match (entry.decision.take(), entry.last_start_seq) {
            (Some(decision), _) => decision,
            (None, Some(begun)) if call.idempotency() == Idempotency::NotIdempotent => {
                entry.settle(self.env.grants.in_doubt, begun).await?
            }
            (None, _) => return Ok(PipelineStep::Continue(entry)),
        };
        let answer = match decision {
            Decision::Retry => {
                (entry.last_start_seq, entry.decision) = (None, Some(Decision::Retry));
                return Ok(PipelineStep::Continue(entry));
            }
            Decision::Fail => Err(entry.in_doubt_failure()),
            Decision::Answer { answer } => decode_settled(call, &answer).map(|read| (read, answer)),
        };
        let (read, recorded) = match answer {
            Ok((read, answer)) => (Ok(read), Ok(answer)),
            Err(failure) => (Err(failure.clone()), Err(failure)),
        };
        // The result is recorded, so that no policy repeats the call in another attempt.
        let task = entry.task.clone();
        let counted = self.count_result(&recorded);
        entry.restart_timer();
        entry.record(recorded);
        task.log.flush_urgent().await;
        counted.map(|()| PipelineStep::Done(read))
    }

    /// Ends a call with the result of an equal call of a cancelled run, if there is one. The result
    /// is logged and streamed like a new one, with zero tokens.
    async fn reuse_result<C: Effect>(
        &self,
        call: &C,
        mut entry: Box<CallEntry>,
        begun: Option<&CallStarted>,
    ) -> Result<PipelineStep<C::Output>, Unwind> {
        let Some((seq, read, answer)) = self.take_reusable(call, &entry, begun) else {
            return Ok(PipelineStep::Continue(entry));
        };
        let task = entry.task.clone();
        entry.restart_timer();
        let pieces = C::deltas(&read);
        if !pieces.is_empty() {
            task.log_deltas(entry.number, pieces).await;
        }
        let counted = self.count_output(&answer);
        entry.record_reused(answer, seq);
        task.log.flush().await;
        counted.map(|()| PipelineStep::Done(Ok(read)))
    }

    /// Takes a reusable result. Returns the sequence number of its event, the output for the guest,
    /// and the output for the journal.
    fn take_reusable<C: Effect>(
        &self,
        call: &C,
        entry: &CallEntry,
        begun: Option<&CallStarted>,
    ) -> Option<(u64, C::Output, Value)> {
        call.check_allowed(&self.env.grants, self.caller()).ok()?;
        let found = entry.task.reusable_results.take(C::FUNCTION, entry.request.digest);
        let ReusableResult { seq, output } = found?;
        let mut read = serde_json::from_value::<C::Output>(output).ok()?;
        if let Some(begun) = begun {
            C::set_message_id(&mut read, begun.message_id(0));
        }
        let output = serde_json::to_value(&read).ok()?;
        Some((seq, read, output))
    }

    /// Checks the grant and performs the call. A cancel of the run ends the call. The call of a
    /// task continues only while the host holds the lease of the thread.
    async fn perform<C: Effect>(
        &self,
        call: &C,
        entry: Option<&CallEntry>,
    ) -> Result<CallResult<C::Output>, Unwind> {
        let GuestEnv { ports, caller, grants, cancel, .. } = &self.env;
        if let Err(denied) = call.check_allowed(grants, caller) {
            self.count_denial(C::FUNCTION, &denied);
            return Ok(Err(denied));
        }
        let (env, budget, depth, client) =
            (&self.env, &*self.budget, self.depth, self.client.as_ref());
        let context = EffectContext { ports, caller, grants, env, entry, budget, depth, client };
        let mut call = pin!(call.perform(&context));
        let answer = async {
            match entry {
                Some(CallEntry { task, .. }) => {
                    task.log.poll_while_leased(call.as_mut()).await.map_err(log_lost)
                }
                None => Ok(call.await),
            }
        };
        tokio::select! {
            biased;
            () = cancel.wait() => Err(Unwind::Cancelled),
            answer = answer => match answer? {
                Ok(answer) => Ok(Ok(answer)),
                Err(CallError::Failure(failure)) => {
                    self.count_denial(C::FUNCTION, &failure);
                    Ok(Err(failure))
                }
                Err(CallError::Unwind(unwind)) => Err(unwind),
            },
        }
    }

    /// Records the result of a call. An output that is nested too deeply becomes a failure, and
    /// counts as this failure, because a re-execution finds only the failure. An output beyond the
    /// budget unwinds the guest, but is recorded, so that no other attempt pays for the output
    /// again.
    async fn record<C: Effect>(
        &self,
        entry: Box<CallEntry>,
        mut answer: CallResult<C::Output>,
    ) -> Result<CallResult<C::Output>, Unwind> {
        let tokens = answer.as_ref().ok().and_then(C::tokens);
        let mut result = match &answer {
            Ok(answer) => Ok(serde_json::to_value(answer)
                .map_err(|error| Unwind::LogLost(unreadable(C::FUNCTION, &error)))?),
            Err(failure) => Err(failure.clone()),
        };
        if let Ok(value) = &result
            && let Err(failure) = check_depth(format_args!("the output of {}", C::FUNCTION), value)
        {
            answer = Err(failure.clone());
            result = Err(failure);
        }
        let task = entry.task.clone();
        let counted = self.count_result(&result);
        entry.record_with_tokens(result, tokens);
        task.log.flush_urgent().await;
        counted.map(|()| answer)
    }
}

/// Result of a step of a host call.
enum PipelineStep<T> {
    /// The call has a result.
    Done(CallResult<T>),
    /// The call continues with the next step.
    Continue(Box<CallEntry>),
}

/// Deserializes a recorded output. The host wrote the output, so a mismatch is a host error.
pub(super) fn decode_output<T: DeserializeOwned>(
    function: &str,
    answer: Value,
) -> Result<T, Failure> {
    serde_json::from_value(answer).map_err(|error| unreadable(function, &error))
}

fn unreadable(function: &str, error: &serde_json::Error) -> Failure {
    Failure::internal(format!("cannot read the journaled output of `{function}`: {error}"))
}

/// Deserializes the output that a decision gives for an in-doubt call.
fn decode_settled<C: Effect>(call: &C, answer: &Value) -> Result<C::Output, Failure> {
    serde_json::from_value(answer.clone()).map_err(|error| {
        let text = format!(
            "the output given for the in-doubt call `{} {}` is invalid: {error}",
            C::FUNCTION,
            call.summary()
        );
        Failure::new(code::INVALID, text)
    })
}

/// Checks the number of calls of a batch.
///
/// # Errors
///
/// `limit` for more than [`BATCH_CALLS`](limit::BATCH_CALLS).
pub fn check_batch_size(calls: usize) -> Result<(), Failure> {
    let allowed = limit::BATCH_CALLS;
    if calls <= allowed {
        return Ok(());
    }
    let text = format!("a batch of {calls} calls is larger than the limit of {allowed}");
    Err(Failure::new(code::LIMIT, text))
}
