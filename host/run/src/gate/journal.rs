//! The journal of one task: its recorded host calls with their results.
//!
//! Each tool call of the task has a journal of its own below the task's, for the calls that the
//! tool makes. A journal lives as long as the task, over all its attempts. A re-executed node gets
//! the recorded results; a request that differs from the recorded one is a divergence. The event
//! log holds everything that a journal holds.

mod forget;
mod logged_calls;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use wattle_graph::event::{Called, Decision, TaskFinished};
use wattle_graph::failure::Failure;
use wattle_graph::id::InterruptId;
use wattle_graph::interrupt::Interrupt;
use wattle_graph::weight::{failure_weight, weight};

use crate::gate::budget::CallBudget;
use crate::gate::divergence::divergence;
use crate::gate::unwind::Unwind;
use crate::grant::Grants;
use crate::hostcall::request::CallRequest;
use crate::hostcall::stream::STREAM_READ;
use crate::json::JsonSize;
use crate::limit::Limits;
use crate::ports::Caller;
use crate::run_memory::MemoryCharge;

pub(crate) use self::forget::is_in_doubt;
use self::forget::{drop_trailing_rollbacks, forget_failed, is_rolled_back};
use self::logged_calls::keeps_pending;
pub(crate) use self::logged_calls::{CallsByScope, LoggedCalls};

/// The journal of one task.
#[derive(Default)]
pub struct Journal {
    /// Budget of the task, or of the tool, in the current attempt. A charge does not need the lock
    /// of the state, because the counters are atomic.
    budget: Arc<CallBudget>,
    state: Mutex<JournalState>,
}

#[derive(Default)]
struct JournalState {
    /// Calls with a result, with the sequence number of the result.
    entries: BTreeMap<u32, (u64, Called)>,
    /// Sequence number of the last start, interrupt, or result that is not a rollback. See
    /// [`drop_trailing_rollbacks`].
    newest_seq: u64,
    /// Calls with a start and no result in the log, with the sequence number of the last start.
    pending: BTreeMap<u32, u64>,
    /// Calls that stay open over failed attempts; see [`keeps_pending`].
    pending_interrupts: BTreeSet<u32>,
    /// Last start of each call, with or without a result.
    starts: BTreeMap<u32, CallStart>,
    /// Decisions about in-doubt calls.
    decisions: BTreeMap<u32, Decision>,
    /// Interrupts that were raised since the journal was created.
    interrupts: BTreeMap<InterruptId, Interrupt>,
    next_call: u32,
    reexecuted: bool,
    /// True in replays: a call without an entry is then a divergence, because nothing may be
    /// executed.
    replay_only: bool,
    /// Sequence number of the last `reopened` event for the task.
    reopened_seq: Option<u64>,
    /// Outcome of the task, if it is logged and not yet taken by [`Journal::take_finished`].
    finished: Option<Arc<TaskFinished>>,
    /// Logged calls of tools, until the journal of the tool is created.
    logged_tool_calls: CallsByScope,
    /// Journals of the tools that the task called, by call number.
    tool_journals: BTreeMap<u32, Arc<Journal>>,
}

impl JournalState {
    /// Creates the state of a journal from logged calls.
    fn of(mut logged_calls: CallsByScope, reexecuted: bool, replay_only: bool) -> Self {
        // Most tasks begin without calls in the log.
        if logged_calls.is_empty() {
            return Self { reexecuted, replay_only, ..Self::default() };
        }
        let LoggedCalls {
            results: mut entries,
            starts: pending,
            start_numbers,
            decisions,
            pending_interrupts,
            newest_seq,
            ..
        } = logged_calls.remove([].as_slice()).unwrap_or_default();
        if !replay_only {
            drop_trailing_rollbacks(&mut entries, newest_seq);
        }
        let pending = pending.into_iter().filter(|(call, _)| !entries.contains_key(call));
        let pending = pending.filter_map(|(call, begun)| Some((call, *begun.last()?))).collect();
        let decisions =
            decisions.into_iter().map(|(call, (_, decision))| (call, decision)).collect();
        let starts = start_numbers
            .into_iter()
            .map(|(call, start_number)| (call, CallStart { start_number, restart_count: 0 }));
        Self {
            entries,
            newest_seq,
            pending,
            pending_interrupts: pending_interrupts.into_keys().collect(),
            starts: starts.collect(),
            decisions,
            reexecuted,
            replay_only,
            // The calls of the task itself were removed above.
            logged_tool_calls: logged_calls,
            ..Self::default()
        }
    }

