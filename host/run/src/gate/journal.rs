//! The journal of one task: which host calls it made, and what they answered.
//!
//! A tool that the task calls has a journal of its own below the task's, for what the tool calls.
//! Journals live as long as the task, over all its attempts. A re-executed node gets the answers it
//! got before; a request that differs is a divergence. What is here is in the event log as well.

mod forget;
mod past;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use wattle_graph::event::{Asked, Called, Decision, TaskFinished};
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::InterruptId;
use wattle_graph::interrupt::Question;

use crate::gate::unwind::Unwind;
use crate::hostcall::request::Request;
use crate::hostcall::stream::LOOK;
use crate::limit;

pub(crate) use self::forget::is_in_doubt;
use self::forget::{forget_failed, forget_last_rollbacks, is_rolled_back};
use self::past::keeps_open;
pub(crate) use self::past::{PastCalls, Scopes};

/// The journal of one task.
#[derive(Default)]
pub struct Journal(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    /// Answered calls, with their sequence numbers in the log.
    entries: BTreeMap<u32, (u64, Called)>,
    /// See [`forget_last_rollbacks`].
    newest: u64,
    /// Calls that were begun and have no answer in the log, with the sequence number of the last
    /// time.
    open: BTreeMap<u32, u64>,
    /// Calls that were begun, however they ended.
    begun: BTreeMap<u32, Begun>,
    /// What was decided of calls in doubt.
    settled: BTreeMap<u32, Decision>,
    /// Questions that were asked since the journal began.
    asked: BTreeMap<InterruptId, Question>,
    next_call: u32,
    bytes: u64,
    repeated: bool,
    /// Whether a call that is not here is a divergence, since nothing may be done anew.
    sealed: bool,
    /// Where in the log the task was undone last.
    undone: Option<u64>,
    /// How the task ended, if that is in the log and may not have been heard of.
    finished: Option<Box<TaskFinished>>,
    /// What the whole task has used, tools included.
    used: Arc<Used>,
    /// What the log holds of calls inside of this journal's calls.
    past: Scopes,
    /// Journals of the tools that were called.
    inner: BTreeMap<u32, Arc<Journal>>,
}

/// A call that was begun.
#[derive(Clone, Copy, Default)]
struct Begun {
    /// See [`CallStarted::again`](wattle_graph::event::CallStarted::again).
    again: u64,
    /// How often a model answered anew since.
    restarts: u32,
}

/// What a task has used in its present attempt, together with all tools that it called.
#[derive(Default)]
struct Used {
    calls: AtomicU64,
    bytes: AtomicU64,
    blobs: AtomicU64,
    emitted: AtomicU64,
}

impl Used {
    fn reset(&self) {
        for counter in [&self.calls, &self.bytes, &self.blobs, &self.emitted] {
            counter.store(0, Ordering::Relaxed);
        }
    }
}

/// Adds to a counter and says whether it is still within its limit.
fn charge(counter: &AtomicU64, amount: u64, allowed: u64) -> bool {
    counter.fetch_add(amount, Ordering::Relaxed).saturating_add(amount) <= allowed
}

/// What the journal says of a call.
pub(crate) enum Known {
    /// It was answered.
    Answered(Result<Value, Failure>),
    /// It was begun, for the last time at this place in the log; nobody knows how it ended.
    Open(u64),
    /// Nobody knew how it ended, and somebody decided.
    Settled(Decision),
    /// It is new.
    New,
}

impl Journal {
    /// A journal with the calls that the log holds for a task. `repeated` says whether the task
    /// was begun before.
    pub(crate) fn new(past: Scopes, repeated: bool) -> Self {
        Self::of(past, repeated, false)
    }

