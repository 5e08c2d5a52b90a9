//! The store in memory, for tests and for `wattle.toml` with `kind = "memory"`.
//!
//! [`Store::append`] applies the batch before it returns, so the ticket is ready. One mutex guards
//! all state. A batch is encoded outside of the mutex, and applied if its thread has not changed in
//! between.

mod frame;
mod rewrite;
mod thread;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{broadcast, watch};
use wattle_graph::event::Event;
use wattle_graph::id::{CheckpointId, Digest, Namespace, RunId, ThreadId};
use wattle_run::limit::{LIST_BYTES, ORPHANED_PAGE};
use wattle_run::ports::blob::BlobRef;
use wattle_run::ports::store::{
    Batch, BatchPage, CheckpointOutline, CheckpointQuery, CheckpointTuple, CompactionReport,
    HostReport, LeaseEpoch, LeaseHolder, ListPage, LiveHost, MentionPage, Notification,
    OrphanedThread, Owner, OwnerUsage, PendingQuery, PendingRun, PinnedVersions, PruneStrategy,
    RunRecord, RunSummary, SealReport, Store, StoreError, ThreadHead, ThreadQuery, ThreadRecord,
    ThreadStatus, ThreadSummary, Ticket,
};

use crate::codec::{Packer, json_bytes};
use crate::error::invalid;
use crate::lease::{Leases, monotonic_clock};
use crate::lock::lock;
use crate::page::PageBuilder;
use crate::pending::{PendingRuns, check_pending};
use crate::query::{ThreadFields, sort_and_skip, thread_matches};
use crate::retention_plan::{RetentionPlan, copied_records};
use crate::sweep::Mentions;
use crate::validate;
use crate::watch::WatchRegistry;
use rewrite::Target;
use thread::{Checked, Draft, Thread};

/// Capacity of the signal channel. When it is full, the oldest signals are lost, and their senders
/// repeat them.
const SIGNALS_LIMIT: usize = 1024;

/// A store in memory. Clones share their content.
#[derive(Clone, Debug)]
pub struct MemoryStore {
    state: Arc<Mutex<State>>,
    watches: Arc<WatchRegistry>,
    /// Reaches all engines of this process that share the store.
    signals: broadcast::Sender<Notification>,
}

#[derive(Debug)]
struct State {
    threads: HashMap<ThreadId, Thread>,
    runs: HashMap<RunId, RunRecord>,
    pending: PendingRuns,
    leases: Leases,
    /// Highest assigned thread number.
    numbered: u64,
}

impl State {
    /// Checks a batch and prepares the parts that depend on its thread.
    fn draft(&self, id: &ThreadId, batch: &Batch) -> Result<Draft, StoreError> {
        self.admit(id, batch)?;
        thread::draft(id, self.threads.get(id), batch)
    }

    fn admit(&self, id: &ThreadId, batch: &Batch) -> Result<(), StoreError> {
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

    /// Applies a batch. Returns the batch if its thread has changed since it was checked.
    fn append(
        &mut self,
        id: &ThreadId,
        batch: Batch,
        checked: Checked,
    ) -> Result<Result<u64, Batch>, StoreError> {
        if self.threads.get(id).map(Thread::end) != checked.follows {
            return Ok(Err(batch));
        }
        self.admit(id, &batch)?;
        self.leases.note_append(id, batch.epoch);
        if let Some(epoch) = batch.epoch.filter(|_| batch.releases_lease) {
            self.leases.release(id, epoch);
        }
        if let Some(run) = &batch.run {
            self.pending.remove(&run.id);
            self.runs.insert(run.id.clone(), run.clone());
        }
        match (self.threads.get_mut(id), batch.record.clone()) {
            (Some(thread), _) => Ok(Ok(thread.apply(batch, checked))),
            (None, Some(record)) => {
                let mut thread = Thread::new(record);
                let last_seq = thread.apply(batch, checked);
                self.put(id, thread);
                Ok(Ok(last_seq))
            }
            (None, None) => Ok(Ok(0)),
        }
    }
}

/// Runs, prunes and copies.
impl State {
    /// Inserts a thread, or replaces the one with the same id.
    fn put(&mut self, id: &ThreadId, mut thread: Thread) {
        self.numbered += 1;
        thread.number = self.numbered;
        self.threads.insert(id.clone(), thread);
    }

