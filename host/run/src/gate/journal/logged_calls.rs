//! The host calls of a task as recorded in the event log. The journal of the next execution of the
//! task is created from these calls.

use std::collections::BTreeMap;

use wattle_graph::event::{Called, Decision, InterruptRaised};

use super::forget::{drop_trailing_rollbacks, forget_failed, is_in_doubt, is_rolled_back};

/// Logged calls of a task by scope. The scope is the path of the tool calls around a call.
pub(crate) type CallsByScope = BTreeMap<Vec<u32>, LoggedCalls>;

/// Logged calls of one scope.
#[derive(Clone, Debug, Default)]
pub(crate) struct LoggedCalls {
    /// Calls with a result, with the sequence number of the result.
    pub results: BTreeMap<u32, (u64, Called)>,
    /// Sequence numbers of all logged starts of calls.
    pub starts: BTreeMap<u32, Vec<u64>>,
    /// Highest value of [`CallStarted::start_number`] for each call. Entries are never removed, so
    /// no two starts of a call have the same value.
    ///
    /// [`CallStarted::start_number`]: wattle_graph::event::CallStarted::start_number
    pub start_numbers: BTreeMap<u32, u64>,
    /// Decisions about in-doubt calls, with the sequence number of the decision.
    pub decisions: BTreeMap<u32, (u64, Decision)>,
    /// In-doubt calls and calls that an MCP server holds open, with the sequence number of the
    /// interrupt that is pending for them.
    pub(super) pending_interrupts: BTreeMap<u32, u64>,
    /// In-doubt calls that made the task fail permanently. A later run of the thread executes them
    /// again.
    failed_in_doubt: Vec<u32>,
    /// Sequence number for [`drop_trailing_rollbacks`].
    pub(super) newest_seq: u64,
}

impl LoggedCalls {
    /// Records the start of a call. `again` is the number of this start. A decision about an
    /// earlier start does not apply to this start.
    pub(crate) fn record_start(&mut self, call: u32, again: u64, seq: u64) {
        self.starts.entry(call).or_default().push(seq);
        self.start_numbers.insert(call, again);
        self.decisions.remove(&call);
        self.pending_interrupts.remove(&call);
        self.newest_seq = self.newest_seq.max(seq);
    }

    /// Records the result of a call.
    pub(crate) fn record_result(&mut self, seq: u64, called: Called) {
        if !is_rolled_back(&called) {
            self.newest_seq = self.newest_seq.max(seq);
        }
        self.results.insert(called.call, (seq, called));
    }

    /// Records an interrupt that a call raises. A call that elicits has continued, so an earlier
    /// decision about it no longer applies.
    pub(crate) fn record_interrupt(&mut self, raised: &InterruptRaised, seq: u64) {
        if keeps_pending(raised) {
            self.pending_interrupts.insert(raised.call, seq);
        }
        if raised.elicited.is_some() {
            self.decisions.remove(&raised.call);
        }
        self.newest_seq = self.newest_seq.max(seq);
    }

    /// Records the decision about a call, and removes its `in-doubt` failure if the journal holds
    /// one.
    pub(crate) fn record_decision(&mut self, call: u32, seq: u64, decision: Decision) {
        self.results.retain(|number, (_, called)| *number != call || !is_in_doubt(called));
        self.decisions.insert(call, (seq, decision));
    }

    /// Records that another attempt of the task starts in the same run.
    pub(crate) fn begin_attempt(&mut self) {
        self.failed_in_doubt.clear();
        drop_trailing_rollbacks(&mut self.results, self.newest_seq);
    }

    /// Ends a failed attempt: removes the calls that the next attempt executes again. Keeps the
    /// start of a call with a pending interrupt. Such a call is in doubt (it may have taken
    /// effect), or its MCP server keeps it open until a person answers; in both cases it was not
    /// executing when the attempt failed. If `for_good` is true, no attempt follows in this run,
    /// and [`Self::end_run`] removes the calls of the last batch that failed as in doubt.
    pub(crate) fn fail_attempt(&mut self, for_good: bool) {
        let last = self.results.values().next_back().map_or(0, |(_, called)| called.batch);
        let doubtful =
            self.results.range(last..).filter(|(_, (_, it))| for_good && is_in_doubt(it));
        self.failed_in_doubt = doubtful.map(|(call, _)| *call).collect();
        self.starts.retain(|call, _| self.pending_interrupts.contains_key(call));
        forget_failed(&mut self.results);
    }

    /// Records the end of the run. Removes the in-doubt calls that made the task fail, so that the
    /// next run executes them again. The person who starts the next run has decided to repeat these
    /// calls.
    pub(crate) fn end_run(&mut self) {
        for call in self.failed_in_doubt.drain(..) {
            self.results.remove(&call);
            self.starts.remove(&call);
        }
    }

    /// Returns true if any call was started but has no result.
    pub(crate) fn has_open_calls(&self) -> bool {
        self.starts.keys().any(|call| !self.results.contains_key(call))
    }

    /// Returns the sequence number of the last start of a call.
    pub(crate) fn last_start_seq(&self, call: u32) -> Option<u64> {
        self.starts.get(&call)?.last().copied()
    }

    /// Removes everything that was recorded at `seq` or later.
    pub(crate) fn truncate_from(&mut self, seq: u64) {
        self.results.retain(|_, (made, _)| *made < seq);
        self.starts.retain(|_, begun| {
            begun.retain(|begun| *begun < seq);
            !begun.is_empty()
        });
        self.decisions.retain(|_, (decided, _)| *decided < seq);
        self.pending_interrupts.retain(|_, raised_seq| *raised_seq < seq);
        self.newest_seq = self.newest_seq.min(seq.saturating_sub(1));
    }
}

/// Returns true if a call stays open over failed attempts while this interrupt has no answer.
pub(super) fn keeps_pending(raised: &InterruptRaised) -> bool {
    raised.elicited.as_ref().is_none_or(|elicited| elicited.elicitation.held.is_some())
}
