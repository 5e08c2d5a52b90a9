//! A store in memory whose reads a test holds up or lets fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use tokio::sync::watch;
use wattle_graph::event::Event;
use wattle_graph::id::{CheckpointId, Namespace, RunId, ThreadId};
use wattle_run::ports::blob::BlobRef;
use wattle_run::ports::store::{
    Batch, BatchPage, CheckpointQuery, CheckpointTuple, Compacted, Epoch, Holder, PruneStrategy,
    RunRecord, Store, StoreError, ThreadHead, ThreadQuery, ThreadRecord, Ticket, Verified,
};
use wattle_store::MemoryStore;

/// The store.
pub(crate) struct Gated {
    inner: MemoryStore,
    /// Whether checkpoints may be read.
    pub(crate) checkpoints: watch::Sender<bool>,
    /// So many of the next reads of one run fail.
    pub(crate) failing_runs: AtomicUsize,
    /// How often events were read.
    pub(crate) event_reads: AtomicUsize,
}

impl Gated {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            inner: MemoryStore::new(),
            checkpoints: watch::channel(true).0,
            failing_runs: AtomicUsize::new(0),
            event_reads: AtomicUsize::new(0),
        })
    }

    async fn may_read(&self) {
        let _ = self.checkpoints.subscribe().wait_for(|may| *may).await;
    }
}

#[async_trait]
impl Store for Gated {
    async fn append(&self, thread: &ThreadId, batch: Batch) -> Ticket {
        self.inner.append(thread, batch).await
    }

    async fn beat(&self, holder: &Holder) -> Result<(), StoreError> {
        self.inner.beat(holder).await
    }

    async fn lease(&self, thread: &ThreadId, holder: &Holder) -> Result<Epoch, StoreError> {
        self.inner.lease(thread, holder).await
    }

    async fn holds(&self, thread: &ThreadId, epoch: Epoch) -> Result<bool, StoreError> {
        self.inner.holds(thread, epoch).await
    }

    async fn release(&self, thread: &ThreadId, epoch: Epoch) -> Result<(), StoreError> {
        self.inner.release(thread, epoch).await
    }

    fn watch(&self, thread: &ThreadId) -> watch::Receiver<u64> {
        self.inner.watch(thread)
    }

    async fn thread(&self, thread: &ThreadId) -> Result<Option<ThreadHead>, StoreError> {
        self.inner.thread(thread).await
    }

    async fn threads(&self, query: &ThreadQuery) -> Result<Vec<ThreadRecord>, StoreError> {
        self.inner.threads(query).await
    }

    async fn run(&self, run: &RunId) -> Result<Option<RunRecord>, StoreError> {
        let left = |left: usize| left.checked_sub(1);
        if self.failing_runs.fetch_update(Ordering::SeqCst, Ordering::SeqCst, left).is_ok() {
            return Err(StoreError::Closed);
        }
        self.inner.run(run).await
    }

    async fn runs(&self, thread: &ThreadId) -> Result<Vec<RunRecord>, StoreError> {
        self.inner.runs(thread).await
    }

    async fn checkpoint(
        &self,
        thread: &ThreadId,
        namespace: &Namespace,
        id: Option<CheckpointId>,
    ) -> Result<Option<CheckpointTuple>, StoreError> {
        self.may_read().await;
        self.inner.checkpoint(thread, namespace, id).await
    }

    async fn checkpoints(
        &self,
        thread: &ThreadId,
        query: &CheckpointQuery,
    ) -> Result<Vec<CheckpointTuple>, StoreError> {
        self.may_read().await;
        self.inner.checkpoints(thread, query).await
    }

    async fn events(
        &self,
        thread: &ThreadId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Event>, StoreError> {
        self.event_reads.fetch_add(1, Ordering::SeqCst);
        self.inner.events(thread, after, limit).await
    }

    async fn delete_thread(&self, thread: &ThreadId) -> Result<(), StoreError> {
        self.inner.delete_thread(thread).await
    }

    async fn delete_runs(&self, runs: &[RunId]) -> Result<(), StoreError> {
        self.inner.delete_runs(runs).await
    }

    async fn copy_thread(
        &self,
        from: &ThreadId,
        to: &ThreadId,
        run_id: &(dyn for<'r> Fn(&'r RunId) -> RunId + Send + Sync),
    ) -> Result<(), StoreError> {
        self.inner.copy_thread(from, to, run_id).await
    }

    async fn prune(&self, thread: &ThreadId, strategy: PruneStrategy) -> Result<(), StoreError> {
        self.inner.prune(thread, strategy).await
    }

    async fn batches(
        &self,
        thread: &ThreadId,
        from: Option<u64>,
        bytes: usize,
    ) -> Result<BatchPage, StoreError> {
        self.inner.batches(thread, from, bytes).await
    }

    async fn verify(&self, thread: &ThreadId) -> Result<Option<Verified>, StoreError> {
        self.inner.verify(thread).await
    }

    async fn compact(&self) -> Result<Compacted, StoreError> {
        self.inner.compact().await
    }

    async fn mentions(&self, thread: &ThreadId, blob: BlobRef) -> Result<bool, StoreError> {
        self.inner.mentions(thread, blob).await
    }

    async fn stored_bytes(&self, thread: &ThreadId) -> Result<u64, StoreError> {
        self.inner.stored_bytes(thread).await
    }
}