    /// Raises `newest_seq` to the sequence number of a start, an interrupt, or a result that is not
    /// a rollback.
    fn observe_seq(&mut self, seq: u64) {
        self.newest_seq = self.newest_seq.max(seq);
    }

    /// Returns the weight of the calls with a result, and of the logged calls of tools with a
    /// result, in bytes.
    fn bytes(&self) -> u64 {
        let of_tools = self.logged_tool_calls.values().flat_map(|calls| calls.results.values());
        let calls = self.entries.values().chain(of_tools).map(|(_, called)| {
            let result = called.result.as_ref().map_or_else(failure_weight, weight);
            request_bytes(called) + result
        });
        calls.sum()
    }
}

/// Start of a call.
#[derive(Clone, Copy, Default)]
struct CallStart {
    /// Number of the start: see
    /// [`CallStarted::start_number`](wattle_graph::event::CallStarted::start_number).
    start_number: u64,
    /// Number of times that the model restarted its completion since this start.
    restart_count: u32,
}

/// Result of [`Journal::look_up`].
pub(crate) enum JournalLookup {
    /// The call has this result.
    Recorded(Result<Value, Failure>),
    /// The call has started and has no result. This is the sequence number of its last start.
    Started(u64),
    /// The call was in doubt, and this decision was made about it.
    Settled(Decision),
    /// The journal does not know the call.
    Absent,
}

impl Journal {
    /// Creates a journal from the logged calls of a task. `reexecuted` is true if the task started
    /// before. What the journal keeps counts as `memory` of a run, except for the logged calls.
    pub(crate) fn new(logged_calls: CallsByScope, reexecuted: bool, memory: MemoryCharge) -> Self {
        let state = JournalState::of(logged_calls, reexecuted, false);
        let budget = CallBudget::for_task(memory, state.bytes());
        Self { budget: Arc::new(budget), state: Mutex::new(state) }
    }

    /// Sets the sequence number of the last `reopened` event for the task. Calls after it are
    /// unrelated to earlier calls with the same numbers.
    pub(crate) fn with_reopened_seq(self, undone: Option<u64>) -> Self {
        self.lock().reopened_seq = undone;
        self
    }

    /// Returns the sequence number of the last `reopened` event for the task.
    pub(crate) fn reopened_seq(&self) -> Option<u64> {
        self.lock().reopened_seq
    }

    /// Creates the journal to replay a task that has ended. A call that the journal does not hold
    /// is a divergence.
    pub(crate) fn for_replay(logged_calls: CallsByScope) -> Self {
        let state = JournalState::of(logged_calls, true, true);
        Self { budget: Arc::default(), state: Mutex::new(state) }
    }

    /// Returns the journal of the tool that the call with the number `call` executes.
    pub(crate) fn tool_journal(&self, call: u32) -> Arc<Self> {
        let mut inner = self.lock();
        if let Some(known) = inner.tool_journals.get(&call) {
            return known.clone();
        }
        let (own, rest): (CallsByScope, CallsByScope) =
            std::mem::take(&mut inner.logged_tool_calls)
                .into_iter()
                .partition(|(path, _)| path[0] == call);
        inner.logged_tool_calls = rest;
        let own = own.into_iter().map(|(path, calls)| (path[1..].to_vec(), calls)).collect();
        let state = JournalState::of(own, inner.reexecuted, inner.replay_only);
        let budget = Arc::new(self.budget.for_tool());
        let journal = Self { budget, state: Mutex::new(state) };
        let journal = Arc::new(journal.with_reopened_seq(inner.reopened_seq));
        inner.tool_journals.insert(call, journal.clone());
        journal
    }

    /// Locks the state. No code that can panic runs under this lock.
    fn lock(&self) -> MutexGuard<'_, JournalState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends an attempt that failed. Calls without a result are executed again, except calls with an
    /// interrupt since their last start, which stay in doubt.
    pub(crate) fn fail_attempt(&self) {
        let mut inner = self.lock();
        let JournalState { pending, pending_interrupts, logged_tool_calls, tool_journals, .. } =
            &mut *inner;
        pending.retain(|call, _| pending_interrupts.contains(call));
        for calls in logged_tool_calls.values_mut() {
            calls.fail_attempt(false);
        }
        for journal in tool_journals.values() {
            journal.fail_attempt();
        }
    }