    fn runs(&self, thread: &Thread) -> Vec<RunRecord> {
        thread.runs.iter().filter_map(|run| self.runs.get(run)).cloned().collect()
    }

    fn forget_run(&mut self, run: &RunId) {
        self.pending.remove(run);
        self.runs.remove(run);
    }

    fn enqueue(&mut self, run: &RunRecord) -> Result<bool, StoreError> {
        check_pending(run)?;
        let thread =
            self.threads.get_mut(&run.thread).ok_or_else(|| validate::no_thread_error(run))?;
        if self.runs.contains_key(&run.id) {
            return Ok(false);
        }
        let mut packer = Packer::default();
        packer.pack(run).map_err(|message| invalid(&run.thread, message))?;
        thread.mentions.extend(packer.mentions);
        thread.runs.push(run.id.clone());
        self.pending.push(run);
        self.runs.insert(run.id.clone(), run.clone());
        Ok(true)
    }

    fn dequeue(&mut self, run: &RunId, ended: Option<&RunRecord>) -> bool {
        if !self.pending.remove(run) {
            return false;
        }
        match ended {
            Some(ended) => drop(self.runs.insert(run.clone(), ended.clone())),
            None => {
                let Some(record) = self.runs.remove(run) else { return true };
                if let Some(thread) = self.threads.get_mut(&record.thread) {
                    thread.runs.retain(|known| known != run);
                }
            }
        }
        true
    }

    fn delete(&mut self, id: &ThreadId) {
        if let Some(thread) = self.threads.remove(id) {
            thread.runs.iter().for_each(|run| self.forget_run(run));
        }
    }

    /// Applies a retention plan to a thread.
    fn keep(&mut self, id: &ThreadId, plan: &RetentionPlan) -> Result<(), StoreError> {
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
        let target = Target { record, runs: &runs, names: &names, goes_on: true };
        let rewritten = thread.rewritten(plan, target)?;
        let gone = thread.runs.iter().filter(|run| !rewritten.runs.contains(run));
        let gone: Vec<RunId> = gone.cloned().collect();
        for run in &gone {
            self.forget_run(run);
        }
        self.put(id, rewritten);
        Ok(())
    }

