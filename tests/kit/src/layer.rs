//! Layers over a store that change some of its calls.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{broadcast, watch};
use wattle_graph::event::Event;
use wattle_graph::id::{AppName, CheckpointId, GraphName, Namespace, RunId, ThreadId};
use wattle_run::ports::Store;
use wattle_run::ports::blob::BlobRef;
use wattle_run::ports::store::{
    Batch, BatchPage, CheckpointOutline, CheckpointQuery, CheckpointTuple, CompactionReport,
    HostReport, LeaseEpoch, LeaseHolder, ListPage, LiveHost, MentionPage, Notification,
    OrphanedThread, Owner, OwnerUsage, PendingQuery, PendingRun, PinnedVersions, PruneStrategy,
    RunCounts, RunRecord, RunSearch, RunSearchPage, RunSummary, SealReport, StoreError, StoreUsage,
    ThreadCounts, ThreadHead, ThreadQuery, ThreadSearch, ThreadSearchPage, ThreadSummary, Ticket,
};

/// A layer over a store. Calls pass to the inner store by default.
#[async_trait]
pub trait Layer: Send + Sync {
    /// Creates the layer over a store.
    fn over(below: Arc<dyn Store>) -> Self
    where
        Self: Sized;

    /// Returns the inner store.
    fn below(&self) -> &dyn Store;

    /// Runs before each read, with the name of the method. An implementation may delay the read, or
    /// fail it.
    async fn reading(&self, read: &'static str) -> Result<(), StoreError> {
        let _ = read;
        Ok(())
    }

    /// Runs after each successful read, with the name of the method and the number of returned
    /// records.
    fn seen(&self, read: &'static str, records: usize) {
        let _ = (read, records);
    }

    /// See [`Store::append`].
    async fn append(&self, thread: &ThreadId, batch: Batch) -> Ticket {
        self.below().append(thread, batch).await
    }

    /// See [`Store::enqueue`].
    async fn enqueue(
        &self,
        run: &RunRecord,
        requested: Option<&(AppName, GraphName)>,
    ) -> Result<bool, StoreError> {
        self.below().enqueue(run, requested).await
    }

    /// See [`Store::is_shared`].
    fn is_shared(&self) -> bool {
        self.below().is_shared()
    }

    /// See [`Store::lease_ms`].
    fn lease_ms(&self) -> u64 {
        self.below().lease_ms()
    }

    /// See [`Store::acquire_lease`].
    async fn acquire_lease(
        &self,
        thread: &ThreadId,
        holder: &LeaseHolder,
    ) -> Result<LeaseEpoch, StoreError> {
        self.below().acquire_lease(thread, holder).await
    }

    /// See [`Store::release_lease`].
    async fn release_lease(&self, thread: &ThreadId, epoch: LeaseEpoch) -> Result<(), StoreError> {
        self.below().release_lease(thread, epoch).await
    }

    /// See [`Store::heartbeat`].
    async fn heartbeat(&self, holder: &LeaseHolder) -> Result<(), StoreError> {
        self.below().heartbeat(holder).await
    }

    /// See [`Store::is_lease_held`].
    async fn is_lease_held(
        &self,
        thread: &ThreadId,
        epoch: LeaseEpoch,
    ) -> Result<bool, StoreError> {
        self.below().is_lease_held(thread, epoch).await
    }

    /// See [`Store::check_writable`].
    async fn check_writable(&self) -> Result<(), StoreError> {
        self.below().check_writable().await
    }

    /// See [`Store::orphaned_threads`].
    async fn orphaned_threads(
        &self,
        holder: &LeaseHolder,
        after: Option<&ThreadId>,
    ) -> Result<Vec<OrphanedThread>, StoreError> {
        self.below().orphaned_threads(holder, after).await
    }

    /// See [`Store::events`].
    async fn events(
        &self,
        thread: &ThreadId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Event>, StoreError> {
        self.below().events(thread, after, limit).await
    }
}

/// A store with a layer.
pub struct Layered<L>(L);

impl<L: Layer> Layered<L> {
    /// Creates a layer over a store.
    pub fn over(below: Arc<dyn Store>) -> Self {
        Self(L::over(below))
    }
}

impl<L> Deref for Layered<L> {
    type Target = L;

    fn deref(&self) -> &L {
        &self.0
    }
}

#[async_trait]
impl<L: Layer> Store for Layered<L> {
    async fn append(&self, thread: &ThreadId, batch: Batch) -> Ticket {
        self.0.append(thread, batch).await
    }

