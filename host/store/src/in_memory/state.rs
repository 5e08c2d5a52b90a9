//! The state of a store in memory, which one mutex guards.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use wattle_graph::id::{AppName, GraphName, RunId, ThreadId};
use wattle_run::ports::store::{Batch, PruneStrategy, RunRecord, StoreError};

use crate::codec::Packer;
use crate::error::invalid;
use crate::in_memory::rewrite::RewriteTarget;
use crate::in_memory::thread::{self, EncodedBatch, ResolvedBatch, Thread};
use crate::lease::Leases;
use crate::pending::{PendingRuns, check_pending};
use crate::retention_plan::{RetentionPlan, copied_records};
use crate::validate;

/// The threads, runs and leases of a store.
#[derive(Debug)]
pub(super) struct State {
    pub(super) threads: HashMap<ThreadId, Thread>,
    pub(super) runs: HashMap<RunId, RunRecord>,
    pub(super) pending: PendingRuns,
    pub(super) leases: Leases,
    /// Highest assigned thread number.
    last_thread_no: u64,
}

impl State {
    /// Creates the state of an empty store.
    pub(super) fn new(leases: Leases) -> Self {
        Self {
            threads: HashMap::new(),
            runs: HashMap::new(),
            pending: PendingRuns::default(),
            leases,
            last_thread_no: 0,
        }
    }

    /// Validates a batch and resolves its references to the history of its thread.
    pub(super) fn resolve_batch(
        &self,
        id: &ThreadId,
        batch: &Batch,
    ) -> Result<ResolvedBatch, StoreError> {
        self.validate(id, batch)?;
        thread::resolve_batch(id, self.threads.get(id), batch)
    }

    fn validate(&self, id: &ThreadId, batch: &Batch) -> Result<(), StoreError> {
        self.leases.check_epoch(id, batch.epoch)?;
        validate::batch(id, self.threads.get(id).map(Thread::log_position), batch)?;
        if let Some(run) = &batch.run
            && let Some(owner) = self.runs.get(&run.id).map(|run| &run.thread)
            && owner != id
        {
            return Err(validate::foreign_run_error(id, run.id.as_str(), owner));
        }
        let is_known = batch.run.as_ref().is_some_and(|run| self.runs.contains_key(&run.id));
        self.pending.check_batch(id, batch, is_known)
    }

    /// Applies a batch. Returns the batch if its thread has changed since [`State::resolve_batch`].
    pub(super) fn append(
        &mut self,
        id: &ThreadId,
        batch: Batch,
        encoded: EncodedBatch,
    ) -> Result<Result<u64, Batch>, StoreError> {
        if self.threads.get(id).map(Thread::log_end) != encoded.expected_end {
            return Ok(Err(batch));
        }
        self.validate(id, &batch)?;
        self.leases.note_append(id, batch.epoch);
        if let Some(epoch) = batch.epoch.filter(|_| batch.releases_lease) {
            self.leases.release(id, epoch);
        }
        if let Some(run) = &batch.run {
            self.pending.remove(&run.id);
            self.runs.insert(run.id.clone(), run.clone());
        }
        match (self.threads.get_mut(id), batch.record.clone()) {
            (Some(thread), _) => Ok(Ok(thread.apply(batch, encoded))),
            (None, Some(record)) => {
                let mut thread = Thread::new(record);
                let last_seq = thread.apply(batch, encoded);
                self.insert_thread(id, thread);
                Ok(Ok(last_seq))
            }
            (None, None) => Ok(Ok(0)),
        }
    }
}

/// Runs, prunes and copies.
impl State {
    /// Inserts a thread, or replaces the thread with the same id.
    fn insert_thread(&mut self, id: &ThreadId, mut thread: Thread) {
        self.last_thread_no += 1;
        thread.number = self.last_thread_no;
        self.threads.insert(id.clone(), thread);
    }

    fn runs(&self, thread: &Thread) -> Vec<RunRecord> {
        thread.runs.iter().filter_map(|run| self.runs.get(run)).cloned().collect()
    }

    fn delete_run(&mut self, run: &RunId) {
        self.pending.remove(run);
        self.runs.remove(run);
    }

    pub(super) fn enqueue(
        &mut self,
        run: &RunRecord,
        requested: Option<&(AppName, GraphName)>,
    ) -> Result<bool, StoreError> {
        check_pending(run)?;
        let thread =
            self.threads.get_mut(&run.thread).ok_or_else(|| validate::no_thread_error(run))?;
        if self.runs.contains_key(&run.id) {
            return Ok(false);
        }
        let mut packer = Packer::default();
        packer.pack(run).map_err(|message| invalid(&run.thread, message))?;
        let record = &mut thread.head.record;
        if let Some(named) = requested.and_then(|requested| record.with_requested_graph(requested))
        {
            *record = named;
        }
        thread.mentions.extend(packer.mentions);
        thread.runs.push(run.id.clone());
        self.pending.push(run);
        self.runs.insert(run.id.clone(), run.clone());
        Ok(true)
    }

