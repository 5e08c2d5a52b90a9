//! The one path of a host call: number, look up, check, log, perform, record.
//!
//! 1. The call takes the next number of its task. A batch takes its numbers at once.
//! 2. [`TaskSide::look_up`] compares the call with the journal. If an earlier execution recorded a
//!    result, the call returns it.
//! 3. The gate checks budgets, pending rounds of a tool server, the decision about an in-doubt call
//!    and the size of the log.
//! 4. The log records the start of a call that a person waits for. The host then waits until the
//!    log is durable.
//! 5. The gate checks the grant and performs the call while the host holds the lease of the thread.
//! 6. [`Entry::record`] records the result.
//!
//! A call of a web handler has no journal: the gate only checks the grant and performs the call.

use std::pin::pin;

use futures::StreamExt;
use serde::de::DeserializeOwned;
use serde_json::Value;
use wattle_graph::event::{CallStarted, Decision};
use wattle_graph::failure::{Failure, code};

use crate::gate::effect::{Effect, Site};
use crate::gate::entry::{Entry, LookedUp};
use crate::gate::task::{TaskSide, log_lost};
use crate::gate::unwind::{Stop, Unwind};
use crate::gate::{Gate, Setting};
use crate::hostcall::Repeat;
use crate::hostcall::request::Request;
use crate::json::{check_depth, weight};
use crate::limit;
use crate::salvage::Salvaged;

/// The output of a call, or the failure that the guest receives.
type Answered<T> = Result<T, Failure>;

impl Gate {
    /// Makes one host call, or returns its recorded result.
    ///
    /// # Errors
    ///
    /// [`Stop::Failure`] for the guest, [`Stop::Unwind`] if the guest must be unwound.
    pub async fn call<C: Effect>(&self, call: C) -> Result<C::Answer, Stop> {
        let number = self.take_numbers(1)?;
        self.numbered(number, number, &call).await?.map_err(Stop::Failure)
    }

    /// Makes several host calls concurrently. Results are in the order of the calls. A call whose
    /// request is invalid fails at its position.
    ///
    /// # Errors
    ///
    /// [`Unwind`] if the guest must be unwound. Failures of single calls are in the results.
    pub async fn call_all<C: Effect>(
        &self,
        calls: Vec<Result<C, Failure>>,
    ) -> Result<Vec<Result<C::Answer, Failure>>, Unwind> {
        if calls.len() > limit::BATCH_CALLS {
            let failure = too_many(calls.len());
            return Ok(calls.iter().map(|_| Err(failure.clone())).collect());
        }
        let first = self.take_numbers(calls.len() as u32)?;
        let answers = calls
            .into_iter()
            .zip(first..)
            .map(move |(call, number)| self.one_of_batch(number, first, call));
        let answers: Vec<_> =
            futures::stream::iter(answers).buffered(limit::BATCH_CONCURRENCY).collect().await;
        answers.into_iter().collect()
    }

    async fn one_of_batch<C: Effect>(
        &self,
        number: u32,
        batch: u32,
        call: Result<C, Failure>,
    ) -> Result<Answered<C::Answer>, Unwind> {
        match call {
            Ok(call) => self.numbered(number, batch, &call).await,
            Err(failure) => Ok(Err(failure)),
        }
    }

    /// Returns the result of a call that does not wait, from the journal if it was recorded before.
    pub(super) fn call_at_once(
        &self,
        request: Request,
        answer: impl FnOnce() -> Result<Value, Failure>,
    ) -> Result<Answered<Value>, Unwind> {
        let Some(task) = &self.task else { return Ok(answer()) };
        let number = self.take_numbers(1)?;
        match task.look_up(number, number, request)? {
            LookedUp::Answered(result) => Ok(result),
            LookedUp::Unanswered(entry) => {
                let result = answer();
                entry.record(result.clone());
                Ok(result)
            }
        }
    }

    /// Reserves `count` consecutive call numbers and returns the first; always 0 without a task.
    pub(super) fn take_numbers(&self, count: u32) -> Result<u32, Unwind> {
        let Some(task) = &self.task else { return Ok(0) };
        task.take_numbers(count, self.limits())
    }

