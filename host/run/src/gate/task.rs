//! The side of a gate that belongs to a task: journal, log, questions.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Map, Value, json};
use wattle_graph::event::{
    Asked, CallStarted, Called, Custom, Decision, EventKind, Log, Progress, Tokens,
};
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::{Digest, InterruptId, NodeName, TaskId, call_path};
use wattle_graph::interrupt::Question;

use crate::call::emit::Emission;
use crate::call::interrupt::Ask;
use crate::call::{HostCall, Repeat};
use crate::gate::doubt::Doubt;
use crate::gate::journal::{Journal, Known, divergence};
use crate::gate::site::Entry;
use crate::gate::unwind::Unwind;
use crate::gate::{Gate, Started};
use crate::json::{check_depth, weight};
use crate::limit::{self, Limits};
use crate::log::ThreadLog;
use crate::ports::Clock;
use crate::ports::store::StoreError;
use crate::salvage::{Salvage, Salvaged};
use crate::task::idle::Alive;

/// The side of a gate that belongs to a task.
pub struct TaskSide {
    /// The task.
    pub task: TaskId,
    /// Its node.
    pub node: NodeName,
    /// Which tool calls the guest is inside of; empty for the node itself.
    pub scope: Vec<u32>,
    /// The log of its thread.
    pub log: Arc<ThreadLog>,
    /// Its journal, shared by all attempts.
    pub journal: Arc<Journal>,
    /// Questions that it asked before, with answers as far as there are any.
    pub questions: Arc<BTreeMap<InterruptId, Question>>,
    /// How long a question may stay open.
    pub interrupt_ttl_ms: Option<u64>,
    /// For times in the journal.
    pub clock: Arc<dyn Clock>,
    /// Answers that cancelled runs paid for.
    pub(crate) salvage: Arc<Salvage>,
    /// Where it shows that it is alive.
    pub(crate) alive: Arc<Alive>,
    /// Graphs that it started.
    pub(crate) started: Arc<Started>,
}

/// One answered call, before it is written down.
pub(crate) struct Answered {
    pub call: u32,
    pub batch: u32,
    pub function: &'static str,
    pub digest: Digest,
    pub request: Value,
    pub result: Result<Value, Failure>,
    pub started_ms: i64,
    pub started: Instant,
    pub summary: String,
    pub tokens: Option<Tokens>,
    pub reused: Option<u64>,
}

/// Which call it is.
struct Place {
    call: u32,
    batch: u32,
    digest: Digest,
}

impl TaskSide {
    /// The side of the tool that call `call` calls.
    pub(crate) fn nested(&self, call: u32) -> Arc<Self> {
        let mut scope = self.scope.clone();
        scope.push(call);
        Arc::new(Self {
            task: self.task.clone(),
            node: self.node.clone(),
            scope,
            log: self.log.clone(),
            journal: self.journal.inner(call),
            questions: self.questions.clone(),
            interrupt_ttl_ms: self.interrupt_ttl_ms,
            clock: self.clock.clone(),
            salvage: self.salvage.clone(),
            alive: self.alive.clone(),
            started: self.started.clone(),
        })
    }

    /// See [`call_path`].
    pub(crate) fn place_of(&self, call: u32) -> String {
        call_path(&self.scope, call)
    }

    pub(crate) fn take_numbers(&self, count: u32, limits: &Limits) -> Result<u32, Unwind> {
        self.alive.called();
        self.journal.take_numbers(count, limits.host_calls)
    }

    pub(crate) fn count_bytes(&self, bytes: u64, limits: &Limits) -> Result<(), Unwind> {
        self.journal.count_bytes(bytes, limits.host_call_bytes)
    }

