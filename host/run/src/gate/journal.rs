//! The journal of one task: which host calls it made, and what they answered.
//!
//! A tool that the task calls has a journal of its own below the task's, for what the tool calls.
//! Journals live as long as the task, over all its attempts. A re-executed node gets the answers it
//! got before; a request that differs is a divergence. What is here is in the event log as well.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use wattle_graph::event::Called;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::Digest;

use crate::gate::stream;
use crate::gate::unwind::Unwind;
use crate::limit;

/// Key of a transaction's answer that says how it ended.
pub(crate) const TRANSACTION_END: &str = "end";
/// Value of [`TRANSACTION_END`] for a transaction that was undone.
pub(crate) const ROLLED_BACK: &str = "rollback";

/// The journal of one task.
#[derive(Default)]
pub struct Journal(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    entries: BTreeMap<u32, Called>,
    /// Calls that were begun and have no answer in the log.
    open: BTreeSet<u32>,
    next_call: u32,
    bytes: u64,
    repeated: bool,
    /// What the whole task has used, tools included.
    used: Arc<Used>,
    /// What the log holds of calls inside of this journal's calls.
    past: Scopes,
    /// Journals of the tools that were called.
    inner: BTreeMap<u32, Arc<Journal>>,
}

/// What a task has used in its present attempt, together with all tools that it called.
#[derive(Default)]
struct Used {
    calls: AtomicU64,
    bytes: AtomicU64,
    emitted: AtomicU64,
}

impl Used {
    fn reset(&self) {
        for counter in [&self.calls, &self.bytes, &self.emitted] {
            counter.store(0, Ordering::Relaxed);
        }
    }
}

/// Adds to a counter and says whether it is still within its limit.
fn charge(counter: &AtomicU64, amount: u64, allowed: u64) -> bool {
    counter.fetch_add(amount, Ordering::Relaxed).saturating_add(amount) <= allowed
}

/// What the log holds of the calls of a task, by the path of tool calls they are inside of.
pub(crate) type Scopes = BTreeMap<Vec<u32>, PastCalls>;

/// What the log holds of the calls of one scope.
#[derive(Clone, Debug, Default)]
pub(crate) struct PastCalls {
    /// Answered calls, with their sequence numbers in the log.
    pub answered: BTreeMap<u32, (u64, Called)>,
    /// Calls whose beginning was logged, with the sequence numbers of that.
    pub open: BTreeMap<u32, u64>,
}

impl PastCalls {
    /// Forgets what must be made again after a failed attempt; `for_good` says that only a person
    /// can want another one.
    pub(crate) fn give_up_attempt(&mut self, for_good: bool) {
        self.open.clear();
        let again: fn(&Called) -> bool = if for_good { is_failed } else { is_surely_failed };
        forget_failed(&mut self.answered, |(_, called)| called, again);
    }

    /// Forgets what happened from a place in the log on.
    pub(crate) fn forget_since(&mut self, seq: u64) {
        self.answered.retain(|_, (made, _)| *made < seq);
        self.open.retain(|_, begun| *begun < seq);
    }
}

/// What the journal says of a call.
pub(crate) enum Known {
    /// It was answered.
    Answered(Result<Value, Failure>),
    /// It was begun; nobody knows how it ended.
    Open,
    /// It is new.
    New,
}

impl Journal {
    /// A journal with the calls that the log holds for a task. `repeated` says whether the task
    /// was begun before.
    pub(crate) fn new(mut past: Scopes, repeated: bool) -> Self {
        let PastCalls { answered, open } = past.remove([].as_slice()).unwrap_or_default();
        let entries: BTreeMap<u32, Called> =
            answered.into_iter().map(|(call, (_, called))| (call, called)).collect();
        let open = open.into_keys().filter(|call| !entries.contains_key(call)).collect();
        Self(Mutex::new(Inner { entries, open, repeated, past, ..Inner::default() }))
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
        let journal = Self::new(own, inner.repeated);
        journal.lock().used = inner.used.clone();
        let journal = Arc::new(journal);
        inner.inner.insert(call, journal.clone());
        journal
    }

