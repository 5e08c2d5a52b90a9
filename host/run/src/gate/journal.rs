//! The journal of one task: which host calls it made, and what they answered.
//!
//! It lives as long as the task, over all its attempts. A re-executed node gets the answers it
//! got before; a request that differs is a divergence. What is here is in the event log as well.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use wattle_graph::event::Called;
use wattle_graph::failure::{Failure, code};
use wattle_graph::id::Digest;

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
    /// A journal with the calls that the log holds for a task. `open` are calls whose beginning
    /// was logged; `repeated` says whether the task was begun before.
    pub fn new(entries: BTreeMap<u32, Called>, open: BTreeSet<u32>, repeated: bool) -> Self {
        let open = open.into_iter().filter(|call| !entries.contains_key(call)).collect();
        Self(Mutex::new(Inner { entries, open, repeated, ..Inner::default() }))
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
        forget_failed(&mut inner.entries);
        inner.repeated = true;
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
pub(crate) fn forget_failed(entries: &mut BTreeMap<u32, Called>) {
    let Some(batch) = entries.values().next_back().map(|last| last.batch) else { return };
    entries.retain(|call, called| *call < batch || !is_failed(called));
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