    fn of(mut past: Scopes, repeated: bool, sealed: bool) -> Self {
        let PastCalls { answered: mut entries, open, again, settled, newest, .. } =
            past.remove([].as_slice()).unwrap_or_default();
        if !sealed {
            forget_last_rollbacks(&mut entries, newest);
        }
        let open = open.into_iter().filter(|(call, _)| !entries.contains_key(call));
        let open = open.filter_map(|(call, begun)| Some((call, *begun.last()?))).collect();
        let settled = settled.into_iter().map(|(call, (_, decision))| (call, decision)).collect();
        let begun = again.into_iter().map(|(call, again)| (call, Begun { again, restarts: 0 }));
        let inner = Inner {
            entries,
            newest,
            open,
            begun: begun.collect(),
            settled,
            repeated,
            sealed,
            past,
            ..Inner::default()
        };
        Self(Mutex::new(inner))
    }

    /// The same of a task that was undone at a place in the log: calls after it have nothing to do
    /// with those of the same numbers before.
    pub(crate) fn undone_at(self, undone: Option<u64>) -> Self {
        self.lock().undone = undone;
        self
    }

    /// Where in the log the task was undone last.
    pub(crate) fn undone(&self) -> Option<u64> {
        self.lock().undone
    }

    /// The journal of a task that has ended, to execute it once more and do nothing anew.
    pub(crate) fn sealed(past: Scopes) -> Self {
        Self::of(past, true, true)
    }

    /// The journal of the tool that call `call` calls.
    pub(crate) fn inner(&self, call: u32) -> Arc<Self> {
        let mut inner = self.lock();
        if let Some(known) = inner.inner.get(&call) {
            return known.clone();
        }
        let (own, rest): (Scopes, Scopes) =
            std::mem::take(&mut inner.past).into_iter().partition(|(path, _)| path[0] == call);
        inner.past = rest;
        let own = own.into_iter().map(|(path, calls)| (path[1..].to_vec(), calls)).collect();
        let journal = Self::of(own, inner.repeated, inner.sealed).undone_at(inner.undone);
        journal.lock().used = inner.used.clone();
        let journal = Arc::new(journal);
        inner.inner.insert(call, journal.clone());
        journal
    }

    /// No code that can panic runs under this lock.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes note that an attempt has failed: calls that were begun before it and of which nobody knows
    /// how they ended are made again, but one that waits for a person stays in doubt.
    pub(crate) fn give_up_attempt(&self) {
        let mut inner = self.lock();
        let Inner { open, asked, past, inner: tools, .. } = &mut *inner;
        let is_about = |it: &Asked, call: u32| it.call == call && keeps_open(it);
        open.retain(|call, _| asked.values().any(|it| is_about(&it.asked, *call)));
        for calls in past.values_mut() {
            calls.give_up_attempt(false);
        }
        for journal in tools.values() {
            journal.give_up_attempt();
        }
    }

    /// Begins an attempt: calls are counted from the start again. Calls of the last batch that
    /// failed are forgotten, so they are made again; everything else is kept, so nothing is paid
    /// twice and nobody is asked twice.
    pub fn begin_attempt(&self) {
        let mut inner = self.lock();
        inner.next_call = 0;
        inner.bytes = 0;
        inner.used.reset();
        let newest = inner.newest;
        forget_failed(&mut inner.entries);
        forget_last_rollbacks(&mut inner.entries, newest);
        inner.repeated = true;
        inner.inner.values().for_each(|journal| journal.begin_attempt());
    }

    /// Whether the task was begun before this process or attempt.
    pub fn is_repeated(&self) -> bool {
        self.lock().repeated
    }

    /// Notes that the task has finished, in one step with the log: the caller may be dropped before
    /// the log has answered it.
    pub(crate) fn finish(&self, finished: TaskFinished) {
        self.lock().finished = Some(Box::new(finished));
    }

    /// How the task ended, if it did and that was not asked before.
    pub(crate) fn take_finished(&self) -> Option<TaskFinished> {
        self.lock().finished.take().map(|finished| *finished)
    }