    /// Answers call `number` from the journal, or makes it: budget, durable log, effect, journal.
    pub(crate) async fn journaled<C: HostCall>(
        self: &Arc<Self>,
        gate: &Gate,
        number: u32,
        batch: u32,
        call: &C,
    ) -> Result<Result<C::Answer, Failure>, Unwind> {
        let text = serde_json::to_vec(call).map_err(|error| fault(C::FUNCTION, &error))?;
        self.count_bytes(text.len() as u64, gate.limits())?;
        let digest = Digest::of(&text);
        let known = self.journal.look_up(number, C::FUNCTION, digest, || shown(call, &text))?;
        let mut begun = match known {
            Known::Open(begun) => Some(begun),
            _ => None,
        };
        let place = Place { call: number, batch, digest };
        let decision = match known {
            Known::Answered(Err(failure)) => return Ok(Err(failure)),
            Known::Answered(Ok(answer)) => {
                self.count_bytes(weight(&answer), gate.limits())?;
                return serde_json::from_value(answer)
                    .map(Ok)
                    .map_err(|error| fault(C::FUNCTION, &error));
            }
            Known::Settled(decision) => Some(decision),
            Known::Open(begun) if call.repeat() == Repeat::InDoubt => {
                let policy = gate.setting.grants.in_doubt;
                Some(self.decide(policy, &doubt(number, call, &text), begun).await?)
            }
            Known::Open(_) | Known::New => None,
        };
        match decision {
            // Kept, so that no policy makes it again by another attempt.
            Some(Decision::Fail) => {
                let failure = doubt(number, call, &text).failure();
                self.settled(place, call, &text, Err(failure.clone())).await;
                return Ok(Err(failure));
            }
            Some(Decision::Answer { answer }) => {
                let read = read_settled(call, &answer);
                let result = read.as_ref().map(|_| answer).map_err(Clone::clone);
                self.settled(place, call, &text, result).await;
                return Ok(read);
            }
            Some(Decision::Retry) => begun = None,
            None => {}
        }
        let begin = C::SLOW.then(|| self.begin(number, call, &text));
        if let Some(answer) = self.salvaged(gate, &place, call, &text, begin.as_ref()).await {
            return Ok(Ok(answer));
        }
        self.log.before_effect().await.map_err(log_lost)?;
        let (started_ms, started) = (self.clock.now_ms(), Instant::now());
        let entry = Entry { task: self, number, begun };
        let mut answer = gate.perform(call, Some(entry)).await?;
        if let (Ok(answer), Some(begin)) = (&mut answer, &begin) {
            C::name(answer, begin.answer_id(self.journal.restarts(number)));
        }
        let tokens = answer.as_ref().ok().and_then(C::tokens);
        let mut result = match &answer {
            Ok(answer) => {
                Ok(serde_json::to_value(answer).map_err(|error| fault(C::FUNCTION, &error))?)
            }
            Err(failure) => Err(failure.clone()),
        };
        let mut counted = Ok(());
        if let Ok(value) = &result {
            counted = self.count_bytes(weight(value), gate.limits());
            if let Err(failure) = check_depth(&format!("the answer of {}", C::FUNCTION), value) {
                answer = Err(failure.clone());
                result = Err(failure);
            }
        }
        let request = shown(call, &text);
        let summary = call.summary();
        let function = C::FUNCTION;
        self.write_down(Answered {
            call: number,
            batch,
            function,
            digest,
            request,
            result,
            started_ms,
            started,
            summary,
            tokens,
            reused: None,
        });
        self.log.flush_at_once().await;
        // An answer that is too much is kept all the same: no other attempt must pay for it again.
        counted.map(|()| answer)
    }

    /// Tells that a call begins that somebody may wait for.
    fn begin<C: HostCall>(&self, number: u32, call: &C, text: &[u8]) -> CallStarted {
        let started = CallStarted {
            task: self.task.clone(),
            scope: self.scope.clone(),
            call: number,
            function: C::FUNCTION.to_owned(),
            summary: call.summary(),
            document: call.is_document(),
            again: self.journal.again(number),
            request: C::TELLS_REQUEST.then(|| shown(call, text)),
        };
        let event = self.log.push(EventKind::CallStarted(started.clone()));
        self.journal.begin(number, started.again, event.seq);
        started
    }

    /// Writes down what became of a call in doubt, as if it had been answered so.
    async fn settled<C: HostCall>(
        &self,
        place: Place,
        call: &C,
        text: &[u8],
        result: Result<Value, Failure>,
    ) {
        self.write_down(Answered {
            call: place.call,
            batch: place.batch,
            function: C::FUNCTION,
            digest: place.digest,
            request: shown(call, text),
            result,
            started_ms: self.clock.now_ms(),
            started: Instant::now(),
            summary: call.summary(),
            tokens: None,
            reused: None,
        });
        self.log.flush_at_once().await;
    }