    fn watch(&self, thread: &ThreadId) -> watch::Receiver<u64> {
        self.below().watch(thread)
    }

    async fn heartbeat(&self, holder: &LeaseHolder) -> Result<(), StoreError> {
        self.0.heartbeat(holder).await
    }

    async fn report(&self, holder: &LeaseHolder, report: &HostReport) -> Result<(), StoreError> {
        self.below().report(holder, report).await
    }

    async fn hosts(&self) -> Result<Vec<LiveHost>, StoreError> {
        self.below().hosts().await
    }

    fn lease_ms(&self) -> u64 {
        self.0.lease_ms()
    }

    async fn acquire_lease(
        &self,
        thread: &ThreadId,
        holder: &LeaseHolder,
    ) -> Result<LeaseEpoch, StoreError> {
        self.0.acquire_lease(thread, holder).await
    }

    async fn is_lease_held(
        &self,
        thread: &ThreadId,
        epoch: LeaseEpoch,
    ) -> Result<bool, StoreError> {
        self.0.is_lease_held(thread, epoch).await
    }

    async fn release_lease(&self, thread: &ThreadId, epoch: LeaseEpoch) -> Result<(), StoreError> {
        self.0.release_lease(thread, epoch).await
    }

    fn is_shared(&self) -> bool {
        self.0.is_shared()
    }

    async fn send_notification(&self, notification: &Notification) -> Result<(), StoreError> {
        self.below().send_notification(notification).await
    }

    fn notifications(&self) -> Option<broadcast::Receiver<Notification>> {
        self.below().notifications()
    }

    async fn orphaned_threads(
        &self,
        holder: &LeaseHolder,
        after: Option<&ThreadId>,
    ) -> Result<Vec<OrphanedThread>, StoreError> {
        self.0.orphaned_threads(holder, after).await
    }

    async fn next_lease_expiry(
        &self,
        holder: &LeaseHolder,
    ) -> Result<Option<Duration>, StoreError> {
        self.below().next_lease_expiry(holder).await
    }

    async fn thread(&self, thread: &ThreadId) -> Result<Option<ThreadHead>, StoreError> {
        self.reading("thread").await?;
        let found = self.below().thread(thread).await?;
        self.seen("thread", usize::from(found.is_some()));
        Ok(found)
    }

    async fn threads(&self, query: &ThreadQuery) -> Result<ListPage<ThreadSummary>, StoreError> {
        self.reading("threads").await?;
        let found = self.below().threads(query).await?;
        self.seen("threads", found.items.len());
        Ok(found)
    }

    async fn search_threads(&self, search: &ThreadSearch) -> Result<ThreadSearchPage, StoreError> {
        self.reading("search_threads").await?;
        let found = self.below().search_threads(search).await?;
        self.seen("search_threads", found.items.len());
        Ok(found)
    }

    async fn count_threads(&self, search: &ThreadSearch) -> Result<ThreadCounts, StoreError> {
        self.reading("count_threads").await?;
        let counts = self.below().count_threads(search).await?;
        self.seen("count_threads", 1);
        Ok(counts)
    }

    async fn search_runs(&self, search: &RunSearch) -> Result<RunSearchPage, StoreError> {
        self.reading("search_runs").await?;
        let found = self.below().search_runs(search).await?;
        self.seen("search_runs", found.items.len());
        Ok(found)
    }

    async fn count_runs(&self, search: &RunSearch) -> Result<RunCounts, StoreError> {
        self.reading("count_runs").await?;
        let counts = self.below().count_runs(search).await?;
        self.seen("count_runs", 1);
        Ok(counts)
    }

    async fn run(&self, run: &RunId) -> Result<Option<RunRecord>, StoreError> {
        self.reading("run").await?;
        let found = self.below().run(run).await?;
        self.seen("run", usize::from(found.is_some()));
        Ok(found)
    }

    async fn enqueue(
        &self,
        run: &RunRecord,
        requested: Option<&(AppName, GraphName)>,
    ) -> Result<bool, StoreError> {
        self.0.enqueue(run, requested).await
    }

    async fn dequeue(&self, run: &RunId, ended: Option<&RunRecord>) -> Result<bool, StoreError> {
        self.below().dequeue(run, ended).await
    }

    async fn pending(&self, query: &PendingQuery) -> Result<Vec<PendingRun>, StoreError> {
        self.reading("pending").await?;
        let found = self.below().pending(query).await?;
        self.seen("pending", found.len());
        Ok(found)
    }