    /// Numbers for `count` calls in a row.
    ///
    /// # Errors
    ///
    /// [`Unwind::Limit`] if the guest has made too many, or the task with all its tools.
    pub fn take_numbers(&self, count: u32, allowed: u32) -> Result<u32, Unwind> {
        let mut inner = self.lock();
        if inner.next_call.saturating_add(count) > allowed {
            let text = format!(
                "the node made more than {allowed} host calls; raise `host_calls` in its grant if \
                 that is right"
            );
            return Err(exceeded("host_calls", u64::from(allowed), text));
        }
        if !charge(&inner.used.calls, u64::from(count), limit::TASK_HOST_CALLS) {
            let text = format!(
                "the node and its tools made more than {} host calls",
                limit::TASK_HOST_CALLS
            );
            return Err(exceeded("task_host_calls", limit::TASK_HOST_CALLS, text));
        }
        let first = inner.next_call;
        inner.next_call += count;
        Ok(first)
    }

    /// Counts bytes that pass the gate.
    ///
    /// # Errors
    ///
    /// [`Unwind::Limit`] if there were too many.
    pub fn count_bytes(&self, bytes: u64, allowed: u64) -> Result<(), Unwind> {
        let mut inner = self.lock();
        inner.bytes = inner.bytes.saturating_add(bytes);
        if inner.bytes > allowed {
            let text = format!(
                "the node's host calls carried more than {allowed} bytes; put large data into blobs"
            );
            return Err(exceeded("host_call_bytes", allowed, text));
        }
        if charge(&inner.used.bytes, bytes, limit::TASK_HOST_CALL_BYTES) {
            return Ok(());
        }
        let text = format!(
            "the host calls of the node and its tools carried more than {} bytes",
            limit::TASK_HOST_CALL_BYTES
        );
        Err(exceeded("task_host_call_bytes", limit::TASK_HOST_CALL_BYTES, text))
    }

    /// Counts bytes of blobs that are put.
    ///
    /// # Errors
    ///
    /// [`Unwind::Limit`] if there were too many.
    pub(crate) fn count_blob(&self, bytes: u64) -> Result<(), Unwind> {
        if charge(&self.lock().used.blobs, bytes, limit::TASK_BLOB_BYTES) {
            return Ok(());
        }
        let text = format!(
            "the node and its tools put blobs of more than {} bytes; keep less in one task",
            limit::TASK_BLOB_BYTES
        );
        Err(exceeded("task_blob_bytes", limit::TASK_BLOB_BYTES, text))
    }

    /// Counts an emitted event.
    ///
    /// # Errors
    ///
    /// [`Unwind::Limit`] if there were too many.
    pub fn count_emission(&self) -> Result<(), Unwind> {
        let allowed = u64::from(limit::EMITTED_EVENTS);
        if charge(&self.lock().used.emitted, 1, allowed) {
            return Ok(());
        }
        let text = format!("the node emitted more than {allowed} events");
        Err(exceeded("emitted_events", allowed, text))
    }

    /// Whether the guest has looked at the pieces of a streamed answer before.
    pub(crate) fn has_looks(&self, call: u32) -> bool {
        let inner = self.lock();
        inner
            .entries
            .range(call..)
            .any(|(_, (_, entry))| entry.batch == call && entry.function == LOOK)
    }

    /// What is known of a call.
    ///
    /// # Errors
    ///
    /// [`Unwind::Divergence`] if the call that was made before was another.
    pub(crate) fn look_up(&self, call: u32, request: &Request) -> Result<Known, Unwind> {
        let inner = self.lock();
        let now = || json!({ "function": request.function, "request": request.shown() });
        let Some((_, entry)) = inner.entries.get(&call) else {
            if inner.sealed {
                return Err(divergence(call, json!({ "function": "no call" }), now()));
            }
            if let Some(decision) = inner.settled.get(&call) {
                return Ok(Known::Settled(decision.clone()));
            }
            return Ok(inner.open.get(&call).map_or(Known::New, |begun| Known::Open(*begun)));
        };
        if entry.function == request.function && entry.digest == request.digest {
            return Ok(Known::Answered(entry.result.clone()));
        }
        let before = json!({ "function": entry.function, "request": entry.request });
        Err(divergence(call, before, now()))
    }

