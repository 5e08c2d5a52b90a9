//! The journal of one task: which host calls it made, and what they answered.
//!
//! A tool that the task calls has a journal of its own below the task's, for what the tool calls.
//! Journals live as long as the task, over all its attempts. A re-executed node gets the answers it
//! got before; a request that differs is a divergence. What is here is in the event log as well.

use std::collections::{BTreeMap, BTreeSet};
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
    emitted: u32,
    repeated: bool,
    /// What the log holds of calls inside of this journal's calls.
    past: Scopes,
    /// Journals of the tools that were called.
    inner: BTreeMap<u32, Arc<Journal>>,
}

/// What the log holds of the calls of a task, by the path of tool calls they are inside of.
pub(crate) type Scopes = BTreeMap<Vec<u32>, PastCalls>;

/// What the log holds of the calls of one scope.
#[derive(Clone, Debug, Default)]
pub(crate) struct PastCalls {
    /// Answered calls, with their sequence numbers in the log.
    pub answered: BTreeMap<u32, (u64, Called)>,
    /// Calls whose beginning was logged.
    pub open: BTreeSet<u32>,
}

impl PastCalls {
    /// Forgets what must be made again after a failed attempt.
    pub(crate) fn give_up_attempt(&mut self) {
        self.open.clear();
        forget_failed(&mut self.answered, |(_, called)| called);
    }

    /// A streamed answer that a crash cut is given again from its start. Looks at its pieces are
    /// forgotten with it, unless the guest did something in between that cannot be undone.
    pub(crate) fn forget_cut_streams(&mut self) {
        let cut = |(_, called): &(u64, Called)| {
            called.function == stream::LOOK && !self.answered.contains_key(&called.batch)
        };
        let Some(first) = self.answered.values().find(|entry| cut(entry)) else { return };
        let after = first.1.batch;
        let harmless = |function: &str| {
            function == stream::LOOK
                || ["emit.", "clock.", "random."].iter().any(|p| function.starts_with(p))
        };
        if self.answered.range(after..).all(|(_, (_, called))| harmless(&called.function)) {
            self.answered.split_off(&after);
            self.open.split_off(&after);
        }
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
        let open = open.into_iter().filter(|call| !entries.contains_key(call)).collect();
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
        let journal = Arc::new(Self::new(own, inner.repeated));
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
        inner.emitted = 0;
        forget_failed(&mut inner.entries, |called| called);
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
    /// [`Unwind::Limit`] if the task has made too many.
    pub fn take_numbers(&self, count: u32, allowed: u32) -> Result<u32, Unwind> {
        let mut inner = self.lock();
        if inner.next_call.saturating_add(count) > allowed {
            return Err(Unwind::Limit(
                Failure::new(
                    code::LIMIT,
                    format!("the node made more than {allowed} host calls; raise `host_calls` in its grant if that is right"),
                )
                .with_details(json!({ "limit": "host_calls", "allowed": allowed })),
            ));
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
        if inner.bytes <= allowed {
            return Ok(());
        }
        Err(Unwind::Limit(
            Failure::new(
                code::LIMIT,
                format!("the node's host calls carried more than {allowed} bytes; put large data into blobs"),
            )
            .with_details(json!({ "limit": "host_call_bytes", "allowed": allowed })),
        ))
    }

    /// Counts an emitted event.
    ///
    /// # Errors
    ///
    /// [`Unwind::Limit`] if there were too many.
    pub fn count_emission(&self) -> Result<(), Unwind> {
        let mut inner = self.lock();
        inner.emitted += 1;
        if inner.emitted <= limit::EMITTED_EVENTS {
            return Ok(());
        }
        Err(Unwind::Limit(
            Failure::new(
                code::LIMIT,
                format!("the node emitted more than {} events", limit::EMITTED_EVENTS),
            )
            .with_details(json!({ "limit": "emitted_events", "allowed": limit::EMITTED_EVENTS })),
        ))
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
        inner.entries.insert(called.call, called);
    }
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
fn forget_failed<T>(entries: &mut BTreeMap<u32, T>, called: impl Fn(&T) -> &Called) {
    let Some(last) = entries.values().next_back().map(&called) else { return };
    let (batch, is_look) = (last.batch, last.function == stream::LOOK);
    // Looks at the pieces of an answer that failed are void with it.
    let cut = is_look && entries.get(&batch).is_none_or(|first| called(first).result.is_err());
    entries.retain(|call, entry| *call < batch || !(cut || is_failed(called(entry))));
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