    /// Starts the next attempt: call numbering restarts at 0. Failed calls of the last batch,
    /// except in-doubt calls, are removed from the journal and executed again. The next attempt
    /// gets all other results from the journal, so no effect is paid for twice and no question is
    /// asked twice.
    pub fn begin_attempt(&self) {
        let mut inner = self.lock();
        inner.next_call = 0;
        self.budget.reset();
        let newest_seq = inner.newest_seq;
        forget_failed(&mut inner.entries);
        drop_trailing_rollbacks(&mut inner.entries, newest_seq);
        inner.reexecuted = true;
        inner.tool_journals.values().for_each(|journal| journal.begin_attempt());
    }

    /// Returns true if the task was executed before, by another process or in an earlier attempt.
    pub fn is_reexecution(&self) -> bool {
        self.lock().reexecuted
    }

    /// Records the outcome of the task in the same step as its log event, because the future that
    /// logs the event may be dropped while it waits for the log.
    pub(crate) fn finish(&self, finished: Arc<TaskFinished>) {
        self.lock().finished = Some(finished);
    }

    /// Takes the outcome of the task, if it has ended. Returns `None` on later calls.
    pub(crate) fn take_finished(&self) -> Option<Arc<TaskFinished>> {
        self.lock().finished.take()
    }

    /// Reserves `count` consecutive call numbers and returns the first.
    ///
    /// # Errors
    ///
    /// [`Unwind::Limit`] if the guest, or the task with all its tools, makes too many calls.
    pub fn reserve_call_numbers(
        &self,
        count: u32,
        grants: &Grants,
        caller: &Caller,
    ) -> Result<u32, Unwind> {
        let mut inner = self.lock();
        self.budget.charge_calls(count, grants, caller)?;
        let first = inner.next_call;
        inner.next_call += count;
        Ok(first)
    }

    /// Returns the budget of the task, or of the tool. All attempts have the same budget.
    pub(crate) fn budget(&self) -> Arc<CallBudget> {
        self.budget.clone()
    }

    /// Charges a value that passes the gate and that the journal keeps.
    ///
    /// # Errors
    ///
    /// [`Unwind::Limit`] if the budget is exceeded.
    pub(crate) fn count_size(&self, size: JsonSize, limits: &Limits) -> Result<(), Unwind> {
        self.budget.charge_bytes(size.bytes, limits.host_call_bytes)?;
        self.budget.charge_journal(size.weight, limits.task_journal_bytes)
    }

    /// Charges the weight of the request of a call, in bytes.
    ///
    /// # Errors
    ///
    /// [`Unwind::Limit`] if the budget is exceeded.
    pub(crate) fn count_request(&self, weight: u64, limits: &Limits) -> Result<(), Unwind> {
        self.budget.charge_journal(weight, limits.task_journal_bytes)
    }

    /// Returns true if the journal holds stream reads for this call.
    pub(crate) fn has_stream_reads(&self, call: u32) -> bool {
        let inner = self.lock();
        inner
            .entries
            .range(call..)
            .any(|(_, (_, entry))| entry.batch == call && entry.function == STREAM_READ)
    }

    /// Looks up a call by its number. The request of a recorded call counts towards the limit of
    /// the journal.
    ///
    /// # Errors
    ///
    /// [`Unwind::Divergence`] if the journal holds another request under this number;
    /// [`Unwind::Limit`] if the budget is exceeded.
    pub(crate) fn look_up(
        &self,
        call: u32,
        request: &CallRequest,
        limits: &Limits,
    ) -> Result<JournalLookup, Unwind> {
        let inner = self.lock();
        let now = || json!({ "function": request.function, "request": request.journaled() });
        let Some((_, entry)) = inner.entries.get(&call) else {
            if inner.replay_only {
                return Err(divergence(call, Value::Null, now()));
            }
            if let Some(decision) = inner.decisions.get(&call) {
                return Ok(JournalLookup::Settled(decision.clone()));
            }
            return Ok(inner
                .pending
                .get(&call)
                .map_or(JournalLookup::Absent, |seq| JournalLookup::Started(*seq)));
        };
        if entry.function == request.function && entry.digest == request.digest {
            self.budget.charge_journal(request_bytes(entry), limits.task_journal_bytes)?;
            return Ok(JournalLookup::Recorded(entry.result.clone()));
        }
        let before = json!({ "function": entry.function, "request": entry.request });
        Err(divergence(call, before, now()))
    }

