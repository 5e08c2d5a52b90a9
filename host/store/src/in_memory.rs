//! The store in memory, for tests and for `wattle.toml` with `kind = "memory"`.
//!
//! [`Store::append`] applies the batch before it returns, so the ticket is ready. One mutex guards
//! all state. A batch is encoded without the mutex. It is applied if its thread has not changed in
//! the meantime, and otherwise validated and encoded again.

mod frame;
mod rewrite;
mod run_search;
mod search;
mod state;
mod thread;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{broadcast, watch};
use wattle_graph::event::Event;
use wattle_graph::id::{AppName, CheckpointId, Digest, GraphName, Namespace, RunId, ThreadId};
use wattle_run::limit::{LIST_BYTES, ORPHANED_PAGE};
use wattle_run::ports::blob::BlobRef;
use wattle_run::ports::store::{
    Batch, BatchPage, CheckpointOutline, CheckpointQuery, CheckpointTuple, CompactionReport,
    HostReport, LeaseEpoch, LeaseHolder, ListPage, LiveHost, MentionPage, Notification,
    OrphanedThread, Owner, OwnerUsage, PendingQuery, PendingRun, PinnedVersions, PruneStrategy,
    RunCounts, RunRecord, RunSearch, RunSearchPage, RunSummary, SealReport, Store, StoreError,
    StoreUsage, ThreadCounts, ThreadHead, ThreadQuery, ThreadRecord, ThreadSearch,
    ThreadSearchPage, ThreadStatus, ThreadSummary, Ticket,
};

use crate::codec::json_bytes;
use crate::lease::{Leases, monotonic_clock};
use crate::lock::lock;
use crate::page::PageBuilder;
use crate::query::{ThreadFields, sort_and_skip, thread_matches};
use crate::sweep::Mentions;
use crate::watch::WatchRegistry;
use state::State;
use thread::Thread;

/// Capacity of the channel of notifications. When the channel is full, the oldest notifications are
/// lost, and their senders repeat them.
const NOTIFICATION_CAPACITY: usize = 1024;

/// A store in memory. Clones share their content.
#[derive(Clone, Debug)]
pub struct InMemoryStore {
    state: Arc<Mutex<State>>,
    watches: Arc<WatchRegistry>,
    /// Sends notifications to all engines of this process that share the store.
    notifications: broadcast::Sender<Notification>,
}

impl Default for InMemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl InMemoryStore {
    /// Creates an empty store.
    pub fn new() -> Self {
        Self::with_clock(monotonic_clock())
    }

    /// Creates an empty store whose leases expire by a clock of the caller: the time since a fixed
    /// moment, which never decreases.
    pub fn with_clock(clock: Arc<dyn Fn() -> Duration + Send + Sync>) -> Self {
        let state = State::new(Leases::new(0, clock));
        let notifications = broadcast::Sender::new(NOTIFICATION_CAPACITY);
        Self { state: Arc::new(Mutex::new(state)), watches: Arc::default(), notifications }
    }

    fn append_batch(&self, id: &ThreadId, mut batch: Batch) -> Result<u64, StoreError> {
        loop {
            // A variable, so that the lock is released before the batch is encoded.
            let resolved = lock(&self.state).resolve_batch(id, &batch)?;
            let encoded = resolved.encode(id, &batch)?;
            let appended = lock(&self.state).append(id, batch, encoded)?;
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

/// Returns whether a thread belongs to an owner.
fn belongs_to(thread: &Thread, owner: &Owner) -> bool {
    let ThreadRecord { id, app, tenant, .. } = &thread.head.record;
    owner.has(id, app, tenant.as_deref())
}

#[async_trait]
impl Store for InMemoryStore {
    async fn append(&self, thread: &ThreadId, batch: Batch) -> Ticket {
        let result = self.append_batch(thread, batch);
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

    async fn search_threads(&self, search: &ThreadSearch) -> Result<ThreadSearchPage, StoreError> {
        Ok(lock(&self.state).search(search))
    }

    async fn count_threads(&self, search: &ThreadSearch) -> Result<ThreadCounts, StoreError> {
        lock(&self.state).count(search)
    }

    async fn search_runs(&self, search: &RunSearch) -> Result<RunSearchPage, StoreError> {
        lock(&self.state).search_runs(search)
    }

    async fn count_runs(&self, search: &RunSearch) -> Result<RunCounts, StoreError> {
        lock(&self.state).count_runs(search)
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

    async fn enqueue(
        &self,
        run: &RunRecord,
        requested: Option<&(AppName, GraphName)>,
    ) -> Result<bool, StoreError> {
        lock(&self.state).enqueue(run, requested)
    }

    async fn send_notification(&self, notification: &Notification) -> Result<(), StoreError> {
        // An error means that no receiver exists.
        let _ = self.notifications.send(notification.clone());
        Ok(())
    }

    fn notifications(&self) -> Option<broadcast::Receiver<Notification>> {
        Some(self.notifications.subscribe())
    }

    async fn dequeue(&self, run: &RunId, ended: Option<&RunRecord>) -> Result<bool, StoreError> {
        lock(&self.state).dequeue(run, ended)
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

    async fn total_usage(&self) -> Result<StoreUsage, StoreError> {
        let mut usage = StoreUsage::default();
        let state = lock(&self.state);
        for thread in state.threads.values() {
            let ThreadRecord { app, tenant, .. } = &thread.head.record;
            usage.add(app, tenant.as_deref(), thread.stored_bytes());
        }
        Ok(usage)
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
impl Mentions for InMemoryStore {
    async fn unmentioned(&self, blobs: &[BlobRef]) -> Result<Vec<BlobRef>, StoreError> {
        let state = lock(&self.state);
        let mut mentioned: BTreeSet<Digest> = BTreeSet::new();
        for thread in state.threads.values() {
            mentioned.extend(&thread.mentions);
        }
        Ok(blobs.iter().filter(|blob| !mentioned.contains(&blob.0)).copied().collect())
    }
}