    /// Makes the host call with a number, or returns its recorded result.
    pub(super) async fn numbered<C: Effect>(
        &self,
        number: u32,
        batch: u32,
        call: &C,
    ) -> Result<Answered<C::Answer>, Unwind> {
        let Some(task) = &self.task else { return self.perform(call, None).await };
        let request = Request::of(call).map_err(Unwind::Log)?;
        task.count_bytes(request.bytes, self.limits())?;
        task.journal.count_blob(call.blob_bytes())?;
        let entry = match task.look_up(number, batch, request)? {
            LookedUp::Answered(result) => return self.replay::<C>(task, result),
            LookedUp::Unanswered(entry) => entry,
        };
        entry.check_answered()?;
        let mut entry = match self.decide(call, entry).await? {
            Step::Ended(answer) => return Ok(answer),
            Step::GoesOn(entry) => entry,
        };
        task.check_room().await?;
        let begun = C::SLOW.then(|| entry.begin(call.is_document(), C::TELLS_REQUEST));
        entry = match self.salvage(call, entry, begun.as_ref()).await {
            Step::Ended(answer) => return Ok(answer),
            Step::GoesOn(entry) => entry,
        };
        task.log.before_effect().await.map_err(log_lost)?;
        entry.start();
        let mut answer = self.perform(call, Some(&entry)).await?;
        if let (Ok(answer), Some(begun)) = (&mut answer, &begun) {
            C::name(answer, begun.message_id(task.journal.restarts(number)));
        }
        self.record::<C>(entry, answer).await
    }

    /// Returns a recorded result.
    fn replay<C: Effect>(
        &self,
        task: &TaskSide,
        result: Answered<Value>,
    ) -> Result<Answered<C::Answer>, Unwind> {
        match result {
            Err(failure) => Ok(Err(failure)),
            Ok(answer) => {
                task.count_bytes(weight(&answer), self.limits())?;
                read(C::FUNCTION, answer).map(Ok).map_err(Unwind::Log)
            }
        }
    }

    /// Ends an in-doubt call as the operator's policy or a person decided, unless the decision is
    /// to retry.
    async fn decide<C: Effect>(
        &self,
        call: &C,
        mut entry: Box<Entry>,
    ) -> Result<Step<C::Answer>, Unwind> {
        let decision = match (entry.settled.take(), entry.begun) {
            (Some(decision), _) => decision,
            (None, Some(begun)) if call.repeat() == Repeat::InDoubt => {
                entry.decide(self.setting.grants.in_doubt, begun).await?
            }
            (None, _) => return Ok(Step::GoesOn(entry)),
        };
        let answer = match decision {
            Decision::Retry => {
                (entry.begun, entry.settled) = (None, Some(Decision::Retry));
                return Ok(Step::GoesOn(entry));
            }
            Decision::Fail => Err(entry.in_doubt()),
            Decision::Answer { answer } => read_settled(call, &answer).map(|read| (read, answer)),
        };
        let (read, recorded) = match answer {
            Ok((read, answer)) => (Ok(read), Ok(answer)),
            Err(failure) => (Err(failure.clone()), Err(failure)),
        };
        // The result is recorded, so that no policy repeats the call in another attempt.
        let task = entry.task.clone();
        entry.start();
        entry.record(recorded);
        task.log.flush_at_once().await;
        Ok(Step::Ended(read))
    }

    /// Ends a call with the result of an equal call of a cancelled run, if there is one. The result
    /// is logged and streamed like a new one, with zero tokens.
    async fn salvage<C: Effect>(
        &self,
        call: &C,
        mut entry: Box<Entry>,
        begun: Option<&CallStarted>,
    ) -> Step<C::Answer> {
        let Some((seq, read, answer)) = self.salvaged(call, &entry, begun) else {
            return Step::GoesOn(entry);
        };
        let task = entry.task.clone();
        entry.start();
        let pieces = C::pieces(&read);
        if !pieces.is_empty() {
            task.streamed(entry.number, pieces).await;
        }
        entry.record_reused(answer, seq);
        task.log.flush().await;
        Step::Ended(Ok(read))
    }

