//! Where a walk through a graph stands.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tokio::sync::OwnedMutexGuard;
use wattle_graph::checkpoint::Checkpoint;
use wattle_graph::event::Event;
use wattle_graph::id::TaskId;
use wattle_graph::lineage::Lineage;

use crate::gate::Journal;
use crate::replay::Unstored;

/// The right to walk through a nested graph. Its tasks have it, too.
pub(super) type Turn = Arc<OwnedMutexGuard<()>>;

/// Where a walk stands.
pub(crate) struct Stand {
    /// The state.
    pub(super) lineage: Lineage,
    /// Supersteps taken.
    pub(super) steps: u32,
    /// Tasks of the superstep that wait for an answer.
    pub(super) suspended: BTreeSet<TaskId>,
    /// Journals of the superstep's tasks, for those that are tried again.
    pub(super) journals: BTreeMap<TaskId, Arc<Journal>>,
    /// What the log holds of supersteps whose checkpoints are not stored: all of them of a graph
    /// that makes none, those before a crash of a run that stores only its last one.
    pub(super) unstored: Unstored,
    /// Whether a task of the superstep ran, rather than having finished before.
    pub(super) has_run: bool,
    /// The place in the log at which it came to its checkpoint; [`HERE`] if that was in this
    /// process.
    pub(super) arrived: u64,
}

/// The place of what is newer than everything that the log held when the process began.
pub(super) const HERE: u64 = u64::MAX;

impl Stand {
    /// A walk that begins, or goes on where a lineage stands since the place `arrived` in the log.
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

    /// The same for a graph that makes no checkpoints, from its beginning, with all that happened
    /// in it.
    pub(super) fn replaying(lineage: Lineage, arrived: u64, events: &[Event]) -> Self {
        let unstored = Unstored::of(&lineage.checkpoint.meta.namespace, events);
        Self { unstored, ..Self::new(lineage, arrived) }
    }

    /// Counts supersteps from the checkpoint that the walk began with.
    pub(super) fn count_from(&mut self, first: &Checkpoint) {
        self.steps = self.lineage.checkpoint.meta.step.saturating_sub(first.meta.step);
    }

    /// Takes over what tasks of the superstep came to that ended when nobody waited for them any
    /// more. Answers how many.
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

    /// Whether nothing has happened to the tasks of the superstep.
    pub(super) fn is_untouched(&self) -> bool {
        let Lineage { finished, failed, questions, .. } = &self.lineage;
        !self.has_run && finished.is_empty() && failed.is_empty() && questions.is_empty()
    }

    pub(super) fn advance_to(&mut self, checkpoint: Checkpoint, arrived: u64) {
        // What ran here may have led elsewhere than it did before.
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