    fn prune(&mut self, id: &ThreadId, strategy: PruneStrategy) -> Result<(), StoreError> {
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
                self.keep(id, &plan)
            }
        }
    }

    /// Deletes runs. Returns the threads that it changed.
    fn delete_runs(&mut self, runs: &[RunId]) -> Result<Vec<ThreadId>, StoreError> {
        let mut threads: BTreeMap<ThreadId, BTreeSet<RunId>> = BTreeMap::new();
        for record in runs.iter().filter_map(|run| self.runs.get(run)) {
            threads.entry(record.thread.clone()).or_default().insert(record.id.clone());
        }
        threads.keys().try_for_each(|thread| self.leases.ensure_unleased(thread))?;
        let ids = threads.keys().cloned().collect();
        for (id, runs) in threads {
            let Some(thread) = self.threads.get(&id) else { continue };
            let plan = RetentionPlan::drop_runs(&thread.summaries(), thread.head.current, runs);
            self.keep(&id, &plan)?;
        }
        Ok(ids)
    }

    /// Copies a thread. Returns the newest sequence number of the copy.
    fn copy(
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
        let target = Target { record, runs: &runs, names: &names, goes_on: false };
        let copy = thread.rewritten(&plan, target)?;
        let last_seq = copy.head.last_seq;
        self.put(to, copy);
        self.runs.extend(runs.into_iter().map(|run| (run.id.clone(), run)));
        Ok(Some(last_seq))
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryStore {
    /// Creates an empty store.
    pub fn new() -> Self {
        Self::with_clock(monotonic_clock())
    }

    /// Creates an empty store whose leases expire by a clock of the caller: the time since a fixed
    /// moment, which never decreases.
    pub fn with_clock(clock: Arc<dyn Fn() -> Duration + Send + Sync>) -> Self {
        let leases = Leases::new(0, clock);
        let (threads, runs) = (HashMap::new(), HashMap::new());
        let pending = PendingRuns::default();
        let state = State { threads, runs, pending, leases, numbered: 0 };
        let signals = broadcast::Sender::new(SIGNALS_LIMIT);
        Self { state: Arc::new(Mutex::new(state)), watches: Arc::default(), signals }
    }

    fn take(&self, id: &ThreadId, mut batch: Batch) -> Result<u64, StoreError> {
        loop {
            // Bound to a variable, so that the lock is released first.
            let draft = lock(&self.state).draft(id, &batch)?;
            let checked = draft.pack(id, &batch)?;
            let appended = lock(&self.state).append(id, batch, checked)?;
            match appended {
                Ok(last_seq) => return Ok(last_seq),
                Err(again) => batch = again,
            }
        }
    }

    fn read<T>(&self, id: &ThreadId, read: impl FnOnce(&Thread) -> T) -> Option<T> {
        lock(&self.state).threads.get(id).map(read)
    }
}

/// Returns whether a thread counts for an owner.
fn belongs_to(thread: &Thread, owner: &Owner) -> bool {
    let ThreadRecord { id, app, tenant, .. } = &thread.head.record;
    owner.has(id, app, tenant.as_deref())
}

#[async_trait]
impl Store for MemoryStore {
    async fn append(&self, thread: &ThreadId, batch: Batch) -> Ticket {
        let result = self.take(thread, batch);
        if let Ok(last_seq) = result {
            self.watches.publish(thread, last_seq);
        }
        Ticket::ready(result.map(|_| ()))
    }

    async fn heartbeat(&self, holder: &LeaseHolder) -> Result<(), StoreError> {
        lock(&self.state).leases.heartbeat(holder);
        Ok(())
    }

    async fn report(&self, holder: &LeaseHolder, report: &HostReport) -> Result<(), StoreError> {
        lock(&self.state).leases.report(holder, report);
        Ok(())
    }

    async fn hosts(&self) -> Result<Vec<LiveHost>, StoreError> {
        Ok(lock(&self.state).leases.hosts())
    }

    async fn acquire_lease(
        &self,
        thread: &ThreadId,
        holder: &LeaseHolder,
    ) -> Result<LeaseEpoch, StoreError> {
        lock(&self.state).leases.acquire(thread, holder)
    }

    async fn is_lease_held(
        &self,
        thread: &ThreadId,
        epoch: LeaseEpoch,
    ) -> Result<bool, StoreError> {
        Ok(lock(&self.state).leases.check_epoch(thread, Some(epoch)).is_ok())
    }

    async fn release_lease(&self, thread: &ThreadId, epoch: LeaseEpoch) -> Result<(), StoreError> {
        lock(&self.state).leases.release(thread, epoch);
        Ok(())
    }

    fn watch(&self, thread: &ThreadId) -> watch::Receiver<u64> {
        self.watches.subscribe(thread, || {
            self.read(thread, |thread| thread.log_position().last_seq).unwrap_or(0)
        })
    }

    async fn thread(&self, thread: &ThreadId) -> Result<Option<ThreadHead>, StoreError> {
        Ok(self.read(thread, |thread| thread.head.clone()))
    }

    async fn orphaned_threads(
        &self,
        _holder: &LeaseHolder,
        after: Option<&ThreadId>,
    ) -> Result<Vec<OrphanedThread>, StoreError> {
        let state = lock(&self.state);
        let running = state.threads.values().map(|thread| &thread.head.record).filter(|record| {
            record.status == ThreadStatus::Running && after.is_none_or(|after| record.id > *after)
        });
        let mut running: Vec<&ThreadRecord> = running.collect();
        running.sort_unstable_by_key(|record| &record.id);
        Ok(running.into_iter().take(ORPHANED_PAGE).map(OrphanedThread::from).collect())
    }

    async fn threads(&self, query: &ThreadQuery) -> Result<ListPage<ThreadSummary>, StoreError> {
        let state = lock(&self.state);
        let all = state.threads.values().map(|thread| &thread.head.record);
        let all = all.map(|record| (ThreadFields::from(record), record));
        let matching = all.filter(|(fields, _)| thread_matches(query, fields)).collect();
        let mut page = PageBuilder::new(query.limit.unwrap_or(usize::MAX), LIST_BYTES);
        for (_, record) in sort_and_skip(query, matching) {
            let thread = ThreadSummary::from(record);
            let bytes = thread.memory_bytes();
            if !page.fits(bytes) {
                break;
            }
            page.push(thread, bytes);
        }
        Ok(page.finish())
    }

    async fn pinned_versions(&self) -> Result<PinnedVersions, StoreError> {
        let state = lock(&self.state);
        let records = state.threads.values().map(|thread| &thread.head.record);
        let versions = records.map(|record| (record.app.clone(), record.version)).collect();
        Ok(PinnedVersions { versions, is_complete: true })
    }

    async fn run(&self, run: &RunId) -> Result<Option<RunRecord>, StoreError> {
        Ok(lock(&self.state).runs.get(run).cloned())
    }

    async fn enqueue(&self, run: &RunRecord) -> Result<bool, StoreError> {
        lock(&self.state).enqueue(run)
    }

    async fn send_notification(&self, signal: &Notification) -> Result<(), StoreError> {
        // An error means that no receiver exists.
        let _ = self.signals.send(signal.clone());
        Ok(())
    }

    fn notifications(&self) -> Option<broadcast::Receiver<Notification>> {
        Some(self.signals.subscribe())
    }

    async fn dequeue(&self, run: &RunId, ended: Option<&RunRecord>) -> Result<bool, StoreError> {
        Ok(lock(&self.state).dequeue(run, ended))
    }

    async fn pending(&self, query: &PendingQuery) -> Result<Vec<PendingRun>, StoreError> {
        Ok(lock(&self.state).pending.list(query))
    }

    async fn runs(
        &self,
        thread: &ThreadId,
        skip: usize,
        limit: usize,
    ) -> Result<ListPage<RunSummary>, StoreError> {
        let state = lock(&self.state);
        let runs = state.threads.get(thread).map_or(&[][..], |thread| &thread.runs);
        let mut page = PageBuilder::new(limit, LIST_BYTES);
        for record in runs.iter().skip(skip).filter_map(|run| state.runs.get(run)) {
            let run = RunSummary::from(record);
            let bytes = run.memory_bytes();
            if !page.fits(bytes) {
                break;
            }
            page.push(run, bytes);
        }
        Ok(page.finish())
    }

    async fn newest_runs(
        &self,
        thread: &ThreadId,
        skip: usize,
        limit: usize,
    ) -> Result<ListPage<RunRecord>, StoreError> {
        let state = lock(&self.state);
        let runs = state.threads.get(thread).map_or(&[][..], |thread| &thread.runs);
        let mut page = PageBuilder::new(limit, LIST_BYTES);
        for record in runs.iter().rev().skip(skip).filter_map(|run| state.runs.get(run)) {
            let bytes = json_bytes(record);
            if !page.fits(bytes) {
                break;
            }
            page.push(record.clone(), bytes);
        }
        Ok(page.finish())
    }

    async fn checkpoint(
        &self,
        thread: &ThreadId,
        namespace: &Namespace,
        id: Option<CheckpointId>,
    ) -> Result<Option<CheckpointTuple>, StoreError> {
        Ok(self.read(thread, |thread| thread.checkpoint(namespace, id)).flatten())
    }

    async fn checkpoint_outline(
        &self,
        thread: &ThreadId,
        namespace: &Namespace,
        id: CheckpointId,
    ) -> Result<Option<CheckpointOutline>, StoreError> {
        Ok(self.read(thread, |thread| thread.outline(namespace, id)).flatten())
    }

    async fn checkpoints(
        &self,
        thread: &ThreadId,
        query: &CheckpointQuery,
    ) -> Result<ListPage<CheckpointTuple>, StoreError> {
        let found = self.read(thread, |thread| thread.checkpoints(query));
        Ok(found.unwrap_or_else(ListPage::empty))
    }

    async fn events(
        &self,
        thread: &ThreadId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Event>, StoreError> {
        Ok(self.read(thread, |thread| thread.events(after, limit)).unwrap_or_default())
    }

    async fn delete_thread(&self, thread: &ThreadId) -> Result<(), StoreError> {
        lock(&self.state).delete(thread);
        self.watches.remove(thread);
        Ok(())
    }

    async fn delete_runs(&self, runs: &[RunId]) -> Result<(), StoreError> {
        let touched = lock(&self.state).delete_runs(runs)?;
        for thread in touched {
            if self.read(&thread, |_| ()).is_none() {
                self.watches.remove(&thread);
            }
        }
        Ok(())
    }

    async fn copy_thread(
        &self,
        from: &ThreadId,
        to: &ThreadId,
        incarnation: &RunId,
        run_id: &(dyn for<'r> Fn(&'r RunId) -> RunId + Send + Sync),
    ) -> Result<(), StoreError> {
        let copied = lock(&self.state).copy(from, to, incarnation, run_id)?;
        if let Some(last_seq) = copied {
            self.watches.publish(to, last_seq);
        }
        Ok(())
    }

    async fn prune(&self, thread: &ThreadId, strategy: PruneStrategy) -> Result<(), StoreError> {
        lock(&self.state).prune(thread, strategy)?;
        if strategy == PruneStrategy::Delete {
            self.watches.remove(thread);
        }
        Ok(())
    }

    async fn batches(
        &self,
        thread: &ThreadId,
        from: Option<u64>,
        bytes: usize,
    ) -> Result<BatchPage, StoreError> {
        Ok(self.read(thread, |thread| thread.batches(from, bytes)).unwrap_or_default())
    }

    async fn verify(&self, thread: &ThreadId) -> Result<Option<SealReport>, StoreError> {
        self.read(thread, Thread::verify).transpose()
    }

    /// Does nothing, since there is no file.
    async fn compact(&self) -> Result<CompactionReport, StoreError> {
        Ok(CompactionReport::default())
    }

    async fn mentions(&self, thread: &ThreadId, blob: BlobRef) -> Result<bool, StoreError> {
        Ok(self.read(thread, |thread| thread.mentions.contains(&blob.0)).unwrap_or(false))
    }

    async fn usage(&self, of: &Owner) -> Result<OwnerUsage, StoreError> {
        let mut taken = OwnerUsage::default();
        let state = lock(&self.state);
        let own = state.threads.values().filter(|thread| belongs_to(thread, of));
        own.for_each(|thread| taken.add(thread.stored_bytes()));
        Ok(taken)
    }

    /// Returns one page, since all mentions are in memory.
    async fn mentioned_blobs(
        &self,
        of: &Owner,
        _from: Option<&str>,
    ) -> Result<MentionPage, StoreError> {
        let state = lock(&self.state);
        let own = state.threads.values().filter(|thread| belongs_to(thread, of));
        let blobs = own.flat_map(|thread| &thread.mentions).copied().map(BlobRef).collect();
        Ok(MentionPage { blobs, next: None })
    }

    async fn stored_bytes(&self, thread: &ThreadId) -> Result<u64, StoreError> {
        Ok(self.read(thread, Thread::stored_bytes).unwrap_or(0))
    }
}

#[async_trait]
impl Mentions for MemoryStore {
    async fn unmentioned(&self, blobs: &[BlobRef]) -> Result<Vec<BlobRef>, StoreError> {
        let state = lock(&self.state);
        let mut mentioned: BTreeSet<Digest> = BTreeSet::new();
        for thread in state.threads.values() {
            mentioned.extend(&thread.mentions);
        }
        Ok(blobs.iter().filter(|blob| !mentioned.contains(&blob.0)).copied().collect())
    }
}
