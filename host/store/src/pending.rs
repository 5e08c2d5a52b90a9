//! The pending runs of a store that one process opens, in the order of the requests for them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use wattle_graph::event::RunStatus;
use wattle_graph::id::{RunId, ThreadId};
use wattle_run::ports::store::{
    Batch, PendingQuery, PendingRun, QueueCondition, RunRecord, StoreError,
};

use crate::validate;

/// Pending runs, found by position, by run and by thread. A position is a number that orders runs
/// by the time of the request for them.
#[derive(Debug, Default)]
pub(crate) struct PendingRuns {
    by_position: BTreeMap<u64, PendingRun>,
    positions: HashMap<RunId, u64>,
    threads: HashMap<ThreadId, BTreeSet<u64>>,
    /// The highest position that was assigned to a pending run.
    last_position: u64,
}

impl PendingRuns {
    /// Adds a run after all other pending runs and returns its position.
    pub(crate) fn push(&mut self, run: &RunRecord) -> u64 {
        let position = self.last_position + 1;
        self.insert(position, run);
        position
    }

    /// Adds a run at a position.
    pub(crate) fn insert(&mut self, position: u64, run: &RunRecord) {
        self.last_position = self.last_position.max(position);
        let due_ms = run.due_ms();
        let (id, thread) = (run.id.clone(), run.thread.clone());
        self.positions.insert(id.clone(), position);
        self.threads.entry(thread.clone()).or_default().insert(position);
        let caller = run.caller();
        self.by_position.insert(position, PendingRun { position, run: id, thread, due_ms, caller });
    }

    /// Removes a run. Returns `false` if it is not pending.
    pub(crate) fn remove(&mut self, run: &RunId) -> bool {
        let Some(position) = self.positions.remove(run) else { return false };
        if let Some(taken) = self.by_position.remove(&position)
            && let Some(positions) = self.threads.get_mut(&taken.thread)
        {
            positions.remove(&position);
            if positions.is_empty() {
                self.threads.remove(&taken.thread);
            }
        }
        true
    }

    /// Returns the thread of a pending run.
    pub(crate) fn thread_of(&self, run: &RunId) -> Option<&ThreadId> {
        self.by_position.get(self.positions.get(run)?).map(|pending| &pending.thread)
    }

    /// Returns whether a run is pending.
    pub(crate) fn contains(&self, run: &RunId) -> bool {
        self.positions.contains_key(run)
    }

    /// Checks a batch against the pending runs of its thread. `is_known` is whether the store has
    /// the run of the batch, pending or not.
    pub(crate) fn check_batch(
        &self,
        thread: &ThreadId,
        batch: &Batch,
        is_known: bool,
    ) -> Result<(), StoreError> {
        let Some(run) = &batch.run else {
            return validate::check_without_run(thread, batch.queue_condition);
        };
        let is_due = |position: &u64| self.by_position[position].due_ms <= run.started_ms;
        let are_due =
            || self.threads.get(thread).is_some_and(|positions| positions.iter().any(is_due));
        match batch.queue_condition {
            QueueCondition::Pending if !self.contains(&run.id) => {
                Err(validate::out_of_turn_error(thread, &run.id))
            }
            QueueCondition::Free if is_known || are_due() => {
                Err(validate::out_of_turn_error(thread, &run.id))
            }
            _ => Ok(()),
        }
    }

    /// Returns the pending runs that match a query, in the order of their positions.
    pub(crate) fn list(&self, query: &PendingQuery) -> Vec<PendingRun> {
        let after = query.after.map_or(0, |after| after.saturating_add(1));
        let is_due = |run: &&PendingRun| query.due_by_ms.is_none_or(|by_ms| run.due_ms <= by_ms);
        match &query.thread {
            Some(thread) => {
                let positions = self.threads.get(thread).into_iter().flatten();
                let behind = positions.filter(|position| **position >= after);
                let runs = behind.filter_map(|position| self.by_position.get(position));
                runs.filter(is_due).take(query.limit).cloned().collect()
            }
            None => {
                let behind = self.by_position.range(after..).map(|(_, run)| run);
                behind.filter(is_due).take(query.limit).cloned().collect()
            }
        }
    }
}

/// Checks that a run record has the status `pending` and a run specification.
pub(crate) fn check_pending(run: &RunRecord) -> Result<(), StoreError> {
    if run.status == RunStatus::Pending && run.spec.is_some() {
        return Ok(());
    }
    Err(validate::not_pending_error(run))
}