    /// Returns the number of the next start of a call. After a reopen the journal no longer holds
    /// earlier starts, whose deltas were streamed. The count then continues from the sequence
    /// number of the `reopened` event.
    pub(crate) fn next_start_number(&self, call: u32) -> u64 {
        let inner = self.lock();
        let next = |begun: &CallStart| begun.start_number.saturating_add(1);
        inner.starts.get(&call).map_or(inner.reopened_seq.unwrap_or_default(), next)
    }

    /// Records the start of a call.
    pub(crate) fn record_start(&self, call: u32, start_number: u64, seq: u64) {
        let mut inner = self.lock();
        inner.starts.insert(call, CallStart { start_number, restart_count: 0 });
        inner.pending_interrupts.remove(&call);
        inner.observe_seq(seq);
    }

    /// Records that the model restarted the completion of a call.
    pub(crate) fn add_restarts(&self, call: u32, times: u32) {
        let mut inner = self.lock();
        let begun = inner.starts.entry(call).or_default();
        begun.restart_count = begun.restart_count.saturating_add(times);
    }

    /// Returns how many times the model restarted the completion since the last start of the call.
    pub(crate) fn restart_count(&self, call: u32) -> u32 {
        self.lock().starts.get(&call).map_or(0, |begun| begun.restart_count)
    }

    /// Records an interrupt.
    pub(crate) fn record_interrupt(&self, question: Interrupt) {
        let mut inner = self.lock();
        inner.observe_seq(question.raised_seq);
        if keeps_pending(&question.raised) {
            inner.pending_interrupts.insert(question.raised.call);
        }
        inner.interrupts.insert(question.raised.interrupt.clone(), question);
    }

    /// Returns an interrupt that was raised since the journal was created.
    pub(crate) fn interrupt(&self, interrupt: &InterruptId) -> Option<Interrupt> {
        self.lock().interrupts.get(interrupt).cloned()
    }

    /// Returns the sequence number of the last interrupt that was raised since the journal was
    /// created, by the guest or by the tools that it calls.
    pub(crate) fn last_interrupt_seq(&self) -> Option<u64> {
        let inner = self.lock();
        let own = inner.interrupts.values().map(|it| it.raised_seq).max();
        let below = inner.tool_journals.values().filter_map(|journal| journal.last_interrupt_seq());
        own.max(below.max())
    }

    /// Returns true if an MCP server has elicited since the journal was created.
    pub(crate) fn has_elicited(&self) -> bool {
        self.lock().interrupts.values().any(|it| it.raised.elicited.is_some())
    }

    /// Records the result of a call.
    pub(crate) fn record_result(&self, seq: u64, called: Called) {
        let mut inner = self.lock();
        if !is_rolled_back(&called) {
            inner.observe_seq(seq);
        }
        inner.pending.remove(&called.call);
        inner.decisions.remove(&called.call);
        if called.result.is_ok() {
            // The call is not executed again, so its tool needs no journal.
            inner.tool_journals.remove(&called.call);
        }
        inner.entries.insert(called.call, (seq, called));
    }
}

/// Returns the weight of the request of a recorded call, in bytes.
fn request_bytes(called: &Called) -> u64 {
    weight(&called.request) + called.summary.len() as u64
}