    /// Which time it is that a call is begun. Calls that were undone are forgotten, but their pieces
    /// were streamed. So the place in the log where that happened stands for all times before.
    pub(crate) fn again(&self, call: u32) -> u64 {
        let inner = self.lock();
        let next = |begun: &Begun| begun.again.saturating_add(1);
        inner.begun.get(&call).map_or(inner.undone.unwrap_or_default(), next)
    }

    /// Takes note that a call was begun at a place in the log.
    pub(crate) fn begin(&self, call: u32, again: u64, seq: u64) {
        self.lock().begun.insert(call, Begun { again, restarts: 0 });
        self.note(seq);
    }

    /// Takes note that a model answers a call anew, so many times.
    pub(crate) fn restart(&self, call: u32, times: u32) {
        let mut inner = self.lock();
        let begun = inner.begun.entry(call).or_default();
        begun.restarts = begun.restarts.saturating_add(times);
    }

    /// How often a model has answered a call anew since it was begun.
    pub(crate) fn restarts(&self, call: u32) -> u32 {
        self.lock().begun.get(&call).map_or(0, |begun| begun.restarts)
    }

    /// Keeps a question that was asked.
    pub(crate) fn ask(&self, question: Question) {
        self.note(question.asked_seq);
        self.lock().asked.insert(question.asked.interrupt.clone(), question);
    }

    /// A question that was asked since the journal began.
    pub(crate) fn asked(&self, interrupt: &InterruptId) -> Option<Question> {
        self.lock().asked.get(interrupt).cloned()
    }

    /// Whether servers of tools have asked since the journal began.
    pub(crate) fn has_elicited(&self) -> bool {
        self.lock().asked.values().any(|it| it.asked.elicited.is_some())
    }

    /// Takes note that something was begun, or a question asked, at a place in the log.
    fn note(&self, seq: u64) {
        let mut inner = self.lock();
        inner.newest = inner.newest.max(seq);
    }

    /// Keeps an answer, which stands at a place in the log.
    pub(crate) fn keep(&self, seq: u64, called: Called) {
        let mut inner = self.lock();
        if !is_rolled_back(&called) {
            inner.newest = inner.newest.max(seq);
        }
        inner.open.remove(&called.call);
        inner.settled.remove(&called.call);
        if called.result.is_ok() {
            // It is not made again, so nobody asks what was called inside of it.
            inner.inner.remove(&called.call);
        }
        inner.entries.insert(called.call, (seq, called));
    }
}

fn exceeded(limit: &str, allowed: u64, text: String) -> Unwind {
    let details = json!({ "limit": limit, "allowed": allowed });
    Unwind::Limit(Failure::new(code::LIMIT, text).with_details(details))
}

/// The divergence of a re-executed task, with both requests.
pub(crate) fn divergence(call: u32, journaled: Value, now: Value) -> Unwind {
    Unwind::Divergence(
        Failure::new(
            code::DIVERGENCE,
            format!(
                "host call {call} differs from the journal: it was {}, and is {} now; the node \
                 does not do the same again from the same answers",
                journaled["function"], now["function"]
            ),
        )
        .with_details(json!({ "call": call, "journal": journaled, "now": now })),
    )
}

#[cfg(test)]
mod tests {
    use wattle_graph::id::{Digest, NodeName, TaskId};

    use super::*;
    use crate::hostcall::sql::{ROLLED_BACK, TRANSACTION, TRANSACTION_END};