    /// Takes a reusable result. Returns the sequence number of its event, the output for the guest,
    /// and the output for the journal.
    fn salvaged<C: Effect>(
        &self,
        call: &C,
        entry: &Entry,
        begun: Option<&CallStarted>,
    ) -> Option<(u64, C::Answer, Value)> {
        call.allowed(&self.setting.grants, self.caller()).ok()?;
        let found = entry.task.salvage.take(C::FUNCTION, entry.request.digest);
        let Salvaged { seq, answer } = found?;
        let mut read = serde_json::from_value::<C::Answer>(answer).ok()?;
        if let Some(begun) = begun {
            C::name(&mut read, begun.message_id(0));
        }
        let answer = serde_json::to_value(&read).ok()?;
        Some((seq, read, answer))
    }

    /// Checks the grant and performs the call. A cancel of the run ends it. The call of a task
    /// continues only while the host holds the lease of the thread.
    async fn perform<C: Effect>(
        &self,
        call: &C,
        entry: Option<&Entry>,
    ) -> Result<Answered<C::Answer>, Unwind> {
        let Setting { ports, caller, grants, cancel, .. } = &self.setting;
        if let Err(denied) = call.allowed(grants, caller) {
            return Ok(Err(denied));
        }
        let (setting, depth) = (&self.setting, self.depth);
        let site = Site { ports, caller, grants, setting, entry, depth };
        let mut call = pin!(call.perform(&site));
        let answer = async {
            match entry {
                Some(Entry { task, .. }) => {
                    task.log.while_leased(call.as_mut()).await.map_err(log_lost)
                }
                None => Ok(call.await),
            }
        };
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(Unwind::Cancelled),
            answer = answer => match answer? {
                Ok(answer) => Ok(Ok(answer)),
                Err(Stop::Failure(failure)) => Ok(Err(failure)),
                Err(Stop::Unwind(unwind)) => Err(unwind),
            },
        }
    }

    /// Records the result of a call. An output that is nested too deeply becomes a failure. An
    /// output beyond the budget unwinds the guest, but is recorded, so that no other attempt pays
    /// for the output again.
    async fn record<C: Effect>(
        &self,
        entry: Box<Entry>,
        mut answer: Answered<C::Answer>,
    ) -> Result<Answered<C::Answer>, Unwind> {
        let tokens = answer.as_ref().ok().and_then(C::tokens);
        let mut result = match &answer {
            Ok(answer) => Ok(serde_json::to_value(answer)
                .map_err(|error| Unwind::Log(unreadable(C::FUNCTION, &error)))?),
            Err(failure) => Err(failure.clone()),
        };
        let task = entry.task.clone();
        let mut counted = Ok(());
        if let Ok(value) = &result {
            counted = task.count_bytes(weight(value), self.limits());
            if let Err(failure) = check_depth(&format!("the output of {}", C::FUNCTION), value) {
                answer = Err(failure.clone());
                result = Err(failure);
            }
        }
        entry.record_paid(result, tokens);
        task.log.flush_at_once().await;
        counted.map(|()| answer)
    }
}

/// Result of a step of the path.
enum Step<T> {
    /// The call has a result.
    Ended(Answered<T>),
    /// The call continues with the next step.
    GoesOn(Box<Entry>),
}

/// Deserializes a recorded output. The host wrote it, so a mismatch is a host error.
pub(super) fn read<T: DeserializeOwned>(function: &str, answer: Value) -> Result<T, Failure> {
    serde_json::from_value(answer).map_err(|error| unreadable(function, &error))
}

fn unreadable(function: &str, error: &serde_json::Error) -> Failure {
    Failure::internal(format!("cannot read the journaled output of `{function}`: {error}"))
}

/// Deserializes the output that a decision gives for an in-doubt call.
fn read_settled<C: Effect>(call: &C, answer: &Value) -> Result<C::Answer, Failure> {
    serde_json::from_value(answer.clone()).map_err(|error| {
        let text = format!(
            "the output given for the in-doubt call `{} {}` is invalid: {error}",
            C::FUNCTION,
            call.summary()
        );
        Failure::new(code::INVALID, text)
    })
}

fn too_many(calls: usize) -> Failure {
    let allowed = limit::BATCH_CALLS;
    let text = format!("a batch of {calls} calls is larger than the limit of {allowed}");
    Failure::new(code::LIMIT, text)
}