#[cfg(test)]
mod tests {
    use wattle_graph::event::InterruptRaised;
    use wattle_graph::failure::code;
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
            store_us: 0,
            summary: String::new(),
            tokens: None,
            reused: None,
            batch,
        }
    }

    /// Returns the numbers of the calls that a journal holds when the next attempt starts.
    fn kept(calls: Vec<Called>) -> Vec<u32> {
        let journal = Journal::default();
        for (seq, called) in (1..).zip(calls) {
            journal.record_result(seq, called);
        }
        journal.begin_attempt();
        let inner = journal.lock();
        inner.entries.keys().copied().collect()
    }

    #[test]
    fn requests_of_recorded_calls_count_by_their_weight() {
        let mut request = CallRequest::small("http.send", json!([0, 0, 0, 0]));
        let journal = Journal::default();
        let result = Ok(json!("the caller counts the result"));
        let recorded = Called {
            digest: request.digest,
            request: request.journaled(),
            ..called(0, 0, "http.send", result)
        };
        journal.record_result(1, recorded);
        let limits = Limits { task_journal_bytes: request.truncate(), ..Limits::default() };
        assert!(matches!(journal.look_up(0, &request, &limits), Ok(JournalLookup::Recorded(_))));
        assert!(matches!(journal.look_up(0, &request, &limits), Err(Unwind::Limit(_))));
        journal.begin_attempt();
        assert!(journal.look_up(0, &request, &limits).is_ok(), "the next attempt");
    }

    #[test]
    fn trailing_stream_reads_of_a_failed_call_are_dropped() {
        let look = |call| called(call, 0, STREAM_READ, Ok(json!([])));
        let between = |function| called(2, 2, function, Ok(Value::Null));
        assert!(kept(vec![look(1), between("clock.now"), look(3)]).is_empty());
        assert_eq!(kept(vec![look(1), between("sql.transaction"), look(3)]), [1, 2, 3]);
    }

    #[test]
    fn in_doubt_call_is_not_repeated_with_failed_calls_of_its_batch() {
        let failed = |call, word: &str| called(call, 0, "tools.call", Err(Failure::new(word, "")));
        assert_eq!(kept(vec![failed(0, code::IN_DOUBT), failed(1, code::UNAVAILABLE)]), [0]);
    }

    #[test]
    fn call_with_a_pending_interrupt_stays_in_doubt_when_an_attempt_fails() {
        let mut past = LoggedCalls::default();
        past.record_start(0, 0, 1);
        past.record_start(1, 0, 2);
        let raised =
            json!({ "interrupt": "i", "task": "t", "node": "n", "call": 1, "payload": "?" });
        past.record_interrupt(&serde_json::from_value(raised).unwrap(), 3);
        past.fail_attempt(false);
        assert_eq!((past.last_start_seq(0), past.last_start_seq(1)), (None, Some(2)));
    }

    #[test]
    fn call_with_an_interrupt_in_the_log_stays_in_doubt_when_a_later_attempt_fails() {
        let mut past = LoggedCalls::default();
        past.record_start(0, 0, 1);
        past.record_start(1, 0, 2);
        let raised =
            json!({ "interrupt": "i", "task": "t", "node": "n", "call": 1, "payload": "?" });
        past.record_interrupt(&serde_json::from_value(raised).unwrap(), 3);
        let calls = CallsByScope::from([(Vec::new(), past)]);
        let journal = Journal::new(calls, true, MemoryCharge::default());
        let request = CallRequest::small("http.send", json!({}));
        let limits = Limits::default();
        let started = |call| match journal.look_up(call, &request, &limits) {
            Ok(JournalLookup::Started(seq)) => Some(seq),
            _ => None,
        };
        let fail = || {
            journal.fail_attempt();
            journal.begin_attempt();
        };
        fail();
        assert_eq!((started(0), started(1)), (None, Some(2)));
        journal.record_start(1, 1, 4);
        fail();
        assert_eq!(started(1), None, "the call was executing");
    }

    #[test]
    fn held_call_stays_open_over_failed_attempts_until_it_continues() {
        let mut past = LoggedCalls::default();
        past.record_start(0, 0, 1);
        past.record_start(1, 0, 2);
        let question = |call: u32, held: Option<&str>| -> InterruptRaised {
            let elicitation = json!({ "questions": {}, "held": held });
            let elicited = json!({ "round": 0, "digest": Digest::of(b""), "server": "s",
                "tool": "t", "asked": elicitation });
            let raised = json!({ "interrupt": "i", "task": "t", "node": "n", "call": call,
                "payload": "?", "elicited": elicited });
            serde_json::from_value(raised).unwrap()
        };
        past.record_interrupt(&question(0, None), 3);
        past.record_interrupt(&question(1, Some("name")), 4);
        past.fail_attempt(false);
        assert_eq!((past.last_start_seq(0), past.last_start_seq(1)), (None, Some(2)));
        past.record_start(1, 1, 5);
        past.fail_attempt(false);
        assert_eq!(past.last_start_seq(1), None, "the call was executing");
    }

    #[test]
    fn rolled_back_transaction_without_a_later_result_is_dropped() {
        let rolled_back = |call| {
            let answer = json!({ "statements": [], TRANSACTION_END: ROLLED_BACK });
            called(call, call, TRANSACTION, Ok(answer))
        };
        let done = |call| called(call, call, "http.send", Ok(Value::Null));
        assert_eq!(kept(vec![rolled_back(0), done(1)]), [0, 1], "a later call may depend on it");
        assert_eq!(kept(vec![done(1), rolled_back(0)]), [1], "the transaction was still open");
        let failed = called(1, 1, "http.send", Err(Failure::new(code::UNAVAILABLE, "")));
        assert!(kept(vec![failed, rolled_back(0)]).is_empty());
    }
}