    fn called(call: u32, batch: u32, function: &str, result: Result<Value, Failure>) -> Called {
        Called {
            task: TaskId::new("t").unwrap(),
            node: NodeName::new("n").unwrap(),
            scope: Vec::new(),
            call,
            function: function.to_owned(),
            digest: Digest::of(b""),
            request: Value::Null,
            result,
            started_ms: 0,
            duration_us: 0,
            summary: String::new(),
            tokens: None,
            reused: None,
            batch,
        }
    }

    /// What a journal still knows of some calls when the next attempt begins.
    fn kept(calls: Vec<Called>) -> Vec<u32> {
        let journal = Journal::default();
        for (seq, called) in (1..).zip(calls) {
            journal.keep(seq, called);
        }
        journal.begin_attempt();
        let inner = journal.lock();
        inner.entries.keys().copied().collect()
    }

    #[test]
    fn looks_at_a_cut_answer_are_forgotten_if_nothing_else_was_done() {
        let look = |call| called(call, 0, LOOK, Ok(json!([])));
        let between = |function| called(2, 2, function, Ok(Value::Null));
        assert!(kept(vec![look(1), between("clock.now"), look(3)]).is_empty());
        assert_eq!(kept(vec![look(1), between("sql.transaction"), look(3)]), [1, 2, 3]);
    }

    #[test]
    fn a_call_in_doubt_is_not_made_again_with_others_of_its_batch_that_failed() {
        let failed = |call, word: &str| called(call, 0, "tools.call", Err(Failure::new(word, "")));
        assert_eq!(kept(vec![failed(0, code::IN_DOUBT), failed(1, code::UNAVAILABLE)]), [0]);
    }

    #[test]
    fn a_call_that_a_person_is_asked_about_stays_in_doubt_when_an_attempt_fails() {
        let mut past = PastCalls::default();
        past.begin(0, 0, 1);
        past.begin(1, 0, 2);
        let asked =
            json!({ "interrupt": "i", "task": "t", "node": "n", "call": 1, "payload": "?" });
        past.ask(&serde_json::from_value(asked).unwrap(), 3);
        past.give_up_attempt(false);
        assert_eq!((past.begun(0), past.begun(1)), (None, Some(2)));
    }

    #[test]
    fn a_call_that_is_held_stays_open_when_an_attempt_fails_until_it_goes_on() {
        let mut past = PastCalls::default();
        past.begin(0, 0, 1);
        past.begin(1, 0, 2);
        let question = |call: u32, held: Option<&str>| -> Asked {
            let asked = json!({ "questions": {}, "held": held });
            let elicited = json!({ "round": 0, "digest": Digest::of(b""), "server": "s",
                "tool": "t", "asked": asked });
            let asked = json!({ "interrupt": "i", "task": "t", "node": "n", "call": call,
                "payload": "?", "elicited": elicited });
            serde_json::from_value(asked).unwrap()
        };
        past.ask(&question(0, None), 3);
        past.ask(&question(1, Some("name")), 4);
        past.give_up_attempt(false);
        assert_eq!((past.begun(0), past.begun(1)), (None, Some(2)));
        past.begin(1, 1, 5);
        past.give_up_attempt(false);
        assert_eq!(past.begun(1), None, "it was under way");
    }

    #[test]
    fn a_transaction_that_was_rolled_back_last_is_not_kept() {
        let rolled_back = |call| {
            let answer = json!({ "statements": [], TRANSACTION_END: ROLLED_BACK });
            called(call, call, TRANSACTION, Ok(answer))
        };
        let done = |call| called(call, call, "http.send", Ok(Value::Null));
        assert_eq!(kept(vec![rolled_back(0), done(1)]), [0, 1], "the answer to it may have led on");
        assert_eq!(kept(vec![done(1), rolled_back(0)]), [1], "it was still open");
        let failed = called(1, 1, "http.send", Err(Failure::new(code::UNAVAILABLE, "")));
        assert!(kept(vec![failed, rolled_back(0)]).is_empty());
    }
}