    /// No code that can panic runs under this lock.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins an attempt: calls are counted from the start again. Calls of the last batch that
    /// failed are forgotten, so they are made again; everything else is kept, so nothing is paid
    /// twice.
    pub fn begin_attempt(&self) {
        let mut inner = self.lock();
        inner.next_call = 0;
        inner.bytes = 0;
        inner.used.reset();
        forget_failed(&mut inner.entries, |called| called, is_surely_failed);
        inner.repeated = true;
        inner.inner.values().for_each(|journal| journal.begin_attempt());
    }

    /// Whether the task was begun before this process or attempt.
    pub fn is_repeated(&self) -> bool {
        self.lock().repeated
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
            .any(|(_, entry)| entry.batch == call && entry.function == stream::LOOK)
    }

    /// What is known of a call.
    ///
    /// # Errors
    ///
    /// [`Unwind::Divergence`] if the call that was made before was another.
    pub(crate) fn look_up(
        &self,
        call: u32,
        function: &str,
        digest: Digest,
        request: impl FnOnce() -> Value,
    ) -> Result<Known, Unwind> {
        let inner = self.lock();
        let Some(entry) = inner.entries.get(&call) else {
            return Ok(if inner.open.contains(&call) { Known::Open } else { Known::New });
        };
        if entry.function == function && entry.digest == digest {
            return Ok(Known::Answered(entry.result.clone()));
        }
        Err(divergence(
            call,
            json!({ "function": entry.function, "request": entry.request }),
            json!({ "function": function, "request": request() }),
        ))
    }

    /// Keeps an answer.
    pub fn keep(&self, called: Called) {
        let mut inner = self.lock();
        inner.open.remove(&called.call);
        if called.result.is_ok() {
            // It is not made again, so nobody asks what was called inside of it.
            inner.inner.remove(&called.call);
        }
        inner.entries.insert(called.call, called);
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

/// Forgets the calls of the last batch that failed, so that the next attempt makes them again.
fn forget_failed<T>(
    entries: &mut BTreeMap<u32, T>,
    called: impl Fn(&T) -> &Called,
    is_failed: impl Fn(&Called) -> bool,
) {
    let Some(last) = entries.values().next_back().map(&called) else { return };
    let (batch, is_look) = (last.batch, last.function == stream::LOOK);
    // Looks at the pieces of an answer that failed are void with it, unless the guest did something
    // in between that must not be done twice: calls after it would get other numbers.
    let cut = is_look && entries.get(&batch).is_none_or(|first| called(first).result.is_err());
    let mut later = entries.range(batch.saturating_add(1)..);
    let is_void = cut && later.all(|(_, entry)| is_harmless(called(entry)));
    entries.retain(|call, entry| *call < batch || !(is_void || is_failed(called(entry))));
}

/// Whether nobody outside notices if a call is made again.
fn is_harmless(called: &Called) -> bool {
    let harmless = ["emit.", "clock.", "random."];
    called.function == stream::LOOK || harmless.iter().any(|name| called.function.starts_with(name))
}

/// Whether a call may be made again without a person who wants it.
fn is_surely_failed(called: &Called) -> bool {
    is_failed(called) && !matches!(&called.result, Err(failure) if failure.code == code::IN_DOUBT)
}

fn is_failed(called: &Called) -> bool {
    match &called.result {
        Err(_) => true,
        Ok(answer) => {
            called.function == super::transaction::FUNCTION
                && answer[TRANSACTION_END] == ROLLED_BACK
        }
    }
}

#[cfg(test)]
mod tests {
    use wattle_graph::id::{NodeName, TaskId};

    use super::*;

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
        for called in calls {
            journal.keep(called);
        }
        journal.begin_attempt();
        let inner = journal.lock();
        inner.entries.keys().copied().collect()
    }

    #[test]
    fn looks_at_a_cut_answer_are_forgotten_if_nothing_else_was_done() {
        let look = |call| called(call, 0, stream::LOOK, Ok(json!([])));
        let between = |function| called(2, 2, function, Ok(Value::Null));
        assert!(kept(vec![look(1), between("clock.now"), look(3)]).is_empty());
        assert_eq!(kept(vec![look(1), between("sql.transaction"), look(3)]), [1, 2, 3]);
    }

    #[test]
    fn a_call_in_doubt_is_not_made_again_with_others_of_its_batch_that_failed() {
        let failed = |call, word: &str| called(call, 0, "tools.call", Err(Failure::new(word, "")));
        assert_eq!(kept(vec![failed(0, code::IN_DOUBT), failed(1, code::UNAVAILABLE)]), [0]);
    }
}
