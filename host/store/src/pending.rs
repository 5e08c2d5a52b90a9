//! The pending runs of a store that one process opens, in the order of the requests for them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use wattle_graph::event::RunStatus;
use wattle_graph::id::{RunId, ThreadId};
use wattle_run::ports::store::{
    Batch, PendingQuery, PendingRun, QueueCondition, RunRecord, StoreError,
};

use crate::rules;

/// Pending runs by position, by run and by thread.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    by_place: BTreeMap<u64, PendingRun>,
    places: HashMap<RunId, u64>,
    threads: HashMap<ThreadId, BTreeSet<u64>>,
    /// The highest position that was assigned.
    last_place: u64,
}

impl Pending {
    /// Adds a run behind all others and returns its position.
    pub(crate) fn push(&mut self, run: &RunRecord) -> u64 {
        let place = self.last_place + 1;
        self.put(place, run);
        place
    }

    /// Adds a run at a position.
    pub(crate) fn put(&mut self, place: u64, run: &RunRecord) {
        self.last_place = self.last_place.max(place);
        let due_ms = run.due_ms();
        let (id, thread) = (run.id.clone(), run.thread.clone());
        self.places.insert(id.clone(), place);
        self.threads.entry(thread.clone()).or_default().insert(place);
        let caller = run.caller();
        self.by_place
            .insert(place, PendingRun { position: place, run: id, thread, due_ms, caller });
    }

    /// Removes a run. Returns `false` if it is not pending.
    pub(crate) fn remove(&mut self, run: &RunId) -> bool {
        let Some(place) = self.places.remove(run) else { return false };
        if let Some(taken) = self.by_place.remove(&place)
            && let Some(places) = self.threads.get_mut(&taken.thread)
        {
            places.remove(&place);
            if places.is_empty() {
                self.threads.remove(&taken.thread);
            }
        }
        true
    }

    /// Returns the thread of a pending run.
    pub(crate) fn thread_of(&self, run: &RunId) -> Option<&ThreadId> {
        self.by_place.get(self.places.get(run)?).map(|pending| &pending.thread)
    }

    /// Returns whether a run is pending.
    pub(crate) fn has(&self, run: &RunId) -> bool {
        self.places.contains_key(run)
    }

    /// Checks a batch against the pending runs of its thread. `is_known` is whether the store has
    /// the run of the batch, pending or not.
    pub(crate) fn admit(
        &self,
        thread: &ThreadId,
        batch: &Batch,
        is_known: bool,
    ) -> Result<(), StoreError> {
        let Some(run) = &batch.run else { return rules::no_turn(thread, batch.queue_condition) };
        let is_due = |place: &u64| self.by_place[place].due_ms <= run.started_ms;
        let are_due = || self.threads.get(thread).is_some_and(|places| places.iter().any(is_due));
        match batch.queue_condition {
            QueueCondition::Pending if !self.has(&run.id) => {
                Err(rules::out_of_turn(thread, &run.id))
            }
            QueueCondition::Free if is_known || are_due() => {
                Err(rules::out_of_turn(thread, &run.id))
            }
            _ => Ok(()),
        }
    }

    /// Returns the pending runs that match, in order.
    pub(crate) fn list(&self, query: &PendingQuery) -> Vec<PendingRun> {
        let after = query.after.map_or(0, |after| after.saturating_add(1));
        let is_due = |run: &&PendingRun| query.due_by_ms.is_none_or(|by_ms| run.due_ms <= by_ms);
        match &query.thread {
            Some(thread) => {
                let places = self.threads.get(thread).into_iter().flatten();
                let behind = places.filter(|place| **place >= after);
                let runs = behind.filter_map(|place| self.by_place.get(place));
                runs.filter(is_due).take(query.limit).cloned().collect()
            }
            None => {
                let behind = self.by_place.range(after..).map(|(_, run)| run);
                behind.filter(is_due).take(query.limit).cloned().collect()
            }
        }
    }
}

/// Checks that a record is that of a pending run with its specification.
pub(crate) fn check_new(run: &RunRecord) -> Result<(), StoreError> {
    if run.status == RunStatus::Pending && run.spec.is_some() {
        return Ok(());
    }
    Err(rules::not_pending(run))
}
