//! The calls of a task as the log holds them, for the journal of its next execution.

use std::collections::BTreeMap;

use wattle_graph::event::{Asked, Called, Decision};

use super::forget::{forget_failed, forget_last_rollbacks, is_in_doubt, is_rolled_back};

/// What the log holds of the calls of a task, by the path of tool calls they are inside of.
pub(crate) type Scopes = BTreeMap<Vec<u32>, PastCalls>;

/// What the log holds of the calls of one scope.
#[derive(Clone, Debug, Default)]
pub(crate) struct PastCalls {
    /// Answered calls, with their sequence numbers in the log.
    pub answered: BTreeMap<u32, (u64, Called)>,
    /// Calls whose beginning was logged, with the sequence numbers of each time.
    pub open: BTreeMap<u32, Vec<u64>>,
    /// The numbers that [`CallStarted::again`] had last. Never forgotten, so that no two beginnings
    /// of a call have the same.
    ///
    /// [`CallStarted::again`]: wattle_graph::event::CallStarted::again
    pub again: BTreeMap<u32, u64>,
    /// What was decided of calls in doubt, with the sequence numbers of that.
    pub settled: BTreeMap<u32, (u64, Decision)>,
    /// Calls that may have had their effect and wait for a person, with the sequence numbers of the question: those in
    /// doubt, and those that a server holds open.
    asked: BTreeMap<u32, u64>,
    /// Calls in doubt with which the task failed for good: a run that goes on after that end makes
    /// them again.
    doubtful: Vec<u32>,
    /// See [`forget_last_rollbacks`].
    pub(super) newest: u64,
}

impl PastCalls {
    /// Takes note that a call was begun, for the time that `again` says. What was decided of it
    /// before says nothing of this time.
    pub(crate) fn begin(&mut self, call: u32, again: u64, seq: u64) {
        self.open.entry(call).or_default().push(seq);
        self.again.insert(call, again);
        self.settled.remove(&call);
        self.asked.remove(&call);
        self.newest = self.newest.max(seq);
    }

    /// Takes note of an answer.
    pub(crate) fn answer(&mut self, seq: u64, called: Called) {
        if !is_rolled_back(&called) {
            self.newest = self.newest.max(seq);
        }
        self.answered.insert(called.call, (seq, called));
    }

    /// Takes note of a question. A call that asks has gone on, so what was decided of it before says
    /// nothing any more.
    pub(crate) fn ask(&mut self, asked: &Asked, seq: u64) {
        if keeps_open(asked) {
            self.asked.insert(asked.call, seq);
        }
        if asked.elicited.is_some() {
            self.settled.remove(&asked.call);
        }
        self.newest = self.newest.max(seq);
    }

    /// Takes note of what was decided of a call, also of one that counts as failed by now.
    pub(crate) fn settle(&mut self, call: u32, seq: u64, decision: Decision) {
        self.answered.retain(|number, (_, called)| *number != call || !is_in_doubt(called));
        self.settled.insert(call, (seq, decision));
    }

    /// Takes note that the task is executed again in the same run.
    pub(crate) fn begin_attempt(&mut self) {
        self.doubtful.clear();
        forget_last_rollbacks(&mut self.answered, self.newest);
    }

    /// Forgets what must be made again after a failed attempt; `for_good` says that only a person
    /// can want another one. A call that a person is asked about stays in doubt, and so does one that its server holds
    /// open: it was not under way.
    pub(crate) fn give_up_attempt(&mut self, for_good: bool) {
        let last = self.answered.values().next_back().map_or(0, |(_, called)| called.batch);
        let doubtful =
            self.answered.range(last..).filter(|(_, (_, it))| for_good && is_in_doubt(it));
        self.doubtful = doubtful.map(|(call, _)| *call).collect();
        self.open.retain(|call, _| self.asked.contains_key(call));
        forget_failed(&mut self.answered);
    }

    /// Takes note that the run has ended, so that nothing goes on but by a person.
    pub(crate) fn end_run(&mut self) {
        for call in self.doubtful.drain(..) {
            self.answered.remove(&call);
            self.open.remove(&call);
        }
    }

    /// When a call was begun last.
    pub(crate) fn begun(&self, call: u32) -> Option<u64> {
        self.open.get(&call)?.last().copied()
    }

    /// Forgets what happened from a place in the log on.
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

/// Whether a call stays open over attempts that fail while a question of it has no answer.
pub(super) fn keeps_open(asked: &Asked) -> bool {
    asked.elicited.as_ref().is_none_or(|elicited| elicited.asked.held.is_some())
}
