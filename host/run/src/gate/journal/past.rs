//! The host calls of a task as recorded in the event log. They fill the journal of its next
//! execution.

use std::collections::BTreeMap;

use wattle_graph::event::{Asked, Called, Decision};

use super::forget::{forget_failed, forget_last_rollbacks, is_in_doubt, is_rolled_back};

/// Logged calls of a task by scope. The scope is the path of the tool calls around a call.
pub(crate) type Scopes = BTreeMap<Vec<u32>, PastCalls>;

/// Logged calls of one scope.
#[derive(Clone, Debug, Default)]
pub(crate) struct PastCalls {
    /// Calls with a result, with the sequence number of the result.
    pub answered: BTreeMap<u32, (u64, Called)>,
    /// Sequence numbers of all logged starts of calls.
    pub open: BTreeMap<u32, Vec<u64>>,
    /// Highest value of [`CallStarted::again`] for each call. It is never removed, so no two starts
    /// of a call have the same value.
    ///
    /// [`CallStarted::again`]: wattle_graph::event::CallStarted::again
    pub again: BTreeMap<u32, u64>,
    /// Decisions about in-doubt calls, with the sequence number of the decision.
    pub settled: BTreeMap<u32, (u64, Decision)>,
    /// In-doubt calls and calls that a tool server holds open, with the sequence number of the
    /// interrupt that is pending for them.
    asked: BTreeMap<u32, u64>,
    /// In-doubt calls that made the task fail permanently. A later run of the thread executes them
    /// again.
    doubtful: Vec<u32>,
    /// Sequence number for [`forget_last_rollbacks`].
    pub(super) newest: u64,
}

impl PastCalls {
    /// Records the start of a call. `again` is the number of this start. A decision about an
    /// earlier start does not apply to it.
    pub(crate) fn begin(&mut self, call: u32, again: u64, seq: u64) {
        self.open.entry(call).or_default().push(seq);
        self.again.insert(call, again);
        self.settled.remove(&call);
        self.asked.remove(&call);
        self.newest = self.newest.max(seq);
    }

    /// Records the result of a call.
    pub(crate) fn answer(&mut self, seq: u64, called: Called) {
        if !is_rolled_back(&called) {
            self.newest = self.newest.max(seq);
        }
        self.answered.insert(called.call, (seq, called));
    }

    /// Records an interrupt that a call raises. A call that elicits has continued, so an earlier
    /// decision about it no longer applies.
    pub(crate) fn ask(&mut self, asked: &Asked, seq: u64) {
        if keeps_open(asked) {
            self.asked.insert(asked.call, seq);
        }
        if asked.elicited.is_some() {
            self.settled.remove(&asked.call);
        }
        self.newest = self.newest.max(seq);
    }

    /// Records the decision about a call, and removes its `in-doubt` failure if the journal holds
    /// one.
    pub(crate) fn settle(&mut self, call: u32, seq: u64, decision: Decision) {
        self.answered.retain(|number, (_, called)| *number != call || !is_in_doubt(called));
        self.settled.insert(call, (seq, decision));
    }

    /// Records that another attempt of the task starts in the same run.
    pub(crate) fn begin_attempt(&mut self) {
        self.doubtful.clear();
        forget_last_rollbacks(&mut self.answered, self.newest);
    }

    /// Removes the calls that the next attempt executes again. `for_good` is true if no attempt
    /// follows in this run. A call with a pending interrupt stays in doubt, and so does a call that
    /// its server holds open: it was not executing when the attempt failed.
    pub(crate) fn give_up_attempt(&mut self, for_good: bool) {
        let last = self.answered.values().next_back().map_or(0, |(_, called)| called.batch);
        let doubtful =
            self.answered.range(last..).filter(|(_, (_, it))| for_good && is_in_doubt(it));
        self.doubtful = doubtful.map(|(call, _)| *call).collect();
        self.open.retain(|call, _| self.asked.contains_key(call));
        forget_failed(&mut self.answered);
    }

    /// Records the end of the run. In-doubt calls that made the task fail are removed, since only a
    /// person can start another run.
    pub(crate) fn end_run(&mut self) {
        for call in self.doubtful.drain(..) {
            self.answered.remove(&call);
            self.open.remove(&call);
        }
    }

    /// Returns the sequence number of the last start of a call.
    pub(crate) fn begun(&self, call: u32) -> Option<u64> {
        self.open.get(&call)?.last().copied()
    }

    /// Removes everything that was recorded at `seq` or later.
    pub(crate) fn forget_since(&mut self, seq: u64) {
        self.answered.retain(|_, (made, _)| *made < seq);
        self.open.retain(|_, begun| {
            begun.retain(|begun| *begun < seq);
            !begun.is_empty()
        });
        self.settled.retain(|_, (decided, _)| *decided < seq);
        self.asked.retain(|_, asked| *asked < seq);
        self.newest = self.newest.min(seq.saturating_sub(1));
    }
}

/// Returns true if a call stays open over failed attempts while this interrupt has no answer.
pub(super) fn keeps_open(asked: &Asked) -> bool {
    asked.elicited.as_ref().is_none_or(|elicited| elicited.asked.held.is_some())
}
