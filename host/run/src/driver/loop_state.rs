//! State of the superstep loop.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tokio::sync::OwnedMutexGuard;
use wattle_graph::checkpoint::Checkpoint;
use wattle_graph::event::Event;
use wattle_graph::id::TaskId;
use wattle_graph::lineage::Lineage;

use crate::gate::Journal;
use crate::run_memory::MemoryCharge;
use crate::task::outcome_bytes::OutcomeBytes;
use crate::unpersisted_events::UnpersistedEvents;

/// Lock of a subgraph. Its superstep loop and its tasks hold it.
pub(super) type SubgraphLock = Arc<OwnedMutexGuard<()>>;

/// State of a superstep loop.
pub(crate) struct LoopState {
    /// Current checkpoint, with the events since this checkpoint.
    pub(super) lineage: Lineage,
    /// Number of completed supersteps.
    pub(super) steps: u32,
    /// Suspended tasks of the current superstep.
    pub(super) suspended: BTreeSet<TaskId>,
    /// Journals of the current superstep's tasks, for retries of the parent task.
    pub(super) journals: BTreeMap<TaskId, Arc<Journal>>,
    /// Logged events of unpersisted supersteps: all supersteps of a subgraph without checkpoints,
    /// or those before a crash of a run that persists only its last checkpoint.
    pub(super) unpersisted: UnpersistedEvents,
    /// True if a task of the current superstep was executed in this process.
    pub(super) has_executed_tasks: bool,
    /// Sequence number at which the loop reached its checkpoint; [`THIS_PROCESS_SEQ`] if this
    /// process reached the checkpoint.
    pub(super) checkpoint_seq: u64,
    /// Counter of the outcomes of the current superstep, whose memory the run holds until the
    /// superstep is applied.
    pub(super) outcomes: Arc<OutcomeBytes>,
    /// Memory of the state, and of the events with which the run continues until the root graph
    /// has reached its next checkpoint.
    pub(super) memory: MemoryCharge,
}

/// Sequence number of events that this process has written. This value is greater than every
/// sequence number that was read from the log at startup.
pub(super) const THIS_PROCESS_SEQ: u64 = u64::MAX;

impl LoopState {
    /// Creates the state of a superstep loop that continues from a checkpoint and the events since
    /// then.
    pub(super) fn new(lineage: Lineage, checkpoint_seq: u64) -> Self {
        Self {
            lineage,
            steps: 0,
            suspended: BTreeSet::new(),
            journals: BTreeMap::new(),
            unpersisted: UnpersistedEvents::default(),
            has_executed_tasks: false,
            checkpoint_seq,
            outcomes: Arc::default(),
            memory: MemoryCharge::default(),
        }
    }

    /// Creates the state of a subgraph without checkpoints from its first checkpoint and all of its
    /// events.
    pub(super) fn from_events(lineage: Lineage, checkpoint_seq: u64, events: &[Event]) -> Self {
        let unpersisted =
            UnpersistedEvents::from_events(&lineage.checkpoint.meta.namespace, events);
        Self { unpersisted, ..Self::new(lineage, checkpoint_seq) }
    }

    /// Sets the number of completed supersteps, counted from `first`, the first checkpoint of this
    /// invocation of the subgraph.
    pub(super) fn count_steps_from(&mut self, first: &Checkpoint) {
        self.steps = self.lineage.checkpoint.meta.step.saturating_sub(first.meta.step);
    }

    /// Collects the tasks that finished after the future awaiting them was dropped, and returns
    /// their number. Their journals hold the outcome, so a retry of the parent task does not
    /// execute them again.
    pub(super) fn collect_finished_tasks(&mut self) -> u64 {
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
    pub(super) fn has_no_progress(&self) -> bool {
        let Lineage { finished, failed, interrupts, .. } = &self.lineage;
        let has_events = !(finished.is_empty() && failed.is_empty() && interrupts.is_empty());
        !self.has_executed_tasks && !has_events
    }

    pub(super) fn advance_to(&mut self, checkpoint: Checkpoint, checkpoint_seq: u64) {
        // Tasks that this process executed may have other outcomes than the logged tasks, so the
        // logged supersteps that follow do not apply.
        if self.has_executed_tasks {
            self.unpersisted = UnpersistedEvents::default();
        }
        self.lineage.advance_to(checkpoint);
        self.suspended.clear();
        self.journals.clear();
        self.outcomes = Arc::default();
        self.has_executed_tasks = false;
        self.checkpoint_seq = checkpoint_seq;
        self.steps += 1;
    }
}