    /// The answer that a cancelled run paid for, if there is one. The log shows it as if the model
    /// had said it now, so that whoever follows the run sees it, but with no tokens.
    async fn salvaged<C: HostCall>(
        &self,
        gate: &Gate,
        place: &Place,
        call: &C,
        text: &[u8],
        begin: Option<&CallStarted>,
    ) -> Option<C::Answer> {
        call.allowed(&gate.setting.grants, gate.caller()).ok()?;
        let Salvaged { seq, answer } = self.salvage.take(C::FUNCTION, place.digest)?;
        let mut read = serde_json::from_value::<C::Answer>(answer).ok()?;
        if let Some(begin) = begin {
            C::name(&mut read, begin.answer_id(0));
        }
        let answer = serde_json::to_value(&read).ok()?;
        let (started_ms, started) = (self.clock.now_ms(), Instant::now());
        let pieces = C::pieces(&read);
        if !pieces.is_empty() {
            self.streamed(place.call, pieces).await;
        }
        self.write_down(Answered {
            call: place.call,
            batch: place.batch,
            function: C::FUNCTION,
            digest: place.digest,
            request: shown(call, text),
            result: Ok(answer),
            started_ms,
            started,
            summary: call.summary(),
            tokens: None,
            reused: Some(seq),
        });
        self.log.flush().await;
        Some(read)
    }

    /// Puts an answered call into journal and log.
    pub(crate) fn write_down(&self, answered: Answered) {
        self.alive.called();
        let called = Called {
            task: self.task.clone(),
            node: self.node.clone(),
            scope: self.scope.clone(),
            call: answered.call,
            function: answered.function.to_owned(),
            digest: answered.digest,
            request: answered.request,
            result: answered.result,
            started_ms: answered.started_ms,
            duration_us: answered.started.elapsed().as_micros() as u64,
            summary: answered.summary,
            tokens: answered.tokens,
            reused: answered.reused,
            batch: answered.batch,
        };
        let event = self.log.push(EventKind::Called(Box::new(called.clone())));
        self.journal.keep(event.seq, called);
    }

    /// Answers a call that needs no waiting, from the journal if it was answered before.
    pub(crate) fn at_once(
        &self,
        limits: &Limits,
        function: &'static str,
        request: Value,
        answer: impl FnOnce() -> Result<Value, Failure>,
    ) -> Result<Result<Value, Failure>, Unwind> {
        let call = self.take_numbers(1, limits)?;
        let digest = Digest::of(request.to_string().as_bytes());
        let known = self.journal.look_up(call, function, digest, || request.clone())?;
        if let Known::Answered(result) = known {
            return Ok(result);
        }
        let (started_ms, started) = (self.clock.now_ms(), Instant::now());
        let result = answer();
        self.write_down(Answered {
            call,
            batch: call,
            function,
            digest,
            request,
            result: result.clone(),
            started_ms,
            started,
            summary: String::new(),
            tokens: None,
            reused: None,
        });
        Ok(result)
    }

    /// Answers a question from the log, or asks it and unwinds.
    pub(crate) async fn ask(&self, question: Ask, limits: &Limits) -> Result<Value, Unwind> {
        let call = self.take_numbers(1, limits)?;
        let interrupt = InterruptId::derive(&self.task, &self.scope, call);
        if let Some(known) = self.questions.get(&interrupt) {
            let same = known.asked.payload == question.payload
                && known.asked.response_schema == question.response_schema;
            if !same {
                let asked =
                    |payload: &Value| json!({ "function": Ask::FUNCTION, "request": payload });
                return Err(divergence(
                    call,
                    asked(&known.asked.payload),
                    asked(&question.payload),
                ));
            }
            return known.answer.clone().ok_or(Unwind::Suspended(interrupt));
        }
        let digest = Digest::of(&serde_json::to_vec(&question).unwrap_or_default());
        // A journaled call under this number means that the node did not ask here before.
        self.journal.look_up(call, Ask::FUNCTION, digest, || json!(question))?;
        Err(self.put(interrupt, call, question).await)
    }

    /// Puts a question into the log. The guest ends until it is answered.
    pub(crate) async fn put(&self, interrupt: InterruptId, call: u32, question: Ask) -> Unwind {
        let expires_ms =
            self.interrupt_ttl_ms.map(|ttl| self.clock.now_ms().saturating_add_unsigned(ttl));
        let event = self.log.push(EventKind::Asked(Asked {
            interrupt: interrupt.clone(),
            task: self.task.clone(),
            node: self.node.clone(),
            scope: self.scope.clone(),
            call,
            payload: question.payload,
            response_schema: question.response_schema,
            expires_ms,
            answered: false,
        }));
        self.journal.note(event.seq);
        self.log.flush().await;
        Unwind::Suspended(interrupt)
    }

