//! State of the superstep loop.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tokio::sync::OwnedMutexGuard;
use wattle_graph::checkpoint::Checkpoint;
use wattle_graph::event::Event;
use wattle_graph::id::TaskId;
use wattle_graph::lineage::Lineage;

use crate::gate::Journal;
use crate::replay::Unstored;

/// Lock of a subgraph. Its superstep loop and its tasks hold it.
pub(super) type Turn = Arc<OwnedMutexGuard<()>>;

/// State of a superstep loop.
pub(crate) struct Stand {
    /// Current checkpoint with the events since.
    pub(super) lineage: Lineage,
    /// Number of completed supersteps.
    pub(super) steps: u32,
    /// Suspended tasks of the current superstep.
    pub(super) suspended: BTreeSet<TaskId>,
    /// Journals of the current superstep's tasks, for retries of the parent task.
    pub(super) journals: BTreeMap<TaskId, Arc<Journal>>,
    /// Logged events of unpersisted supersteps: all supersteps of a subgraph without checkpoints,
    /// or those before a crash of a run that persists only its last checkpoint.
    pub(super) unstored: Unstored,
    /// True if a task of the current superstep was executed in this process.
    pub(super) has_run: bool,
    /// Sequence number at which the loop reached its checkpoint; [`HERE`] if that was in this
    /// process.
    pub(super) arrived: u64,
}

/// Sequence number of events that this process has written. It compares greater than every sequence
/// number read from the log at startup.
pub(super) const HERE: u64 = u64::MAX;

impl Stand {
    /// Creates the state of a loop that continues from a lineage.
    pub(super) fn new(lineage: Lineage, arrived: u64) -> Self {
        Self {
            lineage,
            steps: 0,
            suspended: BTreeSet::new(),
            journals: BTreeMap::new(),
            unstored: Unstored::default(),
            has_run: false,
            arrived,
        }
    }

    /// Creates the state of a subgraph without checkpoints from its first checkpoint and all of its
    /// events.
    pub(super) fn replaying(lineage: Lineage, arrived: u64, events: &[Event]) -> Self {
        let unstored = Unstored::of(&lineage.checkpoint.meta.namespace, events);
        Self { unstored, ..Self::new(lineage, arrived) }
    }

    /// Sets the number of completed supersteps, counted from the first checkpoint.
    pub(super) fn count_from(&mut self, first: &Checkpoint) {
        self.steps = self.lineage.checkpoint.meta.step.saturating_sub(first.meta.step);
    }

    /// Collects the tasks that finished after the future awaiting them was dropped, and returns
    /// their number. Their journals hold the outcome, so a retry of the parent task does not
    /// execute them again.
    pub(super) fn hear_of_ends(&mut self) -> u64 {
        let mut heard = 0;
        for (task, journal) in &self.journals {
            if let Some(finished) = journal.take_finished()
                && !self.lineage.finished.contains_key(task)
            {
                self.lineage.failed.remove(task);
                self.lineage.finished.insert(task.clone(), finished);
                heard += 1;
            }
        }
        heard
    }

    /// Returns true if no task of the current superstep was executed here or has a logged result or
    /// interrupt.
    pub(super) fn is_untouched(&self) -> bool {
        let Lineage { finished, failed, interrupts: questions, .. } = &self.lineage;
        !self.has_run && finished.is_empty() && failed.is_empty() && questions.is_empty()
    }

    pub(super) fn advance_to(&mut self, checkpoint: Checkpoint, arrived: u64) {
        // Tasks that were executed here may have led elsewhere than the logged ones.
        if self.has_run {
            self.unstored = Unstored::default();
        }
        self.lineage.advance_to(checkpoint);
        self.suspended.clear();
        self.journals.clear();
        self.has_run = false;
        self.arrived = arrived;
        self.steps += 1;
    }
}