    async fn runs(
        &self,
        thread: &ThreadId,
        skip: usize,
        limit: usize,
    ) -> Result<ListPage<RunSummary>, StoreError> {
        self.reading("runs").await?;
        let found = self.below().runs(thread, skip, limit).await?;
        self.seen("runs", found.items.len());
        Ok(found)
    }

    async fn newest_runs(
        &self,
        thread: &ThreadId,
        skip: usize,
        limit: usize,
    ) -> Result<ListPage<RunRecord>, StoreError> {
        self.reading("newest_runs").await?;
        let found = self.below().newest_runs(thread, skip, limit).await?;
        self.seen("newest_runs", found.items.len());
        Ok(found)
    }

    async fn checkpoint(
        &self,
        thread: &ThreadId,
        namespace: &Namespace,
        id: Option<CheckpointId>,
    ) -> Result<Option<CheckpointTuple>, StoreError> {
        self.reading("checkpoint").await?;
        let found = self.below().checkpoint(thread, namespace, id).await?;
        self.seen("checkpoint", usize::from(found.is_some()));
        Ok(found)
    }

    async fn checkpoint_outline(
        &self,
        thread: &ThreadId,
        namespace: &Namespace,
        id: CheckpointId,
    ) -> Result<Option<CheckpointOutline>, StoreError> {
        self.reading("checkpoint_outline").await?;
        let found = self.below().checkpoint_outline(thread, namespace, id).await?;
        self.seen("checkpoint_outline", usize::from(found.is_some()));
        Ok(found)
    }

    async fn checkpoints(
        &self,
        thread: &ThreadId,
        query: &CheckpointQuery,
    ) -> Result<ListPage<CheckpointTuple>, StoreError> {
        self.reading("checkpoints").await?;
        let found = self.below().checkpoints(thread, query).await?;
        self.seen("checkpoints", found.items.len());
        Ok(found)
    }

    async fn events(
        &self,
        thread: &ThreadId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Event>, StoreError> {
        self.reading("events").await?;
        let found = self.0.events(thread, after, limit).await?;
        self.seen("events", found.len());
        Ok(found)
    }

    async fn delete_thread(&self, thread: &ThreadId) -> Result<(), StoreError> {
        self.below().delete_thread(thread).await
    }

    async fn delete_runs(&self, runs: &[RunId]) -> Result<(), StoreError> {
        self.below().delete_runs(runs).await
    }

    async fn copy_thread(
        &self,
        from: &ThreadId,
        to: &ThreadId,
        incarnation: &RunId,
        run_id: &(dyn for<'r> Fn(&'r RunId) -> RunId + Send + Sync),
    ) -> Result<(), StoreError> {
        self.below().copy_thread(from, to, incarnation, run_id).await
    }

    async fn prune(&self, thread: &ThreadId, strategy: PruneStrategy) -> Result<(), StoreError> {
        self.below().prune(thread, strategy).await
    }

    async fn batches(
        &self,
        thread: &ThreadId,
        from: Option<u64>,
        bytes: usize,
    ) -> Result<BatchPage, StoreError> {
        self.below().batches(thread, from, bytes).await
    }

    async fn verify(&self, thread: &ThreadId) -> Result<Option<SealReport>, StoreError> {
        self.below().verify(thread).await
    }

    async fn compact(&self) -> Result<CompactionReport, StoreError> {
        self.below().compact().await
    }

    async fn check_writable(&self) -> Result<(), StoreError> {
        self.0.check_writable().await
    }

    async fn pinned_versions(&self) -> Result<PinnedVersions, StoreError> {
        self.below().pinned_versions().await
    }

    async fn mentions(&self, thread: &ThreadId, blob: BlobRef) -> Result<bool, StoreError> {
        self.below().mentions(thread, blob).await
    }

    async fn usage(&self, of: &Owner) -> Result<OwnerUsage, StoreError> {
        self.below().usage(of).await
    }

    async fn total_usage(&self) -> Result<StoreUsage, StoreError> {
        self.below().total_usage().await
    }

    async fn mentioned_blobs(
        &self,
        of: &Owner,
        from: Option<&str>,
    ) -> Result<MentionPage, StoreError> {
        self.below().mentioned_blobs(of, from).await
    }

    async fn stored_bytes(&self, thread: &ThreadId) -> Result<u64, StoreError> {
        self.below().stored_bytes(thread).await
    }
}