    pub(super) fn dequeue(
        &mut self,
        run: &RunId,
        ended: Option<&RunRecord>,
    ) -> Result<bool, StoreError> {
        let Some(thread) = self.pending.thread_of(run) else { return Ok(false) };
        let thread = self.threads.get_mut(thread);
        match ended {
            Some(ended) => {
                let mut packer = Packer::default();
                packer.measure(ended).map_err(|message| invalid(&ended.thread, message))?;
                if let Some(thread) = thread {
                    thread.mentions.extend(packer.mentions);
                }
                self.runs.insert(run.clone(), ended.clone());
            }
            None => {
                if let Some(thread) = thread {
                    thread.runs.retain(|known| known != run);
                }
                self.runs.remove(run);
            }
        }
        self.pending.remove(run);
        Ok(true)
    }

    pub(super) fn delete(&mut self, id: &ThreadId) {
        if let Some(thread) = self.threads.remove(id) {
            thread.runs.iter().for_each(|run| self.delete_run(run));
        }
    }

    /// Applies a retention plan to a thread.
    fn apply_plan(&mut self, id: &ThreadId, plan: &RetentionPlan) -> Result<(), StoreError> {
        let Some(thread) = self.threads.get(id) else { return Ok(()) };
        if plan.is_noop(&thread.summaries()) {
            return Ok(());
        }
        if plan.drops_thread() {
            self.delete(id);
            return Ok(());
        }
        let runs = plan.runs(self.runs(thread));
        let record = plan.record(thread.head.record.clone(), &runs);
        let names = HashMap::new();
        let target = RewriteTarget { record, runs: &runs, names: &names, continues_seals: true };
        let rewritten = thread.rewrite(plan, target)?;
        let gone = thread.runs.iter().filter(|run| !rewritten.runs.contains(run));
        let gone: Vec<RunId> = gone.cloned().collect();
        for run in &gone {
            self.delete_run(run);
        }
        self.insert_thread(id, rewritten);
        Ok(())
    }

    pub(super) fn prune(
        &mut self,
        id: &ThreadId,
        strategy: PruneStrategy,
    ) -> Result<(), StoreError> {
        self.leases.ensure_unleased(id)?;
        let Some(thread) = self.threads.get(id) else { return Ok(()) };
        match strategy {
            PruneStrategy::Delete => {
                self.delete(id);
                Ok(())
            }
            PruneStrategy::KeepLatest => {
                let runs = self.runs(thread);
                let plan =
                    RetentionPlan::keep_latest(&thread.summaries(), thread.head.current, &runs);
                self.apply_plan(id, &plan)
            }
        }
    }

    /// Deletes runs. Returns the threads that it changed.
    pub(super) fn delete_runs(&mut self, runs: &[RunId]) -> Result<Vec<ThreadId>, StoreError> {
        let mut threads: BTreeMap<ThreadId, BTreeSet<RunId>> = BTreeMap::new();
        for record in runs.iter().filter_map(|run| self.runs.get(run)) {
            threads.entry(record.thread.clone()).or_default().insert(record.id.clone());
        }
        threads.keys().try_for_each(|thread| self.leases.ensure_unleased(thread))?;
        let ids = threads.keys().cloned().collect();
        for (id, runs) in threads {
            let Some(thread) = self.threads.get(&id) else { continue };
            let plan = RetentionPlan::drop_runs(&thread.summaries(), thread.head.current, runs);
            self.apply_plan(&id, &plan)?;
        }
        Ok(ids)
    }

    /// Copies a thread. Returns the newest sequence number of the copy.
    pub(super) fn copy(
        &mut self,
        from: &ThreadId,
        to: &ThreadId,
        incarnation: &RunId,
        run_id: &(dyn for<'r> Fn(&'r RunId) -> RunId + Send + Sync),
    ) -> Result<Option<u64>, StoreError> {
        let Some(thread) = self.threads.get(from) else { return Ok(None) };
        self.leases.ensure_unleased(from)?;
        if self.threads.contains_key(to) {
            return Err(validate::thread_exists_error(to));
        }
        validate::ensure_not_running(&thread.head.record)?;
        let checkpoints = thread.summaries().into_iter().filter_map(|batch| batch.checkpoint);
        let mentioned = checkpoints.map(|checkpoint| checkpoint.run);
        let events = thread.events_after(0).map(|event| event.run.clone());
        let all = mentioned.chain(events).chain(thread.runs.iter().cloned());
        let names: HashMap<RunId, RunId> = all.map(|run| (run.clone(), run_id(&run))).collect();
        let (record, runs) =
            copied_records(&thread.head.record, self.runs(thread), to, incarnation, &names);
        if let Some(run) = runs.iter().find(|run| self.runs.contains_key(&run.id)) {
            return Err(validate::run_exists_error(to, &run.id));
        }
        let plan = RetentionPlan::keep_all(&thread.summaries(), thread.head.current);
        let target = RewriteTarget { record, runs: &runs, names: &names, continues_seals: false };
        let copy = thread.rewrite(&plan, target)?;
        let last_seq = copy.head.last_seq;
        self.insert_thread(to, copy);
        self.runs.extend(runs.into_iter().map(|run| (run.id.clone(), run)));
        Ok(Some(last_seq))
    }
}