    /// Appends an event of the guest's own. A re-executed node does not repeat those it emitted
    /// before: they take numbers like calls, so the journal knows them.
    pub(crate) async fn emit(&self, emission: Emission, limits: &Limits) -> Result<(), Unwind> {
        self.alive.emitted();
        self.journal.count_emission()?;
        let request = match &emission {
            Emission::Custom { name, data } => json!([name, data]),
            Emission::Progress { message, fraction } => json!([message, fraction]),
        };
        let call = self.take_numbers(1, limits)?;
        let function = match emission {
            Emission::Custom { .. } => "emit.custom",
            Emission::Progress { .. } => "emit.progress",
        };
        let digest = Digest::of(request.to_string().as_bytes());
        if let Known::Answered(_) = self.journal.look_up(call, function, digest, || request)? {
            return Ok(());
        }
        let (started_ms, started) = (self.clock.now_ms(), Instant::now());
        let (task, node) = (self.task.clone(), self.node.clone());
        self.log.push(match emission {
            Emission::Custom { name, data } => EventKind::Custom(Custom { task, node, name, data }),
            Emission::Progress { message, fraction } => {
                EventKind::Progress(Progress { task, node, message, fraction })
            }
        });
        self.write_down(Answered {
            call,
            batch: call,
            function,
            digest,
            request: Value::Null,
            result: Ok(Value::Null),
            started_ms,
            started,
            summary: String::new(),
            tokens: None,
            reused: None,
        });
        self.log.flush().await;
        Ok(())
    }

    /// Appends a message for the operator. Repeated by a re-execution, since it changes nothing.
    pub(crate) fn log(&self, level: &str, message: String, fields: Value) {
        self.alive.called();
        self.log.push(EventKind::Log(Log {
            task: self.task.clone(),
            node: self.node.clone(),
            level: level.to_owned(),
            message,
            fields,
        }));
    }
}

/// The answer that somebody gave for a call in doubt.
fn read_settled<C: HostCall>(call: &C, answer: &Value) -> Result<C::Answer, Failure> {
    serde_json::from_value(answer.clone()).map_err(|error| {
        let text = format!(
            "the answer that was given for `{} {}` in doubt is none of that call: {error}",
            C::FUNCTION,
            call.summary()
        );
        Failure::new(code::INVALID, text)
    })
}

/// A call as the journal shows it; `text` is all of it.
fn shown<C: HostCall>(call: &C, text: &[u8]) -> Value {
    match call.shown().map(|part| serde_json::to_vec(&part)) {
        Some(Ok(part)) => brief(&part),
        Some(Err(_)) | None => brief(text),
    }
}

/// Longest text that is a name rather than content.
const BRIEF_NAME_BYTES: usize = 256;

/// A request as the journal shows it: whole, or its head if it is long or deep.
pub(crate) fn brief(text: &[u8]) -> Value {
    if text.len() <= limit::JOURNAL_REQUEST_BYTES {
        let whole: Option<Value> = serde_json::from_slice(text).ok();
        if let Some(whole) = whole.filter(|whole| check_depth("a request", whole).is_ok()) {
            return whole;
        }
    }
    let head = String::from_utf8_lossy(&text[..text.len().min(limit::JOURNAL_REQUEST_BYTES)]);
    let mut brief = names(text);
    brief.insert("head".to_owned(), json!(head));
    brief.insert("bytes".to_owned(), json!(text.len()));
    Value::Object(brief)
}

/// The short texts at the top of a request: its route, tool, call id, address. Whoever looks for
/// them in a log finds them also where the rest is too long to be kept.
fn names(text: &[u8]) -> Map<String, Value> {
    let Ok(Value::Object(whole)) = serde_json::from_slice(text) else { return Map::new() };
    let is_short = |value: &Value| value.as_str().is_some_and(|it| it.len() <= BRIEF_NAME_BYTES);
    whole.into_iter().filter(|(_, value)| is_short(value)).collect()
}

pub(crate) fn log_lost(error: StoreError) -> Unwind {
    Unwind::Log(Failure::internal(error.to_string()))
}

fn fault(function: &str, error: &serde_json::Error) -> Unwind {
    Unwind::Log(Failure::internal(format!("cannot journal {function}: {error}")))
}

fn doubt<'a, C: HostCall>(number: u32, call: &C, text: &[u8]) -> Doubt<'a> {
    Doubt { number, function: C::FUNCTION, summary: call.summary(), request: shown(call, text) }
}
